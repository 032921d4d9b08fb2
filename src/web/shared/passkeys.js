/** Registration of and login with passkeys and hardware keys (WebAuthn). */
import { get, post } from './api.js';

/** Says why this page cannot use passkeys; undefined where it can. Browsers allow https and http://localhost only. */
export function passkeyHindrance() {
  if (window.PublicKeyCredential?.parseCreationOptionsFromJSON === undefined) {
    return location.hostname === '127.0.0.1'
      ? 'Passkeys work on http://localhost, not on http://127.0.0.1.'
      : 'This browser does not support passkeys, or this page is not served over https.';
  }
  return location.hostname === '127.0.0.1'
    ? 'Passkeys work on http://localhost, not on http://127.0.0.1.'
    : undefined;
}

/** The address of this page on localhost, where passkeys work. */
export function localhostAddress() {
  const address = new URL(location.href);
  address.hostname = 'localhost';
  return address.href;
}

/** Creates an account with this passkey; with a session, adds a key to its account. Returns the answer of register_key. */
export async function registerPasskey(name) {
  const { options, challengeId, code } = await get('/auth/v1/register_options', { name });
  const credential = await asked(() =>
    navigator.credentials.create({ publicKey: PublicKeyCredential.parseCreationOptionsFromJSON(options) }),
  );
  return post('/auth/v1/keys/register_key', { challengeId, code, credential: credential.toJSON(), name });
}

/** Returns the answer of login. */
export async function logInWithPasskey() {
  const { options, challengeId } = await post('/auth/v1/login_options', {});
  const credential = await asked(() =>
    navigator.credentials.get({ publicKey: PublicKeyCredential.parseRequestOptionsFromJSON(options) }),
  );
  return post('/auth/v1/login', { challengeId, credential: credential.toJSON() });
}

/** A browser has one request at a time: the one of autofill ends before another begins. */
let autofill;

/**
 * Offers passkeys in the autofill of a field with `autocomplete="username webauthn"`, until `signal` is aborted or another
 * request begins. Returns the answer of login; undefined when no passkey was chosen, or autofill has none here.
 */
export async function logInByAutofill(signal) {
  if (passkeyHindrance() !== undefined) return undefined;
  if ((await PublicKeyCredential.isConditionalMediationAvailable?.()) !== true) return undefined;
  while (!signal.aborted) {
    const { options, challengeId } = await post('/auth/v1/login_options', {});
    const request = new AbortController();
    const end = () => request.abort();
    signal.addEventListener('abort', end);
    // A page stays open for longer than a challenge lives: the next one takes its place in time.
    const renewal = setTimeout(end, options.timeout * RENEWED_AT);
    let isReplaced = false;
    autofill = () => {
      isReplaced = true;
      end();
    };
    try {
      const publicKey = PublicKeyCredential.parseRequestOptionsFromJSON(options);
      const credential = await navigator.credentials.get({
        publicKey,
        mediation: 'conditional',
        signal: request.signal,
      });
      return await post('/auth/v1/login', { challengeId, credential: credential.toJSON() });
    } catch (error) {
      if (!(error instanceof DOMException)) throw error;
      if (isReplaced || error.name !== 'AbortError') return undefined;
    } finally {
      clearTimeout(renewal);
      signal.removeEventListener('abort', end);
      autofill = undefined;
    }
  }
  return undefined;
}

/** Replaces the exceptions of browsers by sentences. */
async function asked(act) {
  autofill?.();
  try {
    return await act();
  } catch (error) {
    if (!(error instanceof DOMException)) throw error;
    throw new Error(SENTENCES[error.name] ?? `The browser refused: ${error.message}`);
  }
}

/** Part of a challenge's life after which it is renewed. */
const RENEWED_AT = 0.8;

const SENTENCES = {
  NotAllowedError: 'Cancelled, or it took too long. Nothing was changed; try again',
  InvalidStateError: 'This device already has a passkey for this account. Log in with it',
  SecurityError: 'Passkeys of this gateway do not work on this address',
};
