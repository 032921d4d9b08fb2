/** The consent: where the answer goes, what the person lets the program do, for which account, Agree and Refuse. */
import { post } from '../shared/api.js';
import { Act, ShortId, Time } from '../shared/ui.js';
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

/** `chosen` outlives a login in between: the account, the query and the choice are those of one question. */
export function Consent({ request, info, query, leave, expire, change, again, logIn, chosen, choose }) {
  const { challenge, access: asked, fullNeedsLogin } = request;
  const choices = choicesOf(request);
  const access = chosen ?? suggested(choices, asked);
  const isArmed = useArmed();
  useEnd(info?.limits.challengeSeconds, expire);
  const decide = (allow) => async () => {
    const { challengeId, code } = challenge;
    const body = { request: query, challengeId, code, allow, ...(allow && { access }) };
    try {
      leave((await post('/connect/decide', body)).redirect);
    } catch (error) {
      // Over or used (1104), the login is too old for the choice (1110), or the session ended (1101).
      if (error.code === 1104) expire();
      else if (error.code === 1110) logIn();
      else if (error.code === 1101) await again();
      else throw error;
    }
  };
  const needsLogin = access === 'full' && fullNeedsLogin;
  return html`<section class="card ask">
      <div class="part">
        <h1 tabindex="-1">Connect a program to your account?</h1>
        <${Client} request=${request} />
        <${Destination} request=${request} />
      </div>
      <div class="part">
        <fieldset class="choices">
          <legend>What it may do</legend>
          ${choices.map((choice) => html`<${Choice} key=${choice.access} choice=${choice} isAsked=${choice.access === asked} isChosen=${choice.access === access} choose=${choose} />`)}
        </fieldset>
        <${Tools} tools=${choices.find((choice) => choice.access === access)?.tools} />
        <p class="soft small stays">It stays connected until it is unused for 30 days, 180 days at most. You can end it at any time on the home page, under “Connected hosts”.</p>
      </div>
      <${Account} account=${request.account} change=${change} />
      <div class="acts">
        <${Act} inline disabled=${!isArmed} run=${decide(false)}>Refuse<//>
        ${
          needsLogin
            ? html`<${Act} key="log-in" kind="primary" inline run=${logIn}>Log in again<//>`
            : html`<${Act} key="agree" kind="primary" inline disabled=${!isArmed || access === undefined} run=${decide(true)}>Agree<//>`
        }
      </div>
    </section>`;
}

/** Full access is never the suggestion: a person who gives it has chosen it. */
function suggested(choices, asked) {
  const access = asked === 'full' ? 'tools' : asked;
  return choices.find((choice) => choice.access === access && choice.tools.length > 0)?.access;
}

/** Returns the effects of each choice here. Statements on changes follow from the list of tools. */
function choicesOf({ tools, fullNeedsLogin }) {
  const open = (access) => tools.filter((tool) => tool.access.includes(access));
  const read = open('read');
  const acts = open('tools');
  const full = open('full');
  const lasting = full.filter(({ destructive, readOnly }) => destructive && !readOnly).length;
  return [
    {
      access: 'read',
      title: 'Look things up',
      tools: read,
      says: changes(read).length === 0 ? 'It cannot change anything.' : actsOf(read),
    },
    { access: 'tools', title: 'Look up and act', tools: acts, says: actsOf(acts) },
    {
      access: 'full',
      title: 'Everything you can do',
      tools: full,
      says: `As if you had logged in yourself.${lasting === 0 ? '' : ` ${lasting} of them cannot be undone.`}${fullNeedsLogin ? ' You log in again first.' : ''}`,
    },
  ];
}

const changes = (tools) => tools.filter(({ readOnly }) => !readOnly);

function actsOf(tools) {
  const [first, ...more] = changes(tools);
  if (first === undefined) return 'No tool that changes anything is open to it.';
  const name = first.title ?? first.name;
  return more.length === 0
    ? `One of them makes changes: ${name}.`
    : `${more.length + 1} of them make changes, such as ${name}.`;
}

function Choice({ choice, isAsked, isChosen, choose }) {
  const { access, title, tools, says } = choice;
  return html`<label class="choice">
    <input type="radio" name="access" value=${access} checked=${isChosen} onChange=${() => choose(access)} aria-describedby=${`says-${access}`} />
    <b>${title}</b>
    <span class="tag">${tools.length === 1 ? '1 tool' : `${tools.length} tools`}</span>
    <small id=${`says-${access}`}>${isAsked ? 'It asks for this. ' : ''}${says}</small>
  </label>`;
}

function Account({ account, change }) {
  const { userId, nickname, keyName, keyType, loginUtc } = account;
  const by = keyName === null ? (KEYS[keyType] ?? 'a code') : `the key “${keyName}”`;
  return html`<p class="part who small"><span>Your account ${nickname && html`<strong>${nickname}</strong> `}<${ShortId} id=${userId} /><span class="soft"> logged in with ${by} since <${Time} of=${loginUtc} /></span></span> <button type="button" class="plain" onClick=${change}>Use another account</button></p>`;
}

/** Claims of the program about itself. */
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

/** Shows in large letters who receives the access. */
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

/** The tools of the choice by name, those with the largest effect first. */
function Tools({ tools }) {
  if (tools === undefined) return html`<p class="soft small">Choose what it may do.</p>`;
  if (tools.length === 0) return html`<p class="soft small">No tools are open to it now.</p>`;
  const groups = GROUPS.map((group) => ({ ...group, list: tools.filter(group.holds) }));
  const title = tools.length === 1 ? 'The tool by name' : `The ${tools.length} tools by name`;
  return html`<details>
    <summary>${title}</summary>
    ${groups
      .filter(({ list }) => list.length > 0)
      .map(
        ({
          title,
          kind,
          list,
        }) => html`<h2 key=${title}>${title} <span class=${`tag ${kind}`}>${list.length}</span></h2>
        <ul class="names">${list.map((tool) => html`<li key=${tool.name} title=${tool.title ?? tool.description}><code>${tool.name}</code></li>`)}</ul>`,
      )}
  </details>`;
}
