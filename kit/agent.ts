/**
 * A person and an agent as clients of a running gateway: sign up with a software key, allow it for MCP, log in with
 * a signature, call tools. Only public endpoints, only what any client has: fetch and Ed25519.
 */
import { createPrivateKey, type KeyObject, sign } from 'node:crypto';
import { setTimeout as wait } from 'node:timers/promises';
import { generateKey } from '../src/cli/keygen.ts';

/** Wait between two attempts, or two looks. */
const RETRY_MS = 20;

export interface SoftwareKey {
  /** base64url, 43 characters. */
  readonly publicKey: string;
  readonly privateKey: KeyObject;
}

export interface Answer {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
  readonly json: Json;
}

/** A parsed answer, read by path. */
export type Json = { [key: string]: Json } & { toString(): string };

export interface Challenge {
  readonly challengeId: number;
  readonly challenge: string;
  readonly code: string;
  readonly signPrefix: string;
}

export interface Person {
  readonly key: SoftwareKey;
  readonly keyId: string;
  readonly userId: string;
  readonly cookie: string;
}

export function newKey(): SoftwareKey {
  const { publicKey, secretKey } = generateKey();
  return readKey(publicKey, secretKey);
}

/** A key from its base64url halves, as `keygen` prints them. */
export function readKey(publicKey: string, secretKey: string): SoftwareKey {
  const jwk = { kty: 'OKP', crv: 'Ed25519', x: publicKey, d: secretKey };
  return { publicKey, privateKey: createPrivateKey({ key: jwk, format: 'jwk' }) };
}

export function signText(key: SoftwareKey, text: string): string {
  return sign(null, Buffer.from(text, 'utf8'), key.privateKey).toString('base64url');
}

/** Headers of a McpVerified login: the signature is over the timestamp as 8 bytes, little-endian (spec 5.1). */
export function verifiedHeaders(key: SoftwareKey, timestampSeconds: number): Record<string, string> {
  const message = Buffer.alloc(8);
  message.writeBigInt64LE(BigInt(timestampSeconds));
  return {
    'X-PublicKey': key.publicKey,
    'X-Timestamp': String(timestampSeconds),
    'X-Signature': sign(null, message, key.privateKey).toString('base64url'),
  };
}

export async function request(
  url: string,
  options: {
    method?: string;
    headers?: Record<string, string>;
    body?: unknown;
    /** Rejects after so long without an answer. */
    timeoutMs?: number;
  } = {},
): Promise<Answer> {
  const { body, timeoutMs } = options;
  const response = await fetch(url, {
    method: options.method ?? (body === undefined ? 'GET' : 'POST'),
    headers: { ...(body === undefined ? {} : { 'Content-Type': 'application/json' }), ...options.headers },
    redirect: 'manual',
    ...(timeoutMs === undefined ? {} : { signal: AbortSignal.timeout(timeoutMs) }),
    ...(body === undefined ? {} : { body: typeof body === 'string' ? body : JSON.stringify(body) }),
  });
  const text = await response.text();
  return { status: response.status, headers: response.headers, text, json: parse(text) };
}

function parse(text: string): Json {
  try {
    return JSON.parse(text) as Json;
  } catch {
    return {} as Json;
  }
}

/** Another answer than 200 where only 200 will do. */
export class UnexpectedAnswer extends Error {
  readonly answer: Answer;

  constructor(step: string, answer: Answer) {
    super(`${step}: HTTP ${answer.status} ${answer.text}`);
    this.answer = answer;
  }
}

/** Throws {@link UnexpectedAnswer}, with the answer in its message, unless it is 200. */
export function expectOk(step: string, answer: Answer): Answer {
  if (answer.status !== 200) throw new UnexpectedAnswer(step, answer);
  return answer;
}

/**
 * Tries again after a 503, as its Retry-After asks. Nodes of a cluster answer with it until their links are open, and while
 * a busy machine lets their lease end.
 */
export async function untilAvailable<T>(work: () => Promise<T>): Promise<T> {
  for (;;) {
    try {
      return await work();
    } catch (error) {
      if (!(error instanceof UnexpectedAnswer) || error.answer.status !== 503) throw error;
      await wait(RETRY_MS);
    }
  }
}

