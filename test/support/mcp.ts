/**
 * /mcp on a free loopback port: the real pipeline and module client, a backend on node:http whose answers the test
 * gives, a gate that knows the tokens below, and actors that only keep audit records.
 */
import http from 'node:http';
import { listenOnLoopback } from '../../kit/http.ts';
import type { ActorSystem, AuditRecord } from '../../src/actors/runtime/actor.ts';
import { judge } from '../../src/domain/limits/quotas.ts';
import type { SharedBounds } from '../../src/domain/limits/shared-bounds.ts';
import { isProvenLogin, type LoginType, type SessionContext } from '../../src/domain/sessions.ts';
import type { SettingName, SettingValue } from '../../src/domain/settings/settings.ts';
import type { AnyRoute, SessionLookup } from '../../src/io/http/table/route.ts';
import type { McpEndpoint } from '../../src/io/mcp/authenticate.ts';
import type { YieldToLoop } from '../../src/io/mcp/batch.ts';
import { CapabilityCodes } from '../../src/io/mcp/capability.ts';
import { type ConfiguredRows, LiveCatalog, loadCatalog } from '../../src/io/mcp/catalog.ts';
import { ListChanges } from '../../src/io/mcp/list-changes.ts';
import { NodeSignals } from '../../src/io/mcp/node-signals.ts';
import { McpSessionIds } from '../../src/io/mcp/session-ids.ts';
import { ToolLimits } from '../../src/io/mcp/tool-limits.ts';
import { BUILT_IN } from '../../src/io/mcp/tools/built-in.ts';
import { GATEWAY_SERVICES, type GatewayServices } from '../../src/io/mcp/tools/gateway.ts';
import { createModuleClient } from '../../src/io/modules/client.ts';
import type { CallObserver } from '../../src/io/observability/metrics.ts';
import { createMcpRoutes } from '../../src/io/routes/mcp.ts';
import { freshBounds } from './actors/bounds.ts';
import { type HttpFixture, type HttpFixtureOptions, START_MS, startHttp } from './http.ts';

/** Tokens that open a session, by login class. `other` is a second verified session of another user. */
/** Ids under the key of one journal: all gateways of a test have the same key, as the nodes of a cluster do. */
export const SESSION_IDS = new McpSessionIds({ deriveKey: (_, lengthBytes) => Buffer.alloc(lengthBytes, 7) });

export const TOKENS = {
  McpBasic: 'basic',
  'McpBasic:proven': 'consented',
  McpVerified: 'verified',
  McpApp: 'app',
  'McpApp:proven': 'signed-app',
  other: 'other',
  /** Token of a connected host, for /connect/mcp. */
  connected: 'connected',
} as const;

export interface BackendRequest {
  readonly method: string;
  readonly url: string;
  readonly headers: http.IncomingHttpHeaders;
  readonly body: string;
  /** Resolves when the gateway gave the call up. */
  readonly gone: Promise<void>;
}

export type BackendAnswer =
  | { readonly status?: number; readonly type?: string; readonly body: string | Buffer }
  /** The socket is cut after these bytes of a longer answer. */
  | { readonly cut: string }
  /** The test writes the answer itself. */
  | { readonly write: (response: http.ServerResponse) => void }
  | 'never';

export interface McpFixtureOptions {
  readonly configured?: (backend: string) => ConfiguredRows;
  readonly backend?: (request: BackendRequest) => BackendAnswer | Promise<BackendAnswer>;
  readonly settings?: Partial<Record<SettingName, SettingValue>>;
  readonly gateway?: GatewayServices;
  /** `McpBasicPersonalReads`; true unless given. */
  readonly personalReads?: boolean;
  readonly pipeline?: HttpFixtureOptions['pipeline'];
  readonly onCall?: CallObserver;
  /** Modules that may give out codes, all served by the backend; `wallet` unless given. */
  readonly codeModules?: readonly string[];
  /** Storage that an awaited record waits for. */
  readonly storage?: () => Promise<void>;
  /** Requests of one session before its verdict is a refusal; without it the scope is off. */
  readonly sessionQuota?: number;
  /** Answers volatile commands to actors, of which there are none. */
  readonly now?: () => never;
  /** Gives the event loop back within a batch. */
  readonly nextTurn?: YieldToLoop;
  /** Calls and ended sessions that other nodes of a cluster receive. */
  readonly signals?: NodeSignals;
  /** Addresses of MCP beside /mcp, and further routes. */
  readonly endpoints?: readonly McpEndpoint[];
  readonly routes?: readonly AnyRoute[];
  readonly site?: HttpFixtureOptions['site'];
}

