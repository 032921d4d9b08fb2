/** Rows of the shared log: which version a row has, so that a node of an earlier release never applies what it cannot judge. */
import t from 'tap';
import { type Operation, ofNoActor } from '../../../../src/actors/runtime/journal/port.ts';
import { createPackr } from '../../../../src/actors/runtime/journal/row-checksum.ts';
import {
  decodeEntry,
  EntryTooNew,
  encodeMember,
  encodeTurns,
} from '../../../../src/actors/runtime/replication/entry.ts';

const packr = createPackr();
const versionOf = (body: Uint8Array) => (packr.unpack(body) as readonly unknown[])[0];
const rowOf = (operation: Operation, partition?: number) =>
  encodeTurns([ofNoActor([operation], partition)], 1n);

t.test('entry: rows that 0.2.0 judges alike keep the version that it reads', async (t) => {
  const mail: Operation = {
    op: 'mail',
    key: { toKind: 'user', toId: '1', seq: 1, fromKind: 'user', fromId: '2' },
    row: 1,
  };
  for (const body of [
    rowOf(mail),
    rowOf({ op: 'metaOnce', key: 'k', row: 1 }),
    rowOf({ op: 'auditTrim', ring: 'calls', rows: 1 }, 3),
    encodeMember({ type: 'join' }),
  ])
    t.equal(versionOf(body), 1);
});

t.test('entry: rows with events, or with a value of a partition, stop a node of 0.2.0', async (t) => {
  for (const body of [
    rowOf({ op: 'eventAccept', identity: 'i', row: 1 }),
    rowOf({ op: 'eventPublish', row: 1 }),
    rowOf({ op: 'eventRelease', arrival: 1 }, 3),
    rowOf({ op: 'eventRemove', sequence: 1, identity: null }, 3),
    rowOf({ op: 'metaOnce', key: 'k', row: 1 }, 3),
  ]) {
    t.equal(versionOf(body), 2);
    t.equal(decodeEntry(body).type, 'turns');
  }
  const release = decodeEntry(rowOf({ op: 'eventRelease', arrival: 1, row: 1 }, 3));
  t.match(release, { turns: [{ operations: [{ op: 'eventRelease', arrival: 1 }] }] });
  t.notMatch(release, { turns: [{ operations: [{ row: 1 }] }] }, 'each node has the row');
  t.throws(() => decodeEntry(packr.pack([3, 'turns', [], 1n])), EntryTooNew);
});

t.test('entry: a contact sync token stops a node of 0.2.0, which has no index of them', async (t) => {
  const claim = { index: 'contactSync', key: 'hash', owner: '1:2', onConflict: 'InternalError' } as const;
  const turn = { kind: 'user', id: '1', operations: [], claims: [claim] };
  t.equal(versionOf(encodeTurns([turn], 1n)), 2);
  const login = { ...turn, claims: [{ ...claim, index: 'sidHash' as const }] };
  t.equal(versionOf(encodeTurns([login], 1n)), 1);
});
