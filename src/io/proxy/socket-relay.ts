/**
 * One WebSocket: relays whole messages between a client and its module, with a bound on what waits in either direction, and
 * passes each side's end on to the other.
 */
import type { Lease } from '../../domain/limits/shares.ts';
import { CLOSE, type SocketEnd } from '../../domain/web-sockets.ts';
import type { ClientSocket, ClientSocketListener } from '../http/exchange/web-socket.ts';
import type { ModuleSocket, ModuleSocketListener } from '../http-client/module-socket.ts';
import type { RelayListener } from '../http-client/relay.ts';
import type { CallOutcome } from '../mcp/audit.ts';

/** Bytes that wait for a module. There is no way to let the client wait. */
const WAITING_MAX_BYTES = 1024 * 1024;

/** Session and lease of a socket. */
interface SocketOrigin {
  /** Undefined on public paths without a session. */
  readonly session: { readonly userId: string; readonly id: string } | undefined;
  readonly lease: Lease;
}

/** Callbacks of a relay to the sockets of a gateway. */
export interface RelayEvents {
  opened(relay: SocketRelay): void;
  /** Before a message is passed on. False: it may not pass, and the relay has been ended. */
  relays(relay: SocketRelay, direction: 'to_module' | 'to_client', bytes: number): boolean;
  /** Both sides are gone. `end` is undefined for one that never opened. */
  ended(relay: SocketRelay, end: SocketEnd | undefined): void;
}

const OUTCOMES: Partial<Record<SocketEnd, CallOutcome>> = {
  lost: 'cancelled',
  cut: 'failed',
  slow: 'failed',
  unavailable: 'failed',
};

export class SocketRelay implements ClientSocketListener {
  readonly origin: SocketOrigin;
  readonly #events: RelayEvents;
  #client: ClientSocket | undefined;
  #module: ModuleSocket | undefined;
  #isModuleOpen = false;
  /** The client's connection has switched, or never will. */
  #isSwitched = false;
  #end: SocketEnd | undefined;
  /** Close code of an end before the client's connection had switched. */
  #code: number = CLOSE.badGateway;
  /** Something came from that side since its last heartbeat, and when that was last so. */
  readonly heard = { client: true, module: true };
  readonly heardMs = { client: 0, module: 0 };
  isOver = false;
  /** Called with the outcome of a socket that the module accepted, and the time of its end. */
  onEnded: ((outcome: CallOutcome, utcMs: number) => void) | undefined;

  constructor(origin: SocketOrigin, events: RelayEvents) {
    this.origin = origin;
    this.#events = events;
  }

  attach(socket: ModuleSocket): void {
    this.#module = socket;
  }

  /** `opened` is called with the module's choice of a subprotocol when it has switched. */
  toModule(answer: RelayListener, opened: (protocol: string) => void): ModuleSocketListener {
    return {
      answer,
      opened: (protocol) => {
        this.#isModuleOpen = true;
        opened(protocol);
      },
      message: (bytes, isBinary) => this.#toClient(bytes, isBinary),
      heard: () => {
        this.heard.module = true;
      },
      closed: (code, reason) => this.#moduleClosed(code, reason),
    };
  }

  opened(socket: ClientSocket): void {
    this.#client = socket;
    this.#isSwitched = true;
    if (!this.#isModuleOpen) this.#end ??= 'cut';
    if (this.#end === undefined) this.#events.opened(this);
    if (this.#end === undefined) this.#module?.resume();
    else this.#endBoth(this.#code);
  }

  lost(): void {
    this.#isSwitched = true;
    this.#end ??= 'lost';
    this.#closeModule(CLOSE.broken);
    this.#settle();
  }

  message(bytes: Uint8Array, isBinary: boolean): void {
    this.heard.client = true;
    const waiting = this.#module?.waitingBytes ?? 0;
    if (waiting > 0 && waiting + bytes.length > WAITING_MAX_BYTES) {
      this.end('slow', CLOSE.tryLater);
      return;
    }
    if (this.#events.relays(this, 'to_module', bytes.length)) this.#module?.send(bytes, isBinary);
  }

  drained(): void {
    this.#module?.resume();
  }

  /** Called for each frame from the client. */
  onHeard(): void {
    this.heard.client = true;
  }

  closed(code: number, reason: Uint8Array): void {
    this.#client = undefined;
    if (this.#end === undefined) {
      this.#end = endOf(code);
      this.#closeModule(code, reason);
    }
    this.#settle();
  }

  ping(side: 'client' | 'module'): void {
    (side === 'client' ? this.#client : this.#module)?.ping();
  }

  /** Ends both sides with a code; a handshake that is under way comes first. */
  end(end: SocketEnd, code: number): void {
    if (this.#end !== undefined) return;
    this.#end = end;
    this.#code = code;
    if (this.#isSwitched) this.#endBoth(code);
  }

  /** Cuts what is left after its end. */
  cut(): void {
    this.#client?.cut();
    this.#module?.close(CLOSE.broken);
  }

  #toClient(bytes: Buffer, isBinary: boolean): void {
    this.heard.module = true;
    if (this.#client === undefined || this.#end !== undefined) return;
    if (!this.#events.relays(this, 'to_client', bytes.length)) return;
    if (!this.#client.send(bytes, isBinary)) this.#module?.pause();
  }

  #moduleClosed(code: number, reason: Buffer): void {
    this.#isModuleOpen = false;
    if (this.#end === undefined && this.#client !== undefined) {
      const isCut = code === CLOSE.broken;
      this.#end = isCut ? 'cut' : 'module';
      this.#client.end(isCut ? CLOSE.badGateway : code, isCut ? '' : reason);
    }
    this.#settle();
  }

  /** A module that takes too little would not read a close frame. */
  #endBoth(code: number): void {
    this.#closeModule(this.#end === 'slow' ? CLOSE.broken : code);
    this.#client?.end(code);
  }

  #closeModule(code: number, reason?: Uint8Array): void {
    if (this.#isModuleOpen) this.#module?.close(code, reason);
  }

  #settle(): void {
    if (this.isOver || !this.#isSwitched || this.#client !== undefined || this.#isModuleOpen) return;
    this.isOver = true;
    this.origin.lease.release();
    const wasOpened = this.onEnded !== undefined;
    this.#events.ended(this, wasOpened ? this.#end : undefined);
    this.onEnded?.((this.#end && OUTCOMES[this.#end]) ?? 'ok', Date.now());
  }
}

/** Returns the end of the client's side by its close code. The library has sent 1009 by itself. */
function endOf(code: number): SocketEnd {
  if (code === CLOSE.broken) return 'lost';
  return code === CLOSE.tooBig ? 'large' : 'client';
}
