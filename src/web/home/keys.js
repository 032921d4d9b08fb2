/** Keys of the account: list, permissions, adding and removal. */
import { get, post } from '../shared/api.js';
import { dropKey, registerSoftwareKey } from '../shared/key-store.js';
import { passkeyHindrance, registerPasskey } from '../shared/passkeys.js';
import { Act, Ask, Loaded, Time, useLoad } from '../shared/ui.js';
import { html } from '../vendor/preact.js';
import { ContactSync } from './contact-sync.js';

const KINDS = {
  FIDO2: 'Passkey or hardware key',
  UserKey: 'Software key',
  PasswordKey: 'Password key',
  Unknown: 'Other',
};

export function KeysPart() {
  const keys = useLoad(() => get('/auth/v1/keys/user_keys'), []);
  const then = async (act) => {
    await act();
    await keys.reload();
  };
  const change = (key, flags) => then(() => post('/auth/v1/keys/update_key', { keyId: key.id, ...flags }));
  const remove = (key) =>
    then(async () => {
      await post('/auth/v1/keys/remove_key', { keyId: key.id });
      await dropKey(key.publicKey).catch(() => undefined);
    });
  return html`<h1>Keys</h1>
    <p class="soft">A key logs in as you, unless it may use MCP only. Give every device and every agent its own key, so that you can revoke one without the others.</p>
    <div class="card"><div class="row">
      ${passkeyHindrance() === undefined && html`<${Act} kind="primary" done="The passkey was added." run=${() => then(() => registerPasskey())}>Add a passkey<//>`}
      <${Act} done="The key was added." run=${() => then(() => registerSoftwareKey())}>Add a key for this browser<//>
      <a class="button" href="#agent">Connect an agent</a>
    </div></div>
    <${Loaded} of=${keys}>${(
      list,
    ) => html`<div class="grid keys">${list.map((key) => html`<${Key} key=${key.id} item=${key} change=${change} remove=${remove} />`)}</div>
      <${ContactSync} keys=${list} nameOf=${nameOf} change=${change} />`}<//>`;
}

const nameOf = ({ name, keyType }) => name ?? KINDS[keyType];

function Key({ item, change, remove }) {
  const isSoftware = item.keyType !== 'FIDO2';
  const hintId = `agents-${item.id}`;
  return html`<article class="card">
    <header>
      <h2>${nameOf(item)}</h2>
      ${item.current && html`<span class="tag good">current</span>`}
      ${!item.proven && html`<span class="tag warn" title="Possession of its secret is not proven yet">unproven</span>`}
    </header>
    <dl class="facts small">
      ${item.name !== undefined && html`<dt>Kind</dt><dd>${KINDS[item.keyType]}</dd>`}
      ${item.backedUp === true && html`<dt>Backup</dt><dd>synchronized</dd>`}
      <dt>Access</dt><dd class="tags">${item.mcpAccess && html`<span class=${isSoftware ? 'tag good' : 'tag'}>${isSoftware ? 'MCP' : 'MCP, no effect'}</span>`}${item.cardDavAccess && html`<span class="tag good">Contact sync</span>`}${!item.mcpAccess && !item.cardDavAccess && (item.proven && item.browserLogin ? 'login only' : 'none')}${!item.browserLogin && html`<span class="tag" title="This key cannot log in to a browser">No browser</span>`}</dd>
      <dt>Added</dt><dd><${Time} of=${item.utcCreate} /></dd>
      <dt>Last used</dt><dd><${Time} of=${item.lastUsedUtc} /></dd>
      <dt>${isSoftware ? 'Public key' : 'Credential'}</dt><dd class="mono">${item.publicKey}</dd>
    </dl>
    <div class="stack">
      <div class="row">
        <${Act} hint=${isSoftware ? undefined : hintId} run=${() => change(item, { mcpAccess: !item.mcpAccess })}>${item.mcpAccess ? 'Forbid agents (MCP)' : 'Allow agents (MCP)'}<//>
        ${isSoftware && html`<${BrowserLogin} item=${item} change=${change} />`}
        <${Act} run=${() => change(item, { cardDavAccess: !item.cardDavAccess })}>${item.cardDavAccess ? 'Forbid contact sync' : 'Allow contact sync'}<//>
        <${Ask} label="Remove" title="Remove the key?" confirm="Remove the key" done="The key was removed."
          question=${item.current ? 'You are logged in with this key. You will be logged out, and without another key you lose access to the account.' : 'Its sessions end immediately. This cannot be undone.'}
          run=${() => remove(item)} />
      </div>
      ${!isSoftware && html`<p class="hint" id=${hintId}>Agents cannot log in with a passkey. MCP access has no effect for this key.</p>`}
    </div>
  </article>`;
}

/** Shows whether the key logs in to pages, and changes it; the gateway wants a login of the last 15 minutes for a change. */
function BrowserLogin({ item, change }) {
  if (!item.browserLogin)
    return html`<${Act} done="The key may log in to browsers." run=${() => change(item, { browserLogin: true })}>Allow browser login<//>`;
  const own = item.current ? ' You are logged in with this key, so you will be logged out.' : '';
  return html`<${Ask} kind="" label="Forbid browser login" title="Forbid browser login?" confirm="Forbid it" done="The key may no longer log in to browsers." question=${`Browser sessions of this key end immediately. Its agents stay connected.${own}`} run=${() => change(item, { browserLogin: false })} />`;
}
