/**
 * One listener: sockets, TLS, the connection cap and the count of opens per address. The only importer of
 * uWebSockets.js; everybody else takes its types from here. What travels on a connection is the pipeline's.
 */
import * as library from 'uWebSockets.js';
import {
  App,
  type HttpRequest,
  type HttpResponse,
  SSLApp,
  type TemplatedApp,
  type us_listen_socket,
  us_listen_socket_close,
  us_socket_local_port,
} from 'uWebSockets.js';
import { readAddress } from './listen/client-address.ts';
import { ListenError } from './listen/free-port.ts';

export type { HttpRequest, HttpResponse };

/** After the last answer of a drain, so long at most for its bytes to leave. Milliseconds. */
const KEEP_OPEN_MS = 250;
const POLL_MS = 5;
/**
 * A replaced listener goes on accepting so long, for connections whose handshake is under way: a client whose first
 * answer was lost asks again within 1 s (RFC 6298 2).
 */
const HANDOVER_MS = 1_000;
/** Of TLS 1.2 the suites with forward secrecy and authenticated encryption (RFC 9325 4.2); TLS 1.3 has no others. */
const CIPHERS = [
  'ECDHE-ECDSA-AES128-GCM-SHA256',
  'ECDHE-RSA-AES128-GCM-SHA256',
  'ECDHE-ECDSA-AES256-GCM-SHA384',
  'ECDHE-RSA-AES256-GCM-SHA384',
  'ECDHE-ECDSA-CHACHA20-POLY1305',
  'ECDHE-RSA-CHACHA20-POLY1305',
].join(':');
/** From this share of the cap on, connections end with their answer. */
const NEAR_CAPACITY_SHARE = 0.8;

export interface TlsFiles {
  /** Paths of PEM files. */
  readonly cert: string;
  readonly key: string;
}

interface ServerOptions {
  readonly host: string;
  /** 0 picks a free one when it is opened. */
  readonly port: number;
  readonly tls?: TlsFiles;
  /** Open connections at most; asked at every new one, so a change of the setting counts at once. */
  readonly connectionsMax: () => number;
  /** May one more of this peer stay? `open` includes it. All within the cap may, unless given. */
  readonly accepts?: (address: string, open: number) => boolean;
  /** Called for every accepted connection with the peer's canonical address. */
  readonly onOpen?: (address: string) => void;
}

/** Takes one request. `request` is dead once the call returns. */
export type RequestHandler = (response: HttpResponse, request: HttpRequest) => void;

interface ServerCounters {
  readonly open: number;
  readonly openedTotal: number;
  /** Closed at once because of the cap, or because their network has its share of it. */
  readonly refusedTotal: number;
}

interface LiveCounters {
  open: number;
  openedTotal: number;
  refusedTotal: number;
}

export interface Server {
  /** The port of the options until `serve`, then the one that is listened on. */
  readonly port: number;
  /**
   * Opens the port, once. Until then connections are refused: to a client that comes back by itself an answer of 503 could
   * be the last word (an EventSource gives up), a refused connection never is. Throws `ListenError`.
   */
  serve(handler: RequestHandler): void;
  counters(): ServerCounters;
  /**
   * Nearly at the cap. uWebSockets.js closes silent, slow and idle connections within 12 s, but one that asks for a
   * little every few seconds stays; closing with the answer keeps room that such ones cannot take.
   */
  isNearCapacity(): boolean;
  /**
   * A second listener on the same port, with the certificate that is on disk now; the first one stops a moment later.
   * Open connections are untouched. `opened` runs once both listen. Throws, and nothing has changed, when the second
   * cannot be opened.
   */
  renew(opened: () => Promise<void>): Promise<void>;
  /** No new connections; open ones go on. */
  stopListening(): void;
  /** Waits for the open connections to end, at most `LINGER_MS`, then cuts what is left. */
  close(): Promise<void>;
}

/**
 * Leaves the field `uWebSockets: 20` out of every answer: it names the parser to who looks for its faults. A switch of the
 * library that its types do not name; a build without it writes the field.
 */
