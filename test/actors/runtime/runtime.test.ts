import t from 'tap';
import type { AuditRecord } from '../../../src/actors/runtime/actor.ts';
import type { AuditEvent } from '../../../src/domain/audit.ts';
import { GatewayError } from '../../../src/domain/errors.ts';
import { type AccountCommand, account } from '../../support/actors/account-kind.ts';
import { createTestActors } from '../../support/actors/actors.ts';
import { rejectsWith } from '../../support/rejections.ts';

t.test('ask: a refusal rejects with its row and writes nothing', async (t) => {
  const { system, journal } = createTestActors({ kinds: [account] });
  await rejectsWith(t, system.ask(account, '1', { type: 'withdraw', amount: 5 }), 'InvalidInput');
  t.notOk(journal.has('account', '1'));
});

t.test('ask: a value that cannot be stored is a bug of that turn only', async (t) => {
  const actors = createTestActors({ kinds: [account] });
  await rejectsWith(t, actors.system.ask(account, '1', { type: 'store', value: () => 1 }), 'InternalError');
  t.equal(actors.bugs.length, 1);
  t.notOk(actors.journal.has('account', '1'));
});

t.test('ask: a repeated Idempotency-Key gets the first reply, also after a kill', async (t) => {
  const actors = createTestActors({ kinds: [account] });
  const once = { idempotencyKey: 'k1' };
  const both = await Promise.all([
    actors.system.ask(account, '1', { type: 'deposit', amount: 5 }, once),
    actors.system.ask(account, '1', { type: 'deposit', amount: 5 }, once),
  ]);
  t.same(both, [5, 5]);
  await actors.restart();
  t.equal(await actors.system.ask(account, '1', { type: 'deposit', amount: 5 }, once), 5);
  const view = await actors.system.query(account, '1', { type: 'state' });
  t.equal(view.balance, 5);
});

t.test('ask: an Idempotency-Key with another fingerprint is refused, without one it is not', async (t) => {
  const actors = createTestActors({ kinds: [account] });
  const ask = (amount: number, fingerprint?: string) => {
    const options = { idempotencyKey: 'k1', ...(fingerprint === undefined ? {} : { fingerprint }) };
    return actors.system.ask(account, '1', { type: 'deposit', amount }, options);
  };
  const reused = new GatewayError('IdempotencyKeyReused');
  const first = ask(5, 'five');
  await t.rejects(ask(6, 'six'), reused, 'the first has no answer yet');
  t.same([await first, await ask(5, 'five')], [5, 5]);
  for (const step of [() => actors.restart(), () => actors.system.passivate(), () => actors.restart()]) {
    await step();
    await t.rejects(ask(6, 'six'), reused);
    t.same([await ask(5, 'five'), await ask(7)], [5, 5]);
  }
  const view = await actors.system.query(account, '1', { type: 'state' });
  t.equal(view.balance, 5);
});

t.test('next: the turn that decides its command answers the caller, refusals included', async (t) => {
  const { system } = createTestActors({ kinds: [account] });
  const work = (command: AccountCommand) => ({ type: 'work' as const, task: async () => command });
  t.equal(await system.ask(account, '1', work({ type: 'deposit', amount: 3 })), 3);
  await rejectsWith(t, system.ask(account, '1', work({ type: 'refuse' })), 'Forbidden');
  const broken = { type: 'work' as const, task: () => Promise.reject(new Error('ports never reject')) };
  await rejectsWith(t, system.ask(account, '1', broken), 'InternalError');
});

t.test('next: at most 16 in flight for one actor, the others are queued', async (t) => {
  const { system, settle } = createTestActors({ kinds: [account] });
  const finish: (() => void)[] = [];
  const asks = Array.from({ length: 20 }, (_, index) =>
    system.ask(account, '1', {
      type: 'work',
      task: () =>
        new Promise((resolve) => {
          finish.push(() => resolve({ type: 'deposit', amount: index }));
        }),
    }),
  );
  await settle();
  t.equal(finish.length, 16);
  finish[0]?.();
  await settle();
  t.equal(finish.length, 17);
  for (let index = 1; index < 20; index += 1) {
    finish[index]?.();
    await settle();
  }
  await Promise.all(asks);
  t.equal(finish.length, 20);
});

