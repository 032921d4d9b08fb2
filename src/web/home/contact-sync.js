/** Devices that sync contacts: address and user name for them, and their tokens, each shown once. */
import { get, post } from '../shared/api.js';
import { Act, Ask, Copy, Dialog, Empty, Loaded, Table, Time, useLoad } from '../shared/ui.js';
import { html, useState } from '../vendor/preact.js';

const NAME_CHARACTERS_MAX = 64;

/** `keys`: active keys of the account. `change(key, flags)` changes one. Shown where a module syncs contacts, or did. */
export function ContactSync({ keys, nameOf, change }) {
  // Tokens end with their key and its flag.
  const flags = keys.map(({ id, cardDavAccess }) => `${id}${cardDavAccess}`).join();
  const sync = useLoad(() => get('/auth/v1/contact_sync'), [flags]);
  const [adding, setAdding] = useState(false);
  const [shown, setShown] = useState(undefined);
  const add = async (key, name) => {
    if (!key.cardDavAccess) await change(key, { cardDavAccess: true });
    const added = await post('/auth/v1/contact_sync/token', { keyId: key.id, name });
    setAdding(false);
    setShown(added);
    await sync.reload();
  };
  const remove = async ({ id }) => {
    await post('/auth/v1/contact_sync/remove', { id });
    await sync.reload();
  };
  if (sync.value?.url === null && sync.value.tokens.length === 0) return '';
  const keyName = (id) => keys.find((key) => key.id === id);
  const columns = [
    { title: 'Device', head: true, cell: ({ name }) => name },
    { title: 'Key', cell: ({ keyId }) => (keyName(keyId) === undefined ? keyId : nameOf(keyName(keyId))) },
    { title: 'Added', cell: ({ createdUtc }) => html`<${Time} of=${createdUtc} />` },
    { title: 'Last used', cell: ({ lastUsedUtc }) => html`<${Time} of=${lastUsedUtc} />` },
    {
      title: 'Remove',
      action: true,
      cell: (token) =>
        html`<${Ask} label="Remove" title=${`Remove “${token.name}”?`} confirm="Remove it" done="The device was removed." question="The device stops syncing immediately. Contacts that it holds stay there." run=${() => remove(token)} />`,
    },
  ];
  return html`<section class="card" aria-labelledby="contact-sync">
    <header><h2 id="contact-sync">Contact sync</h2></header>
    <p class="soft">Phones and programs sync your contacts (CardDAV) with a password of their own.</p>
    <${Loaded} of=${sync}>${({ url, username, tokens }) => html`
      ${
        url === null
          ? html`<div class="note warn"><p>This gateway syncs no contacts any more. These devices reach nothing.</p></div>`
          : html`<${Facts} url=${url} username=${username} />`
      }
      ${tokens.length === 0 ? html`<${Empty}><p>No device syncs contacts.</p><//>` : html`<${Table} caption="Devices that sync contacts" rows=${tokens} columns=${columns} keyOf=${({ id }) => id} />`}
      ${url !== null && html`<p class="more"><button type="button" disabled=${keys.length === 0} onClick=${() => setAdding(true)}>Add a device</button></p>`}`}<//>
    <${Dialog} title="Add a device" open=${adding} onClose=${() => setAdding(false)}>
      <${Form} keys=${keys} nameOf=${nameOf} add=${add} cancel=${() => setAdding(false)} />
    <//>
    <${Dialog} title="Password of the device" open=${shown !== undefined} onClose=${() => setShown(undefined)}>
      <p>Enter this in the account settings of “${shown?.name}”, as a CardDAV account. The password is shown once.</p>
      <${Facts} url=${shown?.url ?? ''} username=${shown?.username ?? ''} />
      <pre aria-label="Password">${shown?.token}</pre>
      <div class="row"><${Copy} text=${shown?.token ?? ''} label="Copy the password" /><button type="button" onClick=${() => setShown(undefined)}>Done</button></div>
    <//>
  </section>`;
}

function Facts({ url, username }) {
  return html`<dl class="facts small">
    <dt>Server</dt><dd class="mono">${url}</dd>
    <dt>User name</dt><dd class="mono">${username}</dd>
  </dl>`;
}

function Form({ keys, nameOf, add, cancel }) {
  const [name, setName] = useState('');
  const first = keys.find(({ cardDavAccess }) => cardDavAccess) ?? keys.find(({ current }) => current);
  const [keyId, setKeyId] = useState((first ?? keys[0])?.id);
  const key = keys.find(({ id }) => id === keyId);
  return html`<div>
      <label for="device-name">Name of the device</label>
      <input id="device-name" maxlength=${NAME_CHARACTERS_MAX} autofocus placeholder="Phone" value=${name} onInput=${(event) => setName(event.currentTarget.value)} />
    </div>
    <div>
      <label for="device-key">Key</label>
      <select id="device-key" aria-describedby="device-key-hint" value=${keyId} onChange=${(event) => setKeyId(event.currentTarget.value)}>
        ${keys.map((each) => html`<option key=${each.id} value=${each.id}>${nameOf(each)}${each.current ? ' (current)' : ''}</option>`)}
      </select>
      <p class="hint" id="device-key-hint">${key?.cardDavAccess ? '' : 'The key is allowed contact sync. '}The device stops when the key is removed or forbidden contact sync.</p>
    </div>
    <div class="row">
      <button type="button" onClick=${cancel}>Cancel</button>
      <${Act} kind="primary" inline disabled=${key === undefined} run=${() => add(key, name.trim() || 'Device')}>Make a password<//>
    </div>`;
}
