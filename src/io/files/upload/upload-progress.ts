/**
 * Says when the progress of a running upload is to be saved, so that a crash costs at most a checkpoint: after 8 MiB, or after
 * 2 s of which something is left to save. One save at a time.
 */
import { SECOND_MS } from '../../../domain/time.ts';
import type { ThrottleTimer } from '../throttle.ts';

/** Bytes between two saves. */
const SAVE_BYTES = 8 * 1024 * 1024;
const SAVE_MS = 2 * SECOND_MS;

export interface ProgressOptions {
  readonly timer: ThrottleTimer;
  /** The first `sizeBytes` of the body are in the part and have this CRC-32. Never rejects for an expected failure. */
  save(sizeBytes: number, crc32: number): Promise<void>;
}

export class UploadProgress {
  readonly #options: ProgressOptions;
  readonly #flush: () => void;
  #cancel: () => void;
  #latest = { sizeBytes: 0, crc32: 0 };
  #savedBytes = 0;
  #isDue = false;
  #isSaving = false;
  #isOver = false;

  /** `flush`: bytes that wait in memory go to the part; `reached` follows when they are there. */
  constructor(options: ProgressOptions, flush: () => void) {
    this.#options = options;
    this.#flush = flush;
    this.#cancel = this.#begin();
  }

  /** The bytes that were written without a gap, and their checksum. */
  reached(sizeBytes: number, crc32: number): void {
    this.#latest = { sizeBytes, crc32 };
    this.#save();
  }

  /** What the upload leaves is saved by its end. */
  end(): void {
    this.#isOver = true;
    this.#cancel();
  }

  #begin(): () => void {
    return this.#options.timer(SAVE_MS, () => {
      this.#cancel = this.#begin();
      this.#isDue = true;
      this.#flush();
      this.#save();
    });
  }

  #save(): void {
    const { sizeBytes, crc32 } = this.#latest;
    const newBytes = sizeBytes - this.#savedBytes;
    const isReady = newBytes >= SAVE_BYTES || (this.#isDue && newBytes > 0);
    if (!isReady || this.#isSaving || this.#isOver) return;
    this.#isSaving = true;
    this.#isDue = false;
    this.#savedBytes = sizeBytes;
    void this.#options.save(sizeBytes, crc32).then(() => {
      this.#isSaving = false;
      this.#save();
    });
  }
}
