/**
 * Bounds what a crash costs a running upload: its progress is saved every 4 MiB and every 2 s, one save at a time, and the
 * body waits before more than 8 MiB of it are unsaved, however long a save takes.
 */
import type { GatewayError } from '../../../domain/errors.ts';
import { SECOND_MS } from '../../../domain/time.ts';
import type { ThrottleTimer } from '../throttle.ts';

const READ_BYTES = 512 * 1024;
/** Bytes that the process took from the connection and that are not saved, at most: 8 MiB. */
export const UNSAVED_MAX_BYTES = 16 * READ_BYTES;
/** Half of it: the other half arrives during the save, and so the body seldom waits. */
const SAVE_BYTES = UNSAVED_MAX_BYTES / 2;
/** Then the body waits. uWS may deliver two more reads after the one that came to it (receive-buffer.ts). */
const WAIT_BYTES = UNSAVED_MAX_BYTES - 3 * READ_BYTES;
const SAVE_MS = 2 * SECOND_MS;

/** Bounds of the bytes that a body may be ahead of the saved ones. */
export interface ProgressBounds {
  readonly saveBytes: number;
  /** Then the body waits. */
  readonly waitBytes: number;
  /** Absent: no time makes a save due. */
  readonly saveMs?: number;
}

const PART_BOUNDS: ProgressBounds = { saveBytes: SAVE_BYTES, waitBytes: WAIT_BYTES, saveMs: SAVE_MS };

export interface ProgressOptions {
  readonly timer: ThrottleTimer;
  /** Those of a part unless given. */
  readonly bounds?: ProgressBounds;
  /** The first `sizeBytes` of the body are in the part and have this CRC-32. Resolves with an expected failure. */
  save(sizeBytes: number, crc32: number): Promise<GatewayError | undefined>;
  /** A save was refused while the body waited for it: the upload has to end. */
  onRefused(error: GatewayError): void;
}

/** The body whose progress it is. */
interface RunningBody {
  /** Received so far, whether written or not. */
  readonly sizeBytes: () => number;
  /** Bytes that wait in memory go to the part; `reached` follows when they are there. */
  readonly flush: () => void;
  /** It may have to wait no longer. */
  readonly flow: () => void;
}

export class UploadProgress {
  readonly #options: ProgressOptions;
  readonly #body: RunningBody;
  readonly #bounds: ProgressBounds;
  #cancel: () => void;
  #latest = { sizeBytes: 0, crc32: 0 };
  #savedBytes = 0;
  #isDue = false;
  #isSaving = false;
  #isOver = false;

  constructor(options: ProgressOptions, body: RunningBody) {
    this.#options = options;
    this.#body = body;
    this.#bounds = options.bounds ?? PART_BOUNDS;
    this.#cancel = this.#begin();
  }

  /** So much is unsaved that the client has to be paused. */
  get mustWait(): boolean {
    return this.#body.sizeBytes() - this.#savedBytes >= this.#bounds.waitBytes;
  }

  /** The bytes that were written without a gap, and their checksum. */
  reached(sizeBytes: number, crc32: number): void {
    this.#latest = { sizeBytes, crc32 };
    this.#save();
  }

  /** Stops the saves: the end of the upload saves its bytes. */
  end(): void {
    this.#isOver = true;
    this.#cancel();
  }

  #begin(): () => void {
    const { saveMs } = this.#bounds;
    if (saveMs === undefined) return () => undefined;
    return this.#options.timer(saveMs, () => {
      this.#cancel = this.#begin();
      this.#isDue = true;
      this.#body.flush();
      this.#save();
    });
  }

  #save(): void {
    const { sizeBytes, crc32 } = this.#latest;
    const newBytes = sizeBytes - this.#savedBytes;
    const isReady = newBytes >= this.#bounds.saveBytes || (this.#isDue && newBytes > 0);
    if (!isReady || this.#isSaving || this.#isOver) return;
    this.#isSaving = true;
    this.#isDue = false;
    void this.#options.save(sizeBytes, crc32).then((refused) => {
      this.#isSaving = false;
      if (refused === undefined) this.#onSaved(sizeBytes);
      else if (this.mustWait) this.#options.onRefused(refused);
    });
  }

  #onSaved(sizeBytes: number): void {
    this.#savedBytes = sizeBytes;
    this.#save();
    this.#body.flow();
  }
}
