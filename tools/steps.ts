/** Single steps of the tour that occur more than once, and how their answers are read. */
import {
  type Answer,
  cookieOf,
  type Json,
  newKey,
  type SoftwareKey,
  signText,
  verifiedHeaders,
} from '../kit/agent.ts';
import type { Expectation, Guide } from './guide.ts';

export const CURRENCY = 'DEMO';

/** Names the secrets of an answer before it is printed. */
export type Learning = (answer: Answer) => readonly string[];

export interface Person {
  readonly key: SoftwareKey;
  readonly keyId: string;
  readonly userId: string;
  readonly cookie: string;
}

export async function signUp(guide: Guide): Promise<Person> {
  const key = newKey();
  const options = await guide.ask(
    { path: '/auth/v1/register_options' },
    (answer, fail) => {
      if (text(answer.json, 'result', 'signPrefix') === '') fail('no signPrefix');
    },
    (answer) => [text(answer.json, 'result', 'code')],
  );
  const challengeId = Number(text(options.json, 'result', 'challengeId'));
  const signed = text(options.json, 'result', 'signPrefix') + key.publicKey;
  const code = guide.secret(signText(key, signed));
  const answer = await guide.ask(
    { path: '/auth/v1/keys/register_key', body: { challengeId, code, publicKey: key.publicKey } },
    (given, fail) => {
      if (cookieOf(given) === '') fail('no sid cookie');
      if (text(given.json, 'result', 'newAccount') !== 'true') fail('no new account');
    },
    (given) => [cookieOf(given).slice('sid='.length)],
  );
  const userId = text(answer.json, 'result', 'userId');
  guide.good(`account ${userId}; the session is in the sid cookie`);
  return { key, keyId: text(answer.json, 'result', 'key', 'id'), userId, cookie: cookieOf(answer) };
}

export async function keysOf(guide: Guide, person: Person, mcpAccess: boolean): Promise<void> {
  await guide.ask({ path: '/auth/v1/keys/user_keys', headers: { Cookie: person.cookie } }, (answer, fail) => {
    const [key] = listOf(answer.json['result']);
    if (text(key, 'publicKey') !== person.key.publicKey) fail('the key is not in the list');
    if (text(key, 'mcpAccess') !== String(mcpAccess)) fail(`mcpAccess is not ${mcpAccess}`);
  });
}

export async function allowMcp(guide: Guide, person: Person): Promise<void> {
  const body = { keyId: person.keyId, mcpAccess: true };
  const headers = { Cookie: person.cookie };
  await guide.ask({ path: '/auth/v1/keys/update_key', headers, body }, (answer, fail) => {
    if (text(answer.json, 'result', 'mcpAccess') !== 'true') fail('mcpAccess is not true');
  });
}

export async function logInAgent(guide: Guide, key: SoftwareKey): Promise<string> {
  const headers = verifiedHeaders(key, Math.floor(Date.now() / 1_000));
  guide.secret(headers['X-Signature'] ?? '');
  const answer = await guide.ask(
    { method: 'POST', path: '/auth/v1/mcp_login', headers },
    (given, fail) => {
      if (text(given.json, 'result', 'loginType') !== 'McpVerified') fail('the login is not McpVerified');
    },
    (given) => [text(given.json, 'result', 'sessionId')],
  );
  guide.good(`a McpVerified session until ${text(answer.json, 'result', 'expiresUtc')}`);
  return text(answer.json, 'result', 'sessionId');
}

/** Balance in `CURRENCY` that the tool returns. */
export async function balanceOf(guide: Guide, bearer: string): Promise<string> {
  let balance = '';
  await callTool(guide, bearer, 'wallet_get_balance', { currency: CURRENCY }, (answer, fail) => {
    if (answer.json['result']?.['isError'] !== undefined) fail('the tool says isError');
    balance = text(listOf(toolJson(answer)['result']?.['balances'])[0], 'balance');
    if (!/^\d+\.\d+$/.test(balance)) fail(`the balance "${balance}" is no decimal`);
  });
  return balance;
}

export function callTool(
  guide: Guide,
  bearer: string,
  name: string,
  values: object,
  expect: Expectation,
  learn?: Learning,
): Promise<Answer> {
  return rpc(guide, bearer, 'tools/call', { name, arguments: values }, expect, learn);
}

export function rpc(
  guide: Guide,
  bearer: string,
  method: string,
  params: object,
  expect: Expectation,
  learn?: Learning,
): Promise<Answer> {
  const headers = { Authorization: `Bearer ${bearer}` };
  const body = { jsonrpc: '2.0', id: 1, method, params };
  const judge: Expectation = (answer, fail) => {
    if (answer.json['error'] !== undefined) fail(`error ${text(answer.json, 'error', 'message')}`);
    expect(answer, fail);
  };
  return guide.ask({ path: '/mcp', headers, body }, judge, learn);
}

/** The module's JSON inside a tool's answer. */
export function toolJson(answer: Answer): Json {
  const [item] = listOf(answer.json['result']?.['content']);
  return JSON.parse(text(item, 'text') || '{}') as Json;
}

/** A value by its path, as text; '' when it is not there. */
export function text(json: Json | undefined, ...path: readonly string[]): string {
  let value: Json | undefined = json;
  for (const name of path) value = value?.[name];
  return value === undefined || value === null ? '' : value.toString();
}

export function listOf(json: Json | undefined): Json[] {
  return Array.isArray(json) ? json : [];
}

export function centsOf(amount: string): bigint {
  const [whole = '0', fraction = ''] = amount.split('.');
  return BigInt(whole + fraction.padEnd(2, '0'));
}
