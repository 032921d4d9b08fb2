/**
 * Lists on the page of an account: a row a section, all drawn by one component. `load(userId, next)` resolves with a
 * page of rows, the newest first; `columns` may take what acts on a row; `role` may act; `csv` is the export. A section
 * with a `View` draws itself.
 */
import { get, getPage } from '../../shared/api.js';
import { DeliveryList } from '../../shared/deliveries.js';
import { Device } from '../../shared/device.js';
import { hostColumns } from '../../shared/hosts.js';
import { LOGINS } from '../../shared/logins.js';
import { Act, Ask, ShortId, sizeText, Time } from '../../shared/ui.js';
import { html } from '../../vendor/preact.js';
import { AUDIT, auditColumns, recordKey } from '../audit/page.js';
import { KEYS, KeyActs, keyColumns } from '../key-parts.js';
import { AppActs, deliveryActs, ownAppColumns } from './app-parts.js';
import { AddKey } from './key-add.js';

const API = '/ProxyAdmin/api';
/** Rows of a list that one account has whole: more than its bounds allow. */
const ROWS_MAX = 1_000;

const byId = ({ id }) => id;
/** A list that the server has from the oldest on, whole. */
const reversed = async (rows) => ({ rows: (await rows).reverse(), next: undefined });
const appsOf = (userId) => get(`${API}/apps`, { userId, newest: true, limit: ROWS_MAX });
const auditPages = (filter) => (userId, next) =>
  next === undefined ? getPage(AUDIT, { userId, ...filter }) : getPage(next);

const SESSIONS = [
  {
    title: 'Session',
    head: true,
    cell: ({ kind, loginType, userAgent }) =>
      html`<strong><${Device} userAgent=${userAgent} /></strong><br /><span class="small soft">${kind === 'mcp' ? `Agent, ${LOGINS[loginType] ?? loginType}` : 'Browser'}</span>`,
  },
  { title: 'From', brief: true, cell: ({ ip }) => html`<span class="mono">${ip}</span>` },
  { title: 'Opened', brief: true, cell: ({ createdUtc }) => html`<${Time} of=${createdUtc} />` },
  { title: 'Last seen', brief: true, cell: ({ lastSeenUtc }) => html`<${Time} of=${lastSeenUtc} />` },
  { title: 'Ends', brief: true, cell: ({ expiresUtc }) => html`<${Time} of=${expiresUtc} />` },
];

/** Attempts of all applications of the account that have a webhook. */
async function deliveriesOf(userId) {
  const apps = (await appsOf(userId)).filter(({ webhookUrl }) => webhookUrl);
  const lists = await Promise.all(apps.map(({ id }) => get(`${API}/deliveries`, { appId: id })));
  const rows = lists.flatMap(({ items }, at) => items.map((item) => ({ ...item, app: apps[at] })));
  return { rows: rows.sort((one, other) => other.utc.localeCompare(one.utc)), next: undefined };
}

const FILES = [
  { title: 'File', head: true, cell: ({ fields }) => html`<${ShortId} id=${String(fields.fileId)} />` },
  { title: 'Uploaded', brief: true, cell: ({ utc }) => html`<${Time} of=${utc} />` },
  { title: 'Size', number: true, cell: ({ fields }) => sizeText(fields.sizeBytes) },
  { title: 'CRC-32', number: true, cell: ({ fields }) => html`<span class="mono">${fields.crc32}</span>` },
];

const action = (cell) => ({ title: 'Actions', action: true, cell });

export const SECTIONS = [
  {
    name: 'sessions',
    title: 'Sessions',
    count: ({ sessions }) => sessions,
    load: (userId) => reversed(get(`${API}/sessions`, { userId })),
    columns: SESSIONS,
    keyOf: byId,
    empty: 'This account has no open sessions.',
    role: 'support',
    act: ({ userId, send }) =>
      action(
        ({ id }) =>
          html`<${Act} kind="danger" done="The session has ended." run=${() => send('sessions/end', { userId, sessionIds: [id] })}>End<span class="hidden"> session ${id}</span><//>`,
      ),
  },
  {
    name: 'keys',
    title: 'Keys',
    count: ({ keys }) => keys,
    load: (userId) =>
      reversed(getPage(KEYS, { userId, deleted: true, limit: ROWS_MAX }).then(({ rows }) => rows)),
    columns: keyColumns(false),
    keyOf: byId,
    empty: 'This account has no key. Its contacts may log in by code.',
    csv: { list: 'keys', query: { deleted: true } },
    role: 'admin',
    act: ({ send }) =>
      action(
        (key) =>
          !key.deleted &&
          html`<${KeyActs} item=${key} change=${(of, access) => send('user_keys/update', { userId: of.userId, keyId: of.id, ...access })} remove=${(of) => send('user_keys/remove', { userId: of.userId, keyId: of.id })} />`,
      ),
    head: AddKey,
  },
  {
    name: 'hosts',
    title: 'Connected hosts',
    count: ({ hosts }) => hosts,
    load: async (userId) => ({ rows: await get(`${API}/connected_hosts`, { userId }), next: undefined }),
    columns: hostColumns(undefined),
    keyOf: byId,
    empty: 'No host is connected to this account.',
    role: 'support',
    act: ({ userId, name, send }) =>
      action(
        (host) =>
          html`<${Ask} label="Disconnect" title=${`Disconnect “${host.name}”?`} confirm="Disconnect it" done="The host is disconnected." question=${`It loses access to ${name} immediately. To come back it must ask the person again.`} run=${() => send('connected_hosts/revoke', { userId, id: host.id })} />`,
      ),
  },
  {
    name: 'apps',
    title: 'Applications',
    count: ({ apps }) => apps,
    load: async (userId) => ({ rows: await appsOf(userId), next: undefined }),
    columns: ownAppColumns,
    keyOf: byId,
    empty: 'This account has registered no application.',
    role: 'admin',
    act: ({ send }) =>
      action(
        (app) =>
          html`<${AppActs} app=${app} change=${(flags) => send('apps/update', { appId: app.id, ...flags })} />`,
      ),
  },
  {
    name: 'webhooks',
    title: 'Webhooks',
    feature: 'webhooks',
    role: 'support',
    View: ({ userId, canAct }) =>
      html`<${DeliveryList} load=${() => deliveriesOf(userId)} ...${canAct ? deliveryActs(({ app }) => app.id) : {}} />`,
  },
  {
    name: 'logins',
    title: 'Logins',
    load: auditPages({ ring: 'logins' }),
    columns: auditColumns,
    keyOf: recordKey,
    empty: 'No logins that the audit log still has.',
    csv: { list: 'audit', query: { ring: 'logins' } },
  },
  {
    name: 'files',
    title: 'Files',
    feature: 'files',
    load: auditPages({ event: 'file_uploaded' }),
    columns: FILES,
    keyOf: recordKey,
    empty: 'No uploads that the audit log still has.',
    csv: { list: 'audit', query: { event: 'file_uploaded' } },
  },
  {
    name: 'audit',
    title: 'Audit',
    load: auditPages({}),
    columns: auditColumns,
    keyOf: recordKey,
    empty: 'No records of this account.',
    csv: { list: 'audit', query: {} },
  },
];
