/** Actor systems on nodes of a cluster: verdicts, followers, gates, mail, timers and what a node no longer owns. */
import t, { type Test } from 'tap';
import { stopAfter } from '../../../../kit/close-after.ts';
import { MemoryJournal } from '../../../../kit/journal/memory.ts';
import { defineActor } from '../../../../src/actors/runtime/actor.ts';
import { NotOwner } from '../../../../src/actors/runtime/not-owner.ts';
import { messageTo, type Protocol, receiver } from '../../../../src/actors/runtime/protocol.ts';
import { createClusterNode } from '../../../../src/actors/runtime/replication/cluster-node.ts';
import { Members } from '../../../../src/actors/runtime/replication/members.ts';
import type { LogRow } from '../../../../src/actors/runtime/replication/port.ts';
import { Replica } from '../../../../src/actors/runtime/replication/replica.ts';
import { GatewayError } from '../../../../src/domain/errors.ts';
import { TestCluster, type TestMember } from '../../../support/actors/cluster.ts';
import { rejectsWith } from '../../../support/rejections.ts';

interface Note {
  readonly count: number;
  readonly heard: number;
  readonly fired: number;
}
type Command =
  | { readonly type: 'add' }
  | { readonly type: 'take'; readonly name: string; readonly owner: string }
  | { readonly type: 'free'; readonly name: string; readonly owner: string }
  | { readonly type: 'tell'; readonly toId: string }
  | { readonly type: 'mark' }
  | { readonly type: 'hear' }
  | { readonly type: 'time'; readonly dueMs: number }
  | { readonly type: 'fire' };
type Event = 'added' | 'heard' | 'fired';
type NoteProtocol = Protocol<
  Command,
  {
    readonly add: number;
    readonly take: string;
    readonly free: string;
    readonly tell: number;
    readonly mark: string;
    readonly time: number;
  },
  { readonly type: 'state' },
  { readonly state: Note },
  { readonly type: 'read' },
  { readonly read: number }
>;

const UNAVAILABLE = new GatewayError('JournalUnavailable', undefined, 1);

const NOTES = receiver<Extract<Command, { type: 'hear' }>>('note');
const note = defineActor<Note, NoteProtocol, Event>({
  kind: NOTES,
  version: 1,
  limits: { mailbox: 10, snapshotEvery: 4, idleMs: 60_000 },
  initial: () => ({ count: 0, heard: 0, fired: 0 }),
  evolve: (state, event) => ({
    count: state.count + Number(event === 'added'),
    heard: state.heard + Number(event === 'heard'),
    fired: state.fired + Number(event === 'fired'),
  }),
  query: { state: (state) => state },
  decideNow: { read: ({ count }) => count },
  decide: {
    add: ({ count }) => ({ events: ['added'], reply: count + 1 }),
    take: (_, { name, owner }) => ({
      events: ['added'],
      claims: [{ index: 'publicKey', key: name, owner, onConflict: 'KeyAlreadyRegistered' }],
      reply: name,
    }),
    free: (_, { name, owner }) => ({
      events: ['added'],
      claims: [{ index: 'publicKey', key: name, owner: null, replaces: owner, onConflict: 'NotFound' }],
      reply: name,
    }),
    tell: ({ count }, { toId }) => ({
      events: ['added'],
      send: [messageTo(NOTES, toId, { type: 'hear' })],
      reply: count + 1,
    }),
    mark: (_state, _command, turn) => ({ events: ['added'], reply: turn.newId() }),
    hear: () => ({ events: ['heard'] }),
    time: ({ count }, { dueMs }) => ({
      events: ['added'],
      timers: [{ name: 'n', dueMs, command: { type: 'fire' } }],
      reply: count + 1,
    }),
    fire: () => ({ events: ['fired'] }),
  },
});

interface TwoNodes {
  readonly cluster: TestCluster;
  readonly a: TestMember;
  readonly b: TestMember;
  /** Ids of actors that they own. */
  readonly idA: string;
  readonly idB: string;
}

/** Two nodes of which none may end. */
function withTwoNodes(name: string, run: (t: Test, nodes: TwoNodes) => Promise<void>): void {
  t.test(`cluster: ${name}`, async (t) => {
    const cluster = stopAfter(t, new TestCluster([note]));
    const [a, b] = [await cluster.add('a'), await cluster.add('b')];
    await run(t, { cluster, a, b, idA: cluster.idOf(a, note), idB: cluster.idOf(b, note) });
    const fatal = cluster.members.flatMap(({ fatal }) => fatal);
    t.same(fatal, [], 'no node has ended');
  });
}

