/** Rows that the timers of a node read. */
import t from 'tap';
import { MemoryJournal } from '../../../kit/journal/memory.ts';
import type { TimerRow } from '../../../src/actors/runtime/journal/port.ts';
import { Timers } from '../../../src/actors/runtime/timers.ts';
import { ManualClock } from '../../support/actors/actors.ts';
import { commitRows } from '../../support/actors/commit-rows.ts';

// covers C11
t.test('timers: a node that is no member reads none, those of its actors fire after its join', async (t) => {
  const clock = new ManualClock();
  const journal = new MemoryJournal({ immediate: (run) => setImmediate(run) });
  const key = (id: string) => ({ dueMs: clock.nowMs + 10, kind: 'user', id, name: 'n' });
  const row = journal.pack({ type: 'fire' });
  await commitRows(journal, [
    { op: 'timer', key: key('mine'), row },
    { op: 'timer', key: key('other'), row },
  ]);
  let reads = 0;
  const read = journal.timers.bind(journal);
  journal.timers = (...of) => {
    reads += 1;
    return read(...of);
  };
  const fired: string[] = [];
  const cluster = { isMember: false, owns: (_kind: string, id: string) => id === 'mine' };
  const timers = new Timers({
    ...{ journal, cluster, clock: clock.read },
    schedule: { immediate: (run) => setImmediate(run), timer: clock.timer },
    due: ({ id }: TimerRow) => fired.push(id),
  });
  timers.start();
  clock.fireNext(clock.nowMs);
  clock.nowMs += 20;
  t.same([reads, fired, clock.nextMs], [0, [], undefined], 'and waits for nothing');
  cluster.isMember = true;
  timers.start();
  clock.fireNext(clock.nowMs);
  t.same(fired, ['mine']);
  timers.stop();
});
