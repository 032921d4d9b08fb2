import type { Test } from 'tap';
import { closeAfter } from '../../../kit/close-after.ts';
import { LogPartitions } from '../../../src/io/cluster/log-partitions.ts';
import { type PgFixture, pgTest } from '../../support/cluster/pg-fixture.ts';

const BODY = Buffer.from('body');
const NOTHING = { made: [], dropped: [] };

/** A log whose only node has joined, at position 1. */
async function openLog(t: Test, fixture: PgFixture) {
  const log = await fixture.connect();
  const { node, incarnation } = await log.enter('a');
  let nodeSeq = 0;
  const write = () => {
    nodeSeq += 1;
    return { node, incarnation, nodeSeq, body: BODY };
  };
  await log.join(write());
  const { database } = fixture;
  return {
    database,
    partitions(keepBytes = 0) {
      return closeAfter(t, new LogPartitions({ url: fixture.url, keepHours: 1, keepBytes }));
    },
    /** The next row gets the position after this one. */
    skipTo: (position: number) => database.script(`update gatehouse.head set pos = ${position}`),
    append: () => log.append(write()),
    fetch: (after: number) => log.fetch(after, 10),
    applied: (position: number) => log.renew(node, incarnation, position),
    checkpoint: (position: number, parts: number) =>
      database.script(
        `insert into gatehouse.checkpoint (pos, part, parts, sha256, body) values (${position}, 0, ${parts}, '', '')`,
      ),
    age: () => database.script("update gatehouse.log set at = at - interval '2 hours'"),
  };
}

/** Rows in partitions 0 and 1, an hour old, applied and in a checkpoint: partition 0 is free. */
async function openOldLog(t: Test, fixture: PgFixture) {
  const log = await openLog(t, fixture);
  await log.skipTo(700_000);
  await log.partitions().maintain();
  await log.skipTo(1_000_000);
  await log.append();
  await log.age();
  await log.applied(1_000_001);
  await log.checkpoint(1_000_001, 1);
  return log;
}

pgTest('partitions: the next one is made half a million positions ahead, once', async (t, fixture) => {
  const log = await openLog(t, fixture);
  const partitions = log.partitions();
  await log.skipTo(499_999);
  t.same(await partitions.maintain(), NOTHING);
  await log.skipTo(500_000);
  t.same(await partitions.maintain(), { made: [1], dropped: [] });
  t.same(await partitions.maintain(), NOTHING);
  await log.skipTo(999_999);
  t.equal(await log.append(), 1_000_000);
  t.equal(await log.append(), 1_000_001);
  t.same(
    (await log.fetch(1_000_000)).map(({ position }) => position),
    [1_000_001],
  );
});

pgTest('partitions: one that was made but not attached is attached', async (t, fixture) => {
  const log = await openLog(t, fixture);
  await log.database.script('create table gatehouse.log_1 (like gatehouse.log including all)');
  await log.skipTo(500_000);
  t.same((await log.partitions().maintain()).made, [1]);
});

pgTest('partitions: an old one that is applied and in a checkpoint is dropped', async (t, fixture) => {
  const log = await openOldLog(t, fixture);
  t.same(await log.partitions().maintain(), { made: [], dropped: [0] });
  t.equal(await log.append(), 1_000_002);
  t.same(await log.partitions().maintain(), NOTHING);
});

pgTest('partitions: a detachment that was cut off is finished', async (t, fixture) => {
  const log = await openOldLog(t, fixture);
  await log.database.script('alter table gatehouse.log detach partition gatehouse.log_0');
  t.same((await log.partitions().maintain()).dropped, [0]);
});

const kept = (title: string, change: (log: Awaited<ReturnType<typeof openOldLog>>) => Promise<unknown>) =>
  pgTest(`partitions: ${title} is kept`, async (t, fixture) => {
    const log = await openOldLog(t, fixture);
    await change(log);
    t.same(await log.partitions().maintain(), NOTHING);
  });
kept('one that a joined node has not applied', (log) => log.applied(999_998));
kept('one that no checkpoint covers', (log) => log.database.script('delete from gatehouse.checkpoint'));
kept('one that only an unfinished checkpoint covers', (log) =>
  log.database.script('update gatehouse.checkpoint set parts = 2'),
);
kept('one whose newest row is of the last hour', (log) =>
  log.database.script('update gatehouse.log set at = clock_timestamp()'),
);

pgTest('partitions: one is kept while those after it are smaller than what stays', async (t, fixture) => {
  const log = await openOldLog(t, fixture);
  t.same(await log.partitions(1024 ** 3).maintain(), NOTHING);
});
