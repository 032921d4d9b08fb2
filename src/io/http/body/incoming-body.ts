/** The body of a request as a route reads it: piece by piece, at the pace of its sink. */

/** Takes the bytes of a request's body as they arrive. */
export interface IncomingSink {
  /** `bytes` is valid during the call alone. Some pieces still arrive after `pause`: each has to be taken. */
  data(bytes: Uint8Array): void;
  /** The body is complete. */
  end(): void;
  /** The client went away, or sent nothing for 30 s while it was free to (files.md). Nothing follows. */
  lost(): void;
}

export type PrebufferResult = 'enough' | 'gone';

/** The body of a request on a route with `body: 'stream'`. Until `read`, what arrives is kept within the bound on bodies. */
export interface IncomingBody {
  /** `Content-Length`; undefined for a chunked body. */
  readonly declaredBytes: number | undefined;
  /** Hands over what is here and all that follows; once. */
  read(sink: IncomingSink): void;
  /** Asks the client to wait. Not immediate: megabytes may still arrive (files.md, uWS and bodies, item 1). */
  pause(): void;
  resume(): void;
  /** Throws the rest away; the sink hears nothing more. An answer before the end of the body does so by itself. */
  discard(): void;
}

/** A body that can be kept for a while before it is read. */
export interface PrebufferableBody extends IncomingBody {
  /** All of it is here. */
  readonly ended: boolean;
  /**
   * Keeps up to so many bytes, and a piece more, while nobody reads. `ready` is called once: when they are here, or all is;
   * with 'gone' when nothing more will come.
   */
  prebuffer(sizeBytes: number, ready: (found: PrebufferResult) => void): void;
}