// covers C1
withTwoNodes(
  'a node takes commands of actors that it owns, the other one refuses them',
  async (t, { cluster, a, b, idA }) => {
    t.equal(cluster.ownerOf(note, idA), a);
    t.equal(await a.system.ask(note, idA, { type: 'add' }), 1);
    await t.rejects(b.system.ask(note, idA, { type: 'add' }), NotOwner);
  },
);

// covers C1
withTwoNodes(
  'of two nodes that claim a name at once one gets it, the other the conflict',
  async (t, { cluster, a, b, idA, idB }) => {
    const results = await Promise.allSettled([
      a.system.ask(note, idA, { type: 'take', name: 'x', owner: 'a' }),
      b.system.ask(note, idB, { type: 'take', name: 'x', owner: 'b' }),
    ]);
    t.same(results.map(({ status }) => status).sort(), ['fulfilled', 'rejected']);
    await cluster.settle();
    const winner = results[0]?.status === 'fulfilled' ? 'a' : 'b';
    t.equal(a.system.lookup('publicKey', 'x'), winner);
    t.equal(b.system.lookup('publicKey', 'x'), winner);
    const [loser, id] = winner === 'a' ? [b, idB] : [a, idA];
    await rejectsWith(
      t,
      loser.system.ask(note, id, { type: 'take', name: 'x', owner: 'c' }),
      'KeyAlreadyRegistered',
    );
    t.equal(loser.system.now(note, id, { type: 'read' }), 0, 'a refused turn has changed nothing');
    t.equal(await loser.system.ask(note, id, { type: 'add' }), 1, 'and the actor takes the next');
  },
);

withTwoNodes(
  'an answer that changes a name waits until the other node has applied it',
  async (t, { cluster, a, b, idA }) => {
    b.isUnlinked = true;
    let isAnswered = false;
    const taken = a.system.ask(note, idA, { type: 'take', name: 'x', owner: 'a' }).then(() => {
      isAnswered = true;
    });
    const added = a.system.ask(note, cluster.idOf(a, note, 'u'), { type: 'add' });
    await cluster.settle();
    t.equal(await added, 1, 'one that changes none does not wait');
    t.equal(isAnswered, false);
    t.equal(a.system.lookup('publicKey', 'x'), 'a', 'it is in effect here already');
    await cluster.advance(400);
    await taken;
    t.equal(isAnswered, true, 'the renewal of the other node says so');
  },
);

withTwoNodes(
  'after a takeover what follows from a gated turn waits for every node, and nothing else does',
  async (t, { cluster, a, b }) => {
    const c = await cluster.add('c');
    const rest = new Members(c.replica.members.stored());
    rest.change({ type: 'leave' }, a.node.node, a.node.incarnation, c.replica.position + 1);
    const [named = '', cold = ''] = Array.from({ length: 100 }, (_, number) => String(number)).filter(
      (id) => a.view.owns('note', id) && rest.ownerOf('note', id) === b.node.node,
    );
    await a.system.ask(note, cold, { type: 'add' });
    c.isUnlinked = true;
    const take = { type: 'take', name: 'x', owner: named } as const;
    const answers: string[] = [];
    const lost = a.system.ask(note, named, take, { idempotencyKey: 'k' });
    lost.catch(() => undefined).finally(() => answers.push('of the former owner'));
    await cluster.settle();
    await a.node.leave();
    await cluster.settle();
    const repeated = b.system.ask(note, named, take, { idempotencyKey: 'k' });
    const read = Promise.resolve(b.system.query(note, named, { type: 'state' }));
    for (const answer of [repeated, read]) answer.then(() => answers.push('of the new owner'));
    t.equal(await b.system.ask(note, cold, { type: 'add' }), 2, 'an actor without a gated turn answers');
    await cluster.settle();
    t.same(answers, []);
    await cluster.advance(400);
    t.equal(await repeated, 'x');
    t.match(await read, { count: 1 }, 'the renewal of the third node says that it has applied the turn');
  },
);

// covers C1
withTwoNodes('a released name is announced on every node', async (t, { cluster, a, b, idA }) => {
  const heard: string[] = [];
  for (const [name, { system }] of Object.entries({ a, b }))
    system.onRelease('publicKey', (key, owner) => heard.push(`${name} ${key} ${owner}`));
  await a.system.ask(note, idA, { type: 'take', name: 'x', owner: 'o' });
  await a.system.ask(note, idA, { type: 'free', name: 'x', owner: 'o' });
  await cluster.settle();
  t.same(heard.sort(), ['a x o', 'b x o']);
});

