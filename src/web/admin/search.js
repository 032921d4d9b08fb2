/** Results of the panel's search besides pages: accounts by name or id, applications, tools, settings. */
import { get } from '../shared/api.js';
import { rpc } from '../shared/mcp-client.js';
import { addressOfAccount } from './who.js';

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

/** Finds accounts by a part of the name or the id: the newest that match, of those that the server looks at. */
const findAccounts = (words) =>
  get('/ProxyAdmin/api/users', { search: words, newest: true, limit: SHOWN_MAX }).catch(() => []);

/** Rows of the search, by words in lower case. */
export async function findIn(words) {
  const [accounts, settings, apps, tools] = await Promise.all([
    findAccounts(words),
    loadSettings(),
    loadApps(),
    loadTools(),
  ]);
  const has = (...texts) => texts.join(' ').toLowerCase().includes(words);
  const some = (rows, isFound, shown) => rows.filter(isFound).slice(0, SHOWN_MAX).map(shown);
  return [
    ...accounts.map(({ id, nickname }) => ({
      group: 'Accounts',
      title: nickname || `Account ${id}`,
      note: `…${id.slice(-4)}`,
      icon: 'user',
      href: addressOfAccount(id),
    })),
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
      ({ name }) => ({
        group: 'Tools',
        title: name,
        icon: 'wrench',
        href: `/ProxyAdmin/Tools?name=${encodeURIComponent(name)}`,
      }),
    ),
    ...some(
      settings,
      ({ name, title, summary }) => has(name, title, summary),
      ({ name, title, group }) => ({
        group: 'Settings',
        title,
        note: group,
        icon: 'settings',
        href: `/ProxyAdmin/Settings?search=${encodeURIComponent(name)}`,
      }),
    ),
  ];
}
