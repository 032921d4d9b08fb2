/**
 * The client's side of a WebSocket, between the library and the listener of a route. A throw of a listener is a bug: it is
 * reported, and the connection is closed.
 */
import { CLOSE, MESSAGE_MAX_BYTES } from '../../../domain/web-sockets.ts';

/** Sends to the client. Nothing may be called after `closed`. */
export interface ClientSocket {
  /** False: the message is buffered, and no more may be sent before `drained`. */
  send(message: Uint8Array, isBinary: boolean): boolean;
  ping(): void;
  /** Sends a close frame, without a code for `CLOSE.none`. Calls `closed` before it returns. */
  end(code: number, reason?: Uint8Array | string): void;
  /** Closes without a frame. Calls `closed` before it returns. */
  cut(): void;
}

/** `opened` first, or `lost` alone; `closed` last. */
export interface ClientSocketListener {
  opened(socket: ClientSocket): void;
  /** The connection ended before the answer. */
  lost(): void;
  /** The bytes are valid during this call only. */
  message(bytes: Uint8Array, isBinary: boolean): void;
  drained(): void;
  /** A ping, or an answer to one. */
  onHeard(): void;
  /** The code as received; `CLOSE.none` and `CLOSE.broken` stand for a close without a code and without a frame. */
  closed(code: number, reason: Uint8Array): void;
}

/** The library's socket, as far as it is used. */
interface LibrarySocket {
  send(message: Uint8Array, isBinary: boolean, compress: boolean): number;
  getBufferedAmount(): number;
  ping(): number;
  end(code?: number, reason?: Uint8Array | string): void;
  close(): void;
}

/** uWebSockets.js names a close frame with a code that it does not know so, and answers without a code. */
const UNKNOWN_CODE = 'Received invalid close payload';
/** Buffered bytes below which more may be sent. */
const DRAINED_BYTES = 64 * 1024;
/** Result of `send`: the message was buffered. */
const BUFFERED = 0;

/** One upgraded connection between the library and its listener. */
export class UpgradedConnection implements ClientSocket {
  /** Canonical address of the other side. */
  readonly peer: string;
  readonly #listener: ClientSocketListener;
  readonly #onBug: (error: unknown) => void;
  /** Undefined before `opened` and after `closed`: the library throws for a socket that is closed. */
  #socket: LibrarySocket | undefined;

  constructor(peer: string, listener: ClientSocketListener, onBug: (error: unknown) => void) {
    this.peer = peer;
    this.#listener = listener;
    this.#onBug = onBug;
  }

  opened(socket: LibrarySocket): void {
    this.#socket = socket;
    this.#guarded(() => this.#listener.opened(this));
  }

  received(bytes: ArrayBuffer, isBinary: boolean): void {
    if (bytes.byteLength > MESSAGE_MAX_BYTES) this.end(CLOSE.tooBig);
    else this.#guarded(() => this.#listener.message(new Uint8Array(bytes), isBinary));
  }

  /** From the library, whenever some bytes were taken. */
  drained(): void {
    if ((this.#socket?.getBufferedAmount() ?? 0) < DRAINED_BYTES)
      this.#guarded(() => this.#listener.drained());
  }

  heard(): void {
    this.#guarded(() => this.#listener.onHeard());
  }

  /** Called by the library, also for an end that this side began. */
  closed(code: number, reason: ArrayBuffer): void {
    this.#socket = undefined;
    const bytes = new Uint8Array(reason.slice(0));
    const isFrame = code === CLOSE.broken && Buffer.from(bytes).toString('latin1') === UNKNOWN_CODE;
    const hasReason = code !== CLOSE.broken;
    this.#guarded(() =>
      this.#listener.closed(isFrame ? CLOSE.none : code, hasReason ? bytes : new Uint8Array(0)),
    );
  }

  send(message: Uint8Array, isBinary: boolean): boolean {
    return this.#socket?.send(message, isBinary, false) !== BUFFERED;
  }

  ping(): void {
    this.#socket?.ping();
  }

  end(code: number, reason: Uint8Array | string = ''): void {
    if (code === CLOSE.none) this.#socket?.end();
    else this.#socket?.end(code, reason);
  }

  cut(): void {
    this.#socket?.close();
  }

  /** A throw may not cross the native frame of the library. */
  #guarded(call: () => void): void {
    try {
      call();
    } catch (error) {
      this.#onBug(error);
      this.cut();
    }
  }
}
