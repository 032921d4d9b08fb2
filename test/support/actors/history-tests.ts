/**
 * Tests of a simulation: no history breaks a promise, and each planted fault shows. By hand, one seed alone with its steps:
 * `node build/test/… SEED`; all of some: `… FIRST LAST`.
 */
import { relative } from 'node:path';
import t from 'tap';
import { depth, seeds } from '../depth.ts';
import { expectCaught } from '../planted-fault.ts';

/** Seeds within which a planted fault must show. */
const FAULT_SEEDS = 500;
const [first, last = first] = process.argv.slice(2).map(Number);

/** Seeds were chosen by hand: tests of planted faults are left out. */
export const isByHand = first !== undefined;

interface RunOptions<Fault, Figures> {
  readonly fault?: Fault;
  readonly figures?: Figures;
  readonly trace?: (line: string) => void;
}

interface HistoryTests<Fault extends string, Figures> {
  readonly seeds: readonly number[];
  /** Added up over all histories. */
  readonly figures: Figures;
  /** Names the test of each fault. */
  readonly catches: string;
  /** Each with a seed that shows it, tried before all others. */
  readonly faults: { readonly [fault in Fault]?: number };
  readonly simulate: (seed: number, options: RunOptions<Fault, Figures>) => Promise<string | undefined>;
}

/** So many seeds in a full run and, unless it is a part of them, in a quick one. */
export function seedsOf(full: number, quick?: number): readonly number[] {
  return depth.isQuick ? seeds(full).slice(0, quick) : seeds(full);
}

export function testHistories<Fault extends string, Figures>(
  name: string,
  { seeds, figures, catches, faults, simulate }: HistoryTests<Fault, Figures>,
): void {
  // Longer than tap's 30 s: the machine may be busy. Seeds that are chosen by hand take as long as they take.
  t.setTimeout(isByHand ? 0 : 600_000);
  t.test(name, async (t) => {
    const chosen = Array.from({ length: (last ?? 0) - (first ?? 0) + 1 }, (_, at) => (first ?? 0) + at);
    const histories = isByHand ? chosen : seeds;
    const isAlone = isByHand && first === last;
    const options = { figures, ...(isAlone && { trace: (line: string) => t.comment(line) }) };
    const startedMs = performance.now();
    for (const seed of histories) {
      const broken = await simulate(seed, options);
      if (broken === undefined) continue;
      t.fail(`seed ${seed}: ${broken}; node ${relative('.', process.argv[1] ?? '')} ${seed}`);
      return;
    }
    t.comment(`${Math.round((1000 * histories.length) / (performance.now() - startedMs))} seeds/s`);
    t.comment(`seeds ${histories[0]} to ${histories.at(-1)}: ${JSON.stringify(figures)}`);
    t.pass('no promise was broken');
  });
  if (isByHand) return;
  for (const [fault, shownBy] of Object.entries(faults) as [Fault, number][])
    t.test(`${catches} ${fault}`, (t) =>
      expectCaught(t, { last: FAULT_SEEDS, shownBy }, (seed) => simulate(seed, { fault })),
    );
}
