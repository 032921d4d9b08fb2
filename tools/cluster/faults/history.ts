/** Acts of clients and faults of a run, in order: printed when a promise is broken. */

/** Older ones are dropped. */
const ENTRIES_MAX = 100_000;
/** Entries of one account in a report. */
const SHOWN_MAX = 80;

/** Faults are of no account. */
export const FAULT = 'fault';

interface HistoryEntry {
  readonly atMs: number;
  readonly who: string;
  readonly text: string;
}

export class FaultHistory {
  readonly #beganMs = performance.now();
  #entries: HistoryEntry[] = [];

  get nowMs(): number {
    return Math.round(performance.now() - this.#beganMs);
  }

  add(who: string, text: string): void {
    this.#entries.push({ atMs: this.nowMs, who, text });
    if (this.#entries.length > ENTRIES_MAX) this.#entries = this.#entries.slice(ENTRIES_MAX / 2);
  }

  /** The newest lines about an account, with the faults between them. */
  about(who: string): readonly string[] {
    const lines = this.#entries.filter((each) => each.who === who || each.who === FAULT);
    return lines.slice(-SHOWN_MAX).map(({ atMs, who: name, text }) => `${atMs} ms ${name}: ${text}`);
  }
}
