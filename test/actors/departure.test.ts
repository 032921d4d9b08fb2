/** Calls for the actors of a node while it gives up its place in the cluster. */
import t from 'tap';
import { MemoryJournal } from '../../kit/journal/memory.ts';
import { Departure } from '../../src/actors/departure.ts';
import { KINDS } from '../../src/actors/kinds.ts';
import { createRoutedSystem } from '../../src/actors/routed-system.ts';
import { NotOwner } from '../../src/actors/runtime/not-owner.ts';
import { encodeMember } from '../../src/actors/runtime/replication/entry.ts';
import { Replica } from '../../src/actors/runtime/replication/replica.ts';
import type { Schedule } from '../../src/actors/runtime/runtime-context.ts';
import { RemoteActors } from '../../src/io/cluster/actor-calls.ts';
import { account } from '../support/actors/account-kind.ts';
import { createTestActors, ManualClock } from '../support/actors/actors.ts';

function createDeparture() {
  const clock = new ManualClock();
  const schedule: Schedule = { immediate: (run) => void setImmediate(run), timer: clock.timer };
  return { clock, departure: new Departure(schedule) };
}

/** Steps of a leave that the test resolves, and their order. */
function createSteps() {
  const order: string[] = [];
  const ends: (() => void)[] = [];
  const step = (name: string) => () => {
    order.push(name);
    return new Promise<void>((resolve) => ends.push(resolve));
  };
  const drain = step('drain');
  return {
    order,
    local: { drain: () => drain().then(() => true) },
    leave: step('leave'),
    /** The step under way ends, and what follows from it has happened. */
    async end() {
      ends.shift()?.();
      await new Promise((resolve) => setImmediate(resolve));
    },
  };
}

t.test('departure: announced, a node reports no health and serves its actors', async (t) => {
  const { departure } = createDeparture();
  t.equal(departure.isAnnounced, false);
  departure.announce();
  t.same([departure.isAnnounced, departure.isLeaving], [true, false]);
  t.equal(
    departure.hold(() => 'served'),
    'served',
  );
});

t.test('departure: own writes end before the leave, and calls wait until it is over', async (t) => {
  const { departure } = createDeparture();
  const { order, local, leave, end } = createSteps();
  const left = departure.leave(local, leave);
  t.equal(departure.leave(local, leave), left, 'a second request is the first one');
  const seen: unknown[] = [];
  const held = departure.hold(async () => 'served');
  held.catch((error: unknown) => seen.push(error));
  t.same(order, ['drain']);
  await end();
  t.same([order, seen], [['drain', 'leave'], []], 'the call waits');
  await end();
  await left;
  t.match(seen, [new NotOwner()]);
});

t.test('departure: a database that does not answer holds it for 5 s at most', async (t) => {
  const { clock, departure } = createDeparture();
  const { order, local, leave, end } = createSteps();
  let isOver = false;
  const left = departure.leave(local, leave).then(() => {
    isOver = true;
  });
  await end();
  t.same([order, isOver], [['drain', 'leave'], false]);
  clock.fireNext(clock.nowMs + 4_999);
  await new Promise((resolve) => setImmediate(resolve));
  t.equal(isOver, false);
  clock.fireNext(clock.nowMs + 5_000);
  await left;
  t.equal(isOver, true);
});

t.test('departure: a call that waited is made at the new owner, once', async (t) => {
  const here = createTestActors({ kinds: [account] });
  const { departure } = createDeparture();
  const { local, leave, end } = createSteps();
  let owner = 1;
  const asked: string[] = [];
  const routed = createRoutedSystem({
    local: here.system,
    remote: new RemoteActors(async (node, verb) => {
      asked.push(`${node} ${verb}`);
      return { position: 0, value: `of ${node}` };
    }),
    routing: { node: 1, departure, ownerOf: () => owner, appliedAtLeast: async () => {} },
    kinds: KINDS,
  });
  t.equal(await routed.ask(account, 'a', { type: 'deposit', amount: 5 }), 5, 'its own until then');
  const left = departure.leave(local, async () => {
    await leave();
    owner = 2;
  });
  const asks = [
    routed.ask(account, 'a', { type: 'deposit', amount: 5 }),
    routed.query(account, 'a', { type: 'state' }),
    routed.remembers(account, 'a', 'key'),
  ];
  await end();
  t.same(asked, [], 'nothing is asked before the leave');
  await end();
  await left;
  t.same(await Promise.all(asks as unknown[]), ['of 2', 'of 2', 'of 2']);
  t.same(asked, ['2 ask', '2 query', '2 remembers']);
  t.match(here.system.query(account, 'a', { type: 'state' }), { balance: 5 }, 'nothing more was done here');
});

t.test('departure: rows on their way to the store are visible before it closes', async (t) => {
  const writes: (() => void)[] = [];
  const store = new MemoryJournal({ immediate: (run) => writes.push(run) });
  const replica = new Replica({ store, isOwn: () => false, logId: 'life', onBug: t.fail });
  const order: string[] = [];
  replica.follow({ applied: () => undefined, membersChanged: () => order.push('read') });
  const body = encodeMember({ type: 'join' });
  const applied = replica.apply([{ position: 1, node: 1, incarnation: 2, nodeSeq: 3, body }]);
  const closed = replica.settled().then(() => order.push('closed'));
  await new Promise((resolve) => setImmediate(resolve));
  t.same(order, [], 'the store has not answered');
  for (const write of writes) write();
  await Promise.all([applied, closed]);
  t.same(order, ['read', 'closed']);
});
