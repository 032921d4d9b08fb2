/** The consent: where the answer goes, what is asked in plain words, for which account, Agree and Refuse. */
import { post } from '../shared/api.js';
import { Act, Time } from '../shared/ui.js';
import { html, useEffect, useState } from '../vendor/preact.js';

/** A page that was just brought to the front takes no answer: a click may have been meant for another window. */
const ARM_MS = 600;

/** True once the page has been in front for `ARM_MS` without a break. */
function useArmed() {
  const [isArmed, setArmed] = useState(false);
  useEffect(() => {
    let timer;
    const begin = () => {
      clearTimeout(timer);
      setArmed(false);
      if (document.hasFocus()) timer = setTimeout(() => setArmed(true), ARM_MS);
    };
    begin();
    addEventListener('focus', begin);
    addEventListener('blur', begin);
    return () => {
      clearTimeout(timer);
      removeEventListener('focus', begin);
      removeEventListener('blur', begin);
    };
  }, []);
  return isArmed;
}

/** Runs `expire` after the life of the challenge; the clock of the browser may be wrong. */
function useEnd(lifeSeconds, expire) {
  useEffect(() => {
    if (lifeSeconds === undefined) return undefined;
    const timer = setTimeout(expire, lifeSeconds * 1_000);
    return () => clearTimeout(timer);
  }, [lifeSeconds]);
}

const KEYS = { FIDO2: 'a passkey', UserKey: 'a software key', PasswordKey: 'a password key' };

export function Consent({ request, info, query, leave, expire, change, again }) {
  const { account, challenge, tools, scopes } = request;
  const isArmed = useArmed();
  useEnd(info?.limits.challengeSeconds, expire);
  const decide = (allow) => async () => {
    const { challengeId, code } = challenge;
    try {
      leave((await post('/connect/decide', { request: query, challengeId, code, allow })).redirect);
    } catch (error) {
      // Over or used (1104), the session ended (1101), or the login is too old (1110): the gateway says what is next.
      if (error.code === 1104) expire();
      else if (error.code === 1101 || error.code === 1110) await again();
      else throw error;
    }
  };
  return html`<section>
      <h1 tabindex="-1">Connect a program to your account?</h1>
      <${Client} request=${request} />
      <${Destination} request=${request} />
    </section>
    <section class="card" aria-labelledby="asked">
      <h2 id="asked">What it may do</h2>
      <ul class="scopes">${scopes.map((scope) => html`<li key=${scope}>${sentenceOfScope(scope, tools)}</li>`)}</ul>
      <${Tools} tools=${tools} />
    </section>
    <section class="card answer">
      <p class="who">Logged in as account <span class="mono">${account.userId}</span><span class="soft"> with ${account.keyName === null ? (KEYS[account.keyType] ?? 'a code') : `the key “${account.keyName}”`}, since <${Time} of=${account.loginUtc} />.</span> <button type="button" class="plain" onClick=${change}>Use another account</button></p>
      <div class="row">
        <${Act} kind="primary" inline disabled=${!isArmed} run=${decide(true)}>Agree<//>
        <${Act} inline disabled=${!isArmed} run=${decide(false)}>Refuse<//>
      </div>
      <p class="hint">You can end this at any time on the home page, under “Connected hosts”.</p>
    </section>`;
}

/** What the program says of itself, as its own claim. */
export function Client({ request }) {
  const { client } = request;
  if (client === null) return null;
  const { kind, name, host } = client;
  if (name === '') return html`<p>A program of <strong>${host}</strong> asks for access.</p>`;
  const claim = html`A program that calls itself <q>${name}</q>`;
  if (kind === 'application')
    return html`<p>${claim}${host === null ? '' : html` of <strong>${host}</strong>`} asks for access. An admin approved where the access goes, not the name.</p>`;
  if (kind === 'document') return html`<p>${claim} asks for access. The name comes from ${host}.</p>`;
  return html`<p>${claim} asks for access. That name was not checked.</p>`;
}

/** In large letters: who receives the access. */
function Destination({ request }) {
  const { destination, client } = request;
  const { kind, host, program } = destination;
  const isLocal = kind !== 'web';
  const differs = kind === 'web' && client.kind === 'document' && client.host !== host;
  return html`<div class=${isLocal || differs ? 'destination warn' : 'destination'}>
    <p class="label" id="goes">The access goes to</p>
    <p class="where" aria-labelledby="goes">${WHERE[kind](host, program)}</p>
    ${isLocal && html`<p>Any program on this computer can ask in this way and take any name. Agree only if you have just started the connection yourself.</p>`}
    ${differs && html`<p>The program belongs to ${client.host}, but the access goes to ${host}. Agree only if you know both.</p>`}
  </div>`;
}

const WHERE = {
  web: (host) => host,
  computer: () => 'a program on this computer',
  program: (scheme, name) =>
    name === null
      ? `the program on this computer that opens ${scheme}: links`
      : `the program ${name} on this computer`,
};

/** A scope in plain words. Statements on changes follow from the list of tools. */
function sentenceOfScope(scope, tools) {
  const changes = tools.some(({ readOnly }) => !readOnly);
  switch (scope) {
    case 'read':
      return changes
        ? 'Look things up for you, with the tools below.'
        : 'Look things up for you, with the tools below. It cannot change anything.';
    case 'tools':
      return changes
        ? 'Look things up and act for you, with the tools below. No other tool is open to it.'
        : 'Use the tools below for you. No other tool is open to it.';
    case 'full':
      return 'Use every tool as you, as if you had logged in yourself.';
    case 'offline_access':
      return 'Stay connected while you are away. Unused, this ends after 30 days; in any case it ends after 180 days.';
    default:
      return scope;
  }
}

const GROUPS = [
  {
    title: 'Can make changes that cannot be undone',
    kind: 'bad',
    holds: ({ destructive, readOnly }) => destructive && !readOnly,
  },
  {
    title: 'Can make changes',
    kind: 'warn',
    holds: ({ destructive, readOnly }) => !destructive && !readOnly,
  },
  { title: 'Only look things up', kind: 'good', holds: ({ readOnly }) => readOnly },
];

/** All tools by name, those with the largest effect first. */
function Tools({ tools }) {
  if (tools.length === 0) return html`<p class="soft">No tools are open to it now.</p>`;
  const groups = GROUPS.map((group) => ({ ...group, list: tools.filter(group.holds) }));
  return html`${groups
    .filter(({ list }) => list.length > 0)
    .map(
      ({
        title,
        kind,
        list,
      }) => html`<h3 key=${title}>${title} <span class=${`tag ${kind}`}>${list.length}</span></h3>
        <ul class="names">${list.map((tool) => html`<li key=${tool.name} title=${tool.title ?? tool.description}><code>${tool.name}</code></li>`)}</ul>`,
    )}`;
}
