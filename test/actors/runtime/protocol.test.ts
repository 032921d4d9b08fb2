/** Typed actor protocol: what must not compile is stated by conditional types, so that `tsc` checks it with the build. */
import t from 'tap';
import type { UploadProtocol } from '../../../src/actors/files/v1/upload.ts';
import type { StoredChunk } from '../../../src/actors/files/v1/upload-messages.ts';
import {
  type ActorSystem,
  defineActor,
  type Handlers,
  type Outcome,
  type Timer,
} from '../../../src/actors/runtime/actor.ts';
import type { Protocol, Tagged } from '../../../src/actors/runtime/protocol.ts';
import { createTestActors } from '../../support/actors/actors.ts';

type Accepts<Target, Value> = [Value] extends [Target] ? true : false;
type Equal<One, Other> = [One] extends [Other] ? ([Other] extends [One] ? true : false) : false;

/** Compiles only where the type argument is what the name says. */
function holds<_Condition extends true>(): true {
  return true;
}
function fails<_Condition extends false>(): true {
  return true;
}

type CounterEvent = { readonly type: 'added'; readonly amount: number };
type CounterProtocol = Protocol<
  | { readonly type: 'add'; readonly amount: number }
  | { readonly type: 'announce' }
  | { readonly type: 'schedule'; readonly dueMs: number | null }
  | { readonly type: 'internal' },
  { readonly add: number; readonly announce: null; readonly schedule: null },
  { readonly type: 'total' },
  { readonly total: number },
  { readonly type: 'peek' },
  { readonly peek: string }
>;

const announced: string[] = [];

const counter = defineActor<number, CounterProtocol, CounterEvent>({
  kind: 'counter',
  version: 1,
  limits: { mailbox: 8, snapshotEvery: 8, idleMs: 1_000 },
  initial: () => 0,
  evolve: (state, { amount }) => state + amount,
  decide: {
    add: (state, { amount }) => ({ events: [{ type: 'added', amount }], reply: state + amount }),
    announce: (_state, _command, { commandId }) => ({
      events: [{ type: 'added', amount: 1 }],
      notify: () => announced.push(commandId),
      reply: null,
    }),
    schedule: (_state, { dueMs }) => ({
      timers: [
        dueMs === null ? { name: 'later', dueMs } : { name: 'later', dueMs, command: { type: 'internal' } },
      ],
      reply: null,
    }),
    internal: () => ({ events: [{ type: 'added', amount: 100 }] }),
  },
  query: { total: (state) => state },
  decideNow: { peek: (state) => `${state}` },
});

type Add = Handlers<number, CounterProtocol, CounterEvent>['add'];
type Asked<P extends { readonly command: { readonly type: string } }> = Tagged<P['command'], string>;

t.test(
  'protocol: a wrong reply, a foreign command and a cancelling timer with a command do not compile',
  async (t) => {
    t.ok(holds<Accepts<ReturnType<Add>, Outcome<CounterEvent, number>>>());
    t.ok(fails<Accepts<ReturnType<Add>, Outcome<CounterEvent, string>>>(), 'a reply of another type');
    t.ok(fails<Accepts<ReturnType<Add>, { readonly reply: string }>>(), 'the same as a literal');
    t.ok(holds<Accepts<Asked<CounterProtocol>, { readonly type: 'add'; readonly amount: number }>>());
    t.ok(fails<Accepts<Asked<CounterProtocol>, { readonly type: 'storeChunk' }>>(), 'a foreign command');
    t.ok(fails<Accepts<Asked<CounterProtocol>, { readonly type: 'add' }>>(), 'a command without its field');
    t.ok(
      fails<Accepts<Timer, { readonly name: string; readonly dueMs: number }>>(),
      'a timer without a command',
    );
    t.ok(holds<Accepts<Timer, { readonly name: string; readonly dueMs: null }>>());
    t.ok(fails<Accepts<keyof CounterProtocol['replies'], 'internal'>>(), 'a message cannot be asked');
    t.ok(holds<Equal<UploadProtocol['replies']['storeChunk'], StoredChunk>>());
  },
);

t.test('protocol: command and reply are inferred from the kind', async (t) => {
  const { system } = createTestActors({ kinds: [counter] });
  const added = system.ask(counter, '1', { type: 'add', amount: 2 });
  t.ok(holds<Equal<typeof added, Promise<number>>>());
  t.equal(await added, 2);
  const total = system.query(counter, '1', { type: 'total' });
  t.ok(holds<Equal<typeof total, number | Promise<number>>>());
  t.equal(await total, 2);
  const peeked = system.now(counter, '1', { type: 'peek' });
  t.ok(holds<Equal<typeof peeked, string>>());
  t.equal(peeked, '2');
  t.ok(fails<Accepts<Parameters<ActorSystem['tell']>[0], 'counter'>>(), 'a bare string names no receiver');
});

t.test('protocol: a notification runs once after the commit and takes no turn', async (t) => {
  const { system } = createTestActors({ kinds: [counter] });
  const { turns } = system.counters();
  const announcing = system.ask(counter, '1', { type: 'announce' });
  t.same(announced, [], 'not before the commit');
  await announcing;
  t.equal(announced.length, 1);
  t.equal(system.counters().turns, turns + 1);
});

t.test('protocol: a timer is cancelled without a command', async (t) => {
  const actors = createTestActors({ kinds: [counter] });
  const { system, clock } = actors;
  await system.ask(counter, '1', { type: 'schedule', dueMs: clock.nowMs + 10 });
  await system.ask(counter, '1', { type: 'schedule', dueMs: null });
  await actors.advance(1_000);
  await system.ask(counter, '2', { type: 'schedule', dueMs: clock.nowMs + 10 });
  await actors.advance(1_000);
  t.equal(await system.query(counter, '1', { type: 'total' }), 0);
  t.equal(await system.query(counter, '2', { type: 'total' }), 100);
});
