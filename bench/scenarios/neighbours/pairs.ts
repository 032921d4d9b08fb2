/** Callers that share a bound: what the first one does to it, and what the second one asks meanwhile. One row a pair. */
import { expectOk, request, signUp } from '../../../kit/agent.ts';
import { callTool } from '../../load/requests.ts';
import { startGenerator } from '../../measure/children.ts';
import { type Bench, rawRequest } from '../../scenario.ts';
import { makeAgents, sessionOf } from '../../subjects/gateway.ts';
import { RawConnection } from '../transfers/raw-connection.ts';
import { type Ask, Caller, getFrom, hold, repeatFrom, sendSlowly, streamFrom } from './callers.ts';

export interface PairSetup {
  readonly bench: Bench;
  readonly url: string;
}

export interface Neighbours {
  readonly ask: Ask;
  /** The first caller begins, for about so long; the result ends it. */
  abuse(forMs: number): Promise<() => Promise<void>>;
}

export interface Pair {
  readonly name: string;
  readonly bound: string;
  /** The first caller's doing. */
  readonly what: string;
  /** Calls of the second one. */
  readonly perSecond: number;
  /** Beside those that every bench raises. */
  readonly settings?: Readonly<Record<string, number>>;
  /** Its modules are those of the sandbox: files need a chat module. */
  readonly sandbox?: true;
  prepare(setup: PairSetup): Promise<Neighbours>;
}

const KIB = 1024;
const MIB = 1024 * KIB;
const WALLET_PATH = '/wallet/v1/balance/get';
/** More than the 128 connections that the gateway keeps to a module. */
const UNFINISHED = 156;
const STREAMS = 24;
const UPLOAD_BYTES_PER_SECOND = 4 * MIB;
/** Bytes of an upload that is cut before its end. */
const ENDLESS_BYTES = 100 * MIB;
/** Its line is slower than half of the quota: beside one other person it has to wait for nothing. */
const SLOW_LINE = { sizeBytes: 512 * KIB, bytesPerSecond: 1.25 * MIB, pieceBytes: 16 * KIB };
const CONNECTIONS_MAX = 200;
/** A flood is bounded: it is to use up a share, not the processor. */
const FLOOD = { connections: 16, maxRatePerSecond: 1_000 } as const;
const EVENT_STREAMS = 100;
/** More than one network may have open. */
const CHALLENGES = 1_500;
const BODIES = 40;
/** Quota of a session, so that the flood is over it and the other session is not. */
const SESSION_RPS = 100;

