/** The button on the page of an account that adds a key to it. */
import { notify } from '../../shared/ui.js';
import { html, useState } from '../../vendor/preact.js';
import { AddingKey } from '../key-parts.js';

export function AddKey({ userId, send }) {
  const [open, setOpen] = useState(false);
  const add = async (claim) => {
    await send('user_keys/add', claim);
    setOpen(false);
    notify('The key is added.');
  };
  return html`<button type="button" onClick=${() => setOpen(true)}>Add a key</button>
    <${AddingKey} open=${open} onClose=${() => setOpen(false)} userId=${userId} add=${add} />`;
}
