/**
 * The module's side of a WebSocket: a connection of its own, whole messages without compression, flow control and the end.
 * An answer other than 101 is streamed to the listener of a relayed call.
 */
import type { IncomingMessage } from 'node:http';
import { createRequire } from 'node:module';
import type { WebSocket } from 'ws';
import { CLOSE, MESSAGE_MAX_BYTES } from '../../domain/web-sockets.ts';
import { answerFault, contentTypeOf } from './attempt.ts';
import { type Address, openSocket } from './connection.ts';
import { isHopByHop } from './header-names.ts';
import { headersOfLines } from './headers.ts';
import type { RelayFlow, RelayListener } from './relay.ts';
import type { RequestLine } from './request-head.ts';
import type { ModuleError } from './types.ts';

/** Wait for the module's close frame, or for the end of its connection after it. */
const CLOSE_TIMEOUT_MS = 2_000;

export interface UpgradeRequest extends RequestLine {
  /** Subprotocols that the client offers, each once. */
  readonly protocols: readonly string[];
  /** Maximum silence before the module's answer, and within one. */
  readonly timeoutMs: number;
}

/** `answer` alone, or `opened` first and `closed` last. */
export interface ModuleSocketListener {
  /** The module's answer where it is no upgrade, and every failure before one. */
  readonly answer: RelayListener;
  /** The connection is paused. `protocol`: the module's choice; '' for none. */
  opened(protocol: string): void;
  message(bytes: Buffer, isBinary: boolean): void;
  /** A ping, or an answer to one. */
  heard(): void;
  /** Called like `ClientSocketListener.closed`. `CLOSE.broken` also after frames that are not those of RFC 6455. */
  closed(code: number, reason: Buffer): void;
}

const require = createRequire(import.meta.url);
/** Loaded with the first socket, so that a start does not wait for it. */
const library = () => require('ws') as typeof import('ws');

/** The handshake has ended: with an answer, or with the reason why there is none. */
type HandshakeEnd = 'answered' | ModuleError;

export class ModuleSocket implements RelayFlow {
  readonly #socket: WebSocket;
  readonly #listener: ModuleSocketListener;
  readonly #settled: (end: HandshakeEnd) => void;
  readonly #timer: NodeJS.Timeout;
  #phase: 'connecting' | 'answering' | 'open' | 'over' = 'connecting';
  #answer: IncomingMessage | undefined;
  /** The module chose none of the subprotocols, which `ws` takes for a failure. */
  #choseNone = false;
  #isFaulty = false;

