/** One listener: sockets, TLS, the connection cap and the opens per address. Other files import the library's types from here. */
import type {
  HttpRequest,
  HttpResponse,
  TemplatedApp,
  us_listen_socket,
  us_socket_context_t,
} from 'uWebSockets.js';
import { MESSAGE_MAX_BYTES } from '../../../domain/web-sockets.ts';
import type { UpgradedConnection } from '../exchange/web-socket.ts';
import { readAddress } from './client-address.ts';
import { FREE_SHARE } from './connection-shares.ts';
import { ListenError } from './free-port.ts';
import { httpLibrary } from './library.ts';

export type { HttpRequest, HttpResponse };
/** Context of a request that may become a WebSocket: GET with a key of the right length. */
export type UpgradeContext = us_socket_context_t;

/** After a drain, the longest wait until the bytes of the last answers are sent. */
const KEEP_OPEN_MS = 250;
const POLL_MS = 5;
/** A replaced listener keeps accepting for unfinished handshakes: a lost SYN-ACK is requested again within 1 s (RFC 6298 2). */
const HANDOVER_MS = 1_000;
/** Above this the library closes a WebSocket without a close frame; from `MESSAGE_MAX_BYTES` up to it 1009 is sent. */
const PAYLOAD_MAX_BYTES = 2 * MESSAGE_MAX_BYTES;
/** TLS 1.2 suites with forward secrecy and authenticated encryption (RFC 9325 4.2); TLS 1.3 has no others. */
const CIPHERS = [
  'ECDHE-ECDSA-AES128-GCM-SHA256',
  'ECDHE-RSA-AES128-GCM-SHA256',
  'ECDHE-ECDSA-AES256-GCM-SHA384',
  'ECDHE-RSA-AES256-GCM-SHA384',
  'ECDHE-ECDSA-CHACHA20-POLY1305',
  'ECDHE-RSA-CHACHA20-POLY1305',
].join(':');

export interface TlsFiles {
  /** Paths of PEM files. */
  readonly cert: string;
  readonly key: string;
}

interface ServerOptions {
  readonly host: string;
  /** 0: the system picks a free one. */
  readonly port: number;
  readonly tls?: TlsFiles;
  /** Cap of open connections; read for every new one, so that a changed setting applies at once. */
  readonly connectionsMax: () => number;
  /** Is one more connection of this peer accepted? `open` includes it. Absent: all within the cap are. */
  readonly accepts?: (address: string, open: number) => boolean;
  /** Called for every accepted connection with the peer's canonical address. */
  readonly onOpen?: (address: string) => void;
  /** Called by `noteClosed`. */
  readonly onClosed?: (address: string) => void;
}

/** The library copies the fields of this object, not its methods. */
export interface UpgradeData {
  readonly connection: UpgradedConnection;
}

/** Handles one request. `request` is invalid after the call. */
export type RequestHandler = (response: HttpResponse, request: HttpRequest, upgrade?: UpgradeContext) => void;

interface ServerCounters {
  readonly open: number;
  readonly openedTotal: number;
  /** Closed at once because of the cap, or of their network's share of it. */
  readonly refusedTotal: number;
}

interface LiveCounters {
  open: number;
  openedTotal: number;
  refusedTotal: number;
}

export interface Server {
  /** The port of the options until `serve`, then the listening port. */
  readonly port: number;
  /**
   * Opens the port, once. Until then connections are refused: an EventSource gives up after a 503, but retries after a
   * refused connection. Throws `ListenError`.
   */
  serve(handler: RequestHandler): void;
  counters(): ServerCounters;
  /** Connections that are open now. */
  readonly open: number;
  /** A request saw the end of its connection to this peer; the library names none. */
  noteClosed(address: string): void;
  /**
   * True above half of the cap: answers close their connections. uWebSockets.js closes silent and idle connections
   * within 12 s, but not those with a request every few seconds.
   */
  isNearCapacity(): boolean;
  /**
   * Opens a second listener on the same port with the current certificate; the first one stops a moment later. Open
   * connections stay. `opened` runs once both listen. Throws without a change if the second cannot be opened.
   */
  renew(opened: () => Promise<void>): Promise<void>;
  /** Accepts no new connections; open ones stay. */
  stopListening(): void;
  /** Waits at most `KEEP_OPEN_MS` for the open connections to close, then closes the rest. */
  close(): Promise<void>;
}

/**
 * Removes the field `uWebSockets: 20` from every answer, because it reveals the parser. The library's types lack this
 * option; a build without it writes the field.
 */
export function omitServerHeader(uws: object): void {
  const configure: unknown = Reflect.get(uws, '_cfg');
  if (typeof configure === 'function') configure('silent');
}

/** A server on a port of `reservePorts`; it listens from `serve` on. */
export function createServer(options: ServerOptions): Server {
  omitServerHeader(httpLibrary().uws);
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
    get open() {
      return live.open;
    },
    noteClosed: (address) => options.onClosed?.(address),
    isNearCapacity: () => live.open > options.connectionsMax() * FREE_SHARE,
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

/** One listening socket, with the certificate of the time when it was opened. */
interface Listener {
  readonly port: number;
  stop(): void;
  /** Closes its connections. */
  cut(): void;
}

function openListener(
  options: ServerOptions,
  port: number,
  live: LiveCounters,
  handler: RequestHandler,
): Listener {
  const { tls, host } = options;
  const { App, SSLApp, us_listen_socket_close, us_socket_local_port } = httpLibrary().uws;
  const app =
    tls === undefined
      ? App()
      : SSLApp({ cert_file_name: tls.cert, key_file_name: tls.key, ssl_ciphers: CIPHERS });
  watchConnections(app, options, live);
  serveSockets(app, options, live, handler);
  app.any('/*', (response, request) => handler(response, request));
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

/** uWS reports +1 for an open and -1 for a close; at a close the address is already empty. */
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

/**
 * Upgraded connections. The library reports no end of one to the filter, so `close` counts it. It has no limits of its own
 * but the one on messages: idle times are those of a setting, and a full socket pauses its module.
 */
function serveSockets(
  app: TemplatedApp,
  options: ServerOptions,
  live: LiveCounters,
  handler: RequestHandler,
): void {
  app.ws<UpgradeData>('/*', {
    maxPayloadLength: PAYLOAD_MAX_BYTES,
    maxBackpressure: 0,
    idleTimeout: 0,
    sendPingsAutomatically: false,
    upgrade: (response, request, context) => handler(response, request, context),
    open: (socket) => socket.getUserData().connection.opened(socket),
    message: (socket, bytes, isBinary) => socket.getUserData().connection.received(bytes, isBinary),
    drain: (socket) => socket.getUserData().connection.drained(),
    ping: (socket) => socket.getUserData().connection.heard(),
    pong: (socket) => socket.getUserData().connection.heard(),
    close(socket, code, reason) {
      const { connection } = socket.getUserData();
      live.open -= 1;
      options.onClosed?.(connection.peer);
      connection.closed(code, reason);
    },
  });
}

/** Only newer builds of uWebSockets.js have the peer's port. Decided at the first response. */
let portIsNamed: boolean | undefined;

export function remotePortOf(response: HttpResponse): number | undefined {
  portIsNamed ??= typeof response['getRemotePort'] === 'function';
  if (!portIsNamed) return undefined;
  const port: unknown = response['getRemotePort']();
  return typeof port === 'number' ? port : undefined;
}