export const PAIRS: readonly Pair[] = [
  {
    name: 'unfinished bodies',
    bound: 'connections to a module',
    what: `${UNFINISHED} POSTs of one account whose bodies never end`,
    perSecond: 50,
    async prepare({ bench, url }) {
      const [abuser = '', other = ''] = await bearers(bench, url);
      const head = rawRequest('POST', url + WALLET_PATH, { Authorization: `Bearer ${abuser}` });
      const text = `${head.replace('Content-Length: 0', 'Content-Length: 100000')}{`;
      const caller = new Caller(url);
      const headers = { Authorization: `Bearer ${other}` };
      return {
        ask: () => caller.use(async (connection) => good(await connection.ask('GET', WALLET_PATH, headers))),
        abuse: async () => releaseOf(await hold(url, UNFINISHED, { text })),
      };
    },
  },
  {
    name: 'many uploads',
    bound: 'bandwidth',
    what: `${STREAMS} uploads of one account beside one of another, whose line is slower than half of the quota`,
    perSecond: 2,
    settings: {
      FileUploadBytesPerSecond: UPLOAD_BYTES_PER_SECOND,
      FileMaxSizeBytes: ENDLESS_BYTES,
      DraftsPerUser: 1_000,
    },
    sandbox: true,
    async prepare({ url }) {
      const [abuser, other] = [await signUp(url), await signUp(url)];
      return {
        async ask() {
          const address = url + (await draftOf(url, other.cookie, SLOW_LINE.sizeBytes));
          await sendSlowly(address, upload(other.cookie), SLOW_LINE);
        },
        abuse: async () => {
          const streams = Array.from({ length: STREAMS }, () => endlessUpload(url, abuser.cookie));
          const connections = await Promise.all(streams);
          return async () => {
            for (const connection of connections) connection.close();
          };
        },
      };
    },
  },
  {
    name: 'silent connections',
    bound: 'connections of the public listener',
    what: `${CONNECTIONS_MAX + 5} silent connections of one address beside new ones of others, ${CONNECTIONS_MAX} in all`,
    perSecond: 20,
    // Off in every other bench: all of its callers are one network.
    settings: { ConnectionsMax: CONNECTIONS_MAX, ConnectionsPerNetworkPercent: 10 },
    async prepare({ url }) {
      let calls = 0;
      return {
        // Each call from another address: what one opens itself is not what it is refused for.
        ask() {
          calls += 1;
          return getFrom(`127.0.0.${3 + (calls % 250)}`, `${url}/auth/v1/get_info`);
        },
        abuse: async () => releaseOf(await hold(url, CONNECTIONS_MAX + 5, { localAddress: '127.0.0.2' })),
      };
    },
  },
  {
    name: 'flood of calls',
    bound: 'requests of a session',
    what: `${FLOOD.maxRatePerSecond} calls a second of one session, which may make ${SESSION_RPS}`,
    perSecond: 50,
    settings: { SessionApiRPSLimit: SESSION_RPS },
    async prepare({ bench, url }) {
      const [abuser = '', other = ''] = await bearers(bench, url);
      const generator = startGenerator();
      bench.onTeardown(() => generator.stop());
      const { hostname: host, port } = new URL(url);
      const flood = callTool(url, [abuser], 'wallet_get_balance');
      const [, body = ''] = flood.requests[0]?.split('\r\n\r\n') ?? [];
      const headers = { 'Content-Type': 'application/json', Authorization: `Bearer ${other}` };
      const caller = new Caller(url);
      const call = Buffer.from(body);
      return {
        ask: () =>
          caller.use(async (connection) =>
            good(await connection.ask('POST', '/mcp', headers, call), flood.expect),
          ),
        async abuse(durationMs) {
          const plan = { host, port: Number(port), leadInMs: 0, durationMs, timeoutMs: 2_000 };
          const load = generator.run({ ...plan, ...FLOOD, ...flood });
          return async () => void (await load);
        },
      };
    },
  },
  {
    name: 'event streams',
    bound: 'event streams',
    what: `${EVENT_STREAMS} streams of one account beside new ones of another, ${EVENT_STREAMS} in all`,
    perSecond: 20,
    settings: { SseStreamsMax: EVENT_STREAMS, SseStreamsPerSession: EVENT_STREAMS },
    async prepare({ url }) {
      const [abuser, other] = [await signUp(url), await signUp(url)];
      const text = rawRequest('GET', `${url}/auth/v1/events`, { Cookie: abuser.cookie });
      return {
        ask: () => streamFrom('127.0.0.3', `${url}/auth/v1/events`, other.cookie),
        abuse: async () => releaseOf(await hold(url, EVENT_STREAMS, { text, localAddress: '127.0.0.2' })),
      };
    },
  },
  {
    name: 'open challenges',
    bound: 'open challenges',
    what: `${CHALLENGES} logins begun from one address and none ended`,
    perSecond: 50,
    async prepare({ url }) {
      const address = `${url}/auth/v1/login_options`;
      return {
        ask: () => getFrom('127.0.0.3', address),
        async abuse() {
          await repeatFrom('127.0.0.2', address, CHALLENGES);
          return async () => undefined;
        },
      };
    },
  },
  {
    name: 'bodies in memory',
    bound: 'bytes of request bodies',
    what: `${BODIES} bodies of one address that end before their last byte, more than its half of the bound`,
    perSecond: 50,
    async prepare({ url }) {
      const head = rawRequest('POST', `${url}/mcp`, { 'Content-Type': 'application/json' });
      const text = head.replace('Content-Length: 0', `Content-Length: ${MIB}`) + ' '.repeat(MIB - 1);
      const caller = new Caller(url);
      const ping = Buffer.from('{"jsonrpc":"2.0","id":1,"method":"ping"}');
      const headers = { 'Content-Type': 'application/json' };
      return {
        ask: () =>
          caller.use(async (connection) =>
            good(await connection.ask('POST', '/mcp', headers, ping), '"result"'),
          ),
        abuse: async () => releaseOf(await hold(url, BODIES, { text, localAddress: '127.0.0.2' })),
      };
    },
  },
];

/** Sessions of two accounts. */
async function bearers(bench: Bench, url: string): Promise<string[]> {
  const people = await makeAgents(bench, url, 2);
  return await Promise.all(people.map((person) => sessionOf(url, person)));
}

function good({ status, text }: { readonly status: number; readonly text: string }, expect = ''): void {
  if (status !== 200 || !text.includes(expect)) throw new Error(`status ${status}`);
}

function releaseOf({ release }: { release(): void }): () => Promise<void> {
  return async () => release();
}

function upload(cookie: string): Record<string, string> {
  return { Cookie: cookie, 'Content-Type': 'application/octet-stream' };
}

/** The path of its stream. */
async function draftOf(url: string, cookie: string, sizeBytes: number): Promise<string> {
  const address = `${url}/auth/v2/file/create_draft?fileName=bench.bin&fileSize=${sizeBytes}`;
  const draft = expectOk(
    'create_draft',
    await request(address, { method: 'POST', headers: { Cookie: cookie } }),
  );
  return `/auth/v2/file/stream_upload/${String(draft.json['result']).split(':')[0]}`;
}

/** Sends until it is closed. */
async function endlessUpload(url: string, cookie: string): Promise<RawConnection> {
  const path = await draftOf(url, cookie, ENDLESS_BYTES);
  const connection = await RawConnection.open(url);
  connection.ask('POST', path, upload(cookie), Buffer.alloc(256 * KIB), ENDLESS_BYTES).catch(() => undefined);
  return connection;
}
