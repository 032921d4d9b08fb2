/** Loss of the journal, memory, versions and the end of a run. */
import t from 'tap';
import { MemoryJournal } from '../../../kit/journal/memory.ts';
import { JournalTooNew } from '../../../src/actors/runtime/journal/port.ts';
import { nodeSchedule } from '../../../src/actors/runtime/runtime-context.ts';
import { createActorSystem, type RunningSystem } from '../../../src/actors/runtime/system.ts';
import { LiveSettings } from '../../../src/domain/settings/settings.ts';
import { type AccountEvent, type AccountState, account } from '../../support/actors/account-kind.ts';
import { createTestActors, ManualClock, START_MS, seededBytes } from '../../support/actors/actors.ts';
import { rejectsWith } from '../../support/rejections.ts';

const deposit = (system: RunningSystem, id: string, amount = 1) =>
  system.ask(account, id, { type: 'deposit', amount });
const balance = async (system: RunningSystem, id: string) =>
  (await system.query(account, id, { type: 'state' })).balance;
const forever = { type: 'work' as const, task: () => new Promise<never>(() => {}) };

// covers S155
t.test('journal lost: every waiter gets 503 with 5 seconds, nothing is acknowledged', async (t) => {
  const actors = createTestActors({ kinds: [account] });
  const { system } = actors;
  const work = system.ask(account, '1', forever);
  await system.ask(account, '3', { type: 'remind', name: 'a', dueMs: START_MS + 1 });
  const later = system.ask(account, '2', { type: 'queue' });
  await actors.settle();
  actors.journal.failNext(new Error('EIO'));
  const lost = deposit(system, '1');
  const read = system.query(account, '1', { type: 'state' }) as Promise<unknown>;
  const gated = rejectsWith(t, read, 'JournalUnavailable');
  const error = await rejectsWith(t, lost, 'JournalUnavailable');
  t.equal(error.retryAfterSeconds, 5);
  await gated;
  await rejectsWith(t, work, 'JournalUnavailable');
  await rejectsWith(t, later, 'JournalUnavailable');
  await rejectsWith(t, deposit(system, '4'), 'JournalUnavailable');
  t.match(actors.fatal, [{ message: 'EIO' }]);
  t.equal(system.counters().pending, 0);
  await actors.restart();
  t.equal(await deposit(actors.system, '1', 7), 7, 'nothing of the lost group is there');
});

/** A system whose commits take as long as `immediate` makes them. */
function createTimedSystem(immediate: (run: () => void) => void) {
  const clock = new ManualClock();
  const fatal: Error[] = [];
  const system = createActorSystem({
    kinds: [account],
    journal: new MemoryJournal({ immediate }),
    ports: { workers: { run: async () => ({ ok: false, error: 'InternalError' }) } },
    settings: new LiveSettings(),
    clock: clock.read,
    randomBytes: seededBytes(1),
    schedule: { immediate: nodeSchedule.immediate, timer: clock.timer },
    onFatal: (error) => fatal.push(error),
    onBug: () => {},
  });
  return { clock, fatal, system };
}

// covers S155
t.test('journal lost: a commit that takes over 10 s counts as failed', async (t) => {
  const { clock, fatal, system } = createTimedSystem(() => undefined);
  const lost = deposit(system, '1');
  await new Promise((resolve) => setImmediate(resolve));
  while (clock.fireNext(START_MS + 9_999));
  t.same(fatal, []);
  while (clock.fireNext(START_MS + 10_000));
  await rejectsWith(t, lost, 'JournalUnavailable');
  t.match(fatal, [{ message: 'a commit took over 10000 ms' }]);
});

// covers S155
t.test('journal: a commit survives a suspension of the process for a minute', async (t) => {
  const commits: (() => void)[] = [];
  const { clock, fatal, system } = createTimedSystem((run) => commits.push(run));
  const kept = deposit(system, '1', 3);
  await new Promise((resolve) => setImmediate(resolve));
  // Timers that are due come before the news that the commit is done.
  clock.nowMs += 60_000;
  while (clock.fireNext(clock.nowMs));
  t.same(fatal, []);
  for (const run of commits.splice(0)) run();
  t.equal(await kept, 3);
  const laterMs = clock.nowMs + 20_000;
  while (clock.fireNext(laterMs));
  t.same(fatal, [], 'and its timer has ended');
});

t.test('snapshots: every 50 events the rows are replaced, nothing is lost', async (t) => {
  const actors = createTestActors({ kinds: [account] });
  for (let count = 1; count <= 120; count += 1) await deposit(actors.system, '1');
  const stored = actors.journal.load('account', '1');
  t.equal(stored?.snapshot?.[1], 100);
  t.equal(stored?.rows.length, 20);
  await actors.restart();
  t.equal(await balance(actors.system, '1'), 120);
});

