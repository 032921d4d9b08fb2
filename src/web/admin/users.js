/** The list of accounts, the newest first: searched and exported on the server. A name leads to the page of the account. */
import { getPage } from '../shared/api.js';
import { PagedTable, Time, useCursor } from '../shared/ui.js';
import { html } from '../vendor/preact.js';
import { moveTo } from './address.js';
import { count } from './figures.js';
import { Csv, Who } from './who.js';

const PATH = '/ProxyAdmin/api/users';

const COLUMNS = [
  { title: 'Account', head: true, cell: (account) => html`<${Who} ...${account} />` },
  { title: 'Opened', brief: true, cell: ({ createdUtc }) => html`<${Time} of=${createdUtc} />` },
  {
    title: 'State',
    brief: true,
    cell: ({ blocked }) =>
      html`<span class=${`tag ${blocked ? 'bad' : 'good'}`}>${blocked ? 'blocked' : 'active'}</span>`,
  },
  {
    title: 'Role',
    brief: true,
    cell: ({ role }) => role !== null && html`<span class="tag accent">${role}</span>`,
  },
  { title: 'Keys', number: true, cell: ({ keys }) => count(keys) },
  { title: 'Sessions', number: true, cell: ({ sessions }) => count(sessions) },
  { title: 'Applications', number: true, cell: ({ apps }) => count(apps) },
];

export function UsersPage({ query }) {
  const filter = {};
  for (const name of ['search', 'blocked']) if (query.get(name)) filter[name] = query.get(name);
  const isFiltered = Object.keys(filter).length > 0;
  const pages = useCursor(
    (next) => (next === undefined ? getPage(PATH, { ...filter, newest: true }) : getPage(next)),
    [],
  );
  const show = (event) => {
    event.preventDefault();
    const fields = new FormData(event.currentTarget);
    moveTo({ search: String(fields.get('search')).trim(), blocked: String(fields.get('blocked') ?? '') });
  };
  const none = isFiltered ? 'No account matches.' : 'No accounts yet.';
  return html`<section class="card">
    <form class="tools" role="search" aria-label="Accounts" onSubmit=${show}>
      <input name="search" type="search" aria-label="Search by name or id" placeholder="Name or id" maxlength="64" defaultValue=${filter.search ?? ''} />
      <label class="check"><input type="checkbox" name="blocked" value="true" defaultChecked=${filter.blocked === 'true'} />Blocked only</label>
      <button type="submit">Search</button>
      <div class="push"><${Csv} list="accounts" query=${filter} /></div>
    </form>
    <${PagedTable} pages=${pages} columns=${COLUMNS} keyOf=${({ id }) => id} caption="Accounts" icon="users"
      empty=${pages.isWhole ? none : 'No match in the accounts searched so far. Each page searches 1,000 accounts.'}
      more=${pages.rows.length === 0 ? 'Search older accounts' : 'Show older accounts'} />
  </section>`;
}
