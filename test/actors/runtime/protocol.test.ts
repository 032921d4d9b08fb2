/** Typed actor protocol: what must not compile is stated by conditional types, so that `tsc` checks it with the build. */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
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
import { messageTo, type Protocol, receiver, type Tagged } from '../../../src/actors/runtime/protocol.ts';
import { GatewayError } from '../../../src/domain/errors.ts';
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

type Handle = Handlers<number, CounterProtocol, CounterEvent>;

const COUNTER = receiver<{ readonly type: 'internal' }>('counter');
const STRAY = receiver<{ readonly type: 'storeChunk' }>('counter');
const INTERNAL = { type: 'internal' } as const;
const FOREIGN = { type: 'storeChunk' } as const;

const announced: string[] = [];

const counter = defineActor<number, CounterProtocol, CounterEvent>({
  kind: COUNTER,
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

/** Never called. `tsc` refuses a line below whose next statement compiles. */
function mistakes(system: ActorSystem): unknown[] {
  // @ts-expect-error: a command of another kind is not asked
  void system.ask(counter, '1', { type: 'storeChunk' });
  // @ts-expect-error: a message that has no reply is not asked
  void system.ask(counter, '1', { type: 'internal' });
  // @ts-expect-error: a command without its field
  void system.ask(counter, '1', { type: 'add' });
  // @ts-expect-error: a command of another kind is no message
  void system.tell(counter, '1', FOREIGN);
  // @ts-expect-error: the query of another kind
  void system.query(counter, '1', { type: 'slots' });
  // @ts-expect-error: a durable command is not volatile
  system.now(counter, '1', { type: 'add', amount: 1 });
  // @ts-expect-error: a message names its receiver by a reference
  messageTo('counter', '1', { type: 'internal' });
  // @ts-expect-error: a message that the receiver does not take
  messageTo(COUNTER, '1', FOREIGN);
  // @ts-expect-error: a receiver of commands that the kind does not take
  const stray: Parameters<typeof defineActor<number, CounterProtocol, CounterEvent>>[0]['kind'] = STRAY;
  // @ts-expect-error: a reply of another type
  const reply: Handle['add'] = () => ({ reply: 'two' });
  // @ts-expect-error: the reply of no command of the kind
  const answers: Handle['add'] = () => ({ answers: [{ commandId: '1', reply: 'two' }], reply: 2 });
  // @ts-expect-error: a timer that brings the command of another kind
  const timer: Handle['schedule'] = () => ({ timers: [{ name: 'a', dueMs: 1, command: FOREIGN }] });
  // @ts-expect-error: a timer without a command
  const bare: Handle['schedule'] = () => ({ timers: [{ name: 'a', dueMs: 1 }] });
  // @ts-expect-error: a timer that is cancelled with a command
  const cancelled: Handle['schedule'] = () => ({ timers: [{ name: 'a', dueMs: null, command: INTERNAL }] });
  // @ts-expect-error: slow work that resolves with the command of another kind
  const next: Handle['schedule'] = () => ({ next: async () => FOREIGN });
  return [stray, reply, answers, timer, bare, cancelled, next];
}

type Add = Handle['add'];
type Asked<P extends { readonly command: { readonly type: string } }> = Tagged<P['command'], string>;

t.test(
  'protocol: a wrong reply, a foreign command and a cancelling timer with a command do not compile',
  async (t) => {
    t.type(mistakes, 'function', 'compiled, so that each of its lines is a mistake');
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

t.test('protocol: each receiver is declared once, and its kind is defined by it', async (t) => {
  const root = fileURLToPath(new URL('../../../../src/actors', import.meta.url));
  const files = readdirSync(root, { recursive: true, encoding: 'utf8' }).filter((path) =>
    path.endsWith('.ts'),
  );
  const sources = files.map((path) => readFileSync(join(root, path), 'utf8')).join('\n');
  const names = [...sources.matchAll(/const (\w+) = receiver<.+>\('(\w+)'\)/g)];
  t.ok(names.length > 0);
  t.same(names.map(([, , kind]) => kind).sort(), [...new Set(names.map(([, , kind]) => kind))].sort());
  for (const [, constant = ''] of names) t.ok(sources.includes(`  kind: ${constant},`), constant);
});

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

t.test('protocol: names of Object.prototype are no commands', async (t) => {
  const { system, bugs } = createTestActors({ kinds: [counter] });
  for (const type of ['toString', 'constructor', '__proto__'])
    await t.rejects(system.ask(counter, type, { type } as never), new GatewayError('InternalError'));
  t.same(
    bugs.map(({ error }) => String(error)),
    ['toString', 'constructor', '__proto__'].map((type) => `TypeError: counter has no command ${type}`),
  );
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
