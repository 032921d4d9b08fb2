/**
 * Software keys of this browser: Ed25519 pairs whose secret cannot be read, not even by this page, kept in IndexedDB by
 * their public key.
 */
import { get, post } from './api.js';
import { generateKey, sign } from './ed25519.js';

const DATABASE = 'gatehouse-keys';
const STORE = 'keys';

function open() {
  return new Promise((resolve, reject) => {
    const request = indexedDB.open(DATABASE, 1);
    request.onupgradeneeded = () => request.result.createObjectStore(STORE, { keyPath: 'publicKey' });
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => reject(new Error('This browser does not allow this page to store keys.'));
  });
}

async function inStore(mode, act) {
  const database = await open();
  try {
    return await new Promise((resolve, reject) => {
      const transaction = database.transaction(STORE, mode);
      const request = act(transaction.objectStore(STORE));
      transaction.oncomplete = () => resolve(request.result);
      transaction.onabort = () => reject(transaction.error);
    });
  } finally {
    database.close();
  }
}

/** Pairs of this browser: `{publicKey, secret}`. */
export const listKeys = () => inStore('readonly', (store) => store.getAll());
export const keepKey = (pair) => inStore('readwrite', (store) => store.put(pair));
export const dropKey = (publicKey) => inStore('readwrite', (store) => store.delete(publicKey));

/** Signs `signPrefix + publicKey`: proof of possession (docs/tour.md). */
const proofOf = (pair, signPrefix) => sign(pair.secret, signPrefix + pair.publicKey);

/** A new pair becomes a key of the account, or without a session a new account. The answer of register_key. */
export async function registerPair(pair, name) {
  const { challengeId, signPrefix } = await get('/auth/v1/register_options');
  return post('/auth/v1/keys/register_key', {
    challengeId,
    code: await proofOf(pair, signPrefix),
    publicKey: pair.publicKey,
    name,
  });
}

/** Stores the key before it is registered: an account without its key would be lost. */
export async function registerSoftwareKey(name) {
  const pair = await generateKey();
  await keepKey(pair);
  try {
    return await registerPair(pair, name);
  } catch (error) {
    if (error.status > 0) await dropKey(pair.publicKey);
    throw error;
  }
}

/** Logs in with the first key of this browser that the gateway knows. */
export async function logInWithSoftwareKey() {
  const pairs = await listKeys();
  let failure = new Error('This browser has no stored key. Sign up first, or use a passkey.');
  for (const pair of pairs) {
    const { challengeId, signPrefix } = await post('/auth/v1/login_options', {});
    try {
      return await post('/auth/v1/login', {
        challengeId,
        publicKey: pair.publicKey,
        code: await proofOf(pair, signPrefix),
      });
    } catch (error) {
      // This key was removed from its account; the next one may still be valid.
      if (error.status !== 401) throw error;
      failure = error;
    }
  }
  throw failure;
}
