/** Digests of what nodes have applied: what they cover, which are kept, and what a difference between nodes means. */
import t from 'tap';
import { stopAfter } from '../../../../kit/close-after.ts';
import { MemoryJournal } from '../../../../kit/journal/memory.ts';
import { defineActor } from '../../../../src/actors/runtime/actor.ts';
import { SAMPLE_ROWS, SAMPLES_MAX } from '../../../../src/actors/runtime/journal/replica-rows.ts';
import type { Protocol } from '../../../../src/actors/runtime/protocol.ts';
import {
  compareCheckpoint,
  compareDigests,
  DigestHistory,
  nextDigest,
} from '../../../../src/actors/runtime/replication/digests.ts';
import { encodeMember } from '../../../../src/actors/runtime/replication/entry.ts';
import { judge } from '../../../../src/actors/runtime/replication/judge.ts';
import type { Diverged, LogRow, NodeState } from '../../../../src/actors/runtime/replication/port.ts';
import { Replica } from '../../../../src/actors/runtime/replication/replica.ts';
import { TestCluster, type TestMember } from '../../../support/actors/cluster.ts';
import { commitRows } from '../../../support/actors/commit-rows.ts';

const digestOf = (fill: number) => new Uint8Array(32).fill(fill);
const ROW: LogRow = { position: 7, node: 1, incarnation: 2, nodeSeq: 3, body: Buffer.from('body') };

t.test(
  'digest: depends on the digest before, the position, the name of the row and each verdict',
  async (t) => {
    const digests = [
      nextDigest(digestOf(0), ROW, Uint16Array.of(0, 1)),
      nextDigest(digestOf(1), ROW, Uint16Array.of(0, 1)),
      ...[{ position: 8 }, { node: 2 }, { incarnation: 3 }, { nodeSeq: 4 }].map((other) =>
        nextDigest(digestOf(0), { ...ROW, ...other }, Uint16Array.of(0, 1)),
      ),
      ...[[], [0], [1, 0], [0, 1, 0], [0, 4 + 300]].map((verdicts) =>
        nextDigest(digestOf(0), ROW, Uint16Array.from(verdicts)),
      ),
    ];
    t.equal(new Set(digests.map((digest) => Buffer.from(digest).toString('hex'))).size, digests.length);
    const body = Buffer.from('other');
    t.same(nextDigest(digestOf(0), { ...ROW, body }, Uint16Array.of(0, 1)), digests[0]);
  },
);

function joins(count: number): LogRow[] {
  const body = encodeMember({ type: 'join' });
  return Array.from({ length: count }, (_, index) => {
    const position = index + 1;
    return { position, node: 1, incarnation: 2, nodeSeq: 40 + position, body };
  });
}

function replicaOver(store: MemoryJournal): Replica {
  return new Replica({ store, isOwn: () => false, logId: 'life', onBug: t.fail });
}

t.test(
  'digest: a replica that is opened again has its position, the row there and its earlier digests',
  async (t) => {
    const store = new MemoryJournal({ immediate: (run) => setImmediate(run) });
    const first = replicaOver(store);
    t.equal(first.lastRow, undefined);
    const rows = joins(3 * SAMPLE_ROWS + 5);
    for (let from = 0; from < rows.length; from += 64) await first.apply(rows.slice(from, from + 64));
    t.equal(first.sample?.position, 3 * SAMPLE_ROWS);
    const again = replicaOver(store);
    t.same(again.lastRow, { node: 1, incarnation: 2, nodeSeq: 40 + rows.length });
    t.same([again.position, again.digest], [first.position, first.digest]);
    for (const position of [1, 2, 3].map((number) => number * SAMPLE_ROWS)) {
      const digest = first.digests.at(position);
      t.equal(digest?.length, 32);
      t.same(again.digests.at(position), digest);
    }
    t.same(again.sample, first.sample);
    t.equal(again.digests.at(SAMPLE_ROWS + 1), undefined);
  },
);

t.test('digest: the same rows in other batches have the same digests', async (t) => {
  const [one, other] = [0, 1].map(() =>
    replicaOver(new MemoryJournal({ immediate: (run) => setImmediate(run) })),
  );
  const rows = joins(150);
  await one?.apply(rows);
  for (const row of rows) await other?.apply([row]);
  t.same(one?.digest, other?.digest);
  t.same(one?.sample, other?.sample);
});

t.test('digest: the newest ones are kept, however long the log is', async (t) => {
  const store = new MemoryJournal({ immediate: (run) => setImmediate(run) });
  const history = new DigestHistory(store, 1);
  const end = SAMPLES_MAX + 10;
  for (let position = 1; position <= end; position += 1) {
    const sample = { position, digest: digestOf(position % 251) };
    await commitRows(store, [history.writeOf(sample)]);
    history.add(sample);
  }
  for (const each of [history, new DigestHistory(store, 1)]) {
    t.equal(each.at(10), undefined);
    t.same(each.at(11), digestOf(11));
    t.same(each.newest, { position: end, digest: digestOf(end % 251) });
  }
});

