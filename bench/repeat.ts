/** How far two runs of one command are apart: what a reader may believe of a ratio. */
import type { Ratio } from './measure.ts';
import type { BenchReport } from './report.ts';
import type { Spread } from './statistics.ts';
import type { Judged } from './targets.ts';

/** Further apart than this, one run alone is no verdict. */
export const APART_MAX = 0.1;

export interface Repeated {
  readonly scenario: string;
  /** `gatehouse / nginx`. */
  readonly what: string;
  readonly by: 'rate' | 'processor time';
  /** A target is judged by it. */
  readonly judged: boolean;
  /** Medians of the two runs. */
  readonly first: number;
  readonly second: number;
  /** The larger over the smaller, less one: 0.1 are ten percent. */
  readonly apart: number;
  /** Whether the 95 % intervals of both runs have a value in common: chance alone explains what is between them. */
  readonly overlap: boolean;
}

/** Every ratio that both runs have. Throws where the runs are of different commands. */
export function repeats(first: BenchReport, second: BenchReport): Repeated[] {
  const loads = [first, second].map(({ command }) => withoutFiles(command));
  if (loads[0] !== loads[1])
    throw new Error(`the runs are of different commands: ${first.command}; ${second.command}`);
  return first.scenarios.flatMap(({ name, ratios, targets }) => {
    const again = second.scenarios.find((scenario) => scenario.name === name)?.ratios ?? [];
    return ratios.flatMap((ratio) => {
      const same = again.find(({ of, against }) => of === ratio.of && against === ratio.against);
      return same === undefined ? [] : pairs(name, targets, ratio, same);
    });
  });
}

/** Where the report goes is no part of the load. */
function withoutFiles(command: string): string {
  return command.replace(/ --(json|html)[ =]\S+/g, '');
}

function pairs(scenario: string, targets: readonly Judged[], one: Ratio, other: Ratio): Repeated[] {
  const what = `${one.of} / ${one.against}`;
  const ways: [Repeated['by'], Spread | undefined, Spread | undefined][] = [
    ['rate', one.rate, other.rate],
    ['processor time', one.processorTime, other.processorTime],
  ];
  return ways.flatMap(([by, before, after]) => {
    const [first, second] = [before?.median, after?.median];
    // What was not finite is null in the JSON.
    if (before === undefined || after === undefined || !isPositive(first) || !isPositive(second)) return [];
    const apart = Math.max(first, second) / Math.min(first, second) - 1;
    const overlap = before.from <= after.to && after.from <= before.to;
    const judged = targets.some((target) => target.what === what && target.by === by);
    return [{ scenario, what, by, judged, first, second, apart, overlap }];
  });
}

function isPositive(value: number | null | undefined): value is number {
  return typeof value === 'number' && value > 0;
}
