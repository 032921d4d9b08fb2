/** Targets of scenarios (docs/BENCHMARKS.md) as data, and the result of a run against them. */
import type { Comparison, Ratio } from '../measure/measure.ts';
import { type Interval, intervalOfSample } from '../measure/statistics.ts';

/** A ratio to another subject of the same run, or a figure that the scenario takes. */
export type Target = RatioTarget | FigureTarget;

export interface RatioTarget {
  /** The subject that is judged; the first one unless named. */
  readonly of?: string;
  /** The other subject's name. */
  readonly against: string;
  /** Rates of neighbouring rounds, or processor time of one answer. */
  readonly by: 'rate' | 'processor time';
  readonly atLeast?: number;
  readonly atMost?: number;
  /** The 95 % interval reaches this: the rounds do not show that it is less. */
  readonly reaches?: number;
  /** The line of the design's table. */
  readonly row: string;
}

export interface FigureTarget {
  readonly figure: string;
  /** Not judged where the run does not take the figure. */
  readonly whereTaken?: true;
  readonly atLeast?: number;
  readonly atMost?: number;
  readonly row: string;
}

/** A single number of a scenario beside its rates: memory a connection, the event loop's delay. */
export interface Figure {
  readonly name: string;
  /** `us`, `ms`, `KiB`, `MiB`, … */
  readonly unit: string;
  /** The median, where each round has one. */
  readonly value: number;
  /** Its 95 % interval. */
  readonly from?: number;
  readonly to?: number;
}

/** The median of what each round has. */
export function figureOfRounds(name: string, unit: string, values: readonly number[]): Figure {
  const { median: value, from, to } = intervalOfSample(values);
  return { name, unit, value, from, to };
}

export interface Wanted {
  readonly atLeast?: number;
  readonly atMost?: number;
  /** Least value of the interval's upper end. */
  readonly reaches?: number;
}

export interface Judged {
  readonly row: string;
  /** `gatehouse / nginx`, `RSS a connection`. */
  readonly what: string;
  /** `rate`, `processor time`, or the figure's unit. */
  readonly by: string;
  readonly wanted: Wanted;
  readonly value: number | undefined;
  /** The 95 % interval of the value. */
  readonly from: number | undefined;
  readonly to: number | undefined;
  readonly verdict: 'met' | 'missed' | 'not measured';
  /** The target lies within the interval: another run may say otherwise. */
  readonly withinInterval: boolean;
}

export function judge(
  targets: readonly Target[],
  comparison: Comparison,
  figures: readonly Figure[],
): Judged[] {
  const first = comparison.subjects[0]?.name ?? '';
  return targets.flatMap((target) => {
    if (!('figure' in target)) return [judgeRatio(target, first, comparison.ratios)];
    const figure = figures.find(({ name }) => name === target.figure);
    return figure === undefined && target.whereTaken === true ? [] : [judgeFigure(target, figure)];
  });
}

function judgeRatio(target: RatioTarget, first: string, ratios: readonly Ratio[]): Judged {
  const of = target.of ?? first;
  const ratio = ratios.find((each) => each.of === of && each.against === target.against);
  const spread = target.by === 'rate' ? ratio?.rate : ratio?.processorTime;
  const what = `${of} / ${target.against}`;
  return judged(target.row, what, target.by, wantedOf(target), spread);
}

function judgeFigure(target: FigureTarget, figure: Figure | undefined): Judged {
  const spread =
    figure === undefined
      ? undefined
      : {
          median: figure.value,
          from: figure.from ?? figure.value,
          to: figure.to ?? figure.value,
        };
  return judged(target.row, target.figure, figure?.unit ?? '', wantedOf(target), spread);
}

function wantedOf({ atLeast, atMost, reaches }: Wanted): Wanted {
  return {
    ...(atLeast === undefined ? {} : { atLeast }),
    ...(atMost === undefined ? {} : { atMost }),
    ...(reaches === undefined ? {} : { reaches }),
  };
}

function judged(
  row: string,
  what: string,
  by: string,
  wanted: Judged['wanted'],
  spread: Pick<Interval, 'median' | 'from' | 'to'> | undefined,
): Judged {
  const { atLeast = Number.NEGATIVE_INFINITY, atMost = Number.POSITIVE_INFINITY } = wanted;
  const { reaches = Number.NEGATIVE_INFINITY } = wanted;
  const good = (value: number) => value >= atLeast && value <= atMost;
  const measured = spread !== undefined && Number.isFinite(spread.median);
  return {
    row,
    what,
    by,
    wanted,
    value: measured ? spread.median : undefined,
    from: measured ? spread.from : undefined,
    to: measured ? spread.to : undefined,
    verdict: measured ? (good(spread.median) && spread.to >= reaches ? 'met' : 'missed') : 'not measured',
    withinInterval:
      measured && (good(spread.from) !== good(spread.to) || (spread.from < reaches && spread.to >= reaches)),
  };
}
