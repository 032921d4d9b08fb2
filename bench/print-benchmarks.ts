/**
 * Prints docs/BENCHMARKS.md from the JSON of one run, or of two runs of the same command:
 *
 *     npm run bench -- all --peers --json RUN.json
 *     node build/bench/print-benchmarks.js RUN.json [SECOND.json] > docs/BENCHMARKS.md
 *
 * Exit 64 for bad usage, 65 for a file that is no report of this suite.
 */
import { readFileSync } from 'node:fs';
import { benchmarks } from './markdown.ts';
import { type BenchReport, SCHEMA } from './report.ts';

const EX_USAGE = 64;
const EX_DATAERR = 65;

function read(file: string): BenchReport {
  const report = JSON.parse(readFileSync(file, 'utf8')) as Partial<BenchReport>;
  if (report.schema !== SCHEMA || report.scenarios === undefined)
    throw new Error(`${file} is no report of this suite (schema ${SCHEMA})`);
  return report as BenchReport;
}

const files = process.argv.slice(2);
if (files.length < 1 || files.length > 2) {
  process.stderr.write('print-benchmarks RUN.json [SECOND.json]: one run, or two of the same command\n');
  process.exitCode = EX_USAGE;
} else {
  try {
    const [first, second] = files.map(read);
    if (first !== undefined) process.stdout.write(benchmarks(first, second));
  } catch (error) {
    process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`);
    process.exitCode = EX_DATAERR;
  }
}
