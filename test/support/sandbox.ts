/** The sandbox modules without a server: a log in a temporary folder, calls as the gateway makes them. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Test } from 'tap';
import { closeAfter } from '../../kit/close-after.ts';
import { type SandboxAnswer, SandboxStore } from '../../src/sandbox/store.ts';

export type Fields = Record<string, unknown>;

export async function logPath(test: Test): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'sandbox-'));
  test.teardown(() => rm(folder, { recursive: true, force: true }));
  return join(folder, 'deeper', 'log.jsonl');
}

export const NOW_MS = Date.parse('2026-01-02T03:04:05.678Z');

/** A store over a log, a new one unless given; closed with the test. */
export async function openStore(test: Test, path?: string, clock = () => NOW_MS): Promise<SandboxStore> {
  return closeAfter(test, await SandboxStore.open(path ?? (await logPath(test)), clock));
}

export async function reopen(test: Test, store: SandboxStore, path: string): Promise<SandboxStore> {
  await store.close();
  return openStore(test, path);
}

export function get(
  store: SandboxStore,
  path: string,
  crm?: string,
  query: Record<string, string> = {},
): Promise<SandboxAnswer> {
  return store.handle({
    method: 'GET',
    path,
    query: new Map(Object.entries(query)),
    crm,
    scopes: undefined,
    body: {},
  });
}

export function post(
  store: SandboxStore,
  path: string,
  crm: string | undefined,
  body: Fields,
): Promise<SandboxAnswer> {
  return store.handle({ method: 'POST', path, query: new Map(), crm, scopes: undefined, body });
}

/** Calls of a module by one user, or by the gateway itself; those with `not` are refused, with `[status, code]`. */
export function caller(store: SandboxStore, module: string, crm: string | undefined) {
  const at = (path: string) => `/${module}/v1/${path}`;
  const reading = (path: string, query?: Record<string, string>) => get(store, at(path), crm, query);
  return {
    read: async (path: string, query?: Record<string, string>) => resultOf(await reading(path, query)),
    act: async (path: string, body: Fields) => resultOf(await post(store, at(path), crm, body)),
    notRead: async (path: string, query?: Record<string, string>) => refusalOf(await reading(path, query)),
    notAct: async (path: string, body: Fields) => refusalOf(await post(store, at(path), crm, body)),
  };
}

export function resultOf(answer: SandboxAnswer): Fields {
  if (answer.status !== 200) throw new Error(answer.body);
  return (JSON.parse(answer.body) as { result: Fields }).result;
}

/** `[status, code]` of a refusal. */
export function refusalOf(answer: SandboxAnswer): [number, number] {
  return [answer.status, (JSON.parse(answer.body) as { error: { code: number } }).error.code];
}

export async function balance(store: SandboxStore, crm: string, currency: string): Promise<string> {
  const { balances } = resultOf(await get(store, '/wallet/v1/balance/get', crm, { currency }));
  return (balances as { balance: string }[])[0]?.balance ?? '';
}

/** A call for the holder of a capability code. */
export function asHolder(
  store: SandboxStore,
  family: 'chat' | 'wallet',
  [method, path]: ['GET' | 'POST', string],
  fields: Fields,
  deviceGuid?: string,
): Promise<SandboxAnswer> {
  const texts = Object.entries(fields).map(([name, value]) => [name, String(value)] as const);
  return store.handle({
    method,
    path,
    query: new Map(method === 'GET' ? texts : []),
    crm: undefined,
    scopes: `Capability:${family}`,
    deviceGuid,
    body: method === 'POST' ? fields : {},
  });
}

/** Smallest units of a decimal with all its places. */
export function minorOf(text: unknown): bigint {
  return BigInt(String(text).replace('.', ''));
}
