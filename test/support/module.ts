/** A module on node:http whose answers the test gives, and the proxied routes before it with a gate of two tokens. */
import http from 'node:http';
import { listenOnLoopback } from '../../kit/http.ts';
import { NO_LIMITS } from '../../kit/launch.ts';
import type { AuditRecord } from '../../src/actors/runtime/actor.ts';
import { nodeSchedule, type Schedule } from '../../src/actors/runtime/runtime-context.ts';
import { judge } from '../../src/domain/limits/quotas.ts';
import { SharedBounds } from '../../src/domain/limits/shared-bounds.ts';
import type { SessionContext } from '../../src/domain/sessions.ts';
import { LiveSettings, type SettingName, type SettingValue } from '../../src/domain/settings/settings.ts';
import type { SessionLookup } from '../../src/io/http/table/route.ts';
import { type Catalog, loadCatalog } from '../../src/io/mcp/catalog.ts';
import type { ToolRow } from '../../src/io/mcp/tool.ts';
import { createModuleClient } from '../../src/io/modules/client.ts';
import type { CallObserver } from '../../src/io/observability/metrics.ts';
import type { ModuleRules } from '../../src/io/proxy/reach.ts';
import { WebSockets } from '../../src/io/proxy/web-sockets.ts';
import { createProxyRoutes } from '../../src/io/routes/proxy.ts';
import { type HttpFixture, START_MS, startHttp } from './http.ts';
import { auditOnly, sessionOf } from './mcp.ts';

/** The cookie of a browser session, and the bearer of an agent's. */
export const SID = 'person';
export const BEARER = 'agent';
/** Bearers of sessions that may not do everything. */
export const BASIC_BEARER = 'basic';
export const APP_BEARER = 'app';
export const SIGNED_APP_BEARER = 'signed-app';

export interface Asked {
  readonly method: string;
  readonly url: string;
  readonly headers: http.IncomingHttpHeaders;
  readonly body: Buffer;
  /** Resolves when the gateway gave the call up or has the answer. */
  readonly gone: Promise<void>;
}

export interface ProxyFixture {
  readonly http: HttpFixture;
  readonly bounds: SharedBounds;
  readonly sockets: WebSockets;
  /** Ids of sessions that are no longer alive. */
  readonly endedSessions: Set<string>;
  /** State of a node of a cluster: with its lease, or without. */
  readonly node: { admits: boolean };
  /** Server of the module; a test may answer upgrades itself. */
  readonly backend: http.Server;
  readonly asked: Asked[];
  readonly audit: AuditRecord[];
  /** The next call that reaches the module. */
  next(): Promise<Asked>;
  send(path: string, init?: RequestInit): Promise<Response>;
  close(): Promise<void>;
}

export interface ProxyFixtureOptions {
  readonly answer?: (asked: Asked, response: http.ServerResponse) => void;
  /** Instead of `answer`: the request as it comes. */
  readonly serve?: http.RequestListener;
  /** Another module than the one of `answer`. */
  readonly moduleUrl?: string;
  /** `Modules.core` of the configuration. */
  readonly rules?: ModuleRules;
  /** `McpBasicPersonalReads`; true unless given. */
  readonly personalReads?: boolean;
  readonly proxyTimeoutMs?: number;
  readonly onCall?: CallObserver;
  readonly onFieldsDropped?: (count: number) => void;
  readonly settings?: Partial<Record<SettingName, SettingValue>>;
  /** Schedule of the heartbeats of WebSockets. */
  readonly schedule?: Schedule;
  /** Storage that an awaited record waits for. */
  readonly storage?: () => Promise<void>;
  readonly pipeline?: Parameters<typeof startHttp>[0]['pipeline'];
}

