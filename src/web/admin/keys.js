/** Keys of all accounts: search, add by claim, what a key may do, removal. */
import { checkLetters, LETTERS, readAgentLink } from '../shared/agent-link.js';
import { getPage, post, sentenceOf } from '../shared/api.js';
import { Confirm, Dialog, notify, PagedTable, Time, useCursor } from '../shared/ui.js';
import { html, useEffect, useState } from '../vendor/preact.js';
import { moveTo } from './address.js';

const PATH = '/ProxyAdmin/api/user_keys';
const KINDS = {
  FIDO2: 'Passkey or hardware key',
  UserKey: 'Software key',
  PasswordKey: 'Password key',
  Unknown: 'Other key',
};
const DIGITS = { inputmode: 'numeric', pattern: '[0-9]{1,19}', title: 'Digits only' };

export function UserKeysPage({ role, query }) {
  const [adding, setAdding] = useState(false);
  const [removals, setRemovals] = useState(0);
  const filter = {};
  for (const name of ['userId', 'publicKey', 'deleted']) if (query.get(name)) filter[name] = query.get(name);
  const pages = useCursor((next) => (next === undefined ? getPage(PATH, filter) : getPage(next)), []);
  const isAdmin = role === 'admin';
  const change = async (key, access) => {
    const changed = await post(`${PATH}/update`, { userId: key.userId, keyId: key.id, ...access });
    pages.change((rows) => rows.map((row) => (row.id === key.id ? changed : row)));
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
    { title: 'Key', cell: (key) => html`<${Name} item=${key} />` },
    {
      title: 'Public key or credential',
      cell: (key) => html`<${Whose} item=${key} hasAccount=${filter.userId === undefined} />`,
    },
    { title: 'When', cell: (key) => html`<${Times} item=${key} />` },
    { title: 'Access', cell: (key) => html`<${Access} item=${key} />` },
    ...(isAdmin
      ? [
          {
            title: 'Actions',
            cell: (key) => !key.deleted && html`<${Acts} item=${key} change=${change} remove=${remove} />`,
          },
        ]
      : []),
  ];
  return html`<${Filter} query=${query} />
    <section class="card">
      <header><h2>${filter.userId === undefined ? 'Keys of all accounts' : html`Keys of account <span class="mono">${filter.userId}</span>`}</h2>
        ${isAdmin && html`<div class="push"><button type="button" onClick=${() => setAdding(true)}>Add a key</button></div>`}</header>
      <${PagedTable} pages=${pages} columns=${columns} keyOf=${({ id }) => id} caption="Keys"
        empty=${emptyText(filter, pages.isWhole)} more=${pages.rows.length === 0 ? 'Search more accounts' : 'Show more keys'} />
      ${pages.isWhole && pages.rows.length > 0 && html`<p class="small soft more">${pages.rows.length === 1 ? 'One key' : `${pages.rows.length} keys`}. End of the list.</p>`}
    </section>
    ${isAdmin && html`<${Adding} open=${adding} onClose=${() => setAdding(false)} userId=${filter.userId ?? ''} add=${add} />`}`;
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
  return html`<form class="card filters keys-filter" aria-label="Filter" onSubmit=${show}>
    <div><label for="publicKey">Public key or credential id</label><input id="publicKey" name="publicKey" autocomplete="off" spellcheck=${false} maxlength="1364" defaultValue=${query.get('publicKey') ?? ''} /></div>
    <div><label for="userId">Account id</label><input id="userId" name="userId" ...${DIGITS} defaultValue=${query.get('userId') ?? ''} /></div>
    <div class="row"><label class="check"><input type="checkbox" name="deleted" value="true" defaultChecked=${query.get('deleted') === 'true'} />Include removed keys</label><button type="submit" class="primary">Show</button>${[...query.keys()].length > 0 && html`<button type="button" onClick=${() => moveTo({})}>Clear</button>`}</div>
  </form>`;
}

function Name({ item }) {
  return html`<strong>${item.name ?? KINDS[item.keyType]}</strong>
    ${item.current && html` <span class="tag good">current</span>`}
    ${item.deleted && html` <span class="tag bad">removed</span>`}
    ${!item.proven && html` <span class="tag warn" title="Possession of its secret is not proven yet">unproven</span>`}
    <br />${item.name !== undefined && html`<span class="small soft">${KINDS[item.keyType]}</span><br />`}<span class="mono small soft">${item.id}</span>`;
}

