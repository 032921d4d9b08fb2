/**
 * Starts that stand still within the engine: another process holds the lock that the engine waits for while it opens the
 * journal, as a damaged page would hold its main thread. The start has a limit, and so has the walk that follows it.
 */
import { closeSync, openSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import t, { type Test } from 'tap';
import { logIn, signUp } from '../../../kit/agent.ts';
import { launch, launchFor, runToEnd } from '../../../kit/launch.ts';
import { runSync } from '../../../kit/run-sync.ts';
import { openJournal } from '../../../src/actors/runtime/journal/lmdb.ts';
import { checkJournalRows } from '../../../src/bootstrap/journal-check.ts';
import { commitRows } from '../../support/actors/commit-rows.ts';

t.setTimeout(240_000);

const FAST_LIMIT = fileURLToPath(new URL('../../support/preloads/fast-start-limit.cjs', import.meta.url));
const PORTS = ['--port', '0', '--internal-port', '0'];
const F_LOCK = 1;

/** Holds the first byte of the engine's lock file, until the result is called. */
function holdEngine(t: Test, dataPath: string): () => void {
  const koffi = createRequire(import.meta.url)('koffi') as typeof import('koffi')['default'];
  const fd = openSync(join(dataPath, 'lock.mdb'), 'r+');
  const got: unknown = koffi.load(null).func('int lockf(int, int, long)')(fd, F_LOCK, 1);
  if (got !== 0) throw new Error('the lock was not taken');
  let isHeld = true;
  const release = () => {
    if (isHeld) closeSync(fd);
    isHeld = false;
  };
  t.teardown(release);
  return release;
}

// covers S176
t.test('silent start: it ends with 70 and a line, and the next start walks the journal first', async (t) => {
  const dataPath = join(t.testdir({}), 'data');
  const gateway = await launch({ dataPath, configuration: {} });
  const person = await signUp(gateway.url);
  t.same(await gateway.stop(), { code: 0, signal: null });
  const release = holdEngine(t, dataPath);
  const environment = { NODE_OPTIONS: `--require ${FAST_LIMIT}`, DATA: dataPath };
  const silent = await runToEnd(['--data', dataPath, ...PORTS], environment);
  t.match(silent, { code: 70, signal: null, stdout: '' });
  t.match(
    silent.stderr,
    /^gatehouse: the start made no progress for 60 s; the next one checks the journal$/m,
  );
  t.match(readFileSync(join(dataPath, 'gatehouse.lock'), 'utf8'), /served/);
  // A walk that stands still is a finding.
  const findings: string[] = [];
  await checkJournalRows(dataPath, true, (sentence) => findings.push(sentence), 1_000);
  t.same(findings, ['data.mdb: reading it made no progress, and was ended']);
  release();
  const again = await launchFor(t, { dataPath, configuration: {} });
  t.match(again.output().stderr, /journal checked/i);
  t.equal((await logIn(again.url, person.key)).status, 200);
});

t.test('silent start: each row of a range that is read is progress', async (t) => {
  let rows = 0;
  const onRow = () => {
    rows += 1;
  };
  const journal = await openJournal({ directory: t.testdir({}), stepBytes: 1024 * 1024, onRow });
  t.teardown(() => journal.close());
  const row = journal.pack({ type: 'none' });
  await commitRows(
    journal,
    ['1', '2', '3'].map((id) => ({ op: 'timer', key: { dueMs: 1_000, kind: 'user', id, name: 'n' }, row })),
  );
  rows = 0;
  t.equal(journal.timers(2_000, 10).length, 3);
  t.equal(rows, 3);
  t.equal([...journal.mailboxes()].length, 0);
  t.equal(rows, 3);
});

t.test('silent start: one that makes progress is not cut, however long the event loop is held', async (t) => {
  const module = new URL('../../../src/cli/process-end.js', import.meta.url).href;
  const program = `
    import { once } from 'node:events';
    import { writeSync } from 'node:fs';
    import { limitUntilEnd } from '${module}';
    const started = once(process, 'worker').then(([thread]) => once(thread, 'online'));
    const limit = limitUntilEnd({ intervalMs: 50, silentMax: 20, line: 'cut', code: 70 });
    setInterval(() => undefined, 1_000);
    await started;
    const endMs = performance.now() + 1_300;
    while (performance.now() < endMs) limit.beat();
    writeSync(1, 'held with beats');
    for (;;);`;
  const file = join(t.testdir({ 'held.mjs': program }), 'held.mjs');
  const held = runSync(process.execPath, [file], { boundMs: 60_000 });
  t.match(held, { status: 70, stdout: 'held with beats', stderr: 'cut\n' });
});