export interface McpFixture {
  readonly http: HttpFixture;
  readonly backendUrl: string;
  /** Requests to the backend, in order. */
  readonly asked: BackendRequest[];
  readonly audit: AuditRecord[];
  /** Charges that the gate was asked for, in order. */
  readonly charged: { token: string; cost: number }[];
  readonly catalog: LiveCatalog;
  readonly listChanges: ListChanges;
  /** Ids of sessions that streams find closed. */
  readonly closedSessions: Set<string>;
  /** Runs the timers of streams that are armed. */
  runTimers(): void;
  /** POST /mcp with a JSON body as it stands. */
  post(body: string, headers?: Record<string, string>): Promise<McpAnswer>;
  /** One request of id 1; its whole answer parsed. */
  rpc(method: string, params?: object, token?: string, headers?: Record<string, string>): Promise<RpcAnswer>;
  /** Throws when anything was thrown that is no row of the error table. */
  close(): Promise<void>;
}

export interface McpAnswer {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
}

export interface RpcAnswer {
  readonly id?: unknown;
  readonly result?: {
    readonly isError?: boolean;
    readonly content?: readonly { type: string; text: string }[];
    readonly contents?: readonly { uri: string; mimeType: string; text: string }[];
    readonly tools?: readonly { name: string; [field: string]: unknown }[];
    readonly resources?: readonly { uri: string; [field: string]: unknown }[];
    readonly [field: string]: unknown;
  };
  readonly error?: { code: number; message: string; data?: unknown };
}

export function sessionOf(loginType: LoginType, userId = '1842001', signed = false): SessionContext {
  return {
    id: `${userId}0${loginType.length}`,
    kind: 'mcp',
    loginType,
    userId,
    keyId: '77',
    keyType: 'UserKey',
    publicKey: 'A'.repeat(43),
    appId: loginType === 'McpApp' ? '9001' : null,
    proven: isProvenLogin(loginType, signed),
    createdMs: START_MS,
    expiresMs: START_MS + 86_400_000,
  };
}

const SESSIONS: Readonly<Record<string, SessionContext>> = {
  [TOKENS.McpBasic]: sessionOf('McpBasic'),
  [TOKENS['McpBasic:proven']]: { ...sessionOf('McpBasic'), proven: true },
  [TOKENS.McpVerified]: sessionOf('McpVerified'),
  [TOKENS.McpApp]: sessionOf('McpApp'),
  [TOKENS['McpApp:proven']]: sessionOf('McpApp', '1842001', true),
  [TOKENS.connected]: {
    ...sessionOf('McpApp', '1842001', true),
    grant: { id: '9', appId: '1', audience: '/connect/mcp' },
  },
  [TOKENS.other]: sessionOf('McpVerified', '1842002'),
};

export async function startMcp(options: McpFixtureOptions = {}): Promise<McpFixture> {
  const asked: BackendRequest[] = [];
  const backend = http.createServer((request, response) => serve(options, asked, request, response));
  const { url: backendUrl } = await listenOnLoopback(backend);
  const bounds = options.pipeline?.bounds ?? freshBounds();
  const modules = createModuleClient({ clock: () => fixture.time.nowMs, bounds });
  const configured = options.configured?.(backendUrl) ?? { tools: {}, resources: {} };
  const loaded = loadCatalog(BUILT_IN, configured, new Map([['wallet', backendUrl]]), {
    personalReads: options.personalReads ?? true,
  });
  if (!loaded.ok) throw new Error(JSON.stringify(loaded.faults));
  const catalog = new LiveCatalog(loaded.catalog);
  const { listChanges, closedSessions, runTimers } = openStreams(catalog, bounds, () => fixture.time.nowMs);
  const audit: AuditRecord[] = [];
  const charged: McpFixture['charged'] = [];
  const sessions = gateOf(options, charged);
  const fixture = startHttp({
    ...(options.site === undefined ? {} : { site: options.site }),
    routes: [
      ...createMcpRoutes(
        {
          sessions,
          catalog,
          modules,
          gateway: options.gateway ?? GATEWAY_SERVICES,
          onCall: options.onCall,
          listChanges,
          signals: options.signals ?? new NodeSignals(),
          sessionIds: SESSION_IDS,
          toolLimits: new ToolLimits(() => fixture.time.nowMs),
          codes: new CapabilityCodes({
            modules,
            moduleAddresses: new Map((options.codeModules ?? ['wallet']).map((name) => [name, backendUrl])),
          }),
        },
        options.nextTurn,
        options.endpoints,
      ),
      ...(options.routes ?? []),
    ],
    gate: sessions,
    actors: auditOnly(audit, options.storage ?? (async () => undefined), options.now),
    ...(options.settings === undefined ? {} : { settings: options.settings }),
    pipeline: { ...options.pipeline, bounds },
  });
  const post = async (body: string, headers: Record<string, string> = {}): Promise<McpAnswer> => {
    const answer = await fetch(`${fixture.url}/mcp`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...headers },
      body,
    });
    return { status: answer.status, headers: answer.headers, text: await answer.text() };
  };
  return {
    http: fixture,
    backendUrl,
    asked,
    audit,
    charged,
    catalog,
    listChanges,
    closedSessions,
    runTimers,
    post,
    async rpc(method, params, token, headers = {}) {
      const message = { jsonrpc: '2.0', id: 1, method, ...(params === undefined ? {} : { params }) };
      const bearer: Record<string, string> = token === undefined ? {} : { authorization: `Bearer ${token}` };
      const { text } = await post(JSON.stringify(message), { ...bearer, ...headers });
      return JSON.parse(text) as RpcAnswer;
    },
    async close() {
      await modules.close();
      await fixture.close();
      backend.closeAllConnections();
      await new Promise((resolve) => backend.close(resolve));
      if (fixture.bugs.length > 0) throw new AggregateError(fixture.bugs, 'not rows of the error table');
    },
  };
}

