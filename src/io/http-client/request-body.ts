/** Streams the body of a client's request to a module, with back-pressure from the module. */
import type { IncomingSink, PrebufferableBody } from '../http/body/incoming-body.ts';
import type { StreamedBody, Write } from './connection.ts';

interface RequestBodyEvents {
  /** A piece arrived, or the module's connection drained. */
  progress(): void;
  /** The client disconnected, or the body differs from its declared length. */
  lost(): void;
}

const CHUNKS_END = Buffer.from('0\r\n\r\n');

/**
 * Reads nothing before the module's connection is assigned, so the bound on bodies in flight holds. When a client
 * disconnects in mid-body, the module sees an incomplete request, never a shorter complete one.
 */
export class RequestBody implements IncomingSink, StreamedBody {
  readonly #incoming: PrebufferableBody;
  readonly #events: RequestBodyEvents;
  #write: Write | undefined;
  #left: number;
  #isFull = false;
  #isOver = false;
  /** The whole body has been written to the module. */
  isComplete = false;

  constructor(incoming: PrebufferableBody, events: RequestBodyEvents) {
    this.#incoming = incoming;
    this.#events = events;
    this.#left = incoming.declaredBytes ?? 0;
  }

  get size(): number | 'chunked' {
    return this.#incoming.declaredBytes ?? 'chunked';
  }

  /** The module accepts bytes and the next piece has not arrived. */
  get waitsForClient(): boolean {
    return this.#write !== undefined && !this.#isFull && !this.#isOver;
  }

  get isWhole(): boolean {
    return this.#incoming.ended;
  }

  /** Buffers up to `sizeBytes` or the whole body, then calls `ready`; calls `lost` when the client disconnects. */
  gather(sizeBytes: number, ready: () => void): void {
    if (this.#isOver) return;
    this.#incoming.prebuffer(sizeBytes, (found) => {
      if (found === 'enough') ready();
      else this.lost();
    });
  }

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
    // Copied in any case: the piece is valid during this call only.
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

/** Chunk size, bytes and line end in one buffer, for a single write. */
function chunkOf(bytes: Uint8Array): Buffer {
  const size = `${bytes.length.toString(16)}\r\n`;
  const chunk = Buffer.allocUnsafe(size.length + bytes.length + 2);
  chunk.write(size, 'latin1');
  chunk.set(bytes, size.length);
  chunk.write('\r\n', size.length + bytes.length, 'latin1');
  return chunk;
}