function Whose({ item, hasAccount }) {
  return html`<span class="key-text">${item.publicKey}</span>${hasAccount && html`<span class="small soft">Account <a class="mono" href=${`/ProxyAdmin/UserKeys?userId=${item.userId}`}>${item.userId}</a></span>`}`;
}

function Times({ item }) {
  return html`<dl class="details lines"><div><dt>Added</dt><dd><${Time} of=${item.utcCreate} /></dd></div><div><dt>Used</dt><dd><${Time} of=${item.lastUsedUtc} /></dd></div></dl>`;
}

function Access({ item }) {
  if (item.deleted || (!item.mcpAccess && !item.cardDavAccess && item.browserLogin))
    return html`<span class="soft nowrap">${item.deleted || !item.proven ? 'no access' : 'login only'}</span>`;
  const isPasskey = item.keyType === 'FIDO2';
  return html`<span class="tags">${item.mcpAccess && html`<span class=${isPasskey ? 'tag' : 'tag good'}>${isPasskey ? 'MCP, no effect' : 'MCP'}</span>`}${item.cardDavAccess && html`<span class="tag good">Contact sync</span>`}${!item.browserLogin && html`<span class="tag" title="This key cannot log in to a browser">No browser</span>`}</span>`;
}

/** Which key a dialog is about. */
function Facts({ item }) {
  return html`<dl class="facts small">
    <dt>Key</dt><dd>${item.name === undefined ? '' : `${item.name}, `}${KINDS[item.keyType]}</dd>
    <dt>${item.keyType === 'FIDO2' ? 'Credential' : 'Public key'}</dt><dd class="mono">${item.publicKey}</dd>
    <dt>Account</dt><dd class="mono">${item.userId}</dd>
  </dl>`;
}

function Acts({ item, change, remove }) {
  const [open, setOpen] = useState('');
  const close = () => setOpen('');
  return html`<div class="row acts">
      <button type="button" onClick=${() => setOpen('change')}>Change<span class="hidden"> what the key ${item.id} may do</span></button>
      <button type="button" class="danger" onClick=${() => setOpen('remove')}>Remove<span class="hidden"> the key ${item.id}</span></button>
    </div>
    <${Change} item=${item} open=${open === 'change'} onClose=${close} change=${change} />
    <${Confirm} title="Remove the key" open=${open === 'remove'} onClose=${close} confirm="Remove the key" done="The key is removed." run=${() => remove(item)}>
      <${Facts} item=${item} />
      <p>Its sessions end immediately, and it can no longer log in. If it is the account's only key, the account may become inaccessible. This cannot be undone.</p>
      ${item.current && html`<div class="note warn"><p>You are logged in with this key. You will be logged out.</p></div>`}
    <//>`;
}

const accessOf = ({ mcpAccess, cardDavAccess, browserLogin }) => ({ mcpAccess, cardDavAccess, browserLogin });

function Change({ item, open, onClose, change }) {
  const [chosen, setChosen] = useState(undefined);
  const access = chosen ?? accessOf(item);
  const close = () => {
    setChosen(undefined);
    onClose();
  };
  const isSame = Object.entries(accessOf(item)).every(([name, value]) => access[name] === value);
  const endsAgents = item.mcpAccess && !access.mcpAccess;
  const endsBrowsers = item.browserLogin && !access.browserLogin;
  return html`<${Confirm} title="Key permissions" open=${open} onClose=${close} confirm="Save" kind=${endsAgents || endsBrowsers ? 'danger' : 'primary'} disabled=${isSame} done="The key is changed." run=${() => change(item, access)}>
    <${Facts} item=${item} />
    <${Boxes} prefix=${item.id} access=${access} onChange=${setChosen} isPasskey=${item.keyType === 'FIDO2'} />
    <p class="effect short" aria-live="polite">${endsAgents && 'Agents that are logged in with this key are logged out immediately. '}${endsBrowsers && 'Browser sessions of this key end immediately.'}</p>
  <//>`;
}

