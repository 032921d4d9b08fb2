/** docs/BENCHMARKS.md from a report: complete, and plain Markdown. */

import { spawnSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import t from 'tap';
import { benchmarks } from '../../bench/markdown.ts';
import type { BenchReport } from '../../bench/report.ts';
import { plainEnvironment } from '../../tools/launch.ts';
import { fullReport } from './fixtures/report.ts';

const PRINT = fileURLToPath(new URL('../../bench/print-benchmarks.js', import.meta.url));

/** As it comes out of a file. */
async function written(): Promise<BenchReport> {
  return JSON.parse(JSON.stringify(await fullReport())) as BenchReport;
}

t.test('markdown: machine, command, targets, scenarios and floors stand in tables', async (t) => {
  const text = benchmarks(await written());
  t.match(text, '| Command | npm run bench -- all --peers |');
  t.match(text, '| Machine | 2 cores, Test CPU, 24 GiB, linux-x64, kernel 6.1.0 |');
  t.match(text, '| Gateway | 0.1.0, commit abcdef123456 |');
  t.match(
    text,
    '| [tools/call against the official SDK](#mcp-call) | gatehouse / official SDK server (rate) | at least 14 | 11 (9.5 to 12) | **missed** |',
  );
  t.match(text, '| 1 (0.864 to 1.09) | met, within the interval |');
  t.match(
    text,
    '### sessions\n\nWhat sessions measures. Closed loop, 64 connections; 2 interleaved rounds of 2 s',
  );
  t.match(text, '| us by sessions | 1,000 | 10,000 | 100,000 |');
  t.match(text, '| passivated | 1.4 | — | 1.9 |');
  t.match(text, '**Failed:** the disk is &lt;full>');
  t.match(text, '`turn` is left out');
  t.match(text, 'The machine was busy with other work before sessions:');
  t.match(text, '| @fastify/http-proxy | peer | left out: not installed');
  t.match(text, 'one thread; undici with 128 connections');
  t.notMatch(text, /undefined|NaN|null/);
  for (const line of text.split('\n').filter((each) => each.startsWith('|')))
    t.ok(line.endsWith('|') && !line.includes('<'), line);
});

t.test('print-benchmarks: prints from files, and refuses what is no report', async (t) => {
  const folder = t.testdir({ 'other.json': '{"schema":0}', 'broken.json': '{' });
  const file = join(folder, 'run.json');
  writeFileSync(file, JSON.stringify(await fullReport()));
  const print = (...args: string[]) =>
    spawnSync(process.execPath, [PRINT, ...args], { encoding: 'utf8', env: plainEnvironment() });
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
