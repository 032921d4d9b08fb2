/** Accounts: the list with block and role, and sessions of one account. */
import { get, post } from '../shared/api.js';
import { hostColumns } from '../shared/hosts.js';
import {
  Act,
  Ask,
  Confirm,
  Empty,
  Loaded,
  PagedTable,
  Table,
  Time,
  useLoad,
  usePages,
} from '../shared/ui.js';
import { html, useState } from '../vendor/preact.js';
import { moveTo } from './address.js';

const PAGE = 100;
const ROLES = ['viewer', 'support', 'admin'];

export function UsersPage({ role, userId }) {
  const pages = usePages(
    (after) => get('/ProxyAdmin/api/users', { after, limit: PAGE }),
    ({ id }) => id,
    PAGE,
    [],
  );
  const staff = useLoad(() => get('/ProxyAdmin/api/staff'), []);
  const [search, setSearch] = useState('');
  const roleOf = (id) => staff.value?.find((each) => each.userId === id)?.role ?? '';
  const block = async ({ id, blocked }) => {
    await post('/ProxyAdmin/api/users/block', { userId: id, blocked: !blocked });
    await pages.reload();
  };
  const give = async (id, name) => {
    await post('/ProxyAdmin/api/staff', { userId: id, role: name === '' ? null : name });
    await staff.reload();
  };
  const shown = { ...pages, rows: pages.rows.filter(({ id }) => id.includes(search.trim())) };
  const canBlock = role === 'admin' || role === 'support';
  const columns = [
    { title: 'Account', cell: ({ id }) => html`<span class="mono">${id}</span>` },
    { title: 'Created', cell: ({ createdUtc }) => html`<${Time} of=${createdUtc} />` },
    {
      title: 'State',
      cell: ({ blocked }) =>
        html`<span class=${`tag ${blocked ? 'bad' : 'good'}`}>${blocked ? 'blocked' : 'active'}</span>`,
    },
    {
      title: 'Keys',
      number: true,
      cell: ({ id, keys }) =>
        html`<a href=${`/ProxyAdmin/UserKeys?userId=${id}`}>${keys}<span class="hidden"> keys of ${id}</span></a>`,
    },
    {
      title: 'Sessions',
      number: true,
      cell: ({ id, sessions }) =>
        html`<a href=${`/ProxyAdmin/Sessions?userId=${id}`}>${sessions}<span class="hidden"> sessions of ${id}</span></a>`,
    },
    { title: 'Apps', number: true, cell: ({ apps }) => apps },
    {
      title: 'Role',
      cell: ({ id }) =>
        html`<${RoleOf} value=${roleOf(id)} userId=${id} canGive=${role === 'admin'} isOwn=${id === userId} give=${give} />`,
    },
    {
      title: 'Actions',
      cell: (user) =>
        canBlock &&
        user.id !== userId &&
        (user.blocked
          ? html`<${Act} done="The account is unblocked." run=${() => block(user)}>Unblock<//>`
          : html`<${Ask} label="Block" title="Block the account?" confirm="Block it" done="The account is blocked." question=${`Account ${user.id}: all its sessions end immediately, and it cannot log in until it is unblocked.`} run=${() => block(user)} />`),
    },
  ];
  return html`<div class="filter"><label for="search">Search by account id</label><input id="search" type="search" inputmode="numeric" value=${search} onInput=${(event) => setSearch(event.currentTarget.value)} /></div>
    <section class="card"><${PagedTable} pages=${shown} columns=${columns} keyOf=${({ id }) => id} caption="Accounts" empty=${search === '' ? 'No accounts yet.' : 'No loaded account matches.'} /></section>`;
}

const EFFECTS = {
  '': 'It loses access to the admin panel.',
  viewer: 'It can read every page and change nothing.',
  support: 'It can read every page, block accounts without a role, and resend webhooks.',
  admin: 'It can change everything, including roles.',
};

/** A role changes only after a dialog that names account and role. An admin cannot change the own role. */
function RoleOf({ value, userId, canGive, isOwn, give }) {
  const [open, setOpen] = useState(false);
  const [chosen, setChosen] = useState(value);
  const begin = () => {
    setChosen(value);
    setOpen(true);
  };
  const confirm = chosen === '' ? `Remove the role ${value}` : `Assign the role ${chosen}`;
  const id = `role-${userId}`;
  return html`<div class="role"><span class=${value === '' ? 'soft' : 'tag'}>${value === '' ? 'none' : value}</span>
    ${isOwn ? html`<span class="small soft">yours</span>` : canGive && html`<button type="button" class="plain" onClick=${begin}>Change<span class="hidden"> the role of ${userId}</span></button>`}</div>
    <${Confirm} title=${`Role of account ${userId}`} open=${open} onClose=${() => setOpen(false)} confirm=${chosen === value ? 'Change' : confirm} disabled=${chosen === value} kind=${chosen === 'admin' || chosen === '' ? 'danger' : 'primary'} done="The role is changed." run=${() => give(userId, chosen)}>
      <div class="stack">
        <p>Account <span class="mono">${userId}</span> has ${value === '' ? 'no role' : html`the role <strong>${value}</strong>`} now.</p>
        <div><label for=${id}>New role</label>
        <select id=${id} value=${chosen} onChange=${(event) => setChosen(event.currentTarget.value)}>
          <option value="">none</option>${ROLES.map((name) => html`<option value=${name}>${name}</option>`)}
        </select></div>
        <p class="effect" aria-live="polite">${chosen === value ? 'Choose another role to change it.' : html`Account <span class="mono">${userId}</span> ${chosen === '' ? html`loses the role <strong>${value}</strong>` : html`gets the role <strong>${chosen}</strong>`}. ${EFFECTS[chosen]}`}</p>
      </div>
    <//>`;
}

