/**
 * `node build/bench/report/print-benchmarks.js RUN.json` prints docs/BENCHMARKS.md from the JSON of
 * `npm run bench -- all --peers --json RUN.json`. Exit 64: bad usage; 65: the file is no report of the suite.
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

const [file, ...more] = process.argv.slice(2);
if (file === undefined || more.length > 0) {
  process.stderr.write('print-benchmarks RUN.json\n');
  process.exitCode = EX_USAGE;
} else {
  try {
    process.stdout.write(benchmarks(read(file)));
  } catch (error) {
    process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`);
    process.exitCode = EX_DATAERR;
  }
}
