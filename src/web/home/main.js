/** The home page: its session and navigation. Each part is a file of its own. */
import { isAgentLink } from '../shared/agent-link.js';
import { LoginAgain } from '../shared/login-again.js';
import { useSession } from '../shared/session.js';
import { Act, Loaded, Notices, notify } from '../shared/ui.js';
import { html, render, useEffect, useState } from '../vendor/preact.js';
import { AccountPart } from './account.js';
import { AgentPart } from './agent.js';
import { AppsPart } from './apps.js';
import { EnrollPart } from './enroll.js';
import { EventsPart } from './events.js';
import { FilesPart } from './files.js';
import { HostsPart } from './hosts.js';
import { KeysPart } from './keys.js';
import { keepAgentOf } from './mcp-client.js';
import { ServersPart } from './servers.js';
import { SessionsPart } from './sessions.js';
import { ToolsPart } from './tools.js';
import { Welcome } from './welcome.js';

/** `feature`: the part is shown where the gateway offers it. */
const PARTS = [
  { name: 'agent', title: 'Connect an agent', part: AgentPart },
  { name: 'hosts', title: 'Connected hosts', part: HostsPart },
  { name: 'servers', title: 'Connected servers', part: ServersPart },
  { name: 'tools', title: 'Try tools', part: ToolsPart },
  { name: 'files', title: 'Files', part: FilesPart, feature: 'files' },
  { name: 'events', title: 'Live events', part: EventsPart, feature: 'streams' },
  { name: 'keys', title: 'Keys', part: KeysPart },
  { name: 'sessions', title: 'Sessions', part: SessionsPart },
  { name: 'apps', title: 'Applications', part: AppsPart },
  { name: 'account', title: 'Account', part: AccountPart },
];

/** Not in the navigation: only the link of an agent leads there. */
const ENROLL = { name: 'agent-key', title: 'Allow an agent', part: EnrollPart };

/** Those that this gateway offers; all while that is not known yet. */
const partsOf = (info) =>
  PARTS.filter(({ feature }) => feature === undefined || info?.features.includes(feature) !== false);

function partOf(hash, parts) {
  if (isAgentLink(hash)) return ENROLL;
  // Behind a slash stands what a part shows.
  return parts.find(({ name }) => `#${name}` === hash.split('/')[0]) ?? parts[0];
}

function useHash() {
  const [hash, setHash] = useState(location.hash);
  useEffect(() => {
    const follow = () => setHash(location.hash);
    addEventListener('hashchange', follow);
    return () => removeEventListener('hashchange', follow);
  }, []);
  return hash;
}

function Bar({ project, signedIn, logOut }) {
  return html`<header class="bar">
    <a class="brand" href="/"><img src=${new URL('../shared/icon.svg', import.meta.url).pathname} alt="" />Gatehouse</a>
    ${project !== '' && html`<span class="soft">${project}</span>`}
    <div class="push"><a href="/docs/swagger/">API</a>
    ${signedIn && html`<${Act} run=${logOut}>Log out<//>`}</div>
  </header>`;
}

function App() {
  const hash = useHash();
  const { info, session, isOver, enter, leave, logOut } = useSession();
  const hasSession = session !== null;
  // The agent of this tab belongs to the account that created it, not to the next one that logs in.
  if (info.value !== undefined) keepAgentOf(session?.userId ?? '');
  const sayBye = async () => {
    await logOut();
    notify('You are logged out.');
  };
  const parts = partsOf(info.value);
  const { part: Part, name: shown, title } = partOf(hash, parts);
  useEffect(() => {
    document.title = `${hasSession ? title : 'Log in'} · Gatehouse`;
  }, [title, hasSession]);
  return html`<${Bar} project=${info.value?.project ?? ''} signedIn=${hasSession} logOut=${sayBye} />
    <${Loaded} of=${info}>
      ${() =>
        hasSession
          ? html`<div class="with-side">
              <nav class="side" aria-label="Parts">
                ${parts.map(({ name, title }) => html`<a key=${name} href=${`#${name}`} aria-current=${name === shown ? 'page' : undefined}>${title}</a>`)}
              </nav>
              <main id="content"><div key=${`${shown} ${session.userId}`}><${Part} info=${info.value} hash=${hash} onLeave=${leave} /></div></main>
            </div>`
          : html`<main class="page" id="content"><${Welcome} info=${info.value} onEnter=${enter}>${isAgentLink(hash) && html`<div class="note"><p>Log in to the account that the agent is to act for. Then you can allow it.</p></div>`}<//></main>`}
    <//>
    <${LoginAgain} open=${isOver} onEnter=${enter} onLeave=${leave} />
    <${Notices} />`;
}

const root = document.getElementById('app');
root.replaceChildren();
render(html`<${App} />`, root);
