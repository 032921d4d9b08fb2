/**
 * A pipeline with the given routes on a free loopback port, fakes for dependencies that are not given, and raw sockets
 * that send exactly the bytes of the test.
 */
import net from 'node:net';
import { NO_LIMITS } from '../../kit/launch.ts';
import { Limiter } from '../../src/actors/limits/limiter.ts';
import type { ActorSystem } from '../../src/actors/runtime/actor.ts';
import { ChallengeKey } from '../../src/domain/challenges.ts';
import { FEATURES } from '../../src/domain/features.ts';
import { SharedBounds } from '../../src/domain/limits/shared-bounds.ts';
import type { TSchema } from '../../src/domain/schema.ts';
import type { SessionContext } from '../../src/domain/sessions.ts';
import { LiveSettings, type SettingName, type SettingValue } from '../../src/domain/settings/settings.ts';
import type { Site } from '../../src/domain/site.ts';
import { Challenges } from '../../src/io/accounts/challenges.ts';
import { OpenBodies } from '../../src/io/http/body/open-bodies.ts';
import { ConnectionShares } from '../../src/io/http/listen/connection-shares.ts';
import {
  createServer,
  type RequestHandler,
  type Server,
  type TlsFiles,
} from '../../src/io/http/listen/server.ts';
import {
  createPipeline,
  type FinishedRequest,
  type Pipeline,
  type PipelineOptions,
} from '../../src/io/http/pipeline.ts';
import { type AnyRoute, defineRoute, type SessionLookup } from '../../src/io/http/table/route.ts';

/** A moment in the middle of nothing, at the start of a 5 s window and of a minute. */
export const START_MS = 1_760_000_040_000;
/** Milliseconds for which a raw socket waits for an answer that may not come. */
const TIMEOUT_MS = 20_000;

export interface HttpFixtureOptions {
  readonly routes: readonly AnyRoute[];
  /** First values, or the live ones that actors share. */
  readonly settings?: Partial<Record<SettingName, SettingValue>> | LiveSettings;
  readonly site?: Partial<Site>;
  readonly gate?: SessionLookup;
  readonly actors?: ActorSystem;
  readonly pipeline?: Partial<PipelineOptions>;
  /** The clock, where actors share it. */
  readonly time?: { nowMs: number };
  readonly tls?: TlsFiles;
}

export interface HttpFixture {
  readonly port: number;
  readonly url: string;
  readonly server: Server;
  readonly pipeline: Pipeline;
  readonly settings: LiveSettings;
  readonly limiter: Limiter;
  /** The clock of the pipeline: set it to move time. */
  readonly time: { nowMs: number };
  /** Throws that were no row of the error table. */
  readonly bugs: unknown[];
  readonly finished: FinishedRequest[];
  /** One request on a connection of its own. */
  ask(
    method: string,
    path: string,
    headers?: Readonly<Record<string, string>>,
    body?: string,
  ): Promise<RawAnswer>;
  close(): Promise<void>;
}

type Definition<Q extends TSchema, B extends TSchema, A extends AnyRoute['auth']> = Parameters<
  typeof defineRoute<Q, B, A>
>[0];

/** A route of a test: `at` is method and path. Without limits, errors and a session unless `parts` has them. */
export function route<Q extends TSchema, B extends TSchema, A extends AnyRoute['auth'] = 'none'>(
  at: string,
  parts: Partial<Definition<Q, B, A>>,
  handle: Definition<Q, B, A>['handle'],
): AnyRoute {
  const [method, path] = at.split(' ') as [AnyRoute['method'], string];
  const plain = { group: 'test', limits: [], errors: [], summary: 'test', auth: 'none' };
  return defineRoute({ ...plain, ...parts, method, path, handle } as unknown as Definition<Q, B, A>);
}

/** The same of a test that needs no parts. */
export function plainRoute(at: string, handle: Definition<TSchema, TSchema, 'none'>['handle']): AnyRoute {
  return route(at, {}, handle);
}

/** A promise, and what resolves it. */
export function promiseOf<T = void>(): { promise: Promise<T>; resolve: (value: T) => void } {
  let resolve: (value: T) => void = () => undefined;
  const promise = new Promise<T>((settle) => {
    resolve = settle;
  });
  return { promise, resolve };
}

/** Bodies of the pipeline whose seconds the test gives. */
export function heldBodies(): { openBodies: OpenBodies; second: () => void } {
  let second: () => void = () => undefined;
  const openBodies = new OpenBodies((act) => {
    second = act;
    return () => undefined;
  });
  return { openBodies, second: () => second() };
}

