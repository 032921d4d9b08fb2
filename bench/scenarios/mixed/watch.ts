/** The gateway over the time of a mixed load: processor, memory and journal, once a second. */
import { readMetric } from '../../measure/metrics.ts';
import { costOf } from '../../measure/process-cost.ts';
import { median } from '../../measure/statistics.ts';

const EVERY_MS = 1_000;
const SECOND_MS = 1_000;
/** Samples at the beginning and at the end that are compared. */
const PART = 0.2;

export interface WatchSample {
  readonly atS: number;
  /** Share of one core. */
  readonly cpu: number;
  readonly rssBytes: number;
  readonly journalBytes: number;
}

export class Watch {
  readonly #pid: number;
  readonly #internal: string;
  readonly #startMs = performance.now();
  readonly #timer: NodeJS.Timeout;
  readonly samples: WatchSample[] = [];
  #last: { readonly atMs: number; readonly cpuMs: number } | undefined;

  constructor(pid: number, internal: string) {
    this.#pid = pid;
    this.#internal = internal;
    this.#timer = setInterval(() => void this.#look(), EVERY_MS);
  }

  stop(): void {
    clearInterval(this.#timer);
  }

  async #look(): Promise<void> {
    const cost = costOf(this.#pid);
    if (cost === undefined) return;
    const atMs = performance.now();
    const { cpuMs, rssBytes } = cost;
    const last = this.#last;
    this.#last = { atMs, cpuMs };
    const journalBytes = await journalBytesOf(this.#internal);
    if (last === undefined) return;
    const cpu = (cpuMs - last.cpuMs) / (atMs - last.atMs);
    this.samples.push({ atS: (atMs - this.#startMs) / SECOND_MS, cpu, rssBytes, journalBytes });
  }
}

/** The file with the room that was made ahead; NaN when the listener does not answer. */
function journalBytesOf(internal: string): Promise<number> {
  return readMetric(internal, 'gatehouse_journal_file_bytes', {}).catch(() => Number.NaN);
}

export interface Growth {
  readonly from: number;
  readonly to: number;
}

/** The median of the last fifth beside that of the first, so that one full garbage collection does not count. */
export function growthOver(values: readonly number[]): Growth {
  const count = Math.max(1, Math.floor(values.length * PART));
  return { from: median(values.slice(0, count)), to: median(values.slice(-count)) };
}
