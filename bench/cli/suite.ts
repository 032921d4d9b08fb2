/**
 * The load-testing suite itself, which main.ts starts. Exit 64 for bad usage, 1 when a scenario fails, 130 after an
 * interrupt, 0 otherwise: a missed target is a result. An interrupted run cleans up, and reports what it has.
 */
import { writeFileSync } from 'node:fs';
import { type CommandLine, parseOptions, TARGET_BOUNDS, USAGE } from '../options.ts';
import { ProgressBar } from '../progress.ts';
import { page } from '../report/html/page.ts';
import { tables } from '../report/table.ts';
import { SCENARIOS } from '../scenarios/index.ts';
import { baselineFault } from '../subjects/baseline.ts';
import { runScenarios } from './run.ts';

const EX_USAGE = 64;
const EX_INTERRUPTED = 130;

async function run(args: readonly string[]): Promise<number> {
  const parsed = parseOptions(args, SCENARIOS);
  if (!parsed.ok) {
    const list = SCENARIOS.map(({ name, summary }) => `  ${name.padEnd(18)} ${summary}`);
    process.stderr.write(`${[...parsed.faults, '', USAGE, 'Scenarios:', ...list].join('\n')}\n`);
    return EX_USAGE;
  }
  const { line } = parsed;
  const { baseline } = line.common;
  const fault = baseline === undefined ? undefined : baselineFault(baseline);
  if (fault !== undefined) {
    process.stderr.write(`${fault}\n`);
    return EX_USAGE;
  }
  if (line.common.target !== undefined) process.stderr.write(warningOf(line, line.common.target));
  const command = ['npm run bench --', ...args].join(' ');
  const interrupt = new AbortController();
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => interrupt.abort());
  // main.ts is gone, and with a terminal the reader of the output.
  process.once('disconnect', () => {
    for (const stream of [process.stdout, process.stderr]) stream.on('error', () => undefined);
    interrupt.abort();
  });
  process.channel?.unref();
  const progress = new ProgressBar(process.stderr);
  const report = await runScenarios(line, command, SCENARIOS, progress, interrupt.signal);
  process.stdout.write(tables(report));
  if (line.htmlFile !== undefined) writeFileSync(line.htmlFile, page(report));
  if (line.jsonFile !== undefined) writeFileSync(line.jsonFile, `${JSON.stringify(report)}\n`);
  if (interrupt.signal.aborted) return EX_INTERRUPTED;
  return report.scenarios.some(({ failure }) => failure !== undefined) ? 1 : 0;
}

function warningOf({ common }: CommandLine, target: string): string {
  const bound =
    common.maxRatePerSecond === undefined
      ? `${common.ratePerSecond} requests a second`
      : `at most ${common.maxRatePerSecond} requests a second${common.maxRatePerSecond === TARGET_BOUNDS.maxRatePerSecond ? ' (--max-rate raises it)' : ''}`;
  return `Load is sent to ${target}: ${bound}. It must be yours, or its owner must have agreed. Nothing is compared.\n`;
}

run(process.argv.slice(2)).then(
  (code) => {
    process.exitCode = code;
  },
  (error: unknown) => {
    process.stderr.write(`${error instanceof Error ? error.stack : String(error)}\n`);
    process.exitCode = 1;
  },
);
