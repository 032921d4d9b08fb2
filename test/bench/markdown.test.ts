/** docs/BENCHMARKS.md from a report: complete, and plain Markdown. */

import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import t from 'tap';
import { benchmarks } from '../../bench/report/markdown.ts';
import type { BenchReport } from '../../bench/report/report.ts';
import { plainEnvironment } from '../../kit/launch.ts';
import { runSync } from '../../kit/run-sync.ts';
import { fullReport, loadSample, scenarioReport } from './fixtures/report.ts';

const PRINT = fileURLToPath(new URL('../../bench/report/print-benchmarks.js', import.meta.url));

/** Returns the report as it comes out of a file. */
async function written(): Promise<BenchReport> {
  return JSON.parse(JSON.stringify(await fullReport())) as BenchReport;
}

t.test('markdown: one table a scenario, with ratio and verdict in the row of the other server', async (t) => {
  const text = benchmarks(await written());
  t.match(text, '- Command: `npm run bench -- all --peers`');
  t.match(text, '- Machine: 2 cores, Test CPU, 24 GiB, linux-x64, kernel 6.1.0');
  t.match(text, '- Gateway: 0.1.0, commit abcdef123456');
  t.match(text, 'bare uWS + undici proxy (1.2.3), @fastify/http-proxy left out (not installed');
  t.match(text, 'Targets: 2 met, 1 missed, 2 not measured.');
  t.match(text, '| **mcp-call** | answers/s | p50 ms |');
  t.match(text, '| gatehouse | 11,000 | 4.00 | 20 | 70.0 | 180 |  |  |  |');
  t.match(
    text,
    '| official SDK server | 1,000 ! | 30 | 150 | 500.0 | 180 | 11.000 (9.500 to 12.000) | 7.143 (7.143 to 7.143) | rate: at least 14: **missed** |',
  );
  t.match(text, '| 0.857 (0.857 to 0.857) | rate: at least 0.9: met, within the interval |');
  t.match(text, '| gatehouse / @fastify/http-proxy |  |  |  |  |  |  |  | at least 2: not measured |');
  t.match(text, '| **sessions** (busy machine) | look-ups/s |');
  t.match(text, '| look-up: 0.42 (0.4 to 0.5) us |  |  |  |  |  |  |  | at most 1: met |');
  t.notMatch(text, '| gatehouse | 5,050 |', 'in no ratio, where something is judged');
  t.match(text, '| **Failed:** the disk is &lt;full> |');
  t.match(text, '`turn` is left out: it runs in this process.');
  t.match(text, 'The machine was busy with other work before sessions:');
  t.match(text, 'may spread by 10 to 30 %');
  t.notMatch(text, /undefined|NaN|null/);
  const lines = text.split('\n').filter((line) => line.startsWith('|'));
  t.same(
    lines.filter((line) => line.split(' | ').length !== 9),
    [],
  );
});

t.test('markdown: each gateway row precedes the rows that it is compared with', async (t) => {
  const samples = [loadSample(10, 1)];
  const scenario = await scenarioReport('groups', {
    A: { samples },
    B: { samples },
    C: { samples },
    D: { samples },
  });
  const spread = { median: 2, from: 1, to: 3, lowest: 1, highest: 3 };
  const ratio = (of: string, against: string) => ({ of, against, rate: spread, processorTime: undefined });
  const report = { ...scenario, ratios: [ratio('A', 'D'), ratio('B', 'C')] };
  const text = benchmarks({ ...(await written()), scenarios: [report] });
  t.same(text.match(/(?<=^\| )[A-D](?= \|)/gm), ['A', 'D', 'B', 'C']);
});

t.test('print-benchmarks: prints from files and refuses other files', async (t) => {
  const folder = t.testdir({ 'other.json': '{"schema":0}', 'broken.json': '{' });
  const file = join(folder, 'run.json');
  writeFileSync(file, JSON.stringify(await fullReport()));
  const print = (...args: string[]) =>
    runSync(process.execPath, [PRINT, ...args], { env: plainEnvironment() });
  const good = print(file);
  t.equal(good.status, 0, good.stderr);
  t.match(good.stdout, /^# Benchmarks\n/);
  t.equal(print().status, 64);
  t.equal(print(file, file).status, 64);
  t.match(print(join(folder, 'other.json')), {
    status: 65,
    stderr: /other\.json is no report of this suite/,
  });
  t.equal(print(join(folder, 'broken.json')).status, 65);
  t.equal(print(join(folder, 'missing.json')).status, 65);
});
