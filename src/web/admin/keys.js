/** Keys of all accounts: whose is a key, search, add by claim. */
import { getPage, post } from '../shared/api.js';
import { notify, PagedTable, useCursor } from '../shared/ui.js';
import { html, useEffect, useState } from '../vendor/preact.js';
import { moveTo } from './address.js';
import { count } from './figures.js';
import { Filters } from './folded.js';
import { AddingKey, DIGITS, KeyActs, keyColumns, KEYS as PATH } from './key-parts.js';
import { Csv } from './who.js';

export function UserKeysPage({ role, query }) {
  const [adding, setAdding] = useState(false);
  const [removals, setRemovals] = useState(0);
  const filter = {};
  for (const name of ['userId', 'publicKey', 'deleted']) if (query.get(name)) filter[name] = query.get(name);
  const pages = useCursor((next) => (next === undefined ? getPage(PATH, filter) : getPage(next)), []);
  const isAdmin = role === 'admin';
  const change = async (key, access) => {
    const changed = await post(`${PATH}/update`, { userId: key.userId, keyId: key.id, ...access });
    pages.change((rows) => rows.map((row) => (row.id === key.id ? { ...row, ...changed } : row)));
  };
  const remove = async (key) => {
    await post(`${PATH}/remove`, { userId: key.userId, keyId: key.id });
    setRemovals((count) => count + 1);
    const removed = { ...key, deleted: true };
    pages.change((rows) => rows.map((row) => (row.id === key.id ? removed : row)));
  };
  const add = async (claim) => {
    const added = await post(`${PATH}/add`, claim);
    setAdding(false);
    notify('The key is added.');
    if (location.search === `?userId=${added.userId}`) await pages.reload();
    else moveTo({ userId: added.userId });
  };
  // The focused button was removed with its key.
  useEffect(() => {
    if (removals > 0) document.querySelector('.scroll[aria-label="Keys"]')?.focus();
  }, [removals]);
  const columns = [
    ...keyColumns(filter.userId === undefined),
    ...(isAdmin
      ? [
          {
            title: 'Actions',
            action: true,
            cell: (key) => !key.deleted && html`<${KeyActs} item=${key} change=${change} remove=${remove} />`,
          },
        ]
      : []),
  ];
  return html`<${Filter} query=${query} />
    <section class="card">
      <header><h2>${filter.userId === undefined ? 'Keys of all accounts' : html`Keys of account <span class="mono">${filter.userId}</span>`}</h2>
        <div class="push row"><${Csv} list="keys" query=${filter} />${isAdmin && html`<button type="button" onClick=${() => setAdding(true)}>Add a key</button>`}</div></header>
      <${PagedTable} pages=${pages} columns=${columns} keyOf=${({ id }) => id} caption="Keys"
        empty=${emptyText(filter, pages.isWhole)} more=${pages.rows.length === 0 ? 'Search more accounts' : 'Show more keys'} />
      ${pages.isWhole && pages.rows.length > 0 && html`<p class="small soft more">${pages.rows.length === 1 ? 'One key' : `${count(pages.rows.length)} keys`}. End of the list.</p>`}
    </section>
    ${isAdmin && html`<${AddingKey} open=${adding} onClose=${() => setAdding(false)} userId=${filter.userId ?? ''} add=${add} />`}`;
}

function emptyText({ userId, publicKey, deleted }, isWhole) {
  if (!isWhole) return 'No match in the accounts searched so far. Each page searches 1,000 accounts.';
  const among = deleted === undefined ? ' Removed keys are not searched.' : '';
  if (publicKey !== undefined) return `No key has exactly this public key or credential id.${among}`;
  return userId === undefined ? 'No account has a key yet.' : `This account has no key.${among}`;
}

function Filter({ query }) {
  const show = (event) => {
    event.preventDefault();
    const fields = new FormData(event.currentTarget);
    const textOf = (name) => String(fields.get(name) ?? '').trim();
    moveTo({ publicKey: textOf('publicKey'), userId: textOf('userId'), deleted: textOf('deleted') });
  };
  const set = [...query.keys()].length;
  return html`<${Filters} kind="card" set=${set} onSubmit=${show}>
    <div><label for="publicKey">Public key or credential id</label><input id="publicKey" name="publicKey" autocomplete="off" spellcheck=${false} maxlength="1364" defaultValue=${query.get('publicKey') ?? ''} /></div>
    <div><label for="userId">Account id</label><input id="userId" name="userId" ...${DIGITS} defaultValue=${query.get('userId') ?? ''} /></div>
    <div class="row"><label class="check"><input type="checkbox" name="deleted" value="true" defaultChecked=${query.get('deleted') === 'true'} />Include removed keys</label><button type="submit" class="primary">Show</button>${set > 0 && html`<button type="button" onClick=${() => moveTo({})}>Clear</button>`}</div>
  <//>`;
}
