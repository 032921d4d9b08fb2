/**
 * The HTTP server of the sandbox, on loopback. `/<module>/v1/…` and `/at/<module>/<module>/v1/…` are the modules'
 * endpoints, so that either `{url}` or `{url}/at/<module>` serves as the address of a module; `/at/<module>/events`
 * are its events; `/sandbox/v1/…` is the sandbox's own.
 */
import {
  createServer,
  type IncomingMessage,
  type OutgoingHttpHeaders,
  type Server,
  type ServerResponse,
} from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Duplex } from 'node:stream';
import { ECHO_PATH, Echo } from './echo.ts';
import { errorBody, SandboxError } from './errors.ts';
import type { SandboxAnswer, SandboxStore } from './store.ts';

const BODY_MAX_BYTES = 64 * 1024;
const CONNECTIONS_MAX = 1_024;
/** Longer than the gateway's own pool keeps a connection, so that it is never the sandbox that closes first. */
const KEEP_ALIVE_MS = 60_000;
const MODULE_PREFIX = /^\/at\/([a-z]+)(\/.*)$/;
const LOOPBACK_HOST = /^(?:127\.0\.0\.1|localhost|\[::1\])(?::[0-9]+)?$/;

const NO_FIELDS: Readonly<Record<string, unknown>> = {};

interface RunningServer {
  readonly url: string;
  close(): Promise<void>;
}

