/**
 * fetch for addresses that another MCP server names: through the SSRF guard of webhooks, https alone, without redirects,
 * within one deadline and a size. The address of the configuration and its own metadata are asked directly.
 */
import { SECOND_MS } from '../../../domain/time.ts';
import { judgeWebhookUrl, mayConnect, type WebhookRules } from '../../../domain/webhooks/target.ts';
import { GuardedClient } from '../../webhooks/guarded-client.ts';
import type { Resolve } from '../../webhooks/ssrf-guard.ts';
import { guardedFetch } from '../upstreams/guarded-fetch.ts';

/** Time for all requests of one login step. */
const DEADLINE_MS = 15 * SECOND_MS;
const ANSWER_MAX_BYTES = 256 * 1024;
const CONNECTIONS_PER_ORIGIN = 2;
const METADATA_PATH = '/.well-known/oauth-protected-resource';
/** Statuses without a body (fetch standard). */
const EMPTY_STATUSES: ReadonlySet<number> = new Set([204, 205, 304]);

export interface OutsideOptions {
  /** Ports that are open besides the scheme's own: `WebhookPorts`. */
  readonly ports: () => string;
  readonly resolve: Resolve;
  /** Monotonic milliseconds. */
  readonly elapsed: () => number;
}

/** An address that may not be asked, or no answer. Neither names the address nor what it resolved to. */
export class OutsideFailure extends Error {}

export interface Outside {
  fetch(address: string | URL, init?: RequestInit): Promise<Response>;
  /** Checks an address that a browser goes to. Rejects with `OutsideFailure`. */
  check(address: string): Promise<void>;
}

/** `url`: of the configuration. `networks`: `authNetworks`. */
export async function withOutside<T>(
  { ports, resolve, elapsed }: OutsideOptions,
  url: string,
  networks: readonly string[],
  run: (outside: Outside) => Promise<T>,
): Promise<T> {
  const rules = (): WebhookRules => ({ production: true, allow: networks, ports: ports() });
  const client = new GuardedClient({ rules, resolve, elapsed, connections: CONNECTIONS_PER_ORIGIN });
  const signal = AbortSignal.timeout(DEADLINE_MS);
  const trusted = trustedOf(url);
  const judged = (address: string): URL => {
    const decision = judgeWebhookUrl(address, rules());
    if (!decision.ok) throw new OutsideFailure('the server names an address that is not allowed');
    return decision.url;
  };
  try {
    return await run({
      async fetch(address, init = {}) {
        const text = String(address);
        if (trusted.has(text)) return await direct(text, { ...init, signal });
        return await guarded(client, judged(text), init, signal);
      },
      async check(address) {
        const { hostname } = judged(address);
        if (hostname.startsWith('[') || /^[0-9.]+$/.test(hostname)) return;
        const addresses = await resolve(hostname).catch(() => []);
        if (addresses.length === 0 || !addresses.every((each) => mayConnect(each, rules())))
          throw new OutsideFailure('the server names an address that is not allowed');
      },
    });
  } finally {
    client.close();
  }
}

/** The address that the operator wrote, and where RFC 9728 has its metadata. */
function trustedOf(url: string): ReadonlySet<string> {
  const { href, origin, pathname, search } = new URL(url);
  const path = pathname === '/' ? '' : pathname;
  return new Set([
    href,
    `${origin}${METADATA_PATH}${path}${search}`,
    `${origin}${METADATA_PATH}${path}`,
    `${origin}${METADATA_PATH}`,
  ]);
}

async function direct(address: string, init: RequestInit): Promise<Response> {
  try {
    return await guardedFetch().fetch(address, init);
  } catch {
    throw new OutsideFailure('the server does not answer');
  }
}

async function guarded(
  client: GuardedClient,
  url: URL,
  { method = 'GET', headers, body }: RequestInit,
  signal: AbortSignal,
): Promise<Response> {
  const sent = body === undefined || body === null ? {} : { body: String(body) };
  const answer = await client.request({
    method: method === 'POST' ? 'POST' : 'GET',
    url,
    headers: Object.fromEntries(new Headers(headers)),
    ...sent,
    answerMaxBytes: ANSWER_MAX_BYTES,
    signal,
  });
  if (answer.kind !== 'answered') throw new OutsideFailure('the login of the server could not be reached');
  const { status, bytes, isCut } = answer;
  if (isCut || status < 200 || status > 599)
    throw new OutsideFailure('the login of the server gave no usable answer');
  const fields = Object.entries(answer.headers).flatMap(([name, value]) =>
    value === undefined ? [] : [value].flat().map((each): [string, string] => [name, each]),
  );
  return new Response(EMPTY_STATUSES.has(status) ? null : new Uint8Array(bytes), {
    status,
    headers: fields,
  });
}