t.test(
  'passivation: an idle actor leaves after its time, with a snapshot when its tail is long',
  async (t) => {
    const actors = createTestActors({ kinds: [account] });
    for (let count = 1; count <= 20; count += 1) await deposit(actors.system, 'long');
    for (let count = 1; count <= 19; count += 1) await deposit(actors.system, 'short');
    void actors.system.ask(account, 'busy', forever).catch(() => {});
    await actors.advance(55_000);
    t.equal(actors.system.counters().live['account'], 3);
    await actors.advance(15_000);
    t.equal(actors.system.counters().live['account'], 1, 'only the busy one is left');
    t.equal(actors.journal.load('account', 'long')?.snapshot?.[1], 20);
    t.equal(actors.journal.load('account', 'long')?.rows.length, 0);
    t.equal(actors.journal.load('account', 'short')?.snapshot, undefined);
    t.equal(await balance(actors.system, 'long'), 20);
    t.equal(await balance(actors.system, 'short'), 19);
  },
);

// covers S163
t.test('ids: stay unique over a restart with the clock set back', async (t) => {
  const actors = createTestActors({ kinds: [account] });
  const stamp = () => actors.system.ask(account, '1', { type: 'stamp' });
  const first = BigInt(await stamp());
  await actors.settle();
  await actors.restart();
  actors.clock.nowMs -= 3_600_000;
  const second = BigInt(await stamp());
  t.ok(second > first, `${second} after ${first}`);
  actors.clock.nowMs = START_MS + 5_000;
  t.ok(BigInt(await stamp()) > second);
});

t.test('versions: earlier rows and snapshots pass through upcast, newer ones refuse to start', async (t) => {
  const first = createTestActors({ kinds: [account] });
  for (let count = 1; count <= 55; count += 1) await deposit(first.system, '1');
  const options = { settings: new LiveSettings(), clock: () => START_MS, randomBytes: seededBytes(1) };
  const rest = { ...options, schedule: nodeSchedule, onFatal: () => {}, onBug: () => {} };
  const ports = { workers: { run: async () => ({ ok: false, error: 'InternalError' }) as const } };
  // Version 2 counts in cents.
  const cents = {
    ...account,
    version: 2,
    upcast(row: { version: number; events?: unknown[]; state?: unknown }) {
      const hundredfold = (event: AccountEvent) =>
        event.type === 'deposited' ? { ...event, amount: event.amount * 100 } : event;
      const state = row.state as AccountState | undefined;
      return {
        ...(state === undefined ? {} : { state: { ...state, balance: state.balance * 100 } }),
        ...(row.events === undefined ? {} : { events: (row.events as AccountEvent[]).map(hundredfold) }),
      };
    },
  };
  first.journal.crash('lost');
  const second = createActorSystem({ kinds: [cents], journal: first.journal, ports, ...rest });
  t.equal((await second.query(cents, '1', { type: 'state' })).balance, 5_500);
  t.equal(await second.ask(cents, '1', { type: 'deposit', amount: 1 }), 5_501);
  await second.close();
  t.throws(
    () => createActorSystem({ kinds: [account], journal: first.journal, ports, ...rest }),
    JournalTooNew,
  );
  t.throws(
    () => createActorSystem({ kinds: [account], journal: first.journal, ports, ...rest }),
    /account \(journal 2, this version 1\)/,
  );
});

t.test('audit and metadata: ride in the next group, in order, and are there after a restart', async (t) => {
  const actors = createTestActors({ kinds: [account] });
  const { administration } = actors.system;
  for (const event of ['login', 'logout'] as const)
    actors.system.audit({ utcMs: 1, event, userId: null, fields: {} });
  const put = administration.metaPut('cursor', { tick: 5n });
  t.same(administration.metaGet('cursor'), { tick: 5n }, 'a writer sees its own write');
  await put;
  await actors.restart();
  t.same(actors.system.administration.metaGet('cursor'), { tick: 5n });
  t.match(actors.system.administration.auditPage(0, 10), [
    { record: { event: 'login' } },
    { record: { event: 'logout' } },
  ]);
});

t.test('drain: refuses new commands, finishes those under way, reports when it could not', async (t) => {
  const actors = createTestActors({ kinds: [account] });
  const { system } = actors;
  const last = deposit(system, '1');
  const drained = system.drain(5_000);
  await rejectsWith(t, deposit(system, '1'), 'Stopping');
  await rejectsWith(t, system.tell(account, '1', { type: 'receive', text: 'x' }), 'Stopping');
  t.equal(await last, 1);
  await actors.advance(100);
  t.equal(await drained, true);
  await system.close();

  const stuck = createTestActors({ kinds: [account] });
  void stuck.system.ask(account, '1', forever).catch(() => {});
  const given = stuck.system.drain(5_000);
  await stuck.advance(6_000);
  t.equal(await given, false);
});

t.test(
  'close: pending writes reach the disk first; callers that wait for later turns are rejected',
  async (t) => {
    const actors = createTestActors({ kinds: [account] });
    const { system } = actors;
    let finish = () => {};
    const work = system.ask(account, '2', {
      type: 'work',
      task: () =>
        new Promise((resolve) => {
          finish = () => resolve({ type: 'deposit', amount: 1 });
        }),
    });
    const last = deposit(system, '1');
    const closed = system.close();
    t.equal(await last, 1);
    await closed;
    await rejectsWith(t, work, 'Stopping');
    finish();
    await actors.settle();
    t.equal(system.counters().pending, 0);
    await rejectsWith(t, deposit(system, '1'), 'JournalUnavailable');
  },
);
