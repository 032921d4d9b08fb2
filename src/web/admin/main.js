/** The admin panel: its session and navigation. Each page is a file of its own; links between pages do not reload. */
import { get } from '../shared/api.js';
import { LoginAgain } from '../shared/login-again.js';
import { useSession } from '../shared/session.js';
import { Shell } from '../shared/shell.js';
import { Act, Confirm, Loaded, Notices, useLoad, View } from '../shared/ui.js';
import { html, render, useEffect, useState } from '../vendor/preact.js';
import { loadNodes } from './cluster.js';
import { lostByLeaving } from './leaving.js';
import { LogIn } from './log-in.js';
import { loadPlot } from './plot.js';
import { findIn } from './search.js';

async function loadDashboard() {
  const [{ DashboardPage }] = await Promise.all([import('./dashboard.js'), loadPlot()]);
  return DashboardPage;
}

/**
 * `feature`: the page is shown where the gateway offers it. `cluster`: where there are several nodes. `of`: not in the
 * navigation, a page of what that one lists, which brings its own heading and stays while its address names the same
 * account. Files are loaded with the first view of a page.
 */
const PAGES = [
  { name: 'Dashboard', title: 'Overview', icon: 'layout-dashboard', load: loadDashboard },
  {
    name: 'Modules',
    title: 'Modules',
    icon: 'plug',
    load: async () => (await import('./modules.js')).ModulesPage,
  },
  {
    name: 'Tools',
    title: 'Tools',
    icon: 'wrench',
    load: async () => (await import('./tools.js')).ToolsPage,
  },
  {
    name: 'Users',
    title: 'Accounts',
    group: 'People',
    icon: 'users',
    load: async () => (await import('./users.js')).UsersPage,
  },
  {
    name: 'Account',
    title: 'Account',
    of: 'Users',
    load: async () => (await import('./account/page.js')).AccountPage,
  },
  {
    name: 'UserKeys',
    title: 'Keys',
    group: 'People',
    icon: 'key-round',
    load: async () => (await import('./keys.js')).UserKeysPage,
  },
  {
    name: 'LoginLog',
    title: 'Logins',
    group: 'People',
    icon: 'log-in',
    load: async () => (await import('./audit/page.js')).LoginLogPage,
  },
  {
    name: 'Apps',
    title: 'Applications',
    group: 'Delivery',
    icon: 'app-window',
    load: async () => (await import('./apps.js')).AppsPage,
  },
  {
    name: 'Events',
    title: 'Events',
    group: 'Delivery',
    icon: 'radio',
    load: async () => (await import('./records.js')).EventsPage,
    feature: 'events',
  },
  {
    name: 'Uploads',
    title: 'Uploads',
    group: 'Delivery',
    icon: 'upload',
    load: async () => (await import('./records.js')).UploadsPage,
    feature: 'files',
  },
  {
    name: 'Audit',
    title: 'Audit',
    group: 'System',
    icon: 'scroll-text',
    load: async () => (await import('./audit/page.js')).AuditPage,
  },
  {
    name: 'Settings',
    title: 'Settings',
    group: 'System',
    icon: 'settings',
    load: async () => (await import('./settings/page.js')).SettingsPage,
  },
  {
    name: 'Actors',
    title: 'Actors',
    group: 'System',
    icon: 'boxes',
    load: async () => (await import('./actors.js')).ActorsPage,
  },
  {
    name: 'Nodes',
    title: 'Nodes',
    group: 'System',
    icon: 'server',
    load: async () => (await import('./nodes.js')).NodesPage,
    cluster: true,
  },
  {
    name: 'Health',
    title: 'Health',
    group: 'System',
    icon: 'heart-pulse',
    load: async () => (await import('./health.js')).HealthPage,
  },
];

/** Pages of the links that make an admin, and the kind of each. */
const LINKS = { '/ProxyAdmin/Setup': 'first', '/ProxyAdmin/Recovery': 'recovery' };

const addressOf = (name) => `/ProxyAdmin/${name}`;
/** Those that this gateway offers. `nodes`: undefined until it is known whether there are several. */
const pagesOf = (info, nodes) =>
  PAGES.filter(
    ({ feature, cluster }) =>
      (feature === undefined || info.features.includes(feature)) && (!cluster || nodes?.length !== 0),
  );
