/** The home page: who is here, and which part of it is shown. Each part is a file of its own. */
import { get, onSessionOver, post } from '../shared/api.js';
import { Act, Loaded, Notices, notify, useLoad } from '../shared/ui.js';
import { html, render, useEffect, useState } from '../vendor/preact.js';
import { AgentPart } from './agent.js';
import { AppsPart } from './apps.js';
import { EventsPart } from './events.js';
import { FilesPart } from './files.js';
import { KeysPart } from './keys.js';
import { SessionsPart } from './sessions.js';
import { ToolsPart } from './tools.js';
import { Welcome } from './welcome.js';

const PARTS = [
  { name: 'agent', title: 'Connect an agent', part: AgentPart },
  { name: 'tools', title: 'Try tools', part: ToolsPart },
  { name: 'files', title: 'Files', part: FilesPart },
  { name: 'events', title: 'Live events', part: EventsPart },
  { name: 'keys', title: 'Keys', part: KeysPart },
  { name: 'sessions', title: 'Sessions', part: SessionsPart },
  { name: 'apps', title: 'Applications', part: AppsPart },
];

const partOf = (hash) => PARTS.find(({ name }) => `#${name}` === hash) ?? PARTS[0];

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
  const info = useLoad(() => get('/auth/v1/info'), []);
  const [isOver, setOver] = useState(false);
  const hasSession = info.value?.session !== undefined && info.value.session !== null;
  const signedIn = hasSession && !isOver;
  useEffect(() => onSessionOver(() => setOver(true)), []);
  const enter = async () => {
    setOver(false);
    await info.reload();
  };
  const logOut = async () => {
    await post('/auth/v1/logout', {});
    setOver(true);
    await info.reload();
    notify('You are logged out.');
  };
  const { part: Part, name: shown } = partOf(hash);
  return html`<${Bar} project=${info.value?.project ?? ''} signedIn=${signedIn} logOut=${logOut} />
    <${Loaded} of=${info}>
      ${() =>
        signedIn
          ? html`<div class="with-side">
              <nav class="side" aria-label="Parts">
                ${PARTS.map(({ name, title }) => html`<a key=${name} href=${`#${name}`} aria-current=${name === shown ? 'page' : undefined}>${title}</a>`)}
              </nav>
              <main id="content"><${Part} key=${shown} info=${info.value} /></main>
            </div>`
          : html`<main class="page" id="content"><${Welcome} info=${info.value} wasHere=${isOver && hasSession} onEnter=${enter} /></main>`}
    <//>
    <${Notices} />`;
}

const root = document.getElementById('app');
root.replaceChildren();
render(html`<${App} />`, root);
