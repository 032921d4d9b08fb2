/** The report in words and cells: one wording for the terminal, the page and the Markdown. */

import { type Measured, processorTimeOf, type Ratio, roundsOf } from '../measure/measure.ts';
import type { Interval } from '../measure/statistics.ts';
import type { BenchOptions } from '../options.ts';
import type { Participant } from '../subjects/participants.ts';
import {
  type BenchReport,
  errorsOf,
  type GatewayVersion,
  generatorBusy,
  generatorLimited,
  latencyOf,
  loadOf,
  middleRound,
  type ScenarioReport,
} from './report.ts';
import type { Figure, Judged } from './targets.ts';

const MEBIBYTE = 1024 * 1024;
const SECOND_MS = 1_000;

/** Rows of a table; the first cell of each names it, the others are figures. */
export interface Cells {
  readonly headings: readonly string[];
  readonly rows: readonly (readonly string[])[];
}

export function subjectCells({ unit, subjects }: ScenarioReport): Cells {
  return withoutEmpty({
    headings: [
      ...['', `${unit}/s`, 'p50 ms', 'p99 ms', 'p99.9 ms', 'CPU us', 'heap KB', 'RSS MiB', 'generator'],
      'errors',
    ],
    rows: subjects.map(subjectRow),
  });
}

/** Loops have no latencies, files no errors. */
function withoutEmpty({ headings, rows }: Cells): Cells {
  const isUsed = (_cell: string, column: number) => column === 0 || rows.some((row) => row[column] !== '');
  return { headings: headings.filter(isUsed), rows: rows.map((row) => row.filter(isUsed)) };
}

/** Empty cells where nothing is known. */
function subjectRow(measured: Measured): string[] {
  const { name, medianPerSecond, rounds, bytesPerAnswer } = measured;
  const middle = middleRound(rounds);
  const load = loadOf(middle);
  const latency = latencyOf(rounds);
  const busy = generatorBusy(middle);
  const errors = errorsOf(rounds).reduce((total, [, count]) => total + count, 0);
  return [
    name,
    rate(medianPerSecond),
    milliseconds(latency?.p50),
    milliseconds(latency?.p99),
    milliseconds(latency?.p999),
    processorTimeOf(measured)?.toFixed(1) ?? '',
    bytesPerAnswer === undefined ? '' : (bytesPerAnswer / 1_000).toFixed(1),
    mebibytes(middle?.rssBytes),
    busy === undefined ? '' : `${percent(busy)}${generatorLimited(rounds) ? ' !' : ''}`,
    load === undefined ? '' : count(errors),
  ];
}

export function ratioCells(ratios: readonly Ratio[]): Cells {
  return {
    headings: ['ratio, median and 95 % interval', 'by rate', 'by processor time'],
    rows: ratios.map((ratio) => [
      `${ratio.of} / ${ratio.against}`,
      interval(ratio.rate),
      ratio.processorTime === undefined ? '' : interval(ratio.processorTime),
    ]),
  };
}

export function targetCells(targets: readonly Judged[]): Cells {
  return {
    headings: ['target', 'measured', 'wanted', 'shown', 'verdict'],
    rows: targets.map((judged) => [
      judged.row,
      `${judged.what}${judged.by === '' ? '' : ` (${judged.by})`}`,
      wantedOf(judged),
      judged.value === undefined ? '' : shownOf(judged, judged.value),
      verdictOf(judged),
    ]),
  };
}

export function figureCells(figures: readonly Figure[]): Cells {
  return {
    headings: ['figure', 'value', 'unit'],
    rows: figures.map((figure) => [figure.name, shownOf(figure, figure.value), figure.unit]),
  };
}

export function participantCells(participants: readonly Participant[]): Cells {
  return {
    headings: ['beside', 'kind', 'version', 'settings'],
    rows: participants.map(({ name, kind, version, settings, leftOut }) => [
      name,
      kind,
      version ?? `left out: ${leftOut}`,
      settings,
    ]),
  };
}

