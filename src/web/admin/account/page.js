/** The page of one account: who it is, what may be done to it, and its lists, one at a time. */
import { get, post } from '../../shared/api.js';
import { Avatar } from '../../shared/shell.js';
import {
  Act,
  Ask,
  Confirm,
  Empty,
  Icon,
  Loaded,
  PagedTable,
  ShortId,
  Time,
  useCursor,
  useLoad,
} from '../../shared/ui.js';
import { html, useEffect, useRef, useState } from '../../vendor/preact.js';
import { addressOfAccount, Csv, called } from '../who.js';
import { includes, RoleOf } from './roles.js';
import { SECTIONS } from './sections.js';

const API = '/ProxyAdmin/api';
const NOT_FOUND = 404;

export function AccountPage({ info, role, userId: own, query }) {
  const id = query.get('userId') ?? '';
  const record = useLoad(() => get(`${API}/account`, { userId: id }), [id]);
  // An act on the whole account changes its lists too.
  const [acts, setActs] = useState(0);
  const reload = async () => {
    await record.reload();
    setActs((count) => count + 1);
  };
  const name = record.value?.nickname || `Account …${id.slice(-4)}`;
  useEffect(() => {
    document.title = `${name} · Gatehouse`;
  }, [name]);
  const sections = SECTIONS.filter(({ feature }) => feature === undefined || info.features.includes(feature));
  const section = sections.find((each) => each.name === query.get('show')) ?? sections[0];
  const isMissing = record.error?.status === NOT_FOUND && record.value === undefined;
  return html`<nav class="crumbs" aria-label="Way here"><a href="/ProxyAdmin/Users">Accounts</a><${Icon} name="chevron-right" /><span aria-current="page">${name}</span></nav>
    <${Head} id=${id} name=${name} account=${record.value} own=${own} role=${role} reload=${reload} />
    ${
      isMissing
        ? html`<div class="card"><${Empty} icon="user"><p>There is no account with the id <span class="mono">${id}</span>.</p><a class="button" href="/ProxyAdmin/Users">All accounts</a><//></div>`
        : html`<${Loaded} of=${record}>${(account) => html`
          <${Facts} account=${account} own=${own} role=${role} reload=${reload} />
          <section class="card">
            <${Tabs} sections=${sections} shown=${section.name} account=${account} />
            <${section.View ?? Section} canAct=${section.role !== undefined && mayAct(role, section.role, account)} userId=${id} key=${`${section.name} ${acts}`} section=${section} account=${account} reload=${record.reload} />
          </section>`}<//>`
    }`;
}

/** May this role act where `needed` is asked for? Accounts with a role are for admins. */
const mayAct = (role, needed, account) =>
  includes(role, needed) && (role === 'admin' || account.role === null);

function Head({ id, name, account, own, role, reload }) {
  return html`<div class="head whole"><${Avatar} userId=${id} nickname=${account?.nickname} big />
    <div><div class="row"><h1>${name}</h1>${account?.blocked && html`<span class="tag bad">blocked</span>`}${account?.role && html`<span class="tag accent">${account.role}</span>`}${id === own && html`<span class="tag">you</span>`}</div>
      ${account !== undefined && html`<div class="row small soft"><${ShortId} id=${id} /></div>`}</div>
    ${account !== undefined && mayAct(role, 'support', account) && html`<div class="push row"><${Acts} account=${account} isOwn=${id === own} reload=${reload} /></div>`}
  </div>`;
}

/** Buttons that act on the whole account. */
function Acts({ account, isOwn, reload }) {
  const name = called(account);
  const send = async (path, body) => {
    await post(`${API}/${path}`, { userId: account.id, ...body });
    await reload();
  };
  return html`<${Ask} kind="" label="End all sessions" title=${`End all sessions of ${name}?`} confirm="End them" done="All sessions have ended." disabled=${account.sessions === 0 && account.hosts === 0} question=${`${account.sessions} sessions end immediately and ${account.hosts} connected hosts are disconnected. The account is not blocked and may log in again.`} run=${() => send('sessions/end', {})} />
    ${
      !isOwn &&
      (account.blocked
        ? html`<${Act} done="The account is unblocked." run=${() => send('users/block', { blocked: false })}>Unblock<//>`
        : html`<${Block} account=${account} name=${name} block=${(reason) => send('users/block', { blocked: true, reason })} />`)
    }`;
}

const REASON_MIN = 5;

function Block({ account, name, block }) {
  const [open, setOpen] = useState(false);
  const [reason, setReason] = useState('');
  const begin = () => {
    setReason('');
    setOpen(true);
  };
  const run = async () => {
    if (reason.trim().length < REASON_MIN) throw new Error(`Say why, in at least ${REASON_MIN} characters.`);
    await block(reason.trim());
  };
  return html`<button type="button" class="danger" onClick=${begin}><${Icon} name="ban" />Block</button>
    <${Confirm} title=${`Block ${name}?`} open=${open} onClose=${() => setOpen(false)} confirm="Block the account" done="The account is blocked." run=${run}>
      <ul class="effects">
        <li><${Icon} name="log-out" />${account.sessions} sessions end at once, and it cannot log in until it is unblocked.</li>
        <li><${Icon} name="key-round" />Keys, files and applications stay. Unblocking brings them back; sessions stay ended.</li>
      </ul>
      <label for="reason">Reason</label>
      <input id="reason" maxlength="200" autocomplete="off" aria-describedby="reason-hint" value=${reason} onInput=${(event) => setReason(event.currentTarget.value)} />
      <p class="hint" id="reason-hint">Kept in the audit log. The person does not see it.</p>
    <//>`;
}