/** Serves the named modules on loopback; port 0 is a free one. `onDiskFailure`: nothing can be answered any more. */
export async function serveSandbox(
  store: SandboxStore,
  { modules, port: wanted }: { readonly modules: readonly string[]; readonly port: number },
  onDiskFailure: (error: unknown) => void,
): Promise<RunningServer> {
  const ownerApi = new RequestHandler(store, modules, onDiskFailure);
  const server = createServer((request, response) => void ownerApi.serve(request, response));
  server.on('upgrade', (request, stream, head) => ownerApi.upgrade(request, stream, head));
  server.maxConnections = CONNECTIONS_MAX;
  server.keepAliveTimeout = KEEP_ALIVE_MS;
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(wanted, '127.0.0.1', resolve);
  });
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}`,
    close() {
      ownerApi.echo.close();
      return closeServer(server);
    },
  };
}

class RequestHandler {
  readonly #store: SandboxStore;
  readonly #modules: readonly string[];
  readonly #onDiskFailure: (error: unknown) => void;
  readonly #faults = new Faults();
  readonly echo = new Echo();

  constructor(store: SandboxStore, modules: readonly string[], onDiskFailure: (error: unknown) => void) {
    this.#store = store;
    this.#modules = modules;
    this.#onDiskFailure = onDiskFailure;
  }

  async serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const target = targetOf(request);
    const [, module, rest] = MODULE_PREFIX.exec(target.pathname) ?? [];
    const path = rest ?? target.pathname;
    const fault = this.#faults.of(module ?? this.#store.moduleOf(path));
    if (fault.mode === 'down') {
      request.socket.destroy();
      return;
    }
    try {
      const text = await readBody(request);
      if (text === undefined) return;
      const isDav = this.#store.speaksDav(path);
      const body = isDav ? NO_FIELDS : objectOf(request, text);
      if (fault.mode === 'error') throw new SandboxError('InjectedFault');
      const answer = await (isDav
        ? this.#answerDav(request, module, path, text)
        : this.#answer(request, module, path, new Map(target.searchParams), body));
      if (fault.mode === 'slow') holdBack(response, answer, fault.delayMs);
      else if (fault.mode === 'cut') cutOff(response, answer);
      else reply(response, answer);
    } catch (error) {
      if (error instanceof SandboxError)
        reply(response, { status: error.row.status, body: errorBody(error) });
      else {
        request.socket.destroy();
        this.#onDiskFailure(error);
      }
    }
  }

  upgrade(request: IncomingMessage, stream: Duplex, head: Buffer): void {
    stream.on('error', () => stream.destroy());
    const { pathname } = targetOf(request);
    const [, , path = pathname] = MODULE_PREFIX.exec(pathname) ?? [];
    const isServed = path === ECHO_PATH && this.#modules.includes('core');
    if (this.#faults.of('core').mode === 'down') stream.destroy();
    else if (isServed && LOOPBACK_HOST.test(request.headers.host ?? ''))
      this.echo.accept(request, stream, head);
    else stream.end('HTTP/1.1 404 Not Found\r\nConnection: close\r\nContent-Length: 0\r\n\r\n');
  }

  async #answer(
    request: IncomingMessage,
    module: string | undefined,
    path: string,
    query: ReadonlyMap<string, string>,
    body: Readonly<Record<string, unknown>>,
  ): Promise<SandboxAnswer> {
    requireOwnHost(request);
    const method = request.method ?? '';
    if (path === '/events' && method === 'GET')
      return this.#store.events(module ?? query.get('module') ?? '', query);
    if (module === undefined && path === '/sandbox/v1/outbox' && method === 'GET')
      return this.#store.outbox();
    if (module === undefined && path === '/sandbox/v1/fault' && method === 'POST')
      return { status: 200, body: JSON.stringify({ result: this.#faults.set(body, this.#modules) }) };
    this.#requireServed(module, path);
    return this.#store.handle({
      method,
      path,
      query,
      crm: headerOf(request, 'x-crm'),
      scopes: headerOf(request, 'x-scopes'),
      deviceGuid: headerOf(request, 'x-device-guid'),
      body,
    });
  }

  #answerDav(
    request: IncomingMessage,
    module: string | undefined,
    path: string,
    body: string,
  ): Promise<SandboxAnswer> {
    requireOwnHost(request);
    this.#requireServed(module, path);
    return this.#store.dav({
      method: request.method ?? '',
      path,
      body,
      crm: headerOf(request, 'x-crm'),
      depth: headerOf(request, 'depth'),
      ifMatch: headerOf(request, 'if-match'),
      ifNoneMatch: headerOf(request, 'if-none-match'),
    });
  }

  #requireServed(module: string | undefined, path: string): void {
    const served = this.#store.moduleOf(path);
    if (served === undefined || !this.#modules.includes(served)) throw new SandboxError('NotFound');
    if (module !== undefined && module !== served) throw new SandboxError('NotFound', 'another module');
  }
}

/** A web page that points its own name at this address must not read the outbox (DNS rebinding). */
function requireOwnHost(request: IncomingMessage): void {
  if (!LOOPBACK_HOST.test(request.headers.host ?? '')) throw new SandboxError('Forbidden', 'foreign Host');
}

function headerOf(request: IncomingMessage, name: string): string | undefined {
  const value = request.headers[name];
  return Array.isArray(value) ? value.join(',') : value;
}

/** An address that is none is that of no endpoint. */
function targetOf(request: IncomingMessage): URL {
  const base = 'http://sandbox';
  const target = request.url ?? '/';
  return URL.canParse(target, base) ? new URL(target, base) : new URL(base);
}

/** The body of a request, '' without one; undefined when the caller went away meanwhile. */
async function readBody(request: IncomingMessage): Promise<string | undefined> {
  const { 'content-length': length, 'transfer-encoding': coding } = request.headers;
  if (length === undefined && coding === undefined) return '';
  const parts: Buffer[] = [];
  let sizeBytes = 0;
  try {
    for await (const part of request as AsyncIterable<Buffer>) {
      sizeBytes += part.length;
      // Read to the end all the same: an answer sent over an unread body would be lost with the connection.
      if (sizeBytes <= BODY_MAX_BYTES) parts.push(part);
    }
  } catch (error) {
    if (request.destroyed) return undefined;
    throw error;
  }
  if (sizeBytes > BODY_MAX_BYTES) throw new SandboxError('BodyTooLarge');
  return Buffer.concat(parts).toString('utf8');
}

/** The JSON object of a body, `{}` without one. */
function objectOf(request: IncomingMessage, text: string): Readonly<Record<string, unknown>> {
  if (text === '') return NO_FIELDS;
  if (!/^application\/json\s*(?:;|$)/i.test(request.headers['content-type'] ?? ''))
    throw new SandboxError('UnsupportedMediaType');
  return parseObject(text);
}

function parseObject(text: string): Readonly<Record<string, unknown>> {
  try {
    const value: unknown = JSON.parse(text);
    if (typeof value === 'object' && value !== null && !Array.isArray(value))
      return Object.assign(Object.create(null), value);
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
  }
  throw new SandboxError('BadRequest', 'the body is no JSON object');
}

function fieldsOf({ status, contentType, headers }: SandboxAnswer, body: Buffer): OutgoingHttpHeaders {
  const type = contentType ?? (headers === undefined ? 'application/json' : undefined);
  return {
    ...(type === undefined ? {} : { 'content-type': type }),
    ...Object.fromEntries(headers ?? []),
    ...(status === 204 ? {} : { 'content-length': body.length }),
  };
}

function reply(response: ServerResponse, answer: SandboxAnswer): void {
  const body = Buffer.from(answer.body);
  response.writeHead(answer.status, fieldsOf(answer, body));
  response.end(body);
}

function holdBack(response: ServerResponse, answer: SandboxAnswer, delayMs: number): void {
  const timer = setTimeout(() => reply(response, answer), delayMs);
  response.on('close', () => clearTimeout(timer));
}

function cutOff(response: ServerResponse, answer: SandboxAnswer): void {
  const body = Buffer.from(answer.body);
  response.writeHead(answer.status, fieldsOf(answer, body));
  response.write(body.subarray(0, body.length >> 1), () => response.destroy());
}

function closeServer(server: Server): Promise<void> {
  return new Promise((resolve) => {
    server.close(() => resolve());
    server.closeAllConnections();
  });
}

/**
 * - `down`: the connection is broken before anything happens.
 * - `slow`: the call is done, its answer is held back for `delayMs`.
 * - `error`: 500 with an error envelope, nothing is done.
 * - `cut`: the call is done, the answer breaks off in the middle.
 */
export const FAULT_MODES = ['down', 'slow', 'error', 'cut', 'ok'] as const;
type FaultMode = (typeof FAULT_MODES)[number];

/** Longer than the gateway's usual time-out of 30 s. */
const SLOW_DELAY_MS = 35_000;
const SLOW_DELAY_MAX_MS = 120_000;

interface FaultSetting {
  readonly mode: FaultMode;
  readonly delayMs: number;
}

const HEALTHY: FaultSetting = { mode: 'ok', delayMs: 0 };

class Faults {
  readonly #byModule = new Map<string, FaultSetting>();

  of(module: string | undefined): FaultSetting {
    return (module === undefined ? undefined : this.#byModule.get(module)) ?? HEALTHY;
  }

  /** Sets the fault that the body describes; refuses unknown modules, modes and delays. */
  set(body: Readonly<Record<string, unknown>>, modules: readonly string[]): object {
    const { module, mode: wanted, delayMs = SLOW_DELAY_MS } = body;
    const mode = FAULT_MODES.find((candidate) => candidate === wanted);
    if (typeof module !== 'string' || !modules.includes(module))
      throw new SandboxError('BadRequest', `module is one of ${modules.join(', ')}`);
    if (mode === undefined) throw new SandboxError('BadRequest', `mode is one of ${FAULT_MODES.join(', ')}`);
    if (
      typeof delayMs !== 'number' ||
      !Number.isInteger(delayMs) ||
      delayMs < 0 ||
      delayMs > SLOW_DELAY_MAX_MS
    )
      throw new SandboxError('BadRequest', `delayMs is a whole number up to ${SLOW_DELAY_MAX_MS}`);
    this.#byModule.set(module, { mode, delayMs });
    return { module, mode };
  }
}
