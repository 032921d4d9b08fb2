/**
 * Bodies that are never held whole, in both directions: uploads and proxied requests come in as an `IncomingBody`,
 * downloads, proxied answers and event streams leave through a `StreamReply`. Types and the reply class; incoming.ts
 * and outgoing.ts do the work.
 */
import type { ErrorName } from '../../domain/errors.ts';
import type { IncomingSink } from './body/incoming-body.ts';
import { type HeaderList, Reply } from './route.ts';

/** What is still to come of a body that nobody wants any more. */
export interface RemainingBody {
  /** The rest goes to this sink; whoever read before hears nothing more. */
  divert(sink: IncomingSink): void;
  discard(): void;
  /** The answer is complete: the rest is thrown away, and the response may not be touched any more. */
  answered(): void;
  /** The client is gone. */
  lost(): void;
}

/** Where the bytes of an answer go. */
export interface OutgoingBody {
  /**
   * Hands bytes over. False: they are kept and will leave, but nothing more may be sent before `drained`, and the bytes
   * may not be reused before it. An empty piece is nothing.
   */
  send(bytes: Uint8Array | string): boolean;
  /** The answer is complete. Of an answer with a known length: once that many bytes were sent it ends by itself. */
  end(): void;
  /** Closes the connection because the promised body cannot be finished; the log names `error`. */
  cut(error?: ErrorName): void;
}

/** Fills an answer. */
export interface OutgoingSource {
  /** The head is written; send what there is. Of an empty answer too: then it is over already. */
  start(out: OutgoingBody): void;
  /** After a `send` that said no: its bytes have left and may be reused. Also after the last piece of a known length. */
  drained(): void;
  /** The client is gone, the answer was cut or never wanted (HEAD). Nothing may be sent any more. */
  lost(): void;
}

interface StreamOptions {
  readonly contentType?: string;
  readonly headers?: HeaderList;
  /** Bytes of the whole body; undefined: chunked. */
  readonly lengthBytes?: number;
  /** Lives on by design (server-sent events): no longer counted as a request in flight once it has started. */
  readonly longLived?: true;
}

/** An answer whose body comes from a source. To HEAD the pipeline sends its head alone, and the source hears `lost`. */
export class StreamReply extends Reply {
  readonly source: OutgoingSource;
  readonly lengthBytes: number | undefined;
  readonly longLived: boolean;

  constructor(status: number, source: OutgoingSource, options: StreamOptions = {}) {
    super(status, null, options.contentType, options.headers ?? []);
    this.source = source;
    this.lengthBytes = options.lengthBytes;
    this.longLived = options.longLived === true;
  }

  /** The answer to HEAD: the same head, and the length where it is known. */
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