/** Resolves once it holds, for what other processes bring about: looks at most every 20 ms. */
export async function untilHolds(holds: () => boolean | Promise<boolean>): Promise<void> {
  while (!(await holds())) await wait(RETRY_MS);
}

/** The `sid` cookie of an answer, in the form of a request header. */
export function cookieOf(answer: Answer): string {
  return /sid=[^;]*/.exec(answer.headers.get('set-cookie') ?? '')?.[0] ?? '';
}

export async function challenge(
  url: string,
  kind: 'register' | 'login',
  cookie?: string,
): Promise<Challenge> {
  const headers = cookie === undefined ? {} : { Cookie: cookie };
  const answer = expectOk(`${kind}_options`, await request(`${url}/auth/v1/${kind}_options`, { headers }));
  return answer.json['result'] as unknown as Challenge;
}

/** Creates an account whose first key is `key`; proof of possession included. */
export async function signUp(url: string, key: SoftwareKey = newKey()): Promise<Person> {
  const { challengeId, signPrefix } = await challenge(url, 'register');
  const code = signText(key, signPrefix + key.publicKey);
  const body = { challengeId, code, publicKey: key.publicKey };
  const answer = expectOk('register_key', await request(`${url}/auth/v1/keys/register_key`, { body }));
  const result = answer.json['result'] as Json;
  return {
    key,
    keyId: String((result['key'] as Json)['id']),
    userId: String(result['userId']),
    cookie: cookieOf(answer),
  };
}

/** Logs the person in again; the answer carries a new cookie. */
export async function logIn(url: string, key: SoftwareKey): Promise<Answer> {
  const { challengeId, signPrefix } = await challenge(url, 'login');
  const body = { challengeId, publicKey: key.publicKey, code: signText(key, signPrefix + key.publicKey) };
  return await request(`${url}/auth/v1/login`, { body });
}

export async function updateKey(url: string, person: Person, flags: object): Promise<Answer> {
  const body = { keyId: person.keyId, ...flags };
  return await request(`${url}/auth/v1/keys/update_key`, { headers: { Cookie: person.cookie }, body });
}

/** A McpVerified login; the session id of the answer is the bearer of /mcp. */
export async function mcpLogin(url: string, key: SoftwareKey, nowMs: number): Promise<Answer> {
  const headers = verifiedHeaders(key, Math.floor(nowMs / 1000));
  return await request(`${url}/auth/v1/mcp_login`, { method: 'POST', headers });
}

/** Creates an account whose key has MCP access. */
export async function signUpAgent(url: string, key?: SoftwareKey): Promise<Person> {
  const person = await signUp(url, key);
  expectOk('update_key', await updateKey(url, person, { mcpAccess: true }));
  return person;
}

/** The bearer of a McpVerified session that begins now. */
export async function bearerOf(url: string, key: SoftwareKey): Promise<string> {
  const login = expectOk('mcp_login', await mcpLogin(url, key, Date.now()));
  return String(login.json['result']?.['sessionId']);
}

/** A McpBasic login: the key is named, and nothing proves it. */
export async function basicLogin(
  url: string,
  { publicKey }: Pick<SoftwareKey, 'publicKey'>,
): Promise<Answer> {
  const headers = { 'X-PublicKey': publicKey };
  return await request(`${url}/auth/v1/mcp_login`, { method: 'POST', headers });
}

/** The bearer of a McpBasic session that begins now. */
export async function basicBearerOf(url: string, key: Pick<SoftwareKey, 'publicKey'>): Promise<string> {
  const login = expectOk('mcp_login', await basicLogin(url, key));
  return String(login.json['result']?.['sessionId']);
}

export async function rpc(url: string, bearer: string | undefined, message: unknown): Promise<Answer> {
  const headers: Record<string, string> = bearer === undefined ? {} : { Authorization: `Bearer ${bearer}` };
  return await request(`${url}/mcp`, { headers, body: message });
}

export async function callTool(
  url: string,
  bearer: string,
  name: string,
  args: object = {},
): Promise<Answer> {
  const message = { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name, arguments: args } };
  return await rpc(url, bearer, message);
}
