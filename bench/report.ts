/** The figures for people (a table) and for machines (JSON). */
import { cpus, loadavg } from 'node:os';
import { type Measured, processorTimeOf, type Ratio, type Round } from './measure.ts';
import type { BenchOptions } from './options.ts';
import type { LoadReport } from './plan.ts';
import type { ScenarioResult } from './scenario.ts';

const MEBIBYTE = 1024 * 1024;
/** A generator busier than this was the limit itself, or nearly. */
const GENERATOR_BUSY_MAX = 0.95;

/** What else the machine did: read when the suite starts. */
const [loadBefore = Number.NaN] = loadavg();

/** For the table of people: one row a subject, then the ratios, the errors and the notes. */
export function table(scenario: string, options: BenchOptions, result: ScenarioResult): string {
  const { comparison, notes } = result;
  const rows = [
    ['', 'per second', 'p50 ms', 'p99 ms', 'p99.9 ms', 'CPU us', 'RSS MiB', 'generator', 'errors'],
    ...comparison.subjects.map(rowOf),
  ];
  const lines = [
    `${scenario}: ${loopOf(options)}, ${options.rounds} interleaved rounds of ${options.durationMs / 1_000} s`,
    `one-minute load average before: ${loadBefore.toFixed(2)} (a quiet machine shows less than 0.5)`,
    '',
    ...align(rows),
    '',
    ...comparison.ratios.map((ratio) => ratioLine(comparison.subjects[0]?.name ?? '', ratio)),
    ...comparison.subjects.flatMap(warnings),
    ...notes,
  ];
  return `${lines.join('\n')}\n`;
}

export function json(scenario: string, options: BenchOptions, result: ScenarioResult, utc: string): string {
  const machine = {
    node: process.version,
    platform: `${process.platform}-${process.arch}`,
    cores: cpus().length,
    cpu: cpus()[0]?.model ?? 'unknown',
    loadAverageBefore: loadBefore,
  };
  return `${JSON.stringify({ scenario, utc, machine, options, ...result.comparison, notes: result.notes }, null, 2)}\n`;
}

function loopOf({ connections, ratePerSecond }: BenchOptions): string {
  return ratePerSecond === undefined
    ? `closed loop, ${connections} connections`
    : `open loop, ${ratePerSecond}/s over ${connections} connections`;
}

function rowOf(measured: Measured): string[] {
  const { name, medianPerSecond, rounds } = measured;
  const middle = middleRound(rounds);
  const report = loadReport(middle);
  const ms = (us: number | undefined) => (us === undefined ? '' : (us / 1_000).toFixed(us < 10_000 ? 2 : 0));
  return [
    name,
    Math.round(medianPerSecond).toLocaleString('en'),
    ms(report?.latencyUs.p50),
    ms(report?.latencyUs.p99),
    ms(report?.latencyUs.p999),
    processorTimeOf(measured)?.toFixed(1) ?? '',
    middle?.rssBytes === undefined ? '' : (middle.rssBytes / MEBIBYTE).toFixed(0),
    report === undefined ? '' : `${Math.round(report.generatorBusy * 100)} %`,
    report === undefined ? '' : String(errorsOf(rounds).reduce((total, [, count]) => total + count, 0)),
  ];
}

function ratioLine(first: string, { against, median, lowest, highest, byProcessorTime }: Ratio): string {
  const byTime = byProcessorTime === undefined ? '' : `; by processor time ${byProcessorTime.toFixed(3)}`;
  return `${first} / ${against}: ${median.toFixed(3)} (${lowest.toFixed(3)} to ${highest.toFixed(3)})${byTime}`;
}

function warnings({ name, rounds }: Measured): string[] {
  const lines = errorsOf(rounds).map(([kind, count]) => `${name}: ${count} x ${kind}`);
  const sample = rounds.map((round) => loadReport(round)?.sample).find((text) => text !== undefined);
  if (sample !== undefined) lines.push(`${name}: first bad answer: ${sample}`);
  if (rounds.some((round) => (loadReport(round)?.generatorBusy ?? 0) > GENERATOR_BUSY_MAX))
    lines.push(
      `${name}: the generator was busy over ${GENERATOR_BUSY_MAX * 100} %: the figure is a lower bound`,
    );
  return lines;
}

function errorsOf(rounds: readonly Round[]): [string, number][] {
  const total: Record<string, number> = {};
  for (const round of rounds) {
    for (const [kind, count] of Object.entries(loadReport(round)?.errors ?? {}))
      total[kind] = (total[kind] ?? 0) + count;
  }
  return Object.entries(total);
}

function middleRound(rounds: readonly Round[]): Round | undefined {
  const sorted = [...rounds].sort((a, b) => a.ratePerSecond - b.ratePerSecond);
  return sorted[Math.floor(sorted.length / 2)];
}

/** Rounds that are no loads (native loops, the actor runtime) have no latencies. */
function loadReport(round: Round | undefined): LoadReport | undefined {
  return round !== undefined && 'latencyUs' in round.details
    ? (round.details as unknown as LoadReport)
    : undefined;
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