/** Takes the account id from the address, so that it can be shared. */
function OfUser({ query, children }) {
  const userId = query.get('userId') ?? '';
  const show = (event) => {
    event.preventDefault();
    moveTo({ userId: String(new FormData(event.currentTarget).get('userId')).trim() });
  };
  return html`<form class="filter" onSubmit=${show}>
      <label for="userId">Account id</label>
      <div class="row"><input id="userId" name="userId" inputmode="numeric" pattern="[0-9]{1,19}" required defaultValue=${userId} /><button type="submit">Show</button></div>
    </form>
    ${userId === '' ? html`<div class="card"><${Empty}><p>Enter an account id, or choose one under <a href="/ProxyAdmin/Users">Users</a>.</p><//></div>` : children(userId)}`;
}

/** MCP hosts that may act for an account. */
export function HostsPage({ query, role }) {
  return html`<${OfUser} query=${query}>${(userId) => html`<${Hosts} userId=${userId} canEnd=${role !== 'viewer'} />`}<//>`;
}

export function SessionsPage({ query, role }) {
  return html`<${OfUser} query=${query}>${(userId) => html`<${Sessions} userId=${userId} canEnd=${role !== 'viewer'} />`}<//>`;
}

const SESSION_COLUMNS = [
  {
    title: 'Session',
    cell: ({ id, kind, loginType }) =>
      html`${kind === 'mcp' ? `Agent, ${loginType}` : 'Browser'}<br /><span class="mono small soft">${id}</span>`,
  },
  {
    title: 'From',
    cell: ({ ip, userAgent }) =>
      html`<span class="mono">${ip}</span><br /><span class="small soft">${userAgent}</span>`,
  },
  { title: 'Opened', cell: ({ createdUtc }) => html`<${Time} of=${createdUtc} />` },
  { title: 'Last seen', cell: ({ lastSeenUtc }) => html`<${Time} of=${lastSeenUtc} />` },
  { title: 'Ends', cell: ({ expiresUtc }) => html`<${Time} of=${expiresUtc} />` },
];

function Sessions({ userId, canEnd }) {
  const sessions = useLoad(() => get('/ProxyAdmin/api/sessions', { userId }), [userId]);
  const end = async (body) => {
    await post('/ProxyAdmin/api/sessions/end', { userId, ...body });
    await sessions.reload();
  };
  const action = {
    title: 'Actions',
    action: true,
    cell: ({ id }) =>
      html`<${Act} kind="danger" done="The session has ended." run=${() => end({ sessionIds: [id] })}>End<span class="hidden"> session ${id}</span><//>`,
  };
  const columns = canEnd ? [...SESSION_COLUMNS, action] : SESSION_COLUMNS;
  return html`<section class="card">
    ${canEnd && html`<header><div class="push"><${Ask} label="End all sessions" title="End all sessions?" confirm="End them" done="All sessions have ended." question=${`Account ${userId} is logged out everywhere and its connected hosts are disconnected. It is not blocked and may log in again.`} run=${() => end({})} /></div></header>`}
    <${Loaded} of=${sessions}>${(list) =>
      list.length === 0
        ? html`<${Empty}><p>This account has no open sessions.</p><//>`
        : html`<${Table} caption="Sessions" rows=${list} columns=${columns} keyOf=${({ id }) => id} />`}<//></section>`;
}

function Hosts({ userId, canEnd }) {
  const hosts = useLoad(() => get('/ProxyAdmin/api/connected_hosts', { userId }), [userId]);
  const end = async ({ id }) => {
    await post('/ProxyAdmin/api/connected_hosts/revoke', { userId, id });
    await hosts.reload();
  };
  const action = (host) =>
    html`<${Ask} label="Disconnect" title=${`Disconnect “${host.name}”?`} confirm="Disconnect it" done="The host is disconnected." question=${`It loses access to account ${userId} immediately. To come back it must ask the person again.`} run=${() => end(host)} />`;
  const columns = hostColumns(canEnd ? action : undefined);
  return html`<section class="card"><${Loaded} of=${hosts}>${(list) =>
    list.length === 0
      ? html`<${Empty}><p>No host is connected to this account.</p><//>`
      : html`<${Table} caption="Connected hosts" rows=${list} columns=${columns} keyOf=${({ id }) => id} />`}<//></section>`;
}
