/** The admin panel: its session and navigation. Each page is a file of its own; links between pages do not reload. */
import { LoginAgain } from '../shared/login-again.js';
import { useSession } from '../shared/session.js';
import { Act, Loaded, Notices, useLoad } from '../shared/ui.js';
import { html, render, useEffect, useState } from '../vendor/preact.js';
import { ActorsPage } from './actors.js';
import { AppsPage } from './apps.js';
import { AuditPage, LoginLogPage } from './audit.js';
import { CatalogPage } from './catalog.js';
import { DashboardPage } from './dashboard.js';
import { HealthPage } from './health.js';
import { UserKeysPage } from './keys.js';
import { LogIn } from './log-in.js';
import { loadNodes, NodesPage } from './nodes.js';
import { EventsPage, UploadsPage } from './records.js';
import { SettingsPage } from './settings.js';
import { HostsPage, SessionsPage, UsersPage } from './users.js';

/** `feature`: the page is shown where the gateway offers it. `cluster`: where there are several nodes. */
const PAGES = [
  { name: 'Dashboard', title: 'Dashboard', page: DashboardPage },
  { name: 'Settings', title: 'Settings', page: SettingsPage },
  { name: 'Users', title: 'Users', page: UsersPage },
  { name: 'UserKeys', title: 'User keys', page: UserKeysPage },
  { name: 'Sessions', title: 'Sessions', page: SessionsPage },
  { name: 'Hosts', title: 'Connected hosts', page: HostsPage },
  { name: 'Apps', title: 'Applications', page: AppsPage },
  { name: 'Uploads', title: 'Uploads', page: UploadsPage, feature: 'files' },
  { name: 'Events', title: 'Events', page: EventsPage, feature: 'events' },
  { name: 'LoginLog', title: 'Login log', page: LoginLogPage },
  { name: 'Audit', title: 'Audit', page: AuditPage },
  { name: 'Actors', title: 'Actors', page: ActorsPage },
  { name: 'Catalog', title: 'Catalog', page: CatalogPage },
  { name: 'Nodes', title: 'Nodes', page: NodesPage, cluster: true },
  { name: 'Health', title: 'Health', page: HealthPage },
];

/** Pages of the links that make an admin, and the kind of each. */
const LINKS = { '/ProxyAdmin/Setup': 'first', '/ProxyAdmin/Recovery': 'recovery' };

const addressOf = (name) => `/ProxyAdmin/${name}`;
/** Those that this gateway offers. */
const pagesOf = (info, nodes) =>
  PAGES.filter(
    ({ feature, cluster }) =>
      (feature === undefined || info.features.includes(feature)) && (!cluster || nodes.length > 0),
  );
const pageAt = (path, pages) => pages.find(({ name }) => addressOf(name) === path) ?? pages[0];

/** The address bar as state: links within the panel change it without a load. */
function useAddress() {
  const [address, setAddress] = useState(location.pathname + location.search);
  useEffect(() => {
    const follow = () => setAddress(location.pathname + location.search);
    addEventListener('popstate', follow);
    return () => removeEventListener('popstate', follow);
  }, []);
  const go = (event) => {
    const link = event.target.closest('a');
    const isPlain =
      event.button === 0 && !event.metaKey && !event.ctrlKey && !event.shiftKey && !event.altKey;
    if (
      !isPlain ||
      link === null ||
      link.origin !== location.origin ||
      !link.pathname.startsWith('/ProxyAdmin/')
    )
      return;
    event.preventDefault();
    history.pushState(null, '', link.href);
    setAddress(location.pathname + location.search);
    scrollTo(0, 0);
  };
  return [address, go];
}

function App() {
  const [address, go] = useAddress();
  const { info, session, isOver, enter, leave, logOut } = useSession();
  const link = LINKS[location.pathname];
  const isIn = session?.role != null && link === undefined;
  useEffect(() => {
    if (!isIn) document.title = 'Admin · Gatehouse';
  }, [isIn]);
  return html`<div onClick=${go}>
    <header class="bar">
      <a class="brand" href="/ProxyAdmin/Dashboard"><img src=${new URL('../shared/icon.svg', import.meta.url).pathname} alt="" />Gatehouse</a>
      <span class="soft">${info.value === undefined ? 'Admin' : `${info.value.project} admin`}</span>
      <div class="push"><a href="/">Home</a>${session !== null && html`<span class="tag">${session.role ?? 'no role'}</span><${Act} run=${logOut}>Log out<//>`}</div>
    </header>
    <${Loaded} of=${info}>${() =>
      isIn
        ? html`<${Panel} key=${session.userId} address=${address} info=${info.value} session=${session} />`
        : html`<main class="page" id="content"><${LogIn} session=${session} link=${link} onEnter=${enter} /></main>`}<//>
    <${LoginAgain} open=${isOver} onEnter=${enter} onLeave=${leave} />
    <${Notices} />
  </div>`;
}

/** Navigation and page, once it is known whether there are several nodes. */
function Panel({ address, info, session }) {
  const cluster = useLoad(loadNodes, []);
  return html`<${Loaded} of=${cluster}>${({ nodes }) => html`<${Pages} address=${address} info=${info} nodes=${nodes} session=${session} />`}<//>`;
}

function Pages({ address, info, nodes, session }) {
  const pages = pagesOf(info, nodes);
  const { name, page: Page, title } = pageAt(location.pathname, pages);
  useEffect(() => {
    document.title = `${title} · Gatehouse`;
  }, [title]);
  return html`<div class="with-side">
    <nav class="side" aria-label="Pages">${pages.map((each) => html`<a key=${each.name} href=${addressOf(each.name)} aria-current=${each.name === name ? 'page' : undefined}>${each.title}</a>`)}</nav>
    <main id="content"><h1>${title}</h1><div key=${`${address} ${session.userId}`}><${Page} info=${info} nodes=${nodes} role=${session.role} userId=${session.userId} query=${new URLSearchParams(location.search)} /></div></main>
  </div>`;
}

const root = document.getElementById('app');
root.replaceChildren();
render(html`<${App} />`, root);
