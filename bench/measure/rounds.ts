/** When a comparison has had rounds enough. */
import type { Ratio } from './measure.ts';
import { uncertaintyOf } from './statistics.ts';

export interface RoundPlan {
  /** Fewer only where the deadline comes. */
  readonly least: number;
  /** Beyond `least` only while a ratio is less sure than `PRECISION`. */
  readonly most: number;
}

export interface RoundState {
  readonly done: number;
  /** Of `doubtOf`. */
  readonly doubt: number;
  /** No further round begins that would take longer, once there are `ROUNDS_MIN`. */
  readonly leftMs: number;
  /** What the last round took. */
  readonly roundMs: number;
}

/** Fewer say next to nothing of a median. */
export const ROUNDS_MIN = 5;
/** Half of the 95 % interval over the median. Narrower than two runs are alike: what drifts over minutes is in no interval. */
export const PRECISION = 0.02;

/** The least sure of all medians; 0 where there is no ratio, whose rounds nothing but `least` asks for. */
export function doubtOf(ratios: readonly Ratio[]): number {
  const spreads = ratios.flatMap(({ rate, processorTime }) =>
    processorTime === undefined ? [rate] : [rate, processorTime],
  );
  return Math.max(0, ...spreads.map(uncertaintyOf));
}

/** Whether one more round is due. */
export function goesOn({ least, most }: RoundPlan, { done, doubt, leftMs, roundMs }: RoundState): boolean {
  if (done >= most) return false;
  if (done >= Math.min(least, ROUNDS_MIN) && roundMs > leftMs) return false;
  return done < least || doubt > PRECISION;
}

/** How many there will be in all, for a bar: an interval narrows with the square root of the rounds. */
export function expectedRounds(
  { least, most }: RoundPlan,
  { done, doubt, leftMs, roundMs }: RoundState,
): number {
  if (done < ROUNDS_MIN) return least;
  const wanted = Number.isFinite(doubt) ? Math.ceil(done * (doubt / PRECISION) ** 2) : most;
  const room = roundMs > 0 ? done + Math.max(0, Math.floor(leftMs / roundMs)) : most;
  return Math.max(done, Math.min(most, room, Math.max(least, wanted)));
}
