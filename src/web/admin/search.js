/** What the search of the panel finds besides pages: an account by its id, applications, tools, settings. */
import { get } from '../shared/api.js';
import { rpc } from '../shared/mcp-client.js';

const SHOWN_MAX = 6;
const APPS_MAX = 1_000;

/** A list is loaded once; after a failure the next search asks again. */
function once(load) {
  let loading;
  return () => {
    loading ??= load().catch(() => {
      loading = undefined;
      return [];
    });
    return loading;
  };
}

const loadSettings = once(() => get('/ProxyAdmin/api/settings'));
const loadApps = once(() => get('/ProxyAdmin/api/apps', { limit: APPS_MAX }));
const loadTools = once(async () => (await rpc('tools/list')).tools);

const accountOf = (words) =>
  /^[0-9]{1,19}$/.test(words)
    ? [
        {
          group: 'Accounts',
          title: `Account ${words}`,
          icon: 'user',
          href: `/ProxyAdmin/UserKeys?userId=${words}`,
        },
      ]
    : [];

/** Rows of the search, by words in lower case. */
export async function findIn(words) {
  const [settings, apps, tools] = await Promise.all([loadSettings(), loadApps(), loadTools()]);
  const has = (...texts) => texts.join(' ').toLowerCase().includes(words);
  const some = (rows, isFound, shown) => rows.filter(isFound).slice(0, SHOWN_MAX).map(shown);
  return [
    ...accountOf(words),
    ...some(
      apps,
      ({ id, name, url }) => has(id, name, url),
      ({ name, url }) => ({
        group: 'Applications',
        title: name,
        note: url,
        icon: 'app-window',
        href: '/ProxyAdmin/Apps',
      }),
    ),
    ...some(
      tools,
      ({ name, title = '' }) => has(name, title),
      ({ name }) => ({ group: 'Tools', title: name, icon: 'wrench', href: `/#tools/${name}` }),
    ),
    ...some(
      settings,
      ({ name, summary }) => has(name, summary),
      ({ name }) => ({
        group: 'Settings',
        title: name,
        icon: 'settings',
        href: `/ProxyAdmin/Settings?search=${encodeURIComponent(name)}`,
      }),
    ),
  ];
}
