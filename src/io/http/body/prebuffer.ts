/** Pieces of a body that arrived before its route reads: kept up to what somebody waits for. */
import type { PrebufferResult } from './incoming-body.ts';

export class BodyPrebuffer {
  #pieces: Buffer[] = [];
  #sizeBytes = 0;
  #wantedBytes = 0;
  #ready: ((found: PrebufferResult) => void) | undefined;

  /** `ready` is called once, by `tell`. */
  expect(sizeBytes: number, ready: (found: PrebufferResult) => void): void {
    this.#wantedBytes = sizeBytes;
    this.#ready = ready;
  }

  /** No more is wanted before the body is read. */
  get isEnough(): boolean {
    return this.#sizeBytes >= this.#wantedBytes;
  }

  add(chunk: ArrayBuffer): void {
    // A copy: the memory is gone when the callback of uWebSockets.js returns.
    this.#pieces.push(Buffer.from(Buffer.from(chunk)));
    this.#sizeBytes += chunk.byteLength;
  }

  /** All that is kept; nothing is left. */
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
