/** Log-in and sign-up: with a passkey, a key of this browser, or a code. Parts of the home page and of the connect page. */
import { html, useEffect, useState } from '../vendor/preact.js';
import { post, sentenceOf } from './api.js';
import { listKeys, logInWithSoftwareKey, registerSoftwareKey } from './key-store.js';
import {
  localhostAddress,
  logInByAutofill,
  logInWithPasskey,
  passkeyHindrance,
  registerPasskey,
} from './passkeys.js';
import { Act, notify, useLoad } from './ui.js';

/** `info`: the answer of /auth/v1/info. `onEnter` runs when the person is logged in. */
export function LogIn({ info, title = 'Log in', onEnter }) {
  const hindrance = passkeyHindrance();
  const kept = useLoad(() => listKeys().catch(() => []), []);
  const enter = async (act) => {
    await act();
    await onEnter();
  };
  return html`<div class="card">
    <header><h2>${title}</h2></header>
    <div class="stack">
      ${
        hindrance === undefined
          ? html`<${Act} kind="primary" run=${() => enter(logInWithPasskey)}>Log in with a passkey<//>`
          : html`<p class="hint">${hindrance}${location.hostname === '127.0.0.1' && html` <a href=${localhostAddress()}>Open ${localhostAddress()}</a>`}</p>`
      }
      ${(kept.value?.length ?? 0) > 0 && html`<${Act} run=${() => enter(logInWithSoftwareKey)}>Log in with this browser's key<//>`}
      ${info?.authMethods?.includes('email') && html`<${CodeLogin} onEnter=${onEnter} />`}
    </div>
  </div>`;
}

/** Creates an account and logs in to it. */
export function SignUp({ onEnter }) {
  const [name, setName] = useState('');
  const label = name.trim() === '' ? undefined : name.trim();
  const enter = async (act) => {
    await act();
    await onEnter();
  };
  return html`<div class="card">
    <header><h2>Sign up</h2></header>
    <div class="stack">
      <div>
        <label for="name">Key name <span class="soft">(optional)</span></label>
        <input id="name" maxlength="64" autocomplete="nickname" placeholder="My laptop" value=${name} onInput=${(event) => setName(event.currentTarget.value)} />
      </div>
      ${passkeyHindrance() === undefined && html`<${Act} run=${() => enter(() => registerPasskey(label))}>Sign up with a passkey<//>`}
      <${Act} run=${() => enter(() => registerSoftwareKey(label))}>Use this browser only<//>
      <p class="hint">“Use this browser only” stores a key that cannot be exported. It is lost when you clear the browser's data, so add a passkey before you rely on the account.</p>
    </div>
  </div>`;
}

/** Log-in with a one-time code, sent by e-mail or to a phone. */
function CodeLogin({ onEnter }) {
  const [address, setAddress] = useState('');
  const [sent, setSent] = useState(undefined);
  const [code, setCode] = useState('');
  const [isOpen, setOpen] = useState(false);
  useEffect(() => {
    if (!isOpen) return undefined;
    const page = new AbortController();
    logInByAutofill(page.signal)
      .then((login) => login !== undefined && onEnter())
      .catch((error) => notify(sentenceOf(error), 'bad'));
    return () => page.abort();
  }, [isOpen]);
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
  return html`<details onToggle=${(event) => setOpen(event.currentTarget.open)}>
    <summary>Log in with a code</summary>
    <div class="stack">
      <div>
        <label for="address">E-mail address or phone number</label>
        <input id="address" autocomplete="username webauthn" aria-describedby="address-hint" value=${address} onInput=${(event) => setAddress(event.currentTarget.value)} />
        <p class="hint" id="address-hint">Phone numbers begin with + and the country code.</p>
      </div>
      <div class="row"><${Act} disabled=${address.trim() === ''} run=${ask}>${sent === undefined ? 'Send a code' : 'Send another code'}<//></div>
      ${
        sent !== undefined &&
        html`<div>
        <label for="code">${sent.codeLength}-digit code</label>
        <input id="code" inputmode="numeric" autocomplete="one-time-code" maxlength=${sent.codeLength} value=${code} onInput=${(event) => setCode(event.currentTarget.value)} />
      </div>
      <div class="row"><${Act} kind="primary" disabled=${code.trim().length !== sent.codeLength} run=${logIn}>Log in<//></div>`
      }
    </div>
  </details>`;
}
