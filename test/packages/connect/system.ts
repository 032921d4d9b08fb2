/** Replacements in tests of the connector: a clock that waiting moves, and a `fetch` whose answers the test gives. */
import { createKeyPair, keyOf } from '../../../packages/connect/src/agent-key.ts';
import type { SendOptions } from '../../../packages/connect/src/send.ts';

export const ORIGIN = 'https://gate.example';
export const START_MS = Date.parse('2026-11-24T12:00:00Z');
export const LIFE_MS = 60_000;

export interface Sent {
  readonly url: string;
  readonly method: string;
  readonly headers: Headers;
  readonly body: string;
}

export type FakeAnswer = Response | Error;

export interface FakeSystem extends SendOptions {
  readonly sent: Sent[];
  readonly waited: number[];
  time: { ownMs: number; gatewayMs: number };
}

/** `answer`: undefined for a login, which the system then answers with the next session. */
export function fakeSystem(
  answer: (sent: Sent) => FakeAnswer | Promise<FakeAnswer> | undefined = () => undefined,
): FakeSystem {
  const time = { ownMs: START_MS, gatewayMs: START_MS };
  const sent: Sent[] = [];
  const waited: number[] = [];
  let logins = 0;
  return {
    sent,
    waited,
    time,
    now: () => time.ownMs,
    async wait(ms, signal) {
      signal?.throwIfAborted();
      waited.push(ms);
      time.ownMs += ms;
      time.gatewayMs += ms;
    },
    async fetch(url, init = {}) {
      const one = {
        url: String(url),
        method: init.method ?? 'GET',
        headers: new Headers(init.headers),
        body: String(init.body ?? ''),
      };
      sent.push(one);
      let given = await answer(one);
      if (given === undefined) {
        logins += 1;
        given = loginAnswer(time.gatewayMs, `session-${logins}`);
      }
      if (given instanceof Error) throw given;
      return given;
    },
  };
}

export function json(value: unknown, init: ResponseInit = {}): Response {
  const headers = new Headers(init.headers);
  headers.set('content-type', 'application/json');
  return new Response(JSON.stringify(value), { ...init, headers });
}

function dated(gatewayMs: number): Record<string, string> {
  return { date: new Date(gatewayMs).toUTCString() };
}

function loginAnswer(gatewayMs: number, sessionId: string): Response {
  const expiresUtc = new Date(gatewayMs + LIFE_MS).toISOString();
  const result = { sessionId, loginType: 'McpVerified', expiresUtc, appId: null, userId: '7' };
  return json({ result }, { headers: dated(gatewayMs) });
}

export function refusal(status: number, code: number, message: string, gatewayMs = START_MS): Response {
  return json({ error: { code, message } }, { status, headers: dated(gatewayMs) });
}

/** Returns the error that `fetch` throws. */
export function failed(code: string, syscall?: string): TypeError {
  const cause = Object.assign(new Error(`${syscall ?? 'read'} ${code}`), { code, syscall });
  return new TypeError('fetch failed', { cause });
}

export const isLogin = ({ url }: Sent): boolean => url.endsWith('/auth/v1/mcp_login');

export const KEY = keyOf(createKeyPair().secretKey);
