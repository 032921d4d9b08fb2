/**
 * One listener: sockets, TLS, the connection cap and the count of opens per address. The only importer of
 * uWebSockets.js; everybody else takes its types from here. What travels on a connection is the pipeline's.
 */
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
import { createServer as createProbe } from 'node:net';
import { readAddress } from './client-address.ts';

export type { HttpRequest, HttpResponse };

/** After the last answer of a drain, so long at most for its bytes to leave. Milliseconds. */
const LINGER_MS = 250;
const POLL_MS = 5;
/** From this share of the cap on, connections end with their answer. */
const CROWDED_SHARE = 0.8;

export interface TlsFiles {
  /** Paths of PEM files. */
  readonly cert: string;
  readonly key: string;
}

export interface ServerOptions {
  readonly host: string;
  /** 0 picks a free one; `Server.port` names it. */
  readonly port: number;
  readonly tls?: TlsFiles;
  /** Open connections at most; asked at every new one, so a change of the setting counts at once. */
  readonly connectionsMax: () => number;
  /** May one more of this peer stay? `open` includes it. All within the cap may, unless given. */
  readonly admits?: (address: string, open: number) => boolean;
  /** Called for every accepted connection with the peer's canonical address. */
  readonly onOpen?: (address: string) => void;
}

/** Takes one request. `request` is dead once the call returns. */
export type RequestHandler = (response: HttpResponse, request: HttpRequest) => void;

const LISTEN_REASONS: Readonly<Record<string, string>> = {
  EADDRINUSE: 'the port is taken',
  EADDRNOTAVAIL: 'the host is not an address of this machine',
  ENOTFOUND: 'the host is not known',
  EACCES: 'the port needs a privilege that this process has not',
};

/** The listener could not be opened: the port is taken, or the host is no address of this machine. */
export class ListenError extends Error {
  readonly host: string;
  readonly port: number;

  constructor(host: string, port: number, code: string) {
    super(`cannot listen on ${host}:${port}: ${LISTEN_REASONS[code] ?? code}`);
    this.name = 'ListenError';
    this.host = host;
    this.port = port;
  }
}

export interface ServerCounters {
  readonly open: number;
  readonly openedTotal: number;
  /** Closed at once because of the cap, or because their network has its share of it. */
  readonly refusedTotal: number;
}

export interface Server {
  readonly port: number;
  /** Until this is called, every request is answered 503. */
  serve(handler: RequestHandler): void;
  counters(): ServerCounters;
  /**
   * Nearly at the cap. uWebSockets.js closes silent, slow and idle connections within 12 s, but one that asks for a
   * little every few seconds stays; closing with the answer keeps room that such ones cannot take.
   */
  crowded(): boolean;
  /** No new connections; open ones go on. */
  stopListening(): void;
  /** Waits for the open connections to end, at most `LINGER_MS`, then cuts what is left. */
  close(): Promise<void>;
}

/** Opens the listener, on a port that `findFreePort` has tried. */
export function createServer(options: ServerOptions): Server {
  const app =
    options.tls === undefined
      ? App()
      : SSLApp({ cert_file_name: options.tls.cert, key_file_name: options.tls.key });
  const live = { open: 0, openedTotal: 0, refusedTotal: 0 };
  let handler: RequestHandler = answerNotReady;
  watchConnections(app, options, live);
  app.any('/*', (response, request) => handler(response, request));

  let listening: us_listen_socket | undefined = listen(app, options.host, options.port);
  const stopListening = () => {
    if (listening !== undefined) us_listen_socket_close(listening);
    listening = undefined;
  };
  let closed = false;
  return {
    port: us_socket_local_port(listening as unknown as Parameters<typeof us_socket_local_port>[0]),
    serve(next) {
      handler = next;
    },
    counters: () => ({ ...live }),
    crowded: () => live.open > options.connectionsMax() * CROWDED_SHARE,
    stopListening,
    async close() {
      stopListening();
      for (let waitedMs = 0; live.open > 0 && waitedMs < LINGER_MS; waitedMs += POLL_MS) {
        await new Promise((resolve) => setTimeout(resolve, POLL_MS));
      }
      if (!closed) app.close();
      closed = true;
    },
  };
}

/**
 * The port to listen on; for 0 one that the system picks. uWS binds either exclusively, and then a restart fails for a
 * minute while old connections are in TIME_WAIT, or with SO_REUSEPORT, and then a second process would quietly share
 * the port. So a socket that may reuse an address but not share it tries first; port 0 is made a number here because
 * uWS sets no option at all on it, which a restart on the same port would feel. Rejects with `ListenError`.
 */
export async function findFreePort(host: string, port: number): Promise<number> {
  const probe = createProbe();
  await new Promise<void>((resolve, reject) => {
    probe.once('error', (error: NodeJS.ErrnoException) =>
      reject(new ListenError(host, port, error.code ?? '')),
    );
    probe.listen({ host, port, exclusive: true }, resolve);
  });
  const address = probe.address();
  await new Promise((resolve) => probe.close(resolve));
  return typeof address === 'object' && address !== null ? address.port : port;
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
function watchConnections(
  app: TemplatedApp,
  options: ServerOptions,
  live: { open: number; openedTotal: number; refusedTotal: number },
): void {
  const onChange = (response: HttpResponse, change: number): void => {
    if (change !== 1) {
      live.open -= 1;
      return;
    }
    live.open += 1;
    live.openedTotal += 1;
    const address = readAddress(response.getRemoteAddress());
    if (options.admits?.(address, live.open) === false || live.open > options.connectionsMax()) {
      live.refusedTotal += 1;
      response.close();
      return;
    }
    options.onOpen?.(address);
  };
  app.filter((response, change) => onChange(response, Number(change)));
}

/** Only between the listener's opening and `serve`. */
function answerNotReady(response: HttpResponse): void {
  response.writeStatus('503 Service Unavailable').writeHeader('Retry-After', '1').end('', true);
}

/** Newer builds of uWebSockets.js name the peer's port; the pinned one does not. Asked of the first response alone. */
let portIsNamed: boolean | undefined;

export function remotePortOf(response: HttpResponse): number | undefined {
  portIsNamed ??= typeof response['getRemotePort'] === 'function';
  if (!portIsNamed) return undefined;
  const port: unknown = response['getRemotePort']();
  return typeof port === 'number' ? port : undefined;
}