/** Streams of `subscriptions/listen`, with timers that the test runs. */
export function openStreams(catalog: LiveCatalog, bounds: SharedBounds, clock: () => number) {
  const timers: (() => void)[] = [];
  const closedSessions = new Set<string>();
  const listChanges = new ListChanges({
    catalog,
    bounds,
    clock,
    schedule: {
      immediate: (run) => run(),
      timer(_delayMs, run) {
        timers.push(run);
        return () => void timers.splice(timers.indexOf(run), 1);
      },
    },
    isSessionAlive: ({ id }) => !closedSessions.has(id),
  });
  return {
    listChanges,
    closedSessions,
    runTimers() {
      for (const run of timers.splice(0)) run();
    },
  };
}

function gateOf({ sessionQuota }: McpFixtureOptions, charged: McpFixture['charged']): SessionLookup {
  let used = 0;
  return {
    authenticate(token, kind, charge, _client, { audience = null } = {}) {
      const session = SESSIONS[token];
      if (session === undefined || kind !== 'mcp') return undefined;
      if ((session.grant?.audience ?? null) !== audience) return undefined;
      const cost = charge?.cost ?? 0;
      charged.push({ token, cost });
      if (sessionQuota === undefined) return { session, quotaResult: undefined };
      const verdict = judge('p', sessionQuota, used + cost, 3, cost);
      if (verdict.allowed) used += cost;
      return { session, quotaResult: verdict };
    },
  };
}

function none(): never {
  throw new Error('this test has no actors');
}

/** Actors that only take audit records; `storage` is awaited before one that must be first. */
export function auditOnly(
  records: AuditRecord[],
  storage: () => Promise<void>,
  now: () => never = none,
): ActorSystem {
  return {
    ask: none,
    now,
    query: none,
    tell: none,
    lookup: none,
    exists: none,
    remembers: none,
    count: none,
    audit: (record) => records.push(record),
    auditRefusal: (record) => records.push(record),
    async auditFirst(record) {
      await storage();
      records.push(record);
    },
  };
}

function serve(
  options: McpFixtureOptions,
  asked: BackendRequest[],
  request: http.IncomingMessage,
  response: http.ServerResponse,
): void {
  const chunks: Buffer[] = [];
  const gone = new Promise<void>((resolve) => response.on('close', () => resolve()));
  request.on('data', (chunk: Buffer) => chunks.push(chunk));
  request.on('end', async () => {
    const { method = '', url = '', headers } = request;
    const taken = { method, url, headers, body: Buffer.concat(chunks).toString('utf8'), gone };
    asked.push(taken);
    const answer = (await options.backend?.(taken)) ?? { body: '{"result":"fine"}' };
    if (answer === 'never') return;
    if ('write' in answer) {
      answer.write(response);
      return;
    }
    if ('cut' in answer) {
      response.writeHead(200, { 'content-type': 'application/json', 'content-length': 1000 });
      response.write(answer.cut, () => response.destroy());
      return;
    }
    response.writeHead(answer.status ?? 200, { 'content-type': answer.type ?? 'application/json' });
    response.end(answer.body);
  });
}
