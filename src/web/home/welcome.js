/** The way in: a new account or a log-in, with a passkey, a key of this browser, or a code. */
import { post } from '../shared/api.js';
import { listKeys, logInWithSoftwareKey, registerSoftwareKey } from '../shared/key-store.js';
import { logInWithPasskey, passkeyHindrance, registerPasskey } from '../shared/passkeys.js';
import { Act, useLoad } from '../shared/ui.js';
import { html, useState } from '../vendor/preact.js';

export function Welcome({ info, onEnter }) {
  const hindrance = passkeyHindrance();
  const kept = useLoad(() => listKeys().catch(() => []), []);
  const [name, setName] = useState('');
  const enter = async (act) => {
    await act();
    await onEnter();
  };
  const label = name.trim() === '' ? undefined : name.trim();
  return html`<div class="welcome">
    <section>
      <h1>One door for people and agents</h1>
      <p>Log in once. Give an agent a key of its own, decide what it may do, see every call it made, and take the key away whenever you like.</p>
      <ul>
        <li>Tools over MCP, with limits and an audit trail</li>
        <li>Files with checksums and resumable uploads</li>
        <li>Events in real time, here and as webhooks</li>
      </ul>
      <p class="small soft">${info === undefined ? '' : `${info.project}, version ${info.version}`}</p>
    </section>
    <section>
      <div class="card">
        <header><h2>Log in</h2></header>
        <div class="stack">
          ${
            hindrance === undefined
              ? html`<${Act} kind="primary" run=${() => enter(logInWithPasskey)}>Log in with a passkey<//>`
              : html`<p class="hint">${hindrance}</p>`
          }
          ${(kept.value?.length ?? 0) > 0 && html`<${Act} run=${() => enter(logInWithSoftwareKey)}>Log in with the key of this browser<//>`}
          ${info?.authMethods?.includes('email') && html`<${CodeLogin} onEnter=${onEnter} />`}
        </div>
      </div>
      <div class="card">
        <header><h2>Create an account</h2></header>
        <div class="stack">
          <div>
            <label for="name">Name of the key <span class="soft">(optional)</span></label>
            <input id="name" maxlength="64" autocomplete="nickname" placeholder="My laptop" value=${name} onInput=${(event) => setName(event.currentTarget.value)} />
          </div>
          ${hindrance === undefined && html`<${Act} kind="primary" run=${() => enter(() => registerPasskey(label))}>Create it with a passkey<//>`}
          <${Act} run=${() => enter(() => registerSoftwareKey(label))}>Create it with a key of this browser<//>
          <p class="hint">A key of this browser cannot be copied out of it, and is gone when the browser's data are cleared. Add a passkey to the account before you rely on it.</p>
        </div>
      </div>
    </section>
  </div>`;
}

/** A code by e-mail or phone: asked for, then typed. */
function CodeLogin({ onEnter }) {
  const [address, setAddress] = useState('');
  const [sent, setSent] = useState(undefined);
  const [code, setCode] = useState('');
  const isPhone = address.trim().startsWith('+');
  const ask = async () => {
    const body = isPhone ? { phone: address.trim() } : { email: address.trim() };
    setSent(await post(isPhone ? '/auth/v1/login_phone' : '/auth/v1/login_email', body));
    setCode('');
  };
  const logIn = async () => {
    await post('/auth/v1/login', { challengeId: sent.challengeId, code: code.trim() });
    await onEnter();
  };
  return html`<details>
    <summary>Log in with a code</summary>
    <div class="stack">
      <div>
        <label for="address">E-mail address, or phone number with +</label>
        <input id="address" autocomplete="email" value=${address} onInput=${(event) => setAddress(event.currentTarget.value)} />
      </div>
      <div class="row"><${Act} disabled=${address.trim() === ''} run=${ask}>${sent === undefined ? 'Send a code' : 'Send another code'}<//></div>
      ${
        sent !== undefined &&
        html`<div>
        <label for="code">The ${sent.codeLength} digits that were sent</label>
        <input id="code" inputmode="numeric" autocomplete="one-time-code" maxlength=${sent.codeLength} value=${code} onInput=${(event) => setCode(event.currentTarget.value)} />
      </div>
      <div class="row"><${Act} kind="primary" disabled=${code.trim().length !== sent.codeLength} run=${logIn}>Log in<//></div>`
      }
    </div>
  </details>`;
}
