/**
 * Formats that a client needs and the contract does not define: browser login, phone login, events that modules push,
 * the admin panel and the sandbox. From docs/passkeys.md, docs/sandbox.md and /docs/openapi.json.
 */
import { generateKeyPairSync, type KeyObject, sign } from 'node:crypto';
import { create, get, type Making, type Passkey } from '../../kit/authenticator.ts';
import { type Answer, type Headers, send } from './client.ts';

export interface SoftwareKey {
  /** base64url of 32 bytes. */
  readonly publicKey: string;
  readonly secret: KeyObject;
}

export interface Person {
  readonly key: SoftwareKey;
  readonly keyId: string;
  readonly userId: string;
  /** The header with the session cookie. */
  readonly auth: Headers;
}

export function newKey(): SoftwareKey {
  const { publicKey, privateKey } = generateKeyPairSync('ed25519');
  // SubjectPublicKeyInfo ends with the raw 32 bytes (RFC 8410).
  const raw = publicKey.export({ format: 'der', type: 'spki' }).subarray(-32);
  return { publicKey: raw.toString('base64url'), secret: privateKey };
}

export function signed({ secret }: SoftwareKey, message: Uint8Array): string {
  return sign(null, message, secret).toString('base64url');
}

/** Throws an error that names the step, unless the status is 200. */
export function expectOk(step: string, answer: Answer): Answer {
  if (answer.status !== 200) throw new Error(`${step}: HTTP ${answer.status} ${answer.text}`);
  return answer;
}

export function sessionOf(answer: Answer): Headers {
  const cookie = /sid=[^;,]*/.exec(answer.header('set-cookie'))?.[0] ?? '';
  return { Cookie: cookie };
}

/** Requests a challenge for a registration or a login; returns the body that answers it with a software key. */
export async function ceremony(
  url: string,
  kind: 'register' | 'login',
  key: SoftwareKey,
  headers: Headers = {},
): Promise<Record<string, unknown>> {
  const options = expectOk(kind, await send('GET', `${url}/auth/v1/${kind}_options`, { headers }));
  const text = options.textAt('result.signPrefix') + key.publicKey;
  const code = signed(key, Buffer.from(text));
  return { challengeId: options.at('result.challengeId'), code, publicKey: key.publicKey };
}

/** Creates an account with `key` as its first key. */
export async function signUp(url: string, key: SoftwareKey = newKey()): Promise<Person> {
  const json = await ceremony(url, 'register', key);
  const answer = expectOk('sign-up', await send('POST', `${url}/auth/v1/keys/register_key`, { json }));
  const auth = sessionOf(answer);
  return { key, keyId: answer.textAt('result.key.id'), userId: answer.textAt('result.userId'), auth };
}

/** Opens another browser session of the same key. */
export async function logIn(url: string, key: SoftwareKey): Promise<Answer> {
  return await send('POST', `${url}/auth/v1/login`, { json: await ceremony(url, 'login', key) });
}

/** Pushes events as a module does. */
export async function pushEvents(internal: string, key: string, events: readonly object[]): Promise<Answer> {
  const headers = { 'X-Module-Key': key };
  return await send('POST', `${internal}/internal/v1/events`, { headers, json: { events } });
}

/** Sets the fault of a sandbox module; `ok` ends it. */
export async function sandboxFault(
  sandbox: string,
  module: string,
  mode: 'down' | 'error' | 'ok',
): Promise<void> {
  expectOk('fault', await send('POST', `${sandbox}/sandbox/v1/fault`, { json: { module, mode } }));
}

/** The one-time code that the gateway sent to the sandbox's chat module. */
export async function deliveredCode(sandbox: string, address: string): Promise<string> {
  const endMs = performance.now() + 20_000;
  while (performance.now() < endMs) {
    const outbox = await send('GET', `${sandbox}/sandbox/v1/outbox`);
    const found = outbox
      .listAt('result.deliveries')
      .map((each) => each as { address: string; code: string })
      .findLast((each) => each.address === address);
    if (found !== undefined) return found.code;
  }
  throw new Error(`no code for ${address}`);
}

/** Options of a WebAuthn ceremony, as sent to the browser. */
export interface PasskeyOptions {
  readonly challengeId: unknown;
  readonly code: string;
  readonly challenge: string;
  readonly answer: Answer;
}

export async function passkeyOptions(
  url: string,
  kind: 'register' | 'login',
  headers: Headers = {},
): Promise<PasskeyOptions> {
  const answer = expectOk(kind, await send('GET', `${url}/auth/v1/${kind}_options`, { headers }));

  return {
    challengeId: answer.at('result.challengeId'),
    code: answer.textAt('result.code'),
    challenge: answer.textAt('result.challenge'),
    answer,
  };
}

/** The origin of a gateway without `BaseUrl`. */
function originOf(url: string): string {
  return `http://localhost:${new URL(url).port}`;
}

/** Registers a passkey: for a new account, or with `headers` as another key of the account. */
export async function registerPasskey(
  url: string,
  passkey: Passkey,
  making: Partial<Making> = {},
  headers: Headers = {},
): Promise<Answer> {
  const { challengeId, code, challenge } = await passkeyOptions(url, 'register', headers);
  const credential = create(passkey, { challenge, origin: originOf(url), ...making });
  return await send('POST', `${url}/auth/v1/keys/register_key`, {
    headers,
    json: { challengeId, code, credential },
  });
}

export async function passkeyLogin(
  url: string,
  passkey: Passkey,
  making: Partial<Making> = {},
): Promise<Answer> {
  const { challengeId, challenge } = await passkeyOptions(url, 'login');
  const credential = get(passkey, { challenge, origin: originOf(url), ...making });
  return await send('POST', `${url}/auth/v1/login`, { json: { challengeId, credential } });
}
