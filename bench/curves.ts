/** Cost as work grows: the same request measured at several sizes of something, as lines for a chart. */
import { type Comparison, type Measured, processorTimeOf } from './measure.ts';
import type { LoadReport } from './plan.ts';
import type { Axis, Series } from './scenario.ts';
import { median } from './statistics.ts';
import type { Figure } from './targets.ts';

export interface CurveLine {
  readonly label: string;
  readonly points: readonly CurvePoint[];
}

export interface CurvePoint {
  readonly x: number;
  /** Name of the subject that was measured there. */
  readonly subject: string;
}

/** Processor time, rate and p99 of the lines over `x`. */
export function chartsOf(comparison: Comparison, x: Axis, lines: readonly CurveLine[]): Series[] {
  const chart = (title: string, y: Axis, figureOf: (measured: Measured) => number): Series => ({
    title,
    x,
    y,
    lines: lines.map(({ label, points }) => ({
      label,
      points: points.flatMap(({ x: at, subject }) => {
        const measured = comparison.subjects.find(({ name }) => name === subject);
        const value = measured === undefined ? Number.NaN : figureOf(measured);
        return Number.isFinite(value) ? [[at, value] as const] : [];
      }),
    })),
  });
  return [
    chart('Processor time of an answer', { label: 'us' }, cpuUsOf),
    chart('Answers a second', { label: 'answers/s' }, ({ medianPerSecond }) => medianPerSecond),
    chart('p99', { label: 'ms', log: true }, p99MsOf),
  ];
}

/** The pair whose ratio `growthOf` reads: a comparison takes it, so that it has rounds enough. */
export function growthPair({ points }: CurveLine): { readonly of: string; readonly against: string } {
  return { of: points[0]?.subject ?? '', against: points.at(-1)?.subject ?? '' };
}

/** How many times the first point's processor time the last one's is. */
export function growthOf({ ratios }: Comparison, line: CurveLine): Figure {
  const { of, against } = growthPair(line);
  const growth = ratios.find((ratio) => ratio.of === of && ratio.against === against)?.processorTime;
  const name = growthName(line.label, line.points);
  if (growth === undefined) return { name, unit: 'x', value: Number.NaN };
  return { name, unit: 'x', value: growth.median, from: growth.from, to: growth.to };
}

export function growthName(label: string, points: readonly CurvePoint[]): string {
  const [first, last] = [points[0], points.at(-1)].map((point) => (point?.x ?? 0).toLocaleString('en'));
  return `${label}: processor time at ${last} over that at ${first}`;
}

/** Microseconds of processor for one answer. */
export function cpuUsOf(measured: Measured): number {
  return processorTimeOf(measured) ?? Number.NaN;
}

function p99MsOf({ rounds }: Measured): number {
  const values = rounds.map(
    ({ details }) => ((details as Partial<LoadReport>).latencyUs?.p99 ?? Number.NaN) / 1_000,
  );
  return median(values.filter((ms) => Number.isFinite(ms)));
}