// covers C11
withTwoNodes(
  'actors, mail and timers of a node that leaves are at the other one',
  async (t, { cluster, a, b, idB }) => {
    await b.system.ask(note, idB, { type: 'time', dueMs: cluster.clock.nowMs + 2_000 });
    await b.node.leave();
    await cluster.settle();
    await t.rejects(b.system.ask(note, idB, { type: 'add' }), UNAVAILABLE);
    t.equal(await a.system.ask(note, idB, { type: 'add' }), 2);
    await a.system.tell(note, idB, { type: 'hear' });
    await cluster.advance(2_100);
    t.match(await a.system.query(note, idB, { type: 'state' }), { count: 2, heard: 1, fired: 1 });
  },
);

withTwoNodes(
  'a node that joins takes its share, and what it owns now is refused where it was',
  async (t, { cluster, a, b }) => {
    const ids = Array.from({ length: 60 }, (_, index) => String(index));
    for (const id of ids) await cluster.ownerOf(note, id).system.ask(note, id, { type: 'add' });
    const c = await cluster.add('c');
    const moved = ids.filter((id) => c.view.owns('note', id));
    t.ok(moved.length > 5 && moved.length < 40, `${moved.length} of ${ids.length}`);
    for (const id of moved) {
      t.equal(await c.system.ask(note, id, { type: 'add' }), 2);
      for (const { system } of [a, b]) await t.rejects(system.ask(note, id, { type: 'add' }), NotOwner);
    }
  },
);

withTwoNodes(
  'without a lease nothing is read or decided, and it comes back',
  async (t, { cluster, a, idA }) => {
    await a.system.ask(note, idA, { type: 'add' });
    cluster.clock.nowMs += 900;
    t.throws(() => a.system.now(note, idA, { type: 'read' }), UNAVAILABLE);
    t.throws(() => a.system.lookup('publicKey', 'x'), UNAVAILABLE);
    t.throws(() => a.system.query(note, idA, { type: 'state' }), UNAVAILABLE);
    await t.rejects(a.system.ask(note, idA, { type: 'add' }), UNAVAILABLE);
    t.equal(a.system.counters().refused.lease, 4);
    await cluster.advance(200);
    t.equal(await a.system.ask(note, idA, { type: 'add' }), 2);
  },
);

// covers C9
withTwoNodes(
  'ids of an actor rise over a takeover by a node with a slower clock, which also keeps that over a start',
  async (t, { cluster, a, b, idA }) => {
    a.skewMs = 900;
    await cluster.advance(300);
    const before = BigInt(await a.system.ask(note, idA, { type: 'mark' }));
    t.equal(before >> 20n, BigInt(cluster.clock.nowMs + 900));
    await a.node.leave();
    await cluster.settle();
    const [after, next] = [
      BigInt(await b.system.ask(note, idA, { type: 'mark' })),
      BigInt(await b.system.ask(note, idA, { type: 'mark' })),
    ];
    t.ok(before < after && after < next, `${before} ${after} ${next}`);
    const started = new Replica({ store: b.store, isOwn: () => false, logId: '', onBug: t.fail });
    t.equal(started.newestId, next);
  },
);

// covers C8
withTwoNodes('of two nodes that store a first value at once both read the same one', async (t, { a, b }) => {
  const values = await Promise.all([
    a.system.administration.metaOnce('secret', 'of a'),
    b.system.administration.metaOnce('secret', 'of b'),
  ]);
  t.equal(values[0], values[1]);
  t.equal(await a.system.administration.metaOnce('secret', 'late'), values[0]);
});

withTwoNodes('rows that arrive before a node has entered are of a named log', async (t, { cluster, a }) => {
  const store = new MemoryJournal({ immediate: (run) => setImmediate(run) });
  const log = cluster.log.connect();
  log.enter = () => new Promise(() => undefined);
  let push = (_: LogRow): void => undefined;
  const { node } = createClusterNode({
    ...{ store, log, leaseMs: 1_000, name: 'c', clock: cluster.clock.read, monotonicMs: cluster.clock.read },
    peers: (listener) => {
      push = (row) => listener.onPush(row);
      return { push: () => undefined, applied: () => undefined, isFedBy: () => false };
    },
    schedule: { immediate: (run: () => void) => setImmediate(run), timer: cluster.clock.timer },
    onFatal: (error) => t.fail(error.message),
    onBug: ({ error }) => t.error(error),
  });
  void node.enter();
  for (const row of cluster.log.rows) push(row);
  await cluster.settle();
  node.stop();
  const started = new Replica({ store, isOwn: () => false, logId: '', onBug: t.fail });
  t.same([started.position, started.logId], [a.replica.position, 'memory']);
});