const pageAt = (path, pages) => pages.find(({ name }) => addressOf(name) === path) ?? pages[0];

const here = () => location.pathname + location.search;

/**
 * The address bar as state: links within the panel change it without a load. A move that loses input waits in `asked`
 * until `leave` makes it or `stay` drops it.
 */
function useAddress() {
  const [address, setAddress] = useState(here());
  const [asked, setAsked] = useState(undefined);
  const move = (href) => {
    const before = location.pathname;
    history.pushState(null, '', href);
    setAddress(here());
    if (location.pathname !== before) scrollTo(0, 0);
  };
  useEffect(() => {
    const follow = () => {
      const lost = here() === address ? undefined : lostByLeaving();
      if (lost === undefined) {
        setAddress(here());
        return;
      }
      // The page has left the address already.
      setAsked({ lost, href: location.href });
      history.pushState(null, '', address);
    };
    addEventListener('popstate', follow);
    return () => removeEventListener('popstate', follow);
  }, [address]);
  const go = (event) => {
    const link = event.target.closest('a');
    const isPlain =
      event.button === 0 && !event.metaKey && !event.ctrlKey && !event.shiftKey && !event.altKey;
    if (
      !isPlain ||
      link === null ||
      link.origin !== location.origin ||
      !link.pathname.startsWith('/ProxyAdmin/') ||
      link.hasAttribute('download')
    )
      return;
    event.preventDefault();
    const lost = link.pathname + link.search === here() ? undefined : lostByLeaving();
    if (lost === undefined) move(link.href);
    else setAsked({ lost, href: link.href });
  };
  return { address, go, asked, leave: () => move(asked.href), stay: () => setAsked(undefined) };
}

function App() {
  const { address, go, asked, leave: leavePage, stay } = useAddress();
  const { info, session, isOver, enter, leave, logOut } = useSession();
  const link = LINKS[location.pathname];
  const isIn = session?.role != null && link === undefined;
  useEffect(() => {
    if (!isIn) document.title = 'Admin · Gatehouse';
  }, [isIn]);
  const place = info.value?.project ?? '';
  return html`<div onClick=${go}>
    ${info.value === undefined && html`<${Bar} place="" session=${null} />`}
    <${Loaded} of=${info}>${() =>
      isIn
        ? html`<${Panel} key=${session.userId} address=${address} info=${info.value} place=${place} session=${session} logOut=${logOut} />`
        : html`<${Bar} place=${place} session=${session} logOut=${logOut} />
          <main class="page" id="content"><${LogIn} session=${session} link=${link} onEnter=${enter} /></main>`}<//>
    <${LoginAgain} open=${isOver} onEnter=${enter} onLeave=${leave} />
    <${Confirm} title="Leave without saving?" open=${asked !== undefined} onClose=${stay} confirm="Leave" run=${leavePage}><p>${asked?.lost}</p><//>
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
  return html`<${Pages} address=${address} info=${info} cluster=${cluster} overview=${overview.value} place=${place} session=${session} logOut=${logOut} />`;
}

function Pages({ address, info, cluster, overview, place, session, logOut }) {
  const nodes = cluster.value?.nodes;
  const pages = pagesOf(info, nodes).map((page) => ({
    ...page,
    href: addressOf(page.name),
    count: overview === undefined ? undefined : COUNTS[page.name]?.(overview),
  }));
  const { name, load, title, of } = pageAt(location.pathname, pages);
  const query = new URLSearchParams(location.search);
  useEffect(() => {
    document.title = `${title} · Gatehouse`;
  }, [title]);
  const shown = of === undefined ? address : `${name} ${query.get('userId')}`;
  return html`<${Shell} pages=${pages.filter((page) => page.of === undefined && (!page.cluster || nodes !== undefined))} current=${of ?? name} label="Pages" place=${place} home="/ProxyAdmin/Dashboard" session=${session} links=${LINKS_OF_ACCOUNT} logOut=${logOut} view=${of === undefined ? name : shown} find=${findIn}>
    ${of === undefined && html`<h1>${title}</h1>`}<div key=${`${shown} ${session.userId}`}><${Loaded} of=${cluster}>${() => html`<${View} load=${load} info=${info} nodes=${nodes} role=${session.role} userId=${session.userId} query=${query} />`}<//></div>
  <//>`;
}

const root = document.getElementById('app');
root.replaceChildren();
render(html`<${App} />`, root);
