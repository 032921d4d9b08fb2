/** The body of a client's request on its way to a module, at the module's pace. */
import type { GatheringBody, IncomingSink } from '../http/stream.ts';

/** The module's connection: false when it wants no more before it has drained. */
export type Write = (bytes: Buffer) => boolean;

export interface RequestBodyEvents {
  /** A piece came, or the module took what waited. */
  progress(): void;
  /** The client is gone, or what it sent is not what it declared. */
  lost(): void;
}

const CHUNKS_END = Buffer.from('0\r\n\r\n');

/**
 * Reads nothing until the module's connection is there: until then the body stays within the bound on bodies in flight.
 * A client that leaves in mid-body leaves the module a cut request, never a shorter one.
 */
export class RequestBody implements IncomingSink {
  readonly #incoming: GatheringBody;
  readonly #events: RequestBodyEvents;
  #write: Write | undefined;
  #left: number;
  #isFull = false;
  #isOver = false;
  /** The module has all of it. */
  isComplete = false;

  constructor(incoming: GatheringBody, events: RequestBodyEvents) {
    this.#incoming = incoming;
    this.#events = events;
    this.#left = incoming.declaredBytes ?? 0;
  }

  get size(): number | 'chunked' {
    return this.#incoming.declaredBytes ?? 'chunked';
  }

  /** The module takes what there is, and the next piece has not come. */
  get waitsForClient(): boolean {
    return this.#write !== undefined && !this.#isFull && !this.#isOver;
  }

  /** All of it is here: the module can have it at once. */
  get isWhole(): boolean {
    return this.#incoming.ended;
  }

  /** Reads on until so many bytes wait, or all are here, and calls `ready`; a client that is gone is `lost`. */
  gather(sizeBytes: number, ready: () => void): void {
    if (this.#isOver) return;
    this.#incoming.gather(sizeBytes, (found) => {
      if (found === 'enough') ready();
      else this.lost();
    });
  }

  /** The head of the request is written. */
  start(write: Write): void {
    if (this.#isOver) return;
    this.#write = write;
    this.#incoming.read(this);
  }

  drained(): void {
    if (!this.#isFull || this.#isOver) return;
    this.#isFull = false;
    this.#events.progress();
    this.#incoming.resume();
  }

  /** Nobody takes the rest. */
  discard(): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#incoming.discard();
  }

  data(bytes: Uint8Array): void {
    if (this.#isOver || bytes.length === 0) return;
    this.#events.progress();
    const isSized = this.size !== 'chunked';
    this.#left -= bytes.length;
    if (isSized && this.#left < 0) this.#lose();
    // A copy in any case: the piece is gone when this returns.
    else if (this.#write?.(isSized ? Buffer.from(bytes) : chunkOf(bytes)) === false) {
      this.#isFull = true;
      this.#incoming.pause();
    }
  }

  end(): void {
    if (this.#isOver) return;
    const isSized = this.size !== 'chunked';
    if (isSized && this.#left !== 0) {
      this.#lose();
      return;
    }
    this.#isOver = true;
    this.isComplete = true;
    if (!isSized) this.#write?.(CHUNKS_END);
  }

  lost(): void {
    if (!this.#isOver) this.#lose();
  }

  #lose(): void {
    this.discard();
    this.#events.lost();
  }
}

/** Size, bytes and line end in one piece, so that they leave together. */
function chunkOf(bytes: Uint8Array): Buffer {
  const size = `${bytes.length.toString(16)}\r\n`;
  const chunk = Buffer.allocUnsafe(size.length + bytes.length + 2);
  chunk.write(size, 'latin1');
  chunk.set(bytes, size.length);
  chunk.write('\r\n', size.length + bytes.length, 'latin1');
  return chunk;
}
