/** Profiles of the main thread: what a request may ask, what the file holds, and how many there are. */
import { readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import t, { type Test } from 'tap';
import { createLog } from '../../../src/io/observability/log.ts';
import { Profiles } from '../../../src/io/observability/profiles.ts';
import { promiseOf } from '../../support/http.ts';

interface Answer {
  readonly file?: string;
  readonly fault?: string;
}

function start(t: Test, wait: (delayMs: number) => Promise<unknown> = async () => undefined) {
  const time = { nowMs: 1_760_000_000_000 };
  const written: string[] = [];
  const log = {
    ...createLog(),
    write: (...given: readonly unknown[]) => void written.push(String(given[0])),
  };
  const dataPath = t.testdir({});
  const profiles = new Profiles({ dataPath, clock: () => time.nowMs, log, wait });
  const ask = async (request: string) => JSON.parse(await profiles.answer(request)) as Answer;
  return { ask, dataPath, profiles, time, written };
}

// covers S194
t.test('profiles: cpu and heap are files of mode 0600 that Chrome DevTools reads', async (t) => {
  const waits: number[] = [];
  const { ask, dataPath, written } = start(t, async (delayMs) => waits.push(delayMs));
  const cpu = await ask('cpu 3');
  t.equal(cpu.file, join(dataPath, 'profiles', '2025-10-09T08-53-20-000Z.cpuprofile'));
  const { nodes, samples } = JSON.parse(readFileSync(cpu.file ?? '', 'utf8'));
  t.ok(Array.isArray(nodes) && Array.isArray(samples));
  const heap = await ask('heap 60');
  const { head } = JSON.parse(readFileSync(heap.file ?? '', 'utf8'));
  t.ok(Array.isArray(head.children));
  for (const { file = '' } of [cpu, heap]) t.equal(statSync(file).mode & 0o777, 0o600);
  t.equal(statSync(dirname(cpu.file ?? '')).mode & 0o777, 0o700);
  t.same(waits, [3_000, 60_000]);
  t.same(written, ['profileTaken', 'profileTaken']);
});

t.test('profiles: another request than kind and seconds is refused', async (t) => {
  const { ask, dataPath } = start(t);
  for (const request of ['', 'cpu', 'cpu 0', 'cpu 61', 'cpu 100', 'cpu 1 2', 'disk 5', 'heap -1', 'cpu 5\n'])
    await t.rejects(ask(request), { message: 'the request names no profile' }, JSON.stringify(request));
  t.same(readdirSync(dataPath), []);
});

t.test('profiles: one at a time, and the next one after it', async (t) => {
  const { promise: held, resolve: finish } = promiseOf();
  const { ask, time } = start(t, () => held);
  const first = ask('heap 5');
  t.same(await ask('cpu 5'), { fault: 'another profile is being taken' });
  finish();
  t.match((await first).file, /heapprofile$/);
  time.nowMs += 1_000;
  t.match((await ask('heap 5')).file, /heapprofile$/);
});

t.test('profiles: the ten newest are kept', async (t) => {
  const { ask, dataPath, time } = start(t);
  const files = [(await ask('heap 1')).file ?? ''];
  const folder = join(dataPath, 'profiles');
  for (let second = 1; second < 11; second += 1) {
    files.push(join(folder, `2025-10-09T08-53-${20 + second}-000Z.cpuprofile`));
    writeFileSync(files.at(-1) ?? '', '');
  }
  time.nowMs += 11_000;
  files.push((await ask('heap 1')).file ?? '');
  t.same(
    readdirSync(folder)
      .map((name) => join(folder, name))
      .sort(),
    files.slice(2),
  );
});
