/**
 * Measures for how long the oldest row that is not applied here has been known. A node that is behind for too long
 * stops renewing its lease, so that no answer of another node waits for it.
 */

/** Positions that became known within so many milliseconds count as one. */
const GRAIN_MS = 10;
/** Moments kept; rows that become known later count from the newest one. */
const KNOWN_MAX = 256;

interface Known {
  position: number;
  readonly sinceMs: number;
}

export class Lag {
  /** Rising positions, each with the time since which all rows up to it are known. */
  readonly #known: Known[] = [];

  /** The log has rows up to this position. */
  saw(position: number, applied: number, nowMs: number): void {
    const newest = this.#known.at(-1);
    if (position <= (newest?.position ?? applied)) return;
    const isNear = nowMs - (newest?.sinceMs ?? 0) < GRAIN_MS || this.#known.length >= KNOWN_MAX;
    if (newest !== undefined && isNear) newest.position = position;
    else this.#known.push({ position, sinceMs: nowMs });
  }

  /** Everything up to this position is applied. */
  applied(position: number): void {
    while ((this.#known[0]?.position ?? Number.POSITIVE_INFINITY) <= position) this.#known.shift();
  }

  /** Rows that are known and come after this position, up to which all are applied. */
  rowsAfter(applied: number): number {
    return Math.max(0, (this.#known.at(-1)?.position ?? applied) - applied);
  }

  behindMs(nowMs: number): number {
    const oldest = this.#known[0];
    return oldest === undefined ? 0 : nowMs - oldest.sinceMs;
  }
}