/** This node has the digest 1 at 100, 2 at 200 and 3 at 300. */
function comparedWith(...others: (readonly [position: number, fill: number] | undefined)[]) {
  const history = new DigestHistory(new MemoryJournal(), SAMPLE_ROWS);
  for (const fill of [1, 2, 3]) history.add({ position: fill * SAMPLE_ROWS, digest: digestOf(fill) });
  const states = others.map((other, index): NodeState => {
    const sample = other && { position: other[0], digest: digestOf(other[1]) };
    return { node: index + 2, renewals: 1, applied: 1, sample };
  });
  const { confirmedTo, diverged } = compareDigests(history, states);
  return { confirmedTo, verdict: diverged?.isOutvoted ?? 'continues', diverged };
}

t.test('comparison: a node that most members agree with continues, and knows how far', async (t) => {
  t.match(comparedWith(), { confirmedTo: 0, verdict: 'continues' });
  t.match(comparedWith(undefined), { confirmedTo: 0, verdict: 'continues' });
  t.match(comparedWith([100, 1]), { confirmedTo: 100, verdict: 'continues' });
  t.match(comparedWith([100, 1], [300, 3]), { confirmedTo: 300, verdict: 'continues' });
  t.match(comparedWith([100, 1], [300, 9]), { confirmedTo: 100, verdict: 'continues' });
  t.match(comparedWith([300, 3], [200, 2], [100, 1]), { confirmedTo: 200, verdict: 'continues' });
  t.match(comparedWith([400, 9], [500, 9]), { confirmedTo: 0, verdict: 'continues' }, 'not reached here');
});

t.test('comparison: a node that most members contradict ends, and fetches the state anew', async (t) => {
  const { verdict, diverged } = comparedWith([200, 9], [200, 9]);
  t.equal(verdict, true);
  t.match(diverged, {
    message: /row 200 .* node 2, 3, which are most/,
    own: { position: 200, digest: digestOf(2) },
  });
  t.equal(comparedWith([200, 9], [300, 8]).verdict, true);
  t.equal(comparedWith([100, 9], [100, 9], [300, 3]).verdict, false, 'two against two');
});

t.test('comparison: without a majority a node ends, and the operator decides', async (t) => {
  const { verdict, diverged } = comparedWith([200, 9]);
  t.equal(verdict, false);
  t.match(diverged, { message: /node 2, and there is no majority: .* cluster recover/ });
  t.equal(comparedWith([200, 8], [200, 9]).verdict, false, 'the others contradict each other');
});

t.test('comparison: a checkpoint counts more than a node alone, and less than most members', async (t) => {
  const digests = new DigestHistory(new MemoryJournal(), SAMPLE_ROWS);
  digests.add({ position: 200, digest: digestOf(2) });
  const compared = (confirmedTo: number, position: number, fill: number) =>
    compareCheckpoint({ digests, confirmedTo }, { position, digest: digestOf(fill) });
  t.equal(compared(0, 200, 2), 'agrees');
  t.equal(compared(0, 100, 9), 'agrees', 'no longer known');
  t.match(compared(0, 200, 9), { isOutvoted: true, message: /row 200 .* that of the checkpoint: / });
  t.match(compared(100, 200, 9), { isOutvoted: true }, 'confirmed before that position');
  t.equal(compared(200, 200, 9), 'wrong');
});

type NameProtocol = Protocol<
  { readonly type: 'take'; readonly name: string; readonly owner: string },
  { readonly take: string },
  never,
  never,
  never,
  never
>;

const holder = defineActor<number, NameProtocol, 'taken'>({
  kind: 'holder',
  version: 1,
  limits: { mailbox: 10, snapshotEvery: 4, idleMs: 60_000 },
  initial: () => 0,
  evolve: (count) => count + 1,
  query: {},
  decideNow: {},
  decide: {
    take: (_, { name, owner }) => ({
      events: ['taken'],
      claims: [{ index: 'publicKey', key: name, owner, onConflict: 'KeyAlreadyRegistered' }],
      reply: name,
    }),
  },
});

/** Nodes of which the last one sees no conflict of names, and one such conflict. */
async function divergedCluster(names: readonly string[]) {
  const cluster = stopAfter(t, new TestCluster([holder]));
  const members: TestMember[] = [];
  for (const [index, name] of names.entries()) {
    const isStrange = index === names.length - 1;
    const claimless: typeof judge = (turn, ...rest) => judge({ ...turn, claims: [] }, ...rest);
    members.push(await cluster.add(name, { sampleRows: 2, ...(isStrange && { judge: claimless }) }));
  }
  const [a, b] = members as [TestMember, TestMember];
  await Promise.allSettled([
    a.system.ask(holder, cluster.idOf(a, holder), { type: 'take', name: 'x', owner: 'a' }),
    b.system.ask(holder, cluster.idOf(b, holder), { type: 'take', name: 'x', owner: 'b' }),
  ]);
  await cluster.settle();
  const id = cluster.idOf(a, holder, 'more');
  for (const name of ['y', 'z'])
    a.system.ask(holder, id, { type: 'take', name, owner: 'c' }).catch(() => undefined);
  await cluster.advance(1_000);
  return members.map(({ fatal }) => fatal.map((error) => (error as Diverged).isOutvoted));
}

t.test('cluster: of three nodes the one that judged otherwise ends, and the others continue', async (t) => {
  t.same(await divergedCluster(['a', 'b', 'c']), [[], [], [true]]);
});

t.test('cluster: of two nodes that judged otherwise both end', async (t) => {
  t.same(await divergedCluster(['a', 'b']), [[false], [false]]);
});
