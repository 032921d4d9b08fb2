/** The report as text for a terminal: one table a scenario, then ratios, targets and what speaks against them. */
import { type Measured, processorTimeOf, type Ratio, type Spread } from './measure.ts';
import type { BenchOptions } from './options.ts';
import type { Participant } from './participants.ts';
import {
  type BenchReport,
  errorsOf,
  generatorLimited,
  loadOf,
  middleRound,
  type ScenarioReport,
} from './report.ts';
import type { Figure, Judged } from './targets.ts';

const MEBIBYTE = 1024 * 1024;

export function tables(report: BenchReport): string {
  const { generator, machine, scenarios, skipped } = report;
  const lines = [
    `${machine.cores} cores, ${machine.cpu}, Node ${machine.node}; the generator alone reaches ${rate(generator.ratePerSecond)}/s at ${percent(generator.busy)}`,
    ...scenarios.flatMap((scenario) => ['', ...scenarioLines(scenario)]),
    ...skipped.map(({ name, reason }) => `\n${name} left out: ${reason}`),
    ...failures(scenarios),
  ];
  return `${lines.join('\n')}\n`;
}

/** Names again at the end what failed, where nobody must scroll for it. */
function failures(scenarios: readonly ScenarioReport[]): string[] {
  const failed = scenarios.filter(({ failure }) => failure !== undefined).map(({ name }) => name);
  return failed.length === 0 || scenarios.length === 1 ? [] : ['', `FAILED: ${failed.join(', ')}`];
}

function scenarioLines(scenario: ScenarioReport): string[] {
  const { name, options, loadAverage, failure, subjects, ratios, targets, figures, participants } = scenario;
  const rows = [HEADINGS(scenario.unit), ...subjects.map(cellsOf)];
  return [
    `${name}: ${loopOf(options)}, ${options.rounds} interleaved rounds of ${options.durationMs / 1_000} s`,
    `one-minute load average: ${loadAverage.before.toFixed(2)} before, ${loadAverage.after.toFixed(2)} after`,
    ...(failure === undefined ? [] : [`FAILED: ${failure}`]),
    '',
    ...(subjects.length === 0 ? [] : [...align(rows), '']),
    ...ratios.map(ratioLine),
    ...figures.map(figureLine),
    ...targets.map(targetLine),
    ...participants.map(participantLine),
    ...scenario.warnings.map((warning) => `! ${warning}`),
    ...scenario.notes,
  ];
}

export const HEADINGS = (unit: string): string[] => [
  '',
  `${unit}/s`,
  'p50 ms',
  'p99 ms',
  'p99.9 ms',
  'CPU us',
  'RSS MiB',
  'generator',
  'errors',
];

/** One row of the table; empty cells where nothing is known. */
export function cellsOf(measured: Measured): string[] {
  const { name, medianPerSecond, rounds } = measured;
  const middle = middleRound(rounds);
  const load = loadOf(middle);
  return [
    name,
    rate(medianPerSecond),
    milliseconds(load?.latencyUs.p50),
    milliseconds(load?.latencyUs.p99),
    milliseconds(load?.latencyUs.p999),
    processorTimeOf(measured)?.toFixed(1) ?? '',
    middle?.rssBytes === undefined ? '' : (middle.rssBytes / MEBIBYTE).toFixed(0),
    load === undefined ? '' : `${percent(load.generatorBusy)}${generatorLimited(rounds) ? ' !' : ''}`,
    load === undefined ? '' : String(errorsOf(rounds).reduce((total, [, count]) => total + count, 0)),
  ];
}

export function loopOf({ connections, ratePerSecond, maxRatePerSecond }: BenchOptions): string {
  if (ratePerSecond !== undefined) return `open loop, ${ratePerSecond}/s over ${connections} connections`;
  const bound = maxRatePerSecond === undefined ? '' : `, at most ${maxRatePerSecond}/s`;
  return `closed loop, ${connections} connections${bound}`;
}

function ratioLine({ of, against, rate, processorTime }: Ratio): string {
  const time = processorTime === undefined ? '' : `; by processor time ${spread(processorTime)}`;
  return `${of} / ${against}: ${spread(rate)}${time}`;
}

function figureLine({ name, unit, value, lowest, highest }: Figure): string {
  const range =
    lowest === undefined || highest === undefined ? '' : ` (${number(lowest)} to ${number(highest)})`;
  return `${name}: ${number(value)} ${unit}${range}`;
}

function targetLine(judged: Judged): string {
  return `target: ${judged.what}${judged.by === 'rate' ? '' : `, ${judged.by}`}: ${wantedOf(judged)}: ${verdictOf(judged)}`;
}

export function wantedOf({ wanted: { atLeast, atMost } }: Judged): string {
  return [
    ...(atLeast === undefined ? [] : [`at least ${atLeast}`]),
    ...(atMost === undefined ? [] : [`at most ${atMost}`]),
  ].join(', ');
}

/** `met`, `missed`, with the doubt that the spread leaves. */
export function verdictOf({ verdict, withinSpread }: Judged): string {
  return withinSpread ? `${verdict}, within the spread of the rounds` : verdict;
}

function participantLine({ name, kind, version, leftOut, settings }: Participant): string {
  return leftOut === undefined
    ? `${kind} ${name} (${version}): ${settings}`
    : `left out: ${name} (${leftOut})`;
}

export function spread({ median, lowest, highest }: Spread): string {
  return `${median.toFixed(3)} (${lowest.toFixed(3)} to ${highest.toFixed(3)})`;
}

/** Three digits are enough to judge by. */
export function number(value: number): string {
  if (!Number.isFinite(value)) return '—';
  return Math.abs(value) >= 100 ? rate(value) : String(Number(value.toPrecision(3)));
}

export function rate(perSecond: number): string {
  return Math.round(perSecond).toLocaleString('en');
}

export function percent(share: number): string {
  return `${Math.round(share * 100)} %`;
}

export function milliseconds(us: number | undefined): string {
  return us === undefined ? '' : (us / 1_000).toFixed(us < 10_000 ? 2 : 0);
}

function align(rows: readonly (readonly string[])[]): string[] {
  const widths = (rows[0] ?? []).map((_, column) => Math.max(...rows.map((row) => row[column]?.length ?? 0)));
  return rows.map((row) =>
    row
      .map((cell, column) =>
        column === 0 ? cell.padEnd(widths[column] ?? 0) : cell.padStart(widths[column] ?? 0),
      )
      .join('  '),
  );
}