export function omitServerHeader(uws: object): void {
  const configure: unknown = Reflect.get(uws, '_cfg');
  if (typeof configure === 'function') configure('silent');
}

/** A server on a port that `reservePorts` has tried; it listens once it may `serve`. */
export function createServer(options: ServerOptions): Server {
  omitServerHeader(library);
  const live = { open: 0, openedTotal: 0, refusedTotal: 0 };
  let open: ((port: number) => Listener) | undefined;
  let { port } = options;
  const listeners: Listener[] = [];
  let stopped = false;
  const stopListening = () => {
    stopped = true;
    for (const listener of listeners) listener.stop();
  };
  let closed = false;
  return {
    get port() {
      return port;
    },
    serve(handler) {
      const openNext = (wanted: number) => openListener(options, wanted, live, handler);
      const first = openNext(port);
      port = first.port;
      listeners.push(first);
      open = openNext;
    },
    counters: () => ({ ...live }),
    isNearCapacity: () => live.open > options.connectionsMax() * NEAR_CAPACITY_SHARE,
    async renew(opened) {
      if (stopped || open === undefined) return;
      const former = [...listeners];
      listeners.push(open(port));
      await opened();
      await new Promise((resolve) => setTimeout(resolve, HANDOVER_MS).unref());
      for (const listener of former) listener.stop();
    },
    stopListening,
    async close() {
      stopListening();
      for (let waitedMs = 0; live.open > 0 && waitedMs < KEEP_OPEN_MS; waitedMs += POLL_MS) {
        await new Promise((resolve) => setTimeout(resolve, POLL_MS));
      }
      if (!closed) for (const listener of listeners) listener.cut();
      closed = true;
    },
  };
}

/** One listening socket, with the certificate that was on disk when it was opened. */
interface Listener {
  readonly port: number;
  stop(): void;
  /** Ends its connections. */
  cut(): void;
}

function openListener(
  options: ServerOptions,
  port: number,
  live: LiveCounters,
  handler: RequestHandler,
): Listener {
  const { tls, host } = options;
  const app =
    tls === undefined
      ? App()
      : SSLApp({ cert_file_name: tls.cert, key_file_name: tls.key, ssl_ciphers: CIPHERS });
  watchConnections(app, options, live);
  app.any('/*', handler);
  let listening: us_listen_socket | undefined = listen(app, host, port);
  return {
    port: us_socket_local_port(listening as unknown as Parameters<typeof us_socket_local_port>[0]),
    stop() {
      if (listening !== undefined) us_listen_socket_close(listening);
      listening = undefined;
    },
    cut: () => app.close(),
  };
}

function listen(app: TemplatedApp, host: string, port: number): us_listen_socket {
  let socket: us_listen_socket | false = false;
  app.listen(host, port, (opened) => {
    socket = opened;
  });
  if (socket === false) {
    app.close();
    throw new ListenError(host, port, 'EADDRINUSE');
  }
  return socket;
}

/** uWS reports +1 for an open and -1 for a close; at the close the address is already empty. */
function watchConnections(app: TemplatedApp, options: ServerOptions, live: LiveCounters): void {
  const onChange = (response: HttpResponse, change: number): void => {
    if (change !== 1) {
      live.open -= 1;
      return;
    }
    live.open += 1;
    live.openedTotal += 1;
    const address = readAddress(response.getRemoteAddress());
    if (options.accepts?.(address, live.open) === false || live.open > options.connectionsMax()) {
      live.refusedTotal += 1;
      response.close();
      return;
    }
    options.onOpen?.(address);
  };
  app.filter((response, change) => onChange(response, Number(change)));
}

/** Newer builds of uWebSockets.js name the peer's port; the pinned one does not. Asked of the first response alone. */
let portIsNamed: boolean | undefined;

export function remotePortOf(response: HttpResponse): number | undefined {
  portIsNamed ??= typeof response['getRemotePort'] === 'function';
  if (!portIsNamed) return undefined;
  const port: unknown = response['getRemotePort']();
  return typeof port === 'number' ? port : undefined;
}
