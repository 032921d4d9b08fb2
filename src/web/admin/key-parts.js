/** A key in a list: what it is, what it may do, its change, its removal, and the dialog that adds one. */
import { checkLetters, LETTERS, readAgentLink } from '../shared/agent-link.js';
import { sentenceOf } from '../shared/api.js';
import { Confirm, Dialog, ShortId, Time } from '../shared/ui.js';
import { html, useState } from '../vendor/preact.js';
import { called, Who } from './who.js';

export const KEYS = '/ProxyAdmin/api/user_keys';
export const KINDS = {
  FIDO2: 'Passkey or hardware key',
  UserKey: 'Software key',
  PasswordKey: 'Password key',
  Unknown: 'Other key',
};
export const DIGITS = { inputmode: 'numeric', pattern: '[0-9]{1,19}', title: 'Digits only' };

/** `hasAccount`: rows are of several accounts. */
export const keyColumns = (hasAccount) => [
  { title: 'Key', head: true, cell: (key) => html`<${Name} item=${key} />` },
  {
    title: 'Public key or credential',
    bare: true,
    cell: (key) => html`<${Whose} item=${key} hasAccount=${hasAccount} />`,
  },
  { title: 'When', bare: true, cell: (key) => html`<${Times} item=${key} />` },
  { title: 'Access', brief: true, cell: (key) => html`<${Access} item=${key} />` },
];

function Name({ item }) {
  return html`<strong>${item.name ?? KINDS[item.keyType]}</strong>
    ${item.current && html` <span class="tag good">current</span>`}
    ${item.deleted && html` <span class="tag bad">removed</span>`}
    ${!item.proven && html` <span class="tag warn" title="Possession of its secret is not proven yet">unproven</span>`}
    <br />${item.name !== undefined && html`<span class="small soft">${KINDS[item.keyType]}</span><br />`}<${ShortId} id=${item.id} />`;
}

function Whose({ item, hasAccount }) {
  return html`<span class="key-text">${item.publicKey}</span>${hasAccount && html`<${Who} id=${item.userId} nickname=${item.nickname} />`}`;
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

/** Facts that identify the key of a dialog. */
function Facts({ item }) {
  return html`<dl class="facts small">
    <dt>Key</dt><dd>${item.name === undefined ? '' : `${item.name}, `}${KINDS[item.keyType]}</dd>
    <dt>${item.keyType === 'FIDO2' ? 'Credential' : 'Public key'}</dt><dd class="mono">${item.publicKey}</dd>
    <dt>Account</dt><dd>${called({ id: item.userId, nickname: item.nickname })}</dd>
  </dl>`;
}

export function KeyActs({ item, change, remove }) {
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

export function AddingKey({ open, onClose, userId, add }) {
  return html`<${Dialog} title="Add a key" open=${open} onClose=${onClose}><${AddForm} onClose=${onClose} userId=${userId} add=${add} /><//>`;
}

/** Form within the dialog, so that each opening begins with empty fields. */
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
