/**
 * Types of streamed bodies: uploads and proxied requests arrive as an `IncomingBody`; downloads, proxied answers and event
 * streams are sent by a `StreamReply`; an `UpgradeReply` opens a WebSocket. The work is done by body/incoming.ts and outgoing.ts.
 */
import type { ErrorName } from '../../../domain/errors.ts';
import type { IncomingSink } from '../body/incoming-body.ts';
import { type HeaderList, Reply } from '../table/route.ts';
import type { ClientSocketListener } from './web-socket.ts';

/** The unread rest of a request's body. */
export interface RemainingBody {
  /** Sends the rest to this sink; the former one receives nothing more. */
  divert(sink: IncomingSink): void;
  discard(): void;
  /** The answer is complete: discards the rest; the response may not be touched any more. */
  answered(): void;
  /** The client is gone. */
  lost(): void;
}

/** Takes the bytes of an answer. */
export interface OutgoingBody {
  /**
   * Sends bytes. False: they will be sent, but nothing more may be sent before `drained`, nor the bytes reused. An empty
   * piece has no effect.
   */
  send(bytes: Uint8Array | string): boolean;
  /** Ends the answer. One with a known length ends itself after that many bytes. */
  end(): void;
  /** Closes the connection because the promised body cannot be finished; the log names `error`. */
  cut(error?: ErrorName): void;
}

/** Produces the bytes of an answer. */
export interface OutgoingSource {
  /** The head is written; sending may begin. Also called for an empty answer, which is over already. */
  start(out: OutgoingBody): void;
  /**
   * Called after a `send` that returned false: its bytes were sent and may be reused. Also after the last piece of a
   * known length.
   */
  drained(): void;
  /** The client is gone, the answer was cut, or it is not needed (HEAD). Nothing may be sent any more. */
  lost(): void;
}

interface StreamOptions {
  readonly contentType?: string;
  readonly headers?: HeaderList;
  /** Bytes of the whole body; undefined: chunked. */
  readonly lengthBytes?: number;
  /** Milliseconds that a client may read nothing; about 10 s unless given. Takes effect with a length only. */
  readonly unreadMs?: number | undefined;
  /** Long-lived (server-sent events): not counted as a request in flight once it has started. */
  readonly longLived?: true;
}

/** An answer whose body comes from a source. For HEAD only the head is sent, and the source receives `lost`. */
export class StreamReply extends Reply {
  readonly source: OutgoingSource;
  readonly lengthBytes: number | undefined;
  readonly unreadMs: number | undefined;
  readonly longLived: boolean;

  constructor(status: number, source: OutgoingSource, options: StreamOptions = {}) {
    super(status, null, options.contentType, options.headers ?? []);
    this.source = source;
    this.lengthBytes = options.lengthBytes;
    this.unreadMs = options.unreadMs;
    this.longLived = options.longLived === true;
  }

  /** The answer to HEAD: the same head, with the length if known. */
  withoutBody(): Reply {
    return new Reply(this.status, null, this.contentType, this.headers, { lengthBytes: this.lengthBytes });
  }
}

/** An answer that is in memory as a whole. */
export class BytesSource implements OutgoingSource {
  readonly #bytes: Uint8Array;

  constructor(bytes: Uint8Array) {
    this.#bytes = bytes;
  }

  start(out: OutgoingBody): void {
    out.send(this.#bytes);
  }

  drained(): void {}
  lost(): void {}
}

/** Switches the connection to the WebSocket protocol. */
export class UpgradeReply extends Reply {
  readonly listener: ClientSocketListener;
  /** The subprotocol; '' for none. */
  readonly protocol: string;

  constructor(listener: ClientSocketListener, protocol: string) {
    super(101, null);
    this.listener = listener;
    this.protocol = protocol;
  }
}