t.test('claims: of two actors one wins, in the same group and after it', async (t) => {
  const { system } = createTestActors({ kinds: [account] });
  await system.ask(account, '1', { type: 'deposit', amount: 1 });
  const first = system.ask(account, '1', { type: 'claim', name: 'n' });
  t.equal(system.lookup('publicKey', 'n'), 'owner-1', 'seen before it is on disk');
  await rejectsWith(t, system.ask(account, '2', { type: 'claim', name: 'n' }), 'KeyAlreadyRegistered');
  t.equal(await first, 'claimed');
  await rejectsWith(t, system.ask(account, '2', { type: 'claim', name: 'n' }), 'KeyAlreadyRegistered');
  await rejectsWith(
    t,
    system.ask(account, '2', { type: 'claim', name: 'n', replaces: 'x' }),
    'KeyAlreadyRegistered',
  );
  t.equal(await system.ask(account, '2', { type: 'claim', name: 'n', replaces: 'owner-1' }), 'claimed');
  t.equal(system.lookup('publicKey', 'n'), 'owner-0');
  await system.ask(account, '2', { type: 'release', name: 'n' });
  t.equal(system.lookup('publicKey', 'n'), undefined);
});

t.test('now: synchronous on a known or unknown id, writes nothing', async (t) => {
  const { system, journal } = createTestActors({ kinds: [account] });
  t.equal(system.now(account, '9', { type: 'hit' }), 1);
  t.equal(system.now(account, '9', { type: 'hit' }), 2);
  const refused = new GatewayError('AccessRateLimit', undefined, 3);
  t.throws(() => system.now(account, '9', { type: 'refuse' }), refused);
  t.notOk(journal.has('account', '9'));
  t.notOk(system.exists(account, '9'));
});

t.test(
  'audit: records alone share one commit after 50 ms, ride with a turn at once, and are there after a close',
  async (t) => {
    const actors = createTestActors({ kinds: [account] });
    const { system, journal } = actors;
    const record = (event: AuditEvent): AuditRecord => ({ utcMs: 1, event, userId: null, fields: {} });
    const events = () => journal.auditPage(0, 10).map((row) => (row.record as { event: string }).event);
    await actors.settle();
    const before = system.counters().groups;
    for (const event of ['login', 'logout'] as const) system.audit(record(event));
    await actors.settle();
    t.same(events(), [], 'no caller waits for them');
    await actors.advance(50);
    t.same(events(), ['login', 'logout']);
    t.equal(system.counters().groups, before + 1);
    system.audit(record('key_added'));
    await system.auditFirst(record('key_removed'));
    t.same(events(), ['login', 'logout', 'key_added', 'key_removed'], 'what is waited for takes them along');
    system.audit(record('sign_up'));
    const drained = system.drain(1_000);
    await actors.advance(100);
    t.ok(await drained);
    t.equal(events().at(-1), 'sign_up');
  },
);

// covers S21
t.test('query: an unknown id is answered from the initial state and creates nothing', async (t) => {
  const { system } = createTestActors({ kinds: [account] });
  t.match(await system.query(account, '7', { type: 'state' }), { balance: 0 });
  t.same(system.counters().live, { account: 0 });
});

t.test('query: sees the time and the settings of the system that answers', async (t) => {
  const { system, clock, settings } = createTestActors({ kinds: [account] });
  for (const seconds of [7, 9]) {
    clock.nowMs += 1_000;
    settings.set('RateLimitWindowSeconds', seconds);
    t.same(await system.query(account, '1', { type: 'view' }), {
      nowMs: clock.nowMs,
      windowSeconds: seconds,
    });
  }
});
