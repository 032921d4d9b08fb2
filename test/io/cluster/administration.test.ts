/** Work of the commands of a cluster in the database. */

import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Test } from 'tap';
import { closeAfter } from '../../../kit/close-after.ts';
import { Expelled, LogLost } from '../../../src/actors/runtime/replication/port.ts';
import { ClusterAdministration } from '../../../src/io/cluster/administration.ts';
import { Checkpoints } from '../../../src/io/cluster/checkpoints.ts';
import type { PgLogOptions } from '../../../src/io/cluster/pg-log.ts';
import { LEASE_MS, type PgFixture, pgTest, SECRET } from '../../support/cluster/pg-fixture.ts';
import { temporaryFolder } from '../../support/files/file-storage.ts';

const BODY = Buffer.from('body');

async function openAdministration(t: Test, fixture: PgFixture) {
  const waits: number[] = [];
  const administration = new ClusterAdministration({
    url: fixture.url,
    secrets: [SECRET],
    leaseMs: LEASE_MS,
    monotonicMs: () => 0,
    async wait(ms) {
      waits.push(ms);
      if (fixture.alive)
        await fixture.database.script('update gatehouse.node set renewals = renewals + 1 where joined');
    },
  });
  t.teardown(() => administration.close());
  const file = join(temporaryFolder(t), 'state');
  writeFileSync(file, 'state of a journal');
  /** Joins by row 1, and writes row 2. */
  const joined = async (name: string, given: Partial<PgLogOptions> = {}) => {
    const log = await fixture.connect(given);
    const { node, incarnation } = await log.enter(name);
    const write = (nodeSeq: number) => ({ node, incarnation, nodeSeq, body: BODY });
    await log.join(write(1));
    await log.append(write(2));
    return { log, node, incarnation, write };
  };
  return { ...fixture, fixture, administration, file, joined, waits };
}

pgTest('cluster administration: an empty database has no state, and stays empty', async (t, fixture) => {
  const { administration } = await openAdministration(t, fixture);
  await t.rejects(administration.state(), { name: 'ClusterUnusable', message: /holds no log/ });
  await t.rejects(administration.forget('a'), { name: 'ClusterUnusable', message: /holds no log/ });
});

pgTest('cluster administration: the state has the log, its checkpoint and every node', async (t, fixture) => {
  const { administration, joined, connect } = await openAdministration(t, fixture);
  const { log, node, incarnation } = await joined('a');
  await (await connect()).enter('b');
  await log.renew(node, incarnation, 1);
  t.match(await administration.state(), {
    logId: log.logId,
    layout: 1,
    position: 2,
    checkpoint: undefined,
    nodes: [
      { name: 'a', node: 1, joined: true, applied: 1, address: '127.0.0.1:1', version: '0' },
      { name: 'b', node: 2, joined: false, applied: 0 },
    ],
  });
});

pgTest(
  'cluster administration: a name is given up when its node is out, and not before',
  async (t, fixture) => {
    const { administration, joined } = await openAdministration(t, fixture);
    const { log, write } = await joined('a');
    t.equal(await administration.forget('a'), 'joined');
    t.equal(await administration.forget('b'), 'unknown');
    await log.leave(write(3));
    t.equal(await administration.forget('a'), 'forgotten');
    t.same((await administration.state()).nodes, []);
    const again = await log.enter('c');
    t.equal(again.node, 1);
    t.ok(again.incarnation > write(1).incarnation + 1);
  },
);

pgTest('cluster administration: an import needs a log that nothing has used', async (t, fixture) => {
  const { administration, joined } = await openAdministration(t, fixture);
  t.equal((await administration.requireUnused(true)).position, 0);
  await joined('a');
  await t.rejects(administration.requireUnused(true), { name: 'ClusterUnusable', message: /in use/ });
});

pgTest('cluster administration: a recovery needs every node to have stopped', async (t, fixture) => {
  const { administration, joined, waits } = await openAdministration(t, fixture);
  await joined('a', { leaseMs: 7 * LEASE_MS });
  await t.rejects(administration.requireUnused(false), { name: 'ClusterUnusable', message: /node a runs/ });
  t.same(waits, [7 * LEASE_MS], 'the longest lease of all');
  fixture.alive = false;
  t.equal((await administration.requireUnused(false)).position, 2);
});

pgTest(
  'cluster administration: a replaced log begins with the state, and no former row or node lives on',
  async (t, fixture) => {
    const { administration, joined, file, url, connect } = await openAdministration(t, fixture);
    const { log, node, incarnation, write } = await joined('a');
    const logId = '00000000-0000-4000-8000-000000000001';
    await administration.replaceLog(logId, 3_000_000, file);
    await t.rejects(log.append(write(3)), Expelled);
    await t.rejects(log.resolve(write(3)), Expelled);
    await t.rejects(log.renew(node, incarnation, 2), LogLost, 'a new connection');
    await t.rejects(log.fetch(2, 10), LogLost);
    const { position, checkpoint, nodes } = await administration.state();
    t.match({ position, checkpoint }, { position: 3_000_000, checkpoint: { position: 3_000_000, parts: 1 } });
    t.match(nodes, [{ name: 'a', joined: false, applied: 0 }]);
    const checkpoints = closeAfter(t, new Checkpoints({ url, secrets: [SECRET] }));
    await checkpoints.download({ position: 3_000_000, parts: 1 }, `${file}-fetched`);
    t.equal(readFileSync(`${file}-fetched`, 'utf8'), 'state of a journal');
    const next = await connect();
    const entered = await next.enter('a');
    t.match(entered, { node, logId, position: 3_000_000 });
    t.equal(await next.join({ ...write(1), incarnation: entered.incarnation }), 3_000_001);
    t.same(
      (await next.fetch(3_000_000, 10)).map(({ position }) => position),
      [3_000_001],
    );
  },
);

pgTest(
  'cluster administration: after a restore the log is another one for every reader',
  async (t, fixture) => {
    const { administration, joined, connect } = await openAdministration(t, fixture);
    const { log } = await joined('a');
    t.not(await administration.renameLog(), log.logId);
    t.equal((await (await connect()).fetch(0, 10)).length, 2);
  },
);
