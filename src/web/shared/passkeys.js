/** Passkeys and hardware keys: the gateway's options to the browser, the browser's answer to the gateway. */
import { get, post } from './api.js';

/** Can this page use passkeys? Browsers allow it on https and on http://localhost only. */
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

/** This page under the name that passkeys work on. */
export function localhostAddress() {
  const address = new URL(location.href);
  address.hostname = 'localhost';
  return address.href;
}

/** Without a session an account with this passkey, with one a further key of it. The answer of register_key. */
export async function registerPasskey(name) {
  const { options, challengeId, code } = await get('/auth/v1/register_options', { name });
  const credential = await asked(() =>
    navigator.credentials.create({ publicKey: PublicKeyCredential.parseCreationOptionsFromJSON(options) }),
  );
  return post('/auth/v1/keys/register_key', { challengeId, code, credential: credential.toJSON(), name });
}

/** The answer of login. */
export async function logInWithPasskey() {
  const { options, challengeId } = await post('/auth/v1/login_options', {});
  const credential = await asked(() =>
    navigator.credentials.get({ publicKey: PublicKeyCredential.parseRequestOptionsFromJSON(options) }),
  );
  return post('/auth/v1/login', { challengeId, credential: credential.toJSON() });
}

/** What a browser throws, in words. */
async function asked(act) {
  try {
    return await act();
  } catch (error) {
    if (!(error instanceof DOMException)) throw error;
    throw new Error(SENTENCES[error.name] ?? `The browser refused: ${error.message}`);
  }
}

const SENTENCES = {
  NotAllowedError: 'Cancelled, or it took too long. Nothing was changed; try again',
  InvalidStateError: 'This device already has a passkey for this account. Log in with it',
  SecurityError: 'Passkeys of this gateway do not work on this address',
};