function Boxes({ prefix, access, onChange, isPasskey }) {
  const { mcpAccess, cardDavAccess, browserLogin } = access;
  return html`<div class="stack access">
    <div><label class="check"><input type="checkbox" aria-describedby=${`${prefix}-mcp`} checked=${mcpAccess} onChange=${(event) => onChange({ ...access, mcpAccess: event.currentTarget.checked })} />MCP</label>
      <p class="hint" id=${`${prefix}-mcp`}>${isPasskey ? 'Agents cannot log in with a passkey. MCP has no effect for this key.' : 'Agents can log in with it over MCP.'}</p></div>
    <div><label class="check"><input type="checkbox" aria-describedby=${`${prefix}-dav`} checked=${cardDavAccess} onChange=${(event) => onChange({ ...access, cardDavAccess: event.currentTarget.checked })} />Contact sync</label>
      <p class="hint" id=${`${prefix}-dav`}>Programs can sync contacts with it.</p></div>
    ${
      !isPasskey &&
      html`<div><label class="check"><input type="checkbox" aria-describedby=${`${prefix}-browser`} checked=${browserLogin} onChange=${(event) => onChange({ ...access, browserLogin: event.currentTarget.checked })} />Browser login</label>
      <p class="hint" id=${`${prefix}-browser`}>A proven key logs in to pages. Agents do not need it.</p></div>`
    }
  </div>`;
}

function Adding({ open, onClose, userId, add }) {
  return html`<${Dialog} title="Add a key" open=${open} onClose=${onClose}><${AddForm} onClose=${onClose} userId=${userId} add=${add} /><//>`;
}

/** Within the dialog, so that each opening begins with empty fields. */
function AddForm({ onClose, userId, add }) {
  const [access, setAccess] = useState({ mcpAccess: false, cardDavAccess: false, browserLogin: true });
  const [link, setLink] = useState(undefined);
  const [busy, setBusy] = useState(false);
  const [fault, setFault] = useState(undefined);
  const readKey = ({ currentTarget: { value } }) => {
    const at = value.indexOf('#agent-key=');
    const found = at === -1 ? undefined : readAgentLink(value.slice(at).trim());
    setLink(found);
    if (found !== undefined) setAccess({ ...access, mcpAccess: true, browserLogin: false });
  };
  const send = async (event) => {
    event.preventDefault();
    const fields = new FormData(event.currentTarget);
    const textOf = (name) => String(fields.get(name)).trim();
    const name = textOf('name') || (link?.name ?? '');
    setBusy(true);
    setFault(undefined);
    try {
      if (link !== undefined) await checkLetters(link.publicKey, textOf('letters'));
      await add({
        userId: textOf('account'),
        publicKey: link?.publicKey ?? textOf('key'),
        ...(name === '' ? {} : { name }),
        ...access,
      });
    } catch (error) {
      setFault(sentenceOf(error));
    } finally {
      setBusy(false);
    }
  };
  return html`<form onSubmit=${send}>
    <p>The key is added without proof of possession. It cannot open a browser session. The change is shown in the account's login log.</p>
    <div class="stack">
      <div><label for="add-account">Account id</label><input id="add-account" name="account" required autocomplete="off" autofocus=${userId === ''} ...${DIGITS} defaultValue=${userId} /></div>
      <div><label for="add-key">Public key, or link of an agent</label><input id="add-key" name="key" required autocomplete="off" spellcheck=${false} autofocus=${userId !== ''} maxlength="2048" aria-describedby="add-key-hint" onInput=${readKey} />
        <p class="hint" id="add-key-hint">Ed25519, 32 bytes in base64url: 43 characters. Or the link that <code>gatehouse-connect</code> prints.</p></div>
      ${
        link !== undefined &&
        html`<div><label for="add-letters">Six letters from the agent's terminal</label><input id="add-letters" name="letters" class="mono" required autocomplete="off" spellcheck=${false} minlength=${LETTERS} maxlength="13" aria-describedby="add-letters-hint" />
        <p class="hint" id="add-letters-hint">Take them from the person who started the agent, by another way than the link.</p></div>`
      }
      <div><label for="add-name">Name <span class="soft">(optional)</span></label><input id="add-name" name="name" autocomplete="off" maxlength="64" /></div>
      <${Boxes} prefix="add" access=${access} onChange=${setAccess} isPasskey=${false} />
    </div>
    <div class="row dialog-acts">
      <button type="button" disabled=${busy} onClick=${onClose}>Cancel</button>
      <button type="submit" class="primary" disabled=${busy} aria-busy=${busy}>Add the key</button>
      ${fault !== undefined && html`<p class="fault" role="alert">${fault}</p>`}
    </div>
  </form>`;
}