/** A gate that knows no session. */
export const NO_SESSIONS: SessionLookup = { authenticate: () => undefined };

/** Session of a person in a browser. */
export const BROWSER_SESSION: SessionContext = {
  id: '7',
  kind: 'browser',
  loginType: null,
  userId: '42',
  keyId: null,
  keyType: 'Unknown',
  publicKey: null,
  appId: null,
  proven: true,
  createdMs: 0,
  expiresMs: 1,
};

/** Knows the cookie `alice`. */
export const ALICE_ALONE: SessionLookup = {
  authenticate: (token) =>
    token === 'alice' ? { session: BROWSER_SESSION, quotaResult: undefined } : undefined,
};

export function makeSite(port: number, changes: Partial<Site> = {}): Site {
  const origins = [`http://localhost:${port}`, `http://127.0.0.1:${port}`];
  return {
    project: 'test',
    version: '0.0.1',
    production: false,
    baseUrl: `http://localhost:${port}`,
    issuer: `http://localhost:${port}`,
    hosts: new Set(['localhost', '127.0.0.1', '[::1]']),
    addressHosts: false,
    checkHost: true,
    strictTransport: false,
    endsTls: false,
    origins: new Set(origins),
    secureCookies: false,
    fido2: {
      rpId: 'localhost',
      rpName: 'Gatehouse',
      icon: '',
      origins,
      timestampDriftToleranceMs: 300_000,
    },
    webhookAllow: ['127.0.0.0/8', '::1/128'],
    authMethods: ['passkey', 'key'],
    features: FEATURES,
    adminPublicKeys: new Set(),
    adminAllow: ['127.0.0.0/8', '::1/128'],
    ...changes,
  };
}

export function startHttp(options: HttpFixtureOptions): HttpFixture {
  const { settings: given = NO_LIMITS } = options;
  const settings = given instanceof LiveSettings ? given : new LiveSettings(given);
  const time = options.time ?? { nowMs: START_MS };
  const bugs: unknown[] = [];
  const finished: FinishedRequest[] = [];
  const bounds = options.pipeline?.bounds ?? new SharedBounds(settings);
  const trustedProxies = options.pipeline?.trustedProxies ?? [];
  const shares = new ConnectionShares({ bounds, trustedProxies, elapsed: () => time.nowMs });
  const server: Server = createServer({
    host: '127.0.0.1',
    port: 0,
    ...(options.tls === undefined ? {} : { tls: options.tls }),
    connectionsMax: () => settings.get('ConnectionsMax'),
    accepts: (address, open) => shares.accepts(address, open),
    onOpen: (address) => limiter.opened(address, time.nowMs),
    onClosed: (address) => shares.closed(address),
  });
  const limiter = new Limiter({
    settings,
    clock: () => time.nowMs,
    connectionsOpen: () => server.counters().open,
  });
  let requests = 0;
  let handle: RequestHandler = () => undefined;
  // Open first: the routes need the port.
  server.serve((response, request, upgrade) => handle(response, request, upgrade));
  const pipeline = createPipeline({
    routes: options.routes,
    actors: options.actors ?? noActors(),
    settings,
    sessionLookup: options.gate ?? NO_SESSIONS,
    site: makeSite(server.port, options.site),
    limiter,
    bounds,
    clock: () => time.nowMs,
    elapsed: () => performance.now(),
    newRequestId: () => `test-${++requests}`,
    trustedProxies,
    connections: server,
    onBug: (error) => bugs.push(error),
    observers: [{ observe: (record) => void finished.push(record) }],
    ...options.pipeline,
  });
  handle = pipeline.handle;
  return {
    port: server.port,
    url: `http://127.0.0.1:${server.port}`,
    server,
    pipeline,
    settings,
    limiter,
    time,
    bugs,
    finished,
    ask: (...request) => sendRaw(server.port, requestText(...request)),
    close: () => server.close(),
  };
}

/** Makes the challenges of a new process: each call is a restart over the same journal, whose key this is. */
export function makeChallenges(): Challenges {
  return new Challenges(new ChallengeKey(Buffer.alloc(32, 7)));
}

/** Routes under test that ask an actor bring their own system. */
function noActors(): ActorSystem {
  const refuse = (): never => {
    throw new Error('this test has no actors');
  };
  return {
    ask: refuse,
    now: refuse,
    query: refuse,
    tell: refuse,
    lookup: refuse,
    exists: refuse,
    remembers: refuse,
    count: refuse,
    audit: refuse,
    auditFirst: refuse,
    auditRefusal: refuse,
  };
}

