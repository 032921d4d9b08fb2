/** Types of a request's body as a route reads it: piece by piece, with back-pressure. */

/** Takes the bytes of a request's body as they arrive. */
export interface IncomingSink {
  /** `bytes` is valid only during the call. Pieces may still arrive after `pause`, and must be taken. */
  data(bytes: Uint8Array): void;
  /** The body is complete. */
  end(): void;
  /** The client left, or sent nothing for 30 s while it was not paused. Nothing follows. */
  lost(): void;
}

export type PrebufferResult = 'enough' | 'gone';

/** The body of a request on a route with `body: 'stream'`. Until `read`, pieces are kept within the bound on bodies. */
export interface IncomingBody {
  /** `Content-Length`; undefined for a chunked body. */
  readonly declaredBytes: number | undefined;
  /**
   * Passes the buffered pieces and all later ones to the sink. Called once. Invites the body, unless `early`: then it may
   * still be refused.
   */
  read(sink: IncomingSink, early?: 'early'): void;
  /** The body is wanted: a client that waits for `100 Continue` gets it. */
  sendContinue(): void;
  /** Asks the client to wait. Not immediate: uWS may still deliver megabytes (docs/optimizations.md, `SO_RCVBUF`). */
  pause(): void;
  resume(): void;
  /** Discards the rest; the sink receives nothing more. An answer before the end of the body does so itself. */
  discard(): void;
}

/** A body that can be buffered before it is read. */
export interface PrebufferableBody extends IncomingBody {
  /** All of it has arrived. */
  readonly ended: boolean;
  /**
   * Invites the body, and buffers up to `sizeBytes` and one more piece until it is read. `ready` is called once: with 'enough' when they
   * or the whole body have arrived, with 'gone' when nothing more will arrive.
   */
  prebuffer(sizeBytes: number, ready: (found: PrebufferResult) => void): void;
}
