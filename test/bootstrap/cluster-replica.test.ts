/** Handling of a node's data folder at a start, before the journal is opened. */

import { existsSync, mkdirSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import type { Test } from 'tap';
import { loopbackCluster } from '../../kit/cluster/configuration.ts';
import type { Postgres } from '../../kit/cluster/postgres.ts';
import { replicaState } from '../../src/actors/runtime/journal/backup.ts';
import { openJournal } from '../../src/actors/runtime/journal/lmdb.ts';
import { type Operation, REPLICA_KEY } from '../../src/actors/runtime/journal/port.ts';
import { prepareReplica, storeState } from '../../src/bootstrap/cluster/replica.ts';
import { Checkpoints } from '../../src/io/cluster/checkpoints.ts';
import { DatabaseRefusals } from '../../src/io/cluster/node-watch.ts';
import { createLog } from '../../src/io/observability/log.ts';
import { commitRows } from '../support/actors/commit-rows.ts';
import { openPgFixture, SECRET } from '../support/cluster/pg-fixture.ts';
import { postgresTest } from '../support/cluster/postgres.ts';
import { temporaryFolder } from '../support/files/file-storage.ts';

const log = createLog('silent');
const TO = { log, refusals: new DatabaseRefusals({ log, monotonicMs: () => 0 }) };

async function openCluster(t: Test, postgres: Postgres) {
  const { url, connect, database } = await openPgFixture(t, postgres);
  const { logId } = await connect();
  const cluster = loopbackCluster(url, SECRET.toString('hex'));
  const rows = (from: number, to: number) =>
    database.script(
      `insert into gatehouse.log (pos, node, incarnation, node_seq, body) select pos, 1, 1, pos, '' from generate_series(${from}, ${to}) pos`,
    );
  /** A folder whose journal has applied so many rows; undefined: it is not of a node. */
  const folderAt = async (position: number | undefined, digest = 0, life = logId): Promise<string> => {
    const directory = temporaryFolder(t);
    const journal = await openJournal({ directory, stepBytes: 1024 * 1024 });
    const row: Operation = {
      op: 'append',
      kind: 'user',
      id: '1',
      seq: 1,
      row: journal.pack([1, [], [], []]),
    };
    const applied = journal.pack([position, new Uint8Array(32), [], life]);
    const meta: Operation[] = position === undefined ? [] : [{ op: 'meta', key: REPLICA_KEY, row: applied }];
    const sample = journal.pack([200, new Uint8Array(32).fill(digest)]);
    if (digest > 0) meta.push({ op: 'meta', key: 'clusterDigest/2', row: sample });
    await commitRows(journal, [row, ...meta]);
    if (position === 5 || position === 230) {
      const checkpoints = new Checkpoints({ url, secrets: [SECRET] });
      await storeState(checkpoints, journal, directory);
      checkpoints.close();
    }
    await journal.close();
    return directory;
  };
  return { cluster, rows, folderAt };
}

postgresTest(
  'node start: an empty folder gets the newest checkpoint, or nothing when there is none',
  async (t, postgres) => {
    const { cluster, folderAt } = await openCluster(t, postgres);
    const folder = temporaryFolder(t);
    await prepareReplica(cluster, folder, TO);
    t.notOk(existsSync(join(folder, 'data.mdb')));
    mkdirSync(join(folder, 'checkpoint-x'));
    await folderAt(5);
    await prepareReplica(cluster, folder, TO);
    t.equal((await replicaState(folder))?.position, 5);
    t.notOk(existsSync(join(folder, 'checkpoint-x')), 'a copy of a run that was killed');
  },
);

postgresTest(
  'node start: a journal that the log reaches back to stays, one that is too far behind is set aside',
  async (t, postgres) => {
    const { cluster, rows, folderAt } = await openCluster(t, postgres);
    await folderAt(5);
    await rows(3, 6);
    const [near, far] = [await folderAt(3), await folderAt(2)];
    await prepareReplica(cluster, near, TO);
    t.equal((await replicaState(near))?.position, 3);
    await prepareReplica(cluster, far, TO);
    t.equal((await replicaState(far))?.position, 5);
    const [aside = ''] = readdirSync(join(far, 'set-aside'));
    t.match(aside, /-behind$/);
    t.equal((await replicaState(join(far, 'set-aside', aside)))?.position, 2);
    t.notOk(existsSync(join(near, 'set-aside')));
  },
);

postgresTest(
  'node start: a journal with another digest than the checkpoint is set aside, one with the same stays',
  async (t, postgres) => {
    const { cluster, rows, folderAt } = await openCluster(t, postgres);
    await rows(1, 260);
    const [same, other, unknown] = [await folderAt(250, 1), await folderAt(250, 2), await folderAt(90)];
    await folderAt(230, 1);
    for (const folder of [same, other, unknown]) await prepareReplica(cluster, folder, TO);
    t.equal((await replicaState(same))?.position, 250);
    t.equal((await replicaState(unknown))?.position, 90);
    t.equal((await replicaState(other))?.position, 230);
    t.match(readdirSync(join(other, 'set-aside')), [/-diverged$/]);
    t.match(await replicaState(other), { sample: [200, Buffer.alloc(32, 1)] });
  },
);

postgresTest('node start: the journal of another log is refused as such, and stays', async (t, postgres) => {
  const { cluster, rows, folderAt } = await openCluster(t, postgres);
  await folderAt(5);
  await rows(4, 6);
  // Its own log would not reach back to the first, nor agree with the second.
  for (const folder of [await folderAt(2, 0, 'life'), await folderAt(6, 0, 'life')]) {
    const sentence = /^the log is [0-9a-f-]{36}, and this node has followed life$/;
    await t.rejects(prepareReplica(cluster, folder, TO), { name: 'LogLost', message: sentence });
    t.notOk(existsSync(join(folder, 'set-aside')));
  }
});

postgresTest(
  'node start: the journal of a gateway without Cluster is refused and stays',
  async (t, postgres) => {
    const { cluster, folderAt } = await openCluster(t, postgres);
    const folder = await folderAt(undefined);
    await t.rejects(prepareReplica(cluster, folder, TO), { name: 'ClusterUnusable', message: /import/ });
    t.ok(existsSync(join(folder, 'data.mdb')));
  },
);