export interface RawAnswer {
  readonly status: number;
  /** Lower-case names; the last of a repeated one. */
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

export interface RawConnection {
  send(...parts: (string | Uint8Array)[]): void;
  /** The next answer. Rejects when the connection ends before it is whole. `headOnly`: an answer to HEAD. */
  answer(headOnly?: boolean): Promise<RawAnswer>;
  /** Sends, and takes the next answer. */
  ask(...parts: (string | Uint8Array)[]): Promise<RawAnswer>;
  /** Resolves when the peer has closed; with what it sent that no `answer` took. */
  ended(): Promise<string>;
  /** Sends FIN and continues to read. */
  half(): void;
  close(): void;
}

/**
 * Opens a socket to the fixture. Bytes are latin1, so that every one of them survives. `localAddress`: a loopback address,
 * so that the gateway sees another network. A socket that is bound to one looks for a port that no former connection
 * holds, which takes milliseconds after thousands of them.
 */
export function connectRaw(port: number, localAddress?: string): RawConnection {
  const options = { port, host: '127.0.0.1', allowHalfOpen: true };
  const socket = net.connect(localAddress === undefined ? options : { ...options, localAddress });
  socket.setNoDelay(true);
  let received = '';
  let over = false;
  let wake: () => void = () => undefined;
  socket.on('data', (bytes) => {
    received += bytes.toString('latin1');
    wake();
  });
  const finish = () => {
    over = true;
    wake();
  };
  socket.on('end', finish).on('close', finish).on('error', finish);
  const waitFor = async (ready: () => boolean): Promise<void> => {
    const timer = setTimeout(() => socket.destroy(), TIMEOUT_MS);
    while (!ready() && !over) {
      await new Promise<void>((resolve) => {
        wake = resolve;
      });
    }
    clearTimeout(timer);
  };
  const connection: RawConnection = {
    send: (...parts) => {
      for (const part of parts) socket.write(part);
    },
    ask(...parts) {
      connection.send(...parts);
      return connection.answer(String(parts[0]).startsWith('HEAD '));
    },
    async answer(headOnly = false) {
      await waitFor(() => takeAnswer(received, headOnly) !== undefined);
      const taken = takeAnswer(received, headOnly);
      if (taken === undefined) throw new Error(`no answer, but ${JSON.stringify(received.slice(0, 200))}`);
      received = received.slice(taken.length);
      return taken.answer;
    },
    async ended() {
      await waitFor(() => false);
      return received;
    },
    half: () => socket.end(),
    close: () => socket.destroy(),
  };
  return connection;
}

/** One request on a connection of its own. */
export async function sendRaw(port: number, ...parts: (string | Uint8Array)[]): Promise<RawAnswer> {
  const connection = connectRaw(port);
  try {
    return await connection.ask(...parts);
  } finally {
    connection.close();
  }
}

/** The bytes of one request with `Host` and, where there is a body, `Content-Length`. */
export function requestText(
  method: string,
  path: string,
  headers: Readonly<Record<string, string>> = {},
  body?: string,
): string {
  const all: Record<string, string> = { Host: 'localhost', ...headers };
  if (body !== undefined && all['Transfer-Encoding'] === undefined) {
    all['Content-Length'] ??= String(Buffer.byteLength(body));
  }
  const lines = Object.entries(all).map(([name, value]) => `${name}: ${value}\r\n`);
  return `${method} ${path} HTTP/1.1\r\n${lines.join('')}\r\n${body ?? ''}`;
}

function takeAnswer(text: string, headOnly: boolean): { answer: RawAnswer; length: number } | undefined {
  const end = text.indexOf('\r\n\r\n');
  if (end < 0) return undefined;
  const [first = '', ...lines] = text.slice(0, end).split('\r\n');
  const headers: Record<string, string> = {};
  for (const line of lines) {
    headers[line.slice(0, line.indexOf(':')).toLowerCase()] = line.slice(line.indexOf(':') + 1).trim();
  }
  const status = Number(first.split(' ')[1]);
  const declared = headOnly || status === 204 || status === 304 ? 0 : Number(headers['content-length'] ?? 0);
  const length = end + 4 + declared;
  return text.length < length
    ? undefined
    : { answer: { status, headers, body: text.slice(end + 4, length) }, length };
}
