/** What a disk or a storage server says when it fails, turned into rows of the error table. */
import { isNoRoom } from '../../../domain/disk-faults.ts';
import { GatewayError } from '../../../domain/errors.ts';
import { MINUTE_MS } from '../../../domain/time.ts';
import type { StorageFaultListener } from './port.ts';

function messageOf(error: unknown): string {
  if (typeof error !== 'object' || error === null || !('message' in error)) return String(error);
  return String(error.message);
}

/** An upload refused for want of room is told once in so long: a full disk refuses every one. */
const FULL_REPORT_INTERVAL_MS = MINUTE_MS;

export interface FullListener {
  readonly onFull: StorageFaultListener;
  /** Milliseconds that only rise. */
  readonly elapsed: () => number;
}

/** The failures of one storage: told to the operator, counted, and thrown on as `StorageFull` or `FileStorageFailed`. */
export class StorageFaults {
  readonly #listener: StorageFaultListener;
  readonly #full: FullListener | undefined;
  #fullReportedMs = Number.NEGATIVE_INFINITY;
  failed = 0;
  full = 0;

  constructor(listener: StorageFaultListener, full?: FullListener) {
    this.#listener = listener;
    this.#full = full;
  }

  /** Runs `work`; what it throws leaves as a row of the table. `doing` says what failed, for the operator. */
  async guard<T>(doing: string, work: () => Promise<T>): Promise<T> {
    try {
      return await work();
    } catch (error) {
      throw this.failure(doing, error);
    }
  }

  failure(doing: string, error: unknown): GatewayError {
    if (error instanceof GatewayError) {
      if (error.row === 'StorageFull') this.#refusedForRoom(doing);
      return error;
    }
    this.#listener(`${doing}: ${messageOf(error)}`);
    if (isNoRoom(error)) {
      this.full += 1;
      return new GatewayError('StorageFull');
    }
    this.failed += 1;
    return new GatewayError('FileStorageFailed');
  }

  /** The free-space check itself said no: nothing failed, but somebody has to make room. */
  #refusedForRoom(doing: string): void {
    this.full += 1;
    if (this.#full === undefined) return;
    const nowMs = this.#full.elapsed();
    if (nowMs - this.#fullReportedMs < FULL_REPORT_INTERVAL_MS) return;
    this.#fullReportedMs = nowMs;
    this.#full.onFull(`${doing}: an upload was refused, ${this.full} since the start`);
  }
}
