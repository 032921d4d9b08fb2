/**
 * People and agents that work through one address while nodes come and go: what they were answered, how fast, and what was
 * no answer at all. Each client has one connection and waits for its answer.
 */
import { type Agent, request } from 'undici';
import { verifiedHeaders } from '../../kit/agent.ts';

const MS_PER_SECOND = 1_000;

/** Client of a person that has signed up, with a key that may call tools. */
export interface Client {
  readonly person: { readonly key: Parameters<typeof verifiedHeaders>[0]; readonly cookie: string };
  /** Bearer of the newest session: a key holds a bounded number, and a log-in beyond it ends the oldest. */
  bearer: string;
  /** Its one connection. */
  readonly dispatcher: Agent;
}

export interface LoadReport {
  readonly requests: number;
  /** 503 with Retry-After; of a tool call also 200 with a JSON-RPC error that says when to come back. */
  readonly unavailable: number;
  /** Any other answer but success, and connections that ended without one. Empty when all is well. */
  readonly faults: readonly string[];
  readonly times: Times;
  /** The same of each kind of request. */
  readonly kinds: Readonly<Record<string, Times>>;
}

/** Milliseconds. */
interface Times {
  readonly p50: number;
  readonly p99: number;
  readonly longest: number;
}

export interface Load {
  /** Resolves with the report when every client has its last answer. */
  stop(): Promise<LoadReport>;
}

interface Step {
  readonly name: string;
  readonly path: string;
  request(client: Client, nowMs: number): { headers: Record<string, string>; body?: string };
  /** Takes from a success what later requests need. */
  succeeded?(client: Client, text: string): void;
}

const TOOL_CALL = JSON.stringify({
  ...{ jsonrpc: '2.0', id: 1, method: 'tools/call' },
  params: { name: 'wallet_get_balance', arguments: { currency: 'DEMO' } },
});
/**
 * Steps of 8 requests: 5 calls of a tool, a list of keys from the owner, a new name for a key and a log-in, both
 * durable.
 */
const STEPS: readonly Step[] = [
  {
    name: 'tool call',
    path: '/mcp',
    request: ({ bearer }) => ({
      headers: { 'Content-Type': 'application/json', Authorization: `Bearer ${bearer}` },
      body: TOOL_CALL,
    }),
  },
  {
    name: 'keys',
    path: '/auth/v1/keys/user_keys',
    request: ({ person }) => ({ headers: { Cookie: person.cookie } }),
  },
  {
    name: 'log-in',
    path: '/auth/v1/mcp_login',
    request: ({ person }, nowMs) => ({
      headers: verifiedHeaders(person.key, Math.floor(nowMs / MS_PER_SECOND)),
      body: '',
    }),
    succeeded(client, text) {
      client.bearer = (JSON.parse(text) as { result: { sessionId: string } }).result.sessionId;
    },
  },
];
const ORDER = [0, 1, 0, 2, 0, 0, 1, 0];

/** `pauseMs`: wait of a client between an answer and its next request. */
export function startLoad(url: string, clients: readonly Client[], pauseMs: number): Load {
  const latencies: Record<string, number[]> = Object.fromEntries(STEPS.map(({ name }) => [name, []]));
  const faults: string[] = [];
  let unavailable = 0;
  let isStopped = false;
  const one = async (client: Client, step: Step): Promise<void> => {
    const { headers, body } = step.request(client, Date.now());
    const startMs = performance.now();
    try {
      const method = body === undefined ? 'GET' : 'POST';
      const { dispatcher } = client;
      const answer = await request(`${url}${step.path}`, {
        ...{ method, headers, dispatcher },
        ...(body === undefined ? {} : { body }),
      });
      const text = await answer.body.text();
      latencies[step.name]?.push(performance.now() - startMs);
      const status = answer.statusCode;
      if (isUnavailable(status, answer.headers, text)) unavailable += 1;
      else if (isSuccess(status, text)) step.succeeded?.(client, text);
      else faults.push(`${step.name}: ${status} ${text}`);
    } catch (error) {
      faults.push(`${step.name}: no answer: ${String(error)}`);
    }
  };
  const run = async (client: Client, first: number): Promise<void> => {
    for (let turn = first; !isStopped; turn += 1) {
      const step = STEPS[ORDER[turn % ORDER.length] ?? 0];
      if (step !== undefined) await one(client, step);
      if (pauseMs > 0) await new Promise((resolve) => setTimeout(resolve, pauseMs));
    }
  };
  const running = Promise.all(clients.map((client, index) => run(client, index)));
  return {
    async stop() {
      isStopped = true;
      await running;
      const all = Object.values(latencies).flat();
      const kinds = Object.fromEntries(
        Object.entries(latencies).map(([name, values]) => [name, timesOf(values)]),
      );
      return { requests: all.length, unavailable, faults, times: timesOf(all), kinds };
    },
  };
}

function timesOf(latencies: readonly number[]): Times {
  const sorted = latencies.toSorted((a, b) => a - b);
  const at = (share: number) => sorted[Math.ceil(sorted.length * share) - 1] ?? 0;
  return { p50: at(0.5), p99: at(0.99), longest: at(1) };
}

function isUnavailable(status: number, headers: Readonly<Record<string, unknown>>, text: string): boolean {
  if (status === 503) return headers['retry-after'] !== undefined;
  return status === 200 && /"error":\{"code":-32000,.*"retryAfterSeconds":\d/.test(text);
}

/** A tool that failed is an answer with status 200 too. */
function isSuccess(status: number, text: string): boolean {
  return (
    status === 200 && !text.includes('"isError":true') && !/^\{"jsonrpc":"2\.0","id":1,"error"/.test(text)
  );
}