function Facts({ account, own, role, reload }) {
  const facts = [
    [
      'Role',
      html`<${RoleOf} account=${account} canGive=${role === 'admin'} isOwn=${account.id === own} reload=${reload} />`,
    ],
    ['State', account.blocked ? 'Blocked' : 'Active'],
    ['Last seen', html`<${Time} of=${account.lastSeenUtc} />`],
    ['Opened', html`<${Time} of=${account.createdUtc} />`],
  ];
  return html`<dl class="band card">${facts.map(([title, value]) => html`<div key=${title}><dt>${title}</dt><dd>${value}</dd></div>`)}</dl>`;
}

function Tabs({ sections, shown, account }) {
  const nav = useRef(null);
  // On a phone the shown one may stand behind the edge.
  useEffect(
    () =>
      nav.current?.querySelector('[aria-current]')?.scrollIntoView({ block: 'nearest', inline: 'nearest' }),
    [shown],
  );
  return html`<nav ref=${nav} class="tabs" aria-label="Lists of the account">${sections.map(
    ({ name, title, count }) =>
      html`<a key=${name} href=${`${addressOfAccount(account.id)}&show=${name}`} aria-current=${name === shown ? 'page' : undefined}>${title}${count !== undefined && html`<span class="count">${count(account).toLocaleString('en')}</span>`}</a>`,
  )}</nav>`;
}

/** One list of the account, with what may be done to its rows. */
function Section({ section, account, userId, canAct, reload }) {
  const pages = useCursor((next) => section.load(userId, next), []);
  const box = useRef(null);
  const send = async (path, body) => {
    await post(`${API}/${path}`, body);
    await Promise.all([pages.reload(), reload()]);
    // The pressed button may have gone with its row.
    if (document.activeElement === document.body) box.current?.focus();
  };
  const { columns, act, csv, head: More } = section;
  const by = { userId, name: called(account), send };
  const hasHead = csv !== undefined || (canAct && More !== undefined);
  return html`<div ref=${box} tabindex="-1">
    ${hasHead && html`<div class="row tools"><div class="push row">${csv !== undefined && html`<${Csv} list=${csv.list} query=${{ userId, ...csv.query }} />`}${canAct && More !== undefined && html`<${More} ...${by} />`}</div></div>`}
    <${PagedTable} pages=${pages} columns=${canAct && act !== undefined ? [...columns, act(by)] : columns} keyOf=${section.keyOf} caption=${section.title}
      empty=${pages.isWhole ? section.empty : 'No match in the records searched so far. Each page searches 20,000 records.'} more=${pages.rows.length === 0 ? 'Continue with older records' : 'Show older records'} />
  </div>`;
}
