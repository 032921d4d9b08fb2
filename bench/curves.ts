/** Cost as work grows: the same request measured at several sizes of something, as lines for a chart. */
import { type Comparison, type Measured, median, processorTimeOf } from './measure.ts';
import type { LoadReport } from './plan.ts';
import type { Axis, Series } from './scenario.ts';
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

/** How many times the first point's processor time the last one's is. */
export function growthOf(comparison: Comparison, { label, points }: CurveLine): Figure {
  const at = (point: CurvePoint | undefined) =>
    comparison.subjects.find(({ name }) => name === point?.subject)?.rounds ?? [];
  const [first, last] = [at(points[0]), at(points.at(-1))];
  const ratios = last.map(
    (round, index) =>
      cpuUsOfRound(round.details, round.cpuUsPerAnswer) /
      cpuUsOfRound(first[index]?.details, first[index]?.cpuUsPerAnswer),
  );
  const known = ratios.filter((ratio) => Number.isFinite(ratio));
  return {
    name: growthName(label, points),
    unit: 'x',
    value: known.length === 0 ? Number.NaN : median(known),
    ...(known.length === 0 ? {} : { lowest: Math.min(...known), highest: Math.max(...known) }),
  };
}

export function growthName(label: string, points: readonly CurvePoint[]): string {
  const [first, last] = [points[0], points.at(-1)].map((point) => (point?.x ?? 0).toLocaleString('en'));
  return `${label}: processor time at ${last} over that at ${first}`;
}

/** Microseconds of processor for one answer while measuring; with the warm-up where only that is known. */
export function cpuUsOf(measured: Measured): number {
  const times = measured.rounds
    .map(({ details }) => cpuUsOfRound(details))
    .filter((us) => Number.isFinite(us));
  return times.length === 0 ? (processorTimeOf(measured) ?? Number.NaN) : median(times);
}

function cpuUsOfRound(
  details: Readonly<Record<string, unknown>> | undefined,
  otherwise = Number.NaN,
): number {
  const { cpuMs, answers } = (details ?? {}) as Partial<LoadReport>;
  return cpuMs === undefined || !answers ? otherwise : (cpuMs * 1_000) / answers;
}

function p99MsOf({ rounds }: Measured): number {
  const values = rounds.map(
    ({ details }) => ((details as Partial<LoadReport>).latencyUs?.p99 ?? Number.NaN) / 1_000,
  );
  return median(values.filter((ms) => Number.isFinite(ms)));
}
