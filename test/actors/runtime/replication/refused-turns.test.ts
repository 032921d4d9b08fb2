/** Turns that a replica refuses are counted by reason: no content of a row stops it. */
import t from 'tap';
import { MemoryJournal } from '../../../../kit/journal/memory.ts';
import type { JournalTurn, Operation } from '../../../../src/actors/runtime/journal/port.ts';
import { encodeMember, encodeTurns } from '../../../../src/actors/runtime/replication/entry.ts';
import { judge } from '../../../../src/actors/runtime/replication/judge.ts';
import { Replica, type UnjudgedTurn } from '../../../../src/actors/runtime/replication/replica.ts';

const MEMBER = { node: 1, incarnation: 2 };

t.test(
  'replica: refused turns are counted by reason, those that throw are reported, and later rows are applied',
  async (t) => {
    const store = new MemoryJournal({ immediate: (run) => setImmediate(run) });
    const bugs: UnjudgedTurn[] = [];
    const replica = new Replica({
      ...{ store, isOwn: () => false, logId: 'life', onBug: (report: UnjudgedTurn) => bugs.push(report) },
      judge(turn, writer, view) {
        if (turn.id === 'thrown') throw new Error('a bug of the judge');
        return judge(turn, writer, view);
      },
    });
    const append = (id: string, seq: number): Operation => ({
      ...{ op: 'append', kind: 'user', id, seq },
      row: store.pack([1, [], [], []]),
    });
    const turn = (id: string, operations: readonly Operation[]): JournalTurn => ({
      ...{ kind: 'user', id, operations, claims: [] },
    });
    const claiming = (id: string, owner: string): JournalTurn => ({
      ...turn(id, [append(id, 1)]),
      claims: [{ index: 'publicKey', key: 'k', owner, onConflict: 'KeyAlreadyRegistered' }],
    });
    const bodies: readonly (readonly [body: Uint8Array, node: number])[] = [
      [encodeMember({ type: 'join' }), 1],
      [encodeTurns([turn('a', [append('a', 1)]), turn('a', [append('a', 7)])], 0n), 1],
      [encodeTurns([turn('b', [append('b', 1)])], 0n), 2],
      [encodeTurns([claiming('c', 'c'), claiming('d', 'd')], 0n), 1],
      [encodeTurns([turn('e', [append('other', 1)])], 0n), 1],
      [Buffer.from('no entry'), 1],
      [encodeTurns([turn('thrown', [append('thrown', 1)])], 0n), 1],
      [encodeTurns([turn('a', [append('a', 2)])], 0n), 1],
    ];
    await replica.apply(
      bodies.map(([body, node], index) => ({ ...MEMBER, node, position: index + 1, nodeSeq: index, body })),
    );
    t.same(replica.turnsRefused, { fenced: 1, stale: 1, conflict: 1, refused: 2, thrown: 1 });
    t.match(bugs, [{ kind: 'user', id: 'thrown', error: { message: 'a bug of the judge' } }]);
    t.equal(bugs.length, 1);
    t.equal(replica.position, bodies.length);
    t.equal(store.lastSeq('user', 'a'), 2, 'later rows are applied');
    t.equal(store.lastSeq('user', 'thrown'), 0);
  },
);