export async function startProxy(options: ProxyFixtureOptions = {}): Promise<ProxyFixture> {
  const asked: Asked[] = [];
  const waiting: ((asked: Asked) => void)[] = [];
  const backend = http.createServer((request, response) => {
    if (options.serve !== undefined) {
      options.serve(request, response);
      return;
    }
    const chunks: Buffer[] = [];
    const gone = new Promise<void>((resolve) => response.on('close', resolve));
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      const { method = '', url = '', headers } = request;
      const taken = { method, url, headers, body: Buffer.concat(chunks), gone };
      asked.push(taken);
      waiting.shift()?.(taken);
      if (options.answer !== undefined) options.answer(taken, response);
      else response.writeHead(200, { 'content-type': 'application/json' }).end('{"result":"fine"}');
    });
  });
  const { url } = await listenOnLoopback(backend);
  const address = options.moduleUrl ?? `${url}/base/`;
  const settings = new LiveSettings({ ...NO_LIMITS, ...options.settings });
  const bounds = options.pipeline?.bounds ?? new SharedBounds(settings);
  const modules = createModuleClient({ clock: Date.now, bounds });
  const time = { nowMs: START_MS };
  const sockets = new WebSockets({
    settings,
    bounds,
    clock: () => time.nowMs,
    schedule: options.schedule ?? nodeSchedule,
    random: () => 0.5,
    admits: () => node.admits,
    isSessionValid: ({ id }) => !endedSessions.has(id),
  });
  const node = { admits: true };
  const endedSessions = new Set<string>();
  const audit: AuditRecord[] = [];
  const fixture = startHttp({
    routes: createProxyRoutes({
      modules,
      sockets,
      moduleAddresses: new Map([
        ['core', address],
        ['chat', address],
        ['wallet', address],
      ]),
      catalog: catalogOf(address, options.personalReads ?? true),
      moduleRules: new Map([['core', options.rules ?? {}]]),
      onCall: options.onCall,
      onFieldsDropped: options.onFieldsDropped,
      ...(options.proxyTimeoutMs === undefined ? {} : { proxyTimeoutMs: options.proxyTimeoutMs }),
    }),
    gate: GATE,
    actors: auditOnly(audit, options.storage ?? (async () => undefined)),
    settings,
    time,
    pipeline: { ...options.pipeline, bounds },
  });
  return {
    http: fixture,
    bounds,
    sockets,
    endedSessions,
    node,
    backend,
    asked,
    audit,
    next: () => new Promise((resolve) => waiting.push(resolve)),
    send: (path, init) => fetch(`${fixture.url}${path}`, { redirect: 'manual', ...init }),
    async close() {
      await sockets.drain();
      await modules.close();
      await fixture.close();
      backend.closeAllConnections();
      await new Promise((resolve) => backend.close(resolve));
      if (fixture.bugs.length > 0) throw new AggregateError(fixture.bugs, 'not rows of the error table');
    },
  };
}

const AGENT = sessionOf('McpVerified');
const PERSON: SessionContext = { ...AGENT, id: '5', kind: 'browser', loginType: null, keyType: 'FIDO2' };

const SESSIONS: Readonly<Record<string, SessionContext>> = {
  [`browser ${SID}`]: PERSON,
  [`mcp ${BEARER}`]: AGENT,
  [`mcp ${BASIC_BEARER}`]: sessionOf('McpBasic'),
  [`mcp ${APP_BEARER}`]: sessionOf('McpApp'),
  [`mcp ${SIGNED_APP_BEARER}`]: sessionOf('McpApp', '1842001', true),
};

const ROW = { description: 'A row of the test.', inputSchema: { type: 'object', properties: {} } };
/** Rows like the built-in ones: a personal read, and a tool for signed logins alone. */
const BALANCE: ToolRow = {
  ...ROW,
  endpoint: 'wallet:/wallet/v1/balance/get',
  method: 'GET',
  appScope: true,
  proof: 'personal',
};
const OPENING: ToolRow = {
  ...ROW,
  endpoint: 'wallet:/wallet/v1/orders/create',
  method: 'POST',
  restricted: ['McpBasic'],
  appScope: true,
  proof: 'always',
};

/** `news` is open to McpBasic, `order` and the resource to McpApp. */
function catalogOf(address: string, personalReads: boolean): { readonly current: Catalog } {
  const loaded = loadCatalog(
    { tools: { balance: BALANCE, open: OPENING }, resources: {} },
    {
      tools: {
        news: { ...ROW, endpoint: 'core:/core/v1/news/list', method: 'GET' },
        order: {
          ...ROW,
          endpoint: 'core:/core/v1/order/make',
          method: 'POST',
          restricted: ['McpBasic'],
          appScope: true,
        },
      },
      resources: {
        'test://rates': {
          endpoint: 'core:/core/v1/rates/get',
          name: 'Rates',
          restricted: ['McpBasic'],
          appScope: true,
        },
      },
    },
    new Map([
      ['core', address],
      ['wallet', address],
    ]),
    { personalReads },
  );
  if (!loaded.ok) throw new Error(JSON.stringify(loaded.faults));
  return { current: loaded.catalog };
}

const GATE: SessionLookup = {
  authenticate(token, kind, charge) {
    const session = SESSIONS[`${kind} ${token}`];
    if (session === undefined) return undefined;
    return { session, quotaResult: judge(charge?.scope ?? 's', 15, charge?.cost ?? 0, 3, charge?.cost ?? 0) };
  },
};