  /** `settled` is called once, when the module answered or cannot. Throws for a head that cannot be written. */
  constructor(
    request: UpgradeRequest,
    address: Address,
    listener: ModuleSocketListener,
    settled: (end: HandshakeEnd) => void,
  ) {
    this.#listener = listener;
    this.#settled = settled;
    const { url, protocols } = request;
    // The path is written as it is: `URL` would encode some of its characters.
    const target = url.pathname + url.search;
    const { WebSocket } = library();
    this.#socket = new WebSocket(url.origin, [...protocols], {
      headers: fieldsOf(request),
      maxPayload: MESSAGE_MAX_BYTES,
      perMessageDeflate: false,
      closeTimeout: CLOSE_TIMEOUT_MS,
      createConnection: () => openSocket(address),
      finishRequest(handshake) {
        handshake.path = target;
        handshake.end();
      },
    });
    this.#timer = setTimeout(() => this.#fail('ModuleTimedOut'), request.timeoutMs);
    this.#socket.on('upgrade', (response) => this.#chosen(response, protocols));
    this.#socket.on('unexpected-response', (_handshake, response) => this.#answered(response));
    this.#socket.on('open', () => this.#opened());
    this.#socket.on('message', (bytes, isBinary) => this.#listener.message(bytes, isBinary));
    this.#socket.on('ping', () => this.#listener.heard());
    this.#socket.on('pong', () => this.#listener.heard());
    this.#socket.on('error', () => this.#broken());
    this.#socket.on('close', (code, reason) => this.#closed(code, reason));
  }

  /** Bytes that wait for the module. */
  get waitingBytes(): number {
    return this.#socket.bufferedAmount;
  }

  /** The bytes are copied. */
  send(bytes: Uint8Array, isBinary: boolean): void {
    if (this.#phase === 'open') this.#socket.send(Buffer.from(bytes), { binary: isBinary });
  }

  ping(): void {
    if (this.#phase === 'open') this.#socket.ping();
  }

  pause(): void {
    if (this.#answer !== undefined) this.#answer.pause();
    else this.#socket.pause();
  }

  resume(): void {
    if (this.#answer !== undefined) this.#answer.resume();
    else this.#socket.resume();
  }

  /** The client left before the end of the handshake: the listener of the answer receives `failed('Aborted')`. */
  stop(): void {
    this.#fail('Aborted');
  }

  /** Sends a close frame, without a code for `CLOSE.none`; for `CLOSE.broken` the connection is cut. */
  close(code: number, reason: Uint8Array | string = ''): void {
    // The module's own close frame may wait behind messages that nothing reads any more.
    this.#socket.resume();
    if (code === CLOSE.broken) this.#socket.terminate();
    else if (code === CLOSE.none) this.#socket.close();
    else this.#socket.close(code, reason);
  }

  #chosen(response: IncomingMessage, protocols: readonly string[]): void {
    const [first] = protocols;
    if (first === undefined || response.headers['sec-websocket-protocol'] !== undefined) return;
    this.#choseNone = true;
    response.headers['sec-websocket-protocol'] = first;
  }

  #opened(): void {
    if (this.#phase !== 'connecting') return;
    this.#phase = 'open';
    clearTimeout(this.#timer);
    this.#socket.pause();
    this.#settled('answered');
    this.#listener.opened(this.#choseNone ? '' : this.#socket.protocol);
  }

  #answered(response: IncomingMessage): void {
    if (this.#phase !== 'connecting') return;
    const { statusCode: status = 0, headers } = response;
    const contentEncoding = headers['content-encoding'] ?? '';
    if (status < 200 || status > 599 || answerFault({ status, contentEncoding }) !== undefined) {
      this.#fail('ModuleFailed');
      return;
    }
    this.#phase = 'answering';
    this.#answer = response;
    this.#settled('answered');
    const { answer } = this.#listener;
    const contentType = contentTypeOf({ contentType: headers['content-type'] ?? '' });
    response.on('data', (bytes: Buffer) => {
      this.#timer.refresh();
      answer.data(bytes);
    });
    response.on('end', () => this.#end(() => answer.ended()));
    response.on('error', () => this.#fail('ModuleFailed'));
    const length = headers['content-length'];
    const fields = response.rawHeaders.map((text, at) => (at % 2 === 0 ? text.toLowerCase() : text));
    answer.head({
      status,
      contentType,
      lengthBytes: length === undefined ? undefined : Number(length),
      fields,
    });
  }

  /** A frame that breaks the protocol is followed by `close` with the code that was sent to the module. */
  #broken(): void {
    this.#isFaulty = true;
    if (this.#phase !== 'open') this.#fail('ModuleFailed');
  }

  #closed(code: number, reason: Buffer): void {
    if (this.#phase !== 'open') return;
    this.#phase = 'over';
    this.#listener.closed(this.#isFaulty ? CLOSE.broken : code, reason);
  }

  #fail(error: ModuleError): void {
    const wasSettled = this.#phase === 'answering';
    this.#end(() => {
      if (!wasSettled) this.#settled(error);
      this.#listener.answer.failed(error);
    });
  }

  /** The end of everything but an open connection. */
  #end(report: () => void): void {
    if (this.#phase === 'open' || this.#phase === 'over') return;
    this.#phase = 'over';
    clearTimeout(this.#timer);
    this.#socket.terminate();
    report();
  }
}

/** Fields of a handshake. Those of the WebSocket protocol are written by `ws`. */
function fieldsOf({ headers, lines = '' }: RequestLine): Record<string, string> {
  const fields = headersOfLines(lines);
  for (const [name, value] of Object.entries(headers)) if (!isHopByHop(name)) fields[name] = value;
  fields['accept-encoding'] = 'identity';
  return fields;
}
