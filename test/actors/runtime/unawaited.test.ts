/** Turns whose reply waits for no commit: what leaves at once, what starts the commit, and what a crash takes. */
import t from 'tap';
import { defineActor } from '../../../src/actors/runtime/actor.ts';
import type { Protocol } from '../../../src/actors/runtime/protocol.ts';
import { createTestActors } from '../../support/actors/actors.ts';

/** The longest delay of an unawaited write, milliseconds. */
const DELAY_MS = 50;

type Command = { readonly type: 'note' } | { readonly type: 'write' } | { readonly type: 'read' };
type Counts = Protocol<
  Command,
  { readonly note: number; readonly write: number; readonly read: number },
  { readonly type: 'count' },
  { readonly count: number }
>;

const counter = defineActor<number, Counts, 'one'>({
  kind: 'counter',
  version: 1,
  limits: { mailbox: 10, snapshotEvery: 3, idleMs: 60_000 },
  initial: () => 0,
  evolve: (count) => count + 1,
  decide: {
    note: (count) => ({ events: ['one'], reply: count + 1, unawaited: true }),
    write: (count) => ({ events: ['one'], reply: count + 1 }),
    read: (count) => ({ reply: count }),
  },
  query: { count: (count) => count },
});

async function setUp() {
  const actors = createTestActors({ kinds: [counter] });
  // A start writes too.
  await actors.settle();
  const before = actors.system.counters().groups;
  const ask = (type: Command['type']) => actors.system.ask(counter, '1', { type });
  return { actors, ask, groups: () => actors.system.counters().groups - before };
}

type Setting = Awaited<ReturnType<typeof setUp>>;

t.test('unawaited turn: the reply leaves at once, the rows are written after 50 ms', async (t) => {
  const { actors, ask, groups } = await setUp();
  t.equal(await ask('note'), 1);
  t.equal(await ask('note'), 2);
  await actors.settle();
  t.equal(groups(), 0);
  await actors.advance(DELAY_MS - 1);
  t.equal(groups(), 0);
  await actors.advance(1);
  t.equal(groups(), 1, 'both in one group');
  await actors.restart();
  t.equal(await actors.system.query(counter, '1', { type: 'count' }), 2);
});

t.test('unawaited turn: a crash before the commit takes its rows, and no others', async (t) => {
  const { actors, ask } = await setUp();
  await ask('write');
  await ask('note');
  await actors.restart();
  t.equal(await actors.system.query(counter, '1', { type: 'count' }), 1);
});

t.test('unawaited turn: its reply waits for awaited writes that came before', async (t) => {
  const { actors, ask, groups } = await setUp();
  const order: string[] = [];
  const written = ask('write').then(() => order.push('write'));
  const noted = ask('note').then(() => order.push('note'));
  await Promise.resolve();
  t.same(order, []);
  await Promise.all([written, noted]);
  t.same(order, ['write', 'note']);
  t.equal(groups(), 1);
  await actors.settle();
});

t.test(
  'unawaited turn: a query, a reply without writes and an awaited turn start its commit at once',
  async (t) => {
    const waits: Record<string, (set: Setting) => Promise<number> | number> = {
      query: ({ actors }) => actors.system.query(counter, '1', { type: 'count' }),
      reply: ({ ask }) => ask('read'),
      turn: ({ ask }) => ask('write'),
    };
    for (const [name, wait] of Object.entries(waits)) {
      const set = await setUp();
      await set.ask('note');
      const answer = wait(set);
      t.equal(set.groups(), 0);
      t.equal(await answer, name === 'turn' ? 2 : 1, name);
      t.equal(set.groups(), 1, `${name}: no time has passed`);
    }
  },
);

t.test('unawaited turn: a stop writes its rows, a snapshot covers them', async (t) => {
  const { actors, ask } = await setUp();
  for (let at = 0; at < 4; at += 1) await ask('note');
  const drained = actors.system.drain(1_000);
  await actors.advance(1_000);
  t.equal(await drained, true);
  await actors.restart();
  t.equal(await actors.system.query(counter, '1', { type: 'count' }), 4);
});
