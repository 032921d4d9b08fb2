/** A session that ended while the page is open: a dialog over the page, so that typed input is kept. */

import { html } from '../vendor/preact.js';
import { logInWithSoftwareKey } from './key-store.js';
import { logInWithPasskey, passkeyHindrance } from './passkeys.js';
import { Act, Dialog } from './ui.js';

/** `onEnter` after a log-in; `onLeave` when the user declines. */
export function LoginAgain({ open, onEnter, onLeave }) {
  const enter = async (act) => {
    await act();
    await onEnter();
  };
  return html`<${Dialog} title="Your session has ended" open=${open} onClose=${() => undefined} onCancel=${(event) => event.preventDefault()}>
    <p>Log in again to continue. Your input is kept.</p>
    <div class="row">
      ${passkeyHindrance() === undefined && html`<${Act} kind="primary" inline run=${() => enter(logInWithPasskey)}>Log in with a passkey<//>`}
      <${Act} inline run=${() => enter(logInWithSoftwareKey)}>Log in with this browser's key<//>
      <button type="button" onClick=${onLeave}>Leave</button>
    </div>
  <//>`;
}
