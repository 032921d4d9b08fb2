/**
 * Amount of random search in a run of the tests: runs of fast-check, seeds of simulators, kills and power cuts.
 * `GATEHOUSE_TEST_DEPTH` and `GATEHOUSE_TEST_SEED` choose depth and seed (docs/decisions/0079).
 */
import { randomInt } from 'node:crypto';
import t from 'tap';

/**
 * Part of the full counts: a run of each depth does one in so many. `gate` tries what `full` does, with fewer counts.
 */
const PARTS = { quick: 10, gate: 3, full: 1 } as const;
const DEPTHS = Object.keys(PARTS) as readonly DepthName[];
/** Seeds are positive integers below it: what fast-check and the simulators both take. */
const SEED_END = 2 ** 31;
/** Runs of a property whose test names no number, as fast-check has it. */
const RUNS = 100;

export type DepthName = keyof typeof PARTS;

export interface DepthChoice {
  readonly depth: DepthName;
  /** Undefined: a fresh one. */
  readonly seed: number | undefined;
}

export interface Depth {
  readonly depth: DepthName;
  /** True if tests are left out that take minutes, or need programs of others. */
  readonly isQuick: boolean;
  readonly seed: number;
  /** Kills, cuts, clients or rounds in place of the full number: all of them, a third or a tenth, rounded up. */
  count(full: number): number;
  /** Parameters of `fc.assert`; 100 runs unless told otherwise. */
  runs(full?: number): { readonly numRuns: number; readonly seed: number };
  /** Seeds of simulated histories: a full run without a seed begins with 1, and so does that of the gate; a quick one has its own seed. */
  seeds(full: number): readonly number[];
}

/** Reads the two variables; throws an `Error` that names what is wrong with one. */
export function readDepth(environment: Readonly<Record<string, string | undefined>>): DepthChoice {
  const { GATEHOUSE_TEST_DEPTH: word = 'quick', GATEHOUSE_TEST_SEED: digits } = environment;
  const depth = DEPTHS.find((each) => each === word);
  if (depth === undefined) throw new Error(`GATEHOUSE_TEST_DEPTH must be quick, gate or full, not "${word}"`);
  const seed = Number(digits);
  if (digits !== undefined && !(/^[1-9][0-9]*$/.test(digits) && seed < SEED_END))
    throw new Error(`GATEHOUSE_TEST_SEED must be an integer from 1 to ${SEED_END - 1}, not "${digits}"`);
  return { depth, seed: digits === undefined ? undefined : seed };
}

/** `tell` gets one line that says how to do the same again, once, when the seed is first asked for. */
export function createDepth({ depth, seed: given }: DepthChoice, tell: (line: string) => void): Depth {
  const seed = given ?? randomInt(1, SEED_END);
  let isTold = false;
  const told = () => {
    if (!isTold) tell(`again: GATEHOUSE_TEST_DEPTH=${depth} GATEHOUSE_TEST_SEED=${seed}`);
    isTold = true;
    return seed;
  };
  const count = (full: number) => Math.ceil(full / PARTS[depth]);
  return {
    depth,
    isQuick: depth === 'quick',
    get seed() {
      return told();
    },
    count,
    runs: (full = RUNS) => ({ numRuns: count(full), seed: told() }),
    seeds(full) {
      const first = depth !== 'quick' && given === undefined ? 1 : told();
      return Array.from({ length: count(full) }, (_, index) => first + index);
    },
  };
}

/** The depth of this process. */
export const depth = createDepth(readDepth(process.env), (line) => t.comment(line));
export const { count, runs, seeds } = depth;

/**
 * Seeds 1 to `last` at every depth: where a planted fault must show in one of them, or all that a small input may lead
 * to must be met.
 */
export function everySeed(last: number): readonly number[] {
  return Array.from({ length: last }, (_, index) => index + 1);
}
