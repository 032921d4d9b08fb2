/** The home page: its session and navigation. Each part is a file of its own. */
import { isAgentLink } from '../shared/agent-link.js';
import { LoginAgain } from '../shared/login-again.js';
import { keepAgentOf, rpc } from '../shared/mcp-client.js';
import { useSession } from '../shared/session.js';
import { Shell } from '../shared/shell.js';
import { Loaded, Notices, notify, View } from '../shared/ui.js';
import { html, render, useEffect, useState } from '../vendor/preact.js';
import { Welcome } from './welcome.js';

/** `feature`: the part is shown where the gateway offers it. Files are loaded with the first view of a part. */
const PARTS = [
  {
    name: 'agent',
    title: 'Connect an agent',
    group: 'Agents',
    icon: 'bot',
    load: async () => (await import('./agent.js')).AgentPart,
  },
  {
    name: 'hosts',
    title: 'Connected hosts',
    group: 'Agents',
    icon: 'plug',
    load: async () => (await import('./hosts.js')).HostsPart,
  },
  {
    name: 'servers',
    title: 'Connected servers',
    group: 'Agents',
    icon: 'server',
    load: async () => (await import('./servers.js')).ServersPart,
  },
  {
    name: 'tools',
    title: 'Try tools',
    group: 'Agents',
    icon: 'wrench',
    load: async () => (await import('./tools.js')).ToolsPart,
  },
  {
    name: 'files',
    title: 'Files',
    group: 'Data',
    icon: 'folder',
    load: async () => (await import('./files.js')).FilesPart,
    feature: 'files',
  },
  {
    name: 'events',
    title: 'Live events',
    group: 'Data',
    icon: 'radio',
    load: async () => (await import('./events.js')).EventsPart,
    feature: 'streams',
  },
  {
    name: 'apps',
    title: 'Applications',
    group: 'Data',
    icon: 'app-window',
    load: async () => (await import('./apps.js')).AppsPart,
  },
  {
    name: 'keys',
    title: 'Keys',
    group: 'Security',
    icon: 'key-round',
    load: async () => (await import('./keys.js')).KeysPart,
  },
  {
    name: 'sessions',
    title: 'Sessions',
    group: 'Security',
    icon: 'monitor',
    load: async () => (await import('./sessions.js')).SessionsPart,
  },
  {
    name: 'account',
    title: 'Account',
    group: 'Security',
    icon: 'user',
    load: async () => (await import('./account.js')).AccountPart,
  },
].map((part) => ({ ...part, href: `#${part.name}` }));

/** Not in the navigation: only the link of an agent leads there. */
const ENROLL = {
  name: 'agent-key',
  title: 'Allow an agent',
  load: async () => (await import('./enroll.js')).EnrollPart,
};

/** Those that this gateway offers; all while that is not known yet. */
const partsOf = (info) =>
  PARTS.filter(({ feature }) => feature === undefined || info?.features.includes(feature) !== false);

function partOf(hash, parts) {
  if (isAgentLink(hash)) return ENROLL;
  // Behind a slash stands what a part shows.
  return parts.find(({ href }) => href === hash.split('/', 1)[0]) ?? parts[0];
}

/** Tools by a word of their name or description, each as an address of the part that tries it. */
async function findTools(words) {
  const { tools } = await rpc('tools/list').catch(() => ({ tools: [] }));
  return tools
    .filter(({ name, title = '' }) => `${name} ${title}`.toLowerCase().includes(words))
    .map(({ name }) => ({ group: 'Tools', title: name, icon: 'wrench', href: `/#tools/${name}` }));
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

function Bar({ project }) {
  return html`<header class="bar">
    <a class="brand" href="/"><img src=${new URL('../shared/icon.svg', import.meta.url).pathname} alt="" />Gatehouse <small>${project}</small></a>
    <div class="push"><a href="/docs/swagger/">API</a></div>
  </header>`;
}

/** Links of the account menu; the panel is for those with a role. */
const linksOf = ({ role }) => [
  { title: 'Keys', href: '#keys', icon: 'key-round' },
  { title: 'API explorer', href: '/docs/swagger/', icon: 'scroll-text' },
  ...(role === null || role === undefined
    ? []
    : [{ title: 'Admin panel', href: '/ProxyAdmin/Dashboard', icon: 'shield' }]),
];

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
  const { load, name: shown, title } = partOf(hash, parts);
  useEffect(() => {
    document.title = `${hasSession ? title : 'Log in'} · Gatehouse`;
  }, [title, hasSession]);
  const project = info.value?.project ?? '';
  return html`<div>${info.value === undefined && html`<${Bar} project="" />`}<${Loaded} of=${info}>
      ${() =>
        hasSession
          ? html`<${Shell} pages=${parts} current=${shown} label="Parts" place=${project} home="/" session=${session} links=${linksOf(session)} logOut=${sayBye} view=${shown} find=${findTools}>
              <div key=${`${shown} ${session.userId}`}><${View} load=${load} info=${info.value} hash=${hash} onLeave=${leave} /></div>
            <//>`
          : html`<${Bar} project=${project} /><main class="page" id="content"><${Welcome} info=${info.value} onEnter=${enter}>${isAgentLink(hash) && html`<div class="note"><p>Log in to the account that the agent is to act for. Then you can allow it.</p></div>`}<//></main>`}
    <//>
    <${LoginAgain} open=${isOver} onEnter=${enter} onLeave=${leave} /><${Notices} /></div>`;
}

const root = document.getElementById('app');
root.replaceChildren();
render(html`<${App} />`, root);
