/** The state of a node as a checkpoint: another node begins with it, at its position. */
import { readdirSync } from 'node:fs';
import t from 'tap';
import { closeAfter } from '../../kit/close-after.ts';
import { copyAsReplica, replicaState } from '../../src/actors/runtime/journal/backup.ts';
import { openJournal } from '../../src/actors/runtime/journal/lmdb.ts';
import {
  EVENT_EPOCH_KEY,
  type Journal,
  type Operation,
  REPLICA_KEY,
} from '../../src/actors/runtime/journal/port.ts';
import { fetchState, storeState } from '../../src/bootstrap/cluster/replica.ts';
import { Checkpoints } from '../../src/io/cluster/checkpoints.ts';
import { commitRows } from '../support/actors/commit-rows.ts';
import { pgTest, SECRET } from '../support/cluster/pg-fixture.ts';
import { temporaryFolder } from '../support/files/file-storage.ts';

const STEP_BYTES = 1024 * 1024;

const openAt = (directory: string) => openJournal({ directory, stepBytes: STEP_BYTES });

/** A row of an actor: the journal is not empty. */
const account = (journal: Journal): Operation => ({
  op: 'append',
  kind: 'user',
  id: '1',
  seq: 1,
  row: journal.pack([1, [{ type: 'made' }], [], []]),
});

t.test(
  'cluster state: a log begins above the numbers of messages and events that wait, and keeps the log of events',
  async (t) => {
    const [from, target] = [temporaryFolder(t), temporaryFolder(t)];
    const journal = await openAt(from);
    const epoch: Operation = { op: 'meta', key: EVENT_EPOCH_KEY, row: journal.pack('epoch') };
    const mail = (seq: number): Operation => ({
      op: 'mail',
      key: { toKind: 'user', toId: '1', seq, fromKind: 'user', fromId: '2' },
      row: journal.pack({ type: 'x' }),
    });
    const sample: Operation = {
      op: 'meta',
      key: 'clusterDigest/1',
      row: journal.pack([100, new Uint8Array(32)]),
    };
    await commitRows(journal, [account(journal), epoch, sample, mail(5), mail(7 * 65_536 + 1), mail(9)]);
    t.equal(await copyAsReplica(from, temporaryFolder(t), { from: 3, logId: 'life' }), 8);
    const row = journal.pack(['wallet', '1', 'x', null, null, null, null, '{}', 5, 'id']);
    await commitRows(journal, [{ op: 'eventWait', arrival: 9 * 65_536, identity: 'id', row }]);
    await journal.close();
    t.equal(await copyAsReplica(from, target, { from: 3, logId: 'life' }), 10);
    t.equal((await replicaState(target))?.position, 10);
    t.equal((await replicaState(from))?.position, undefined);
    const copy = await openAt(target);
    t.equal(copy.meta(EVENT_EPOCH_KEY), 'epoch');
    t.match(copy.meta(REPLICA_KEY), [10, new Uint8Array(32), [], 'life', [0, 0, 0]]);
    t.equal(copy.meta('clusterDigest/1'), undefined, 'of another log');
    t.equal(copy.mail('user', '1', 0, 10).length, 3);
    await copy.close();
  },
);

t.test('cluster state: a backup of a node serves without a cluster', async (t) => {
  const [from, target] = [temporaryFolder(t), temporaryFolder(t)];
  const journal = await openAt(from);
  await commitRows(journal, [
    account(journal),
    { op: 'meta', key: REPLICA_KEY, row: journal.pack([5, new Uint8Array(32), [], 'life']) },
  ]);
  await journal.backup(target, true);
  await journal.close();
  t.equal((await replicaState(target))?.position, undefined);
});

// covers C16
pgTest(
  'cluster state: what a node stores is fetched by the next one, into an empty folder alone',
  async (t, { url, connect }) => {
    await connect();
    const checkpoints = closeAfter(t, new Checkpoints({ url, secrets: [SECRET] }));
    const [first, second] = [temporaryFolder(t), temporaryFolder(t)];
    t.equal(await fetchState(checkpoints, second, 'life'), undefined, 'there is none yet');
    const journal = await openAt(first);
    t.equal(await storeState(checkpoints, journal, first), undefined, 'it has applied nothing');
    const row = journal.pack([1, [{ type: 'made' }], [], []]);
    await commitRows(journal, [
      { op: 'append', kind: 'user', id: '1', seq: 1, row },
      { op: 'index', index: 'publicKey', key: 'key', owner: '1' },
      { op: 'audit', ring: 'calls', row: journal.pack({ n: 1 }) },
      { op: 'audit', ring: 'node/calls', row: journal.pack({ n: 2 }) },
      {
        op: 'meta',
        key: REPLICA_KEY,
        row: journal.pack([42, new Uint8Array(32).fill(1), [[1, 2, 3]], 'former life']),
      },
    ]);
    t.equal(await storeState(checkpoints, journal, first), 42);
    t.same(
      readdirSync(first).filter((name) => name.startsWith('checkpoint-')),
      [],
    );
    t.equal(await fetchState(checkpoints, second, 'life'), 42);
    const fetched = await openAt(second);
    t.match(fetched.load('user', '1'), journal.load('user', '1'));
    t.equal(fetched.lookup('publicKey', 'key'), '1');
    t.match(fetched.auditPage(0, 10), [{ ring: 'calls' }], 'without the records of that node alone');
    t.equal(fetched.auditPage(0, 10).length, 1);
    t.match(fetched.meta(REPLICA_KEY), [42, new Uint8Array(32).fill(1), [[1, 2, 3]], 'life']);
    t.equal(fetched.meta(EVENT_EPOCH_KEY), journal.meta(EVENT_EPOCH_KEY));
    await fetched.close();
    t.equal(await fetchState(checkpoints, second, 'life'), undefined, 'a journal is never overwritten');
    await journal.close();
  },
);
