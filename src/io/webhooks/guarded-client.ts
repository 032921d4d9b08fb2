/**
 * HTTP client for addresses that users name: connects only to checked addresses, follows no redirect, uses no proxy from the
 * environment.
 */
import type { Agent, request } from 'undici';
import type { WebhookRules } from '../../domain/webhooks/target.ts';
import { createGuardedLookup, type Resolve } from './ssrf-guard.ts';

/** Connecting failed: no byte of the request was sent. */
export class NotConnected extends Error {
  constructor(cause: unknown) {
    super('not connected', { cause });
    this.name = 'NotConnected';
  }
}

export interface GuardedClient {
  readonly agent: Agent;
  readonly request: typeof request;
}

interface GuardedClientOptions {
  readonly rules: () => WebhookRules;
  readonly resolve: Resolve;
  /** Of a connection with its TLS; the caller bounds the whole request. */
  readonly deadlineMs: number;
  /** To one origin. */
  readonly connections: number;
}

/** Takes about 0.1 s, mostly for loading undici. */
export async function openGuardedClient(options: GuardedClientOptions): Promise<GuardedClient> {
  const { rules, resolve, deadlineMs, connections } = options;
  const { Agent, buildConnector, request } = await import('undici');
  const connect = buildConnector({
    lookup: createGuardedLookup(resolve, rules),
    timeout: deadlineMs,
    allowH2: false,
  });
  const agent = new Agent({
    connections,
    pipelining: 1,
    // The deadline is the only timer.
    headersTimeout: 0,
    bodyTimeout: 0,
    connect: (target, callback) =>
      connect(target, (error, socket) => {
        if (error === null) callback(null, socket);
        else callback(new NotConnected(error), null);
      }),
  });
  return { agent, request };
}
