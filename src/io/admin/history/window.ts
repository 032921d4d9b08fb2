/**
 * The samples of one step of time, in one typed array of a fixed size. Steps begin at multiples of their length since
 * 1970, so that those of several nodes lie upon each other. A step in which the process did not look is a gap.
 */
import { KEPT_SERIES } from './series.ts';

const ROWS = KEPT_SERIES.length;

export class HistoryWindow {
  readonly stepMs: number;
  readonly steps: number;
  /** Row by row; a step has the column of its number modulo `steps`. */
  readonly #values: Float32Array;
  /** Number of the step in each column; -1 without one. */
  readonly #numbers: Float64Array;
  /** Counters when the open step began. */
  readonly #base = new Float64Array(ROWS);
  /** Sums of levels and largest peaks of the open step. */
  readonly #gathered = new Float64Array(ROWS);
  #looks = 0;
  #open = -1;
  #beganMs = 0;

  constructor(stepMs: number, steps: number) {
    this.stepMs = stepMs;
    this.steps = steps;
    this.#values = new Float32Array(ROWS * steps);
    this.#numbers = new Float64Array(steps).fill(-1);
  }

  get sizeBytes(): number {
    return (
      this.#values.byteLength + this.#numbers.byteLength + this.#base.byteLength + this.#gathered.byteLength
    );
  }

  /** `now`: by row of `KEPT_SERIES`; NaN where the gateway has no such part. */
  look(now: readonly number[], nowMs: number): void {
    const step = Math.floor(nowMs / this.stepMs);
    if (this.#open < 0 || step < this.#open) this.#begin(now, step, nowMs);
    for (const [at, value] of now.entries()) {
      const before = this.#gathered[at] as number;
      this.#gathered[at] = KEPT_SERIES[at]?.kind === 'peak' ? Math.max(before, value) : before + value;
    }
    this.#looks += 1;
    if (step === this.#open) return;
    this.#close(now, nowMs);
    this.#begin(now, step, nowMs);
  }

  /** So many samples of a row from step `first` on, at most `steps`; NaN in gaps. */
  read(at: number, first: number, length: number): number[] {
    return Array.from({ length }, (_, offset) => {
      const column = (first + offset) % this.steps;
      const isThere = this.#numbers[column] === first + offset;
      return isThere ? (this.#values[at * this.steps + column] as number) : Number.NaN;
    });
  }

  /** The number of the newest step of which there may be a sample. */
  newest(nowMs: number): number {
    return Math.floor(nowMs / this.stepMs) - 1;
  }

  #begin(now: readonly number[], step: number, nowMs: number): void {
    this.#base.set(now);
    this.#gathered.fill(0);
    this.#looks = 0;
    this.#open = step;
    this.#beganMs = nowMs;
  }

  #close(now: readonly number[], nowMs: number): void {
    const column = this.#open % this.steps;
    const seconds = Math.max(1, nowMs - this.#beganMs) / 1000;
    for (const [at, { kind }] of KEPT_SERIES.entries()) {
      const grown = Math.max(0, (now[at] as number) - (this.#base[at] as number));
      const gathered = this.#gathered[at] as number;
      const samples = { rate: grown / seconds, count: grown, level: gathered / this.#looks, peak: gathered };
      this.#values[at * this.steps + column] = samples[kind];
    }
    this.#numbers[column] = this.#open;
  }
}
