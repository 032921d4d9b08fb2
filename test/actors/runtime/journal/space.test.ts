/** Room for the journal on a disk that is full for a while. */
import { rmSync, statSync, symlinkSync } from 'node:fs';
import t from 'tap';
import { JournalSpace } from '../../../../src/actors/runtime/journal/space.ts';
import { ManualClock } from '../../../support/actors/actors.ts';

const MIB = 1024 * 1024;
const TABLE = {
  pageSize: 4096,
  entryCount: 0,
  treeBranchPageCount: 0,
  treeLeafPageCount: 1,
  overflowPages: 0,
};
const WHOLE = { ...TABLE, root: TABLE, free: TABLE };

t.test(
  'journal space: a full disk refuses growth, and room that returns is noticed within a second',
  async (t) => {
    const folder = t.testdir({ real: '' });
    const file = `${folder}/data.mdb`;
    // Every write to it fails with ENOSPC.
    symlinkSync('/dev/full', file);
    const clock = new ManualClock();
    let timers = 0;
    const told: (string | undefined)[] = [];
    const space = new JournalSpace({
      file,
      stepBytes: MIB,
      quotaBytes: 100 * MIB,
      whole: () => WHOLE,
      lastPage: () => 3,
      tables: () => [WHOLE],
      onShortage: (error) => told.push(error?.message),
      timer(delayMs, run) {
        timers += 1;
        return clock.timer(delayMs, run);
      },
    });
    await space.prepare();
    t.equal(space.full, true);
    t.match(told, [/ENOSPC/]);
    const until = async (done: () => boolean) => {
      while (!done()) {
        clock.fireNext(clock.nowMs + 1_000);
        await new Promise((resolve) => setImmediate(resolve));
      }
    };
    await until(() => timers === 3);
    t.equal(told.length, 1, 'still full, and told once');
    rmSync(file);
    symlinkSync(`${folder}/real`, file);
    await until(() => told.length === 2);
    await space.close();
    t.equal(space.full, false);
    t.same(told.slice(1), [undefined]);
    t.equal(statSync(`${folder}/real`).size, MIB);
  },
);
