/** docs/BENCHMARKS.md out of reports: complete, plain Markdown, and honest about two runs. */

import { spawnSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import t from 'tap';
import { benchmarks } from '../../bench/markdown.ts';
import { repeats } from '../../bench/repeat.ts';
import type { BenchReport } from '../../bench/report.ts';
import { plainEnvironment } from '../../tools/launch.ts';
import { fullReport } from './fixtures/report.ts';

const PRINT = fileURLToPath(new URL('../../bench/print-benchmarks.js', import.meta.url));

/** As it comes out of a file. */
async function written(factor?: number): Promise<BenchReport> {
  return JSON.parse(JSON.stringify(await fullReport(factor))) as BenchReport;
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
  t.notMatch(text, 'The same command twice');
  t.notMatch(text, /undefined|NaN|null/);
  for (const line of text.split('\n').filter((each) => each.startsWith('|')))
    t.ok(line.endsWith('|') && !line.includes('<'), line);
});

t.test('repeats: each ratio of both runs, the larger over the smaller', async (t) => {
  const all = repeats(await written(), await written(1.25));
  t.match(all, [
    { scenario: 'mcp-call', what: 'gatehouse / bare uWS + undici proxy', by: 'rate', first: 1, second: 0.8 },
    { by: 'processor time', judged: false, apart: 0, overlap: true },
    { what: 'gatehouse / official SDK server', by: 'rate', judged: true, apart: 0 },
    { by: 'processor time' },
  ]);
  t.ok(Math.abs((all[0]?.apart ?? 0) - 0.25) < 1e-9);
  const other = { ...(await written()), command: 'npm run bench -- all --peers --rounds 9' };
  t.throws(
    () => repeats(other, other) && repeats(other, { ...other, command: 'npm run bench -- turn' }),
    /different commands/,
  );
  const elsewhere = { ...other, command: `${other.command} --json b.json` };
  t.equal(repeats(other, elsewhere).length, 4, 'where the report goes is no part of the load');
});

t.test('markdown: two runs show how far they are apart and mark what is beyond ten percent', async (t) => {
  const text = benchmarks(await written(), await written(1.25));
  t.match(
    text,
    'at most 10 % apart: 1 of 2 by rate, 2 of 2 by processor time, 1 of 2 of those that a target is judged by (in italics); the others are marked.',
  );
  t.match(text, 'The 95 % intervals of both runs overlap for 4 of 4.');
  t.match(
    text,
    '| mcp-call | *gatehouse / bare uWS + undici proxy* | rate | 1.000 | 0.800 | **25.0 %** | overlap |',
  );
  t.match(
    text,
    '| mcp-call | *gatehouse / official SDK server* | rate | 11.000 | 11.000 | 0.0 % | overlap |',
  );
  t.match(text, '| mcp-call | gatehouse / official SDK server | processor time |', 'its target goes by rate');
});

t.test('print-benchmarks: prints from files, and refuses what is no report', async (t) => {
  const folder = t.testdir({ 'other.json': '{"schema":0}', 'broken.json': '{' });
  const file = join(folder, 'run.json');
  writeFileSync(file, JSON.stringify(await fullReport()));
  const print = (...args: string[]) =>
    spawnSync(process.execPath, [PRINT, ...args], { encoding: 'utf8', env: plainEnvironment() });
  const good = print(file, file);
  t.equal(good.status, 0, good.stderr);
  t.match(good.stdout, /^# Benchmarks\n/);
  t.match(good.stdout, '2 of 2 by rate, 2 of 2 by processor time');
  t.equal(print().status, 64);
  t.match(print(join(folder, 'other.json')), {
    status: 65,
    stderr: /other\.json is no report of this suite/,
  });
  t.equal(print(join(folder, 'broken.json')).status, 65);
  t.equal(print(join(folder, 'missing.json')).status, 65);
});
