/** The admin panel: its session and navigation. Each page is a file of its own; links between pages do not reload. */
import { get } from '../shared/api.js';
import { LoginAgain } from '../shared/login-again.js';
import { useSession } from '../shared/session.js';
import { Shell } from '../shared/shell.js';
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
import { findIn } from './search.js';
import { SettingsPage } from './settings.js';
import { HostsPage, SessionsPage, UsersPage } from './users.js';

/** `feature`: the page is shown where the gateway offers it. `cluster`: where there are several nodes. */
const PAGES = [
  { name: 'Dashboard', title: 'Overview', icon: 'layout-dashboard', page: DashboardPage },
  { name: 'Catalog', title: 'Catalog', icon: 'wrench', page: CatalogPage },
  { name: 'Users', title: 'Accounts', group: 'People', icon: 'users', page: UsersPage },
  { name: 'UserKeys', title: 'Keys', group: 'People', icon: 'key-round', page: UserKeysPage },
  { name: 'Sessions', title: 'Sessions', group: 'People', icon: 'monitor', page: SessionsPage },
  { name: 'Hosts', title: 'Connected hosts', group: 'People', icon: 'plug', page: HostsPage },
  { name: 'LoginLog', title: 'Logins', group: 'People', icon: 'log-in', page: LoginLogPage },
  { name: 'Apps', title: 'Applications', group: 'Delivery', icon: 'app-window', page: AppsPage },
  { name: 'Events', title: 'Events', group: 'Delivery', icon: 'radio', page: EventsPage, feature: 'events' },
  {
    name: 'Uploads',
    title: 'Uploads',
    group: 'Delivery',
    icon: 'upload',
    page: UploadsPage,
    feature: 'files',
  },
  { name: 'Audit', title: 'Audit', group: 'System', icon: 'scroll-text', page: AuditPage },
  { name: 'Settings', title: 'Settings', group: 'System', icon: 'settings', page: SettingsPage },
  { name: 'Actors', title: 'Actors', group: 'System', icon: 'boxes', page: ActorsPage },
  { name: 'Nodes', title: 'Nodes', group: 'System', icon: 'server', page: NodesPage, cluster: true },
  { name: 'Health', title: 'Health', group: 'System', icon: 'heart-pulse', page: HealthPage },
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
  const place = info.value === undefined ? 'Admin' : `${info.value.project} admin`;
  return html`<div onClick=${go}>
    <${Loaded} of=${info}>${() =>
      isIn
        ? html`<${Panel} key=${session.userId} address=${address} info=${info.value} place=${place} session=${session} logOut=${logOut} />`
        : html`<${Bar} place=${place} session=${session} logOut=${logOut} />
          <main class="page" id="content"><${LogIn} session=${session} link=${link} onEnter=${enter} /></main>`}<//>
    <${LoginAgain} open=${isOver} onEnter=${enter} onLeave=${leave} />
    <${Notices} />
  </div>`;
}

/** Above the log-in, where there is no navigation yet. */
function Bar({ place, session, logOut }) {
  return html`<header class="bar">
    <a class="brand" href="/ProxyAdmin/Dashboard"><img src=${new URL('../shared/icon.svg', import.meta.url).pathname} alt="" />Gatehouse <small>${place}</small></a>
    <div class="push"><a href="/">Home</a>${session !== null && html`<span class="tag">no role</span><${Act} run=${logOut}>Log out<//>`}</div>
  </header>`;
}

const LINKS_OF_ACCOUNT = [{ title: 'Home', href: '/', icon: 'user' }];
/** Counts that stand beside a page, of the overview. */
const COUNTS = {
  Apps: ({ apps }) => ({ text: apps.toLocaleString('en') }),
  Actors: ({ failingActors }) =>
    failingActors.length === 0 ? undefined : { text: String(failingActors.length), kind: 'bad' },
};

/** Navigation and page, once it is known whether there are several nodes. */
function Panel({ address, info, place, session, logOut }) {
  const cluster = useLoad(loadNodes, []);
  const overview = useLoad(() => get('/ProxyAdmin/api/overview'), []);
  return html`<${Loaded} of=${cluster}>${({ nodes }) => html`<${Pages} address=${address} info=${info} nodes=${nodes} overview=${overview.value} place=${place} session=${session} logOut=${logOut} />`}<//>`;
}

function Pages({ address, info, nodes, overview, place, session, logOut }) {
  const pages = pagesOf(info, nodes).map((page) => ({
    ...page,
    href: addressOf(page.name),
    count: overview === undefined ? undefined : COUNTS[page.name]?.(overview),
  }));
  const { name, page: Page, title } = pageAt(location.pathname, pages);
  useEffect(() => {
    document.title = `${title} · Gatehouse`;
  }, [title]);
  return html`<${Shell} pages=${pages} current=${name} label="Pages" place=${place} home="/ProxyAdmin/Dashboard" session=${session} links=${LINKS_OF_ACCOUNT} logOut=${logOut} view=${name} find=${findIn}>
    <h1>${title}</h1><div key=${`${address} ${session.userId}`}><${Page} info=${info} nodes=${nodes} role=${session.role} userId=${session.userId} query=${new URLSearchParams(location.search)} /></div>
  <//>`;
}

const root = document.getElementById('app');
root.replaceChildren();
render(html`<${App} />`, root);
