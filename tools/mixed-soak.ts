/**
 * The mixed soak: minutes of the suite's `mixed` scenario, whose targets are what a soak must show: no 5xx that is not a
 * declared refusal, memory and journal as large at the end as after the warm-up.
 */
import { parseArgs } from 'node:util';
import { runScenarios } from '../bench/cli/run.ts';
import { parseOptions } from '../bench/options.ts';
import { ProgressBar } from '../bench/progress.ts';
import type { BenchReport } from '../bench/report/report.ts';
import { tables } from '../bench/report/table.ts';
import { mixed } from '../bench/scenarios/mixed.ts';

const MINUTES = 10;
const MINUTE_S = 60;
/** Sessions, audit and events reach their bounds, code is compiled. */
const WARMUP_S = 60;

const FLAGS = { minutes: { type: 'string' }, rate: { type: 'string' } } as const;

/** The suite's own command line; undefined for bad usage. `--minutes` from 1 to 10, `--rate` as of the suite. */
export function benchArguments(args: readonly string[]): string[] | undefined {
  try {
    const { values } = parseArgs({ args: [...args], options: FLAGS });
    const minutes = Number(values.minutes ?? MINUTES);
    if (!(minutes >= 1 && minutes <= MINUTES)) return undefined;
    const rate = values.rate === undefined ? [] : ['--rate', values.rate];
    return ['mixed', '--duration', String(minutes * MINUTE_S), '--warmup', String(WARMUP_S), ...rate];
  } catch (error) {
    if (error instanceof TypeError) return undefined;
    throw error;
  }
}

/** Returns the faults of a soak. Empty when all is well. */
export function faultsOf({ scenarios }: Pick<BenchReport, 'scenarios'>): string[] {
  return scenarios.flatMap(({ failure, targets }) => [
    ...(failure === undefined ? [] : [failure]),
    ...targets
      .filter(({ verdict }) => verdict !== 'met')
      .map(({ what, value, verdict }) => `${what}: ${value ?? ''} ${verdict}`),
  ]);
}

/** Prints the report; resolves with the number of faults. Undefined for bad usage. */
export async function soakMixed(args: readonly string[]): Promise<number | undefined> {
  const words = benchArguments(args);
  const parsed = words === undefined ? undefined : parseOptions(words, [mixed]);
  if (words === undefined || parsed?.ok !== true) return undefined;
  const command = ['npm run soak -- mixed', ...args].join(' ');
  const report = await runScenarios(parsed.line, command, [mixed], new ProgressBar(process.stderr));
  process.stdout.write(tables(report));
  const faults = faultsOf(report);
  for (const fault of faults) console.log(`FAULT ${fault}`);
  return faults.length;
}
