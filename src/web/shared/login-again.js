/** A session that ended under somebody's hands: the way back in, over the page, so that nothing typed is lost. */

import { html } from '../vendor/preact.js';
import { logInWithSoftwareKey } from './key-store.js';
import { logInWithPasskey, passkeyHindrance } from './passkeys.js';
import { Act, Dialog } from './ui.js';

/** `onEnter` after a log-in; `onLeave` when somebody would rather go. */
export function LoginAgain({ open, onEnter, onLeave }) {
  const enter = async (act) => {
    await act();
    await onEnter();
  };
  return html`<${Dialog} title="Your session has ended" open=${open} onClose=${() => undefined} onCancel=${(event) => event.preventDefault()}>
    <p>Log in again to go on where you were. What you typed is still there.</p>
    <div class="row">
      ${passkeyHindrance() === undefined && html`<${Act} kind="primary" inline run=${() => enter(logInWithPasskey)}>Log in with a passkey<//>`}
      <${Act} inline run=${() => enter(logInWithSoftwareKey)}>Log in with the key of this browser<//>
      <button type="button" onClick=${onLeave}>Leave</button>
    </div>
  <//>`;
}