export function circumstances(report: BenchReport): [label: string, text: string][] {
  const { machine, gateway, baseline, generator, command, startedUtc, elapsedMs } = report;
  const gibibytes = (bytes: number) => `${Math.round(bytes / MEBIBYTE / 1024)} GiB`;
  const memory = gibibytes(machine.memoryBytes);
  return [
    ['Command', command],
    ['When', `${startedUtc.slice(0, 19).replace('T', ' ')} UTC, ${duration(elapsedMs)}`],
    [
      'Machine',
      `${machine.cores} cores, ${machine.cpu}, ${memory}, ${machine.platform}, kernel ${machine.kernel}`,
    ],
    ['Node', machine.node],
    ['Gateway', versionOf(gateway)],
    ...(baseline === undefined ? [] : [['Baseline', versionOf(baseline)] as [string, string]]),
    [
      'Load generator',
      `${rate(generator.ratePerSecond)} answers a second of an empty uWS handler, ${percent(generator.busy)} busy: no scenario can show more`,
    ],
  ];
}

function versionOf({ version, commit, changed, url }: GatewayVersion): string {
  const built = commit === undefined ? '' : `, commit ${commit}`;
  const where = url === undefined ? '' : `, at ${url}`;
  return `${version}${built}${changed === true ? ' with changes' : ''}${where}`;
}

/** Returns the warning that a reader of verdicts needs first; undefined where nothing speaks against them. */
export function doubt({ scenarios }: BenchReport): string | undefined {
  const noisy = scenarios.filter((scenario) => scenario.noisy).map(({ name }) => name);
  return noisy.length === 0
    ? undefined
    : `The machine was busy with other work before ${noisy.join(', ')}: there, rates and their ratios are no verdict.`;
}

export function howOf({ options, subjects, othersBusy, elapsedMs }: ScenarioReport): string {
  const rounds = subjects.length === 0 ? options.rounds : roundsOf(subjects);
  const each = `${rounds} interleaved round${rounds === 1 ? '' : 's'} of ${options.durationMs / SECOND_MS} s`;
  const load = `others used ${percent(othersBusy)} of the machine before`;
  return `${loopOf(options)}; ${each}; ${load}; ${duration(elapsedMs)} in all`;
}

function loopOf({ connections, ratePerSecond, maxRatePerSecond }: BenchOptions): string {
  if (ratePerSecond !== undefined) return `open loop, ${ratePerSecond}/s over ${connections} connections`;
  const bound = maxRatePerSecond === undefined ? '' : `, at most ${maxRatePerSecond}/s`;
  return `closed loop, ${connections} connections${bound}`;
}

export function wantedOf({ wanted: { atLeast, atMost, reaches } }: Judged): string {
  return [
    ...(atLeast === undefined ? [] : [`at least ${atLeast}`]),
    ...(atMost === undefined ? [] : [`at most ${atMost}`]),
    ...(reaches === undefined ? [] : [`interval reaches ${reaches}`]),
  ].join(', ');
}

/** With its interval, where it has one. */
export function shownOf({ from, to }: Judged | Figure, value: number): string {
  const one = from === undefined || to === undefined || from === to;
  return one ? number(value) : `${number(value)} (${number(from)} to ${number(to)})`;
}

/** `met`, `missed`, with the doubt that the interval leaves. */
export function verdictOf({ verdict, withinInterval }: Judged): string {
  return withinInterval ? `${verdict}, within the interval` : verdict;
}

/** The median with its 95 % interval. */
export function interval({ median, from, to }: Interval): string {
  return Number.isFinite(median) ? `${ratio(median)} (${ratio(from)} to ${ratio(to)})` : '—';
}

/** Values that are not finite are null in a JSON that is read again. */
function ratio(value: number | null): string {
  return value !== null && Number.isFinite(value) ? value.toFixed(3) : '—';
}

/** Three digits are enough to judge by. */
export function number(value: number): string {
  if (!Number.isFinite(value)) return '—';
  return Math.abs(value) >= 100 ? rate(value) : String(Number(value.toPrecision(3)));
}

export function rate(perSecond: number): string {
  return Number.isFinite(perSecond) ? count(Math.round(perSecond)) : '—';
}

function count(value: number): string {
  return value.toLocaleString('en');
}

export function percent(share: number): string {
  return `${Math.round(share * 100)} %`;
}

export function milliseconds(us: number | undefined): string {
  return us === undefined ? '' : (us / SECOND_MS).toFixed(us < 10_000 ? 2 : 0);
}

/** Empty where it is not known. */
export function mebibytes(bytes: number | undefined): string {
  return bytes === undefined ? '' : (bytes / MEBIBYTE).toFixed(0);
}

/** `1 min 5 s`. */
function duration(durationMs: number): string {
  const seconds = Math.round(durationMs / SECOND_MS);
  return seconds < 60 ? `${seconds} s` : `${Math.floor(seconds / 60)} min ${seconds % 60} s`;
}
