/** Buffers the pieces of a body that arrive before its route reads them. */
import type { PrebufferResult } from './incoming-body.ts';

export class BodyPrebuffer {
  #pieces: Buffer[] = [];
  #sizeBytes = 0;
  #wantedBytes = 0;
  #ready: ((found: PrebufferResult) => void) | undefined;

  /** Sets the number of bytes to buffer. `notify` calls `ready` once. */
  expect(sizeBytes: number, ready: (found: PrebufferResult) => void): void {
    this.#wantedBytes = sizeBytes;
    this.#ready = ready;
  }

  /** True once as many bytes as expected are buffered. */
  get isEnough(): boolean {
    return this.#sizeBytes >= this.#wantedBytes;
  }

  add(chunk: ArrayBuffer): void {
    // A copy: the memory is gone when the callback of uWebSockets.js returns.
    this.#pieces.push(Buffer.from(Buffer.from(chunk)));
    this.#sizeBytes += chunk.byteLength;
  }

  /** Removes and returns all buffered pieces. */
  take(): Buffer[] {
    const pieces = this.#pieces;
    this.#pieces = [];
    this.#sizeBytes = 0;
    return pieces;
  }

  notify(found: PrebufferResult): void {
    const ready = this.#ready;
    this.#ready = undefined;
    ready?.(found);
  }
}
