/** Maps failures of a disk or a storage server to errors of the error table. */
import { isNoRoom } from '../../../domain/disk-faults.ts';
import { GatewayError } from '../../../domain/errors.ts';
import { MINUTE_MS } from '../../../domain/time.ts';
import type { StorageFaultListener } from './port.ts';

function messageOf(error: unknown): string {
  if (typeof error !== 'object' || error === null || !('message' in error)) return String(error);
  return String(error.message);
}

/** Refusals for lack of space are logged at most once in this interval: a full disk refuses every upload. */
const FULL_REPORT_INTERVAL_MS = MINUTE_MS;

export interface FullListener {
  readonly onFull: StorageFaultListener;
  /** Monotonic milliseconds. */
  readonly elapsed: () => number;
}

/** Failures of one storage: logged, counted, and thrown as `StorageFull` or `FileStorageFailed`. */
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

  /** Runs `work` and maps its errors. `doing` names the operation in the log. */
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

  /** The free-space check refused: nothing failed, but the disk needs space. */
  #refusedForRoom(doing: string): void {
    this.full += 1;
    if (this.#full === undefined) return;
    const nowMs = this.#full.elapsed();
    if (nowMs - this.#fullReportedMs < FULL_REPORT_INTERVAL_MS) return;
    this.#fullReportedMs = nowMs;
    this.#full.onFull(`${doing}: an upload was refused, ${this.full} since the start`);
  }
}
