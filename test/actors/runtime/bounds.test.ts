/** The bounds that a command meets before a turn sees it, and the bound of live actors. */
import t from 'tap';
import type { Asked } from '../../../src/actors/runtime/protocol.ts';
import type { RunningSystem } from '../../../src/actors/runtime/system.ts';
import { type AccountProtocol, account } from '../../support/actors/account-kind.ts';
import { createTestActors } from '../../support/actors/actors.ts';
import { rejectsWith } from '../../support/rejections.ts';

const deposit = (system: RunningSystem, id: string, amount = 1) =>
  system.ask(account, id, { type: 'deposit', amount });
const balance = async (system: RunningSystem, id: string) =>
  (await system.query(account, id, { type: 'state' })).balance;

t.test('bounds: the mailbox of an actor takes 64 commands, the next is refused and counted', async (t) => {
  const { system } = createTestActors({ kinds: [account] });
  const asks = Array.from({ length: 64 }, () => deposit(system, '1'));
  await rejectsWith(t, deposit(system, '1'), 'Overloaded');
  t.equal(await deposit(system, '2'), 1, 'others go on');
  await Promise.all(asks);
  t.equal(await deposit(system, '1'), 65);
  t.match(system.counters().refused, { mailbox: 1, pending: 0 });
});

t.test('bounds: commands without an answer are bounded in all', async (t) => {
  const { system } = createTestActors({ kinds: [account], limits: { pendingMax: 3 } });
  const asks = ['1', '2', '3'].map((id) => deposit(system, id));
  await rejectsWith(t, deposit(system, '4'), 'Overloaded');
  await rejectsWith(t, system.tell(account, '4', { type: 'receive', text: 'x' }), 'Overloaded');
  await Promise.all(asks);
  t.equal(await deposit(system, '4'), 1);
  t.match(system.counters(), { pending: 0, refused: { pending: 2 } });
});

// covers S155
t.test('bounds: a full journal refuses growth and serves what frees space', async (t) => {
  const { system, journal } = createTestActors({ kinds: [account] });
  await deposit(system, '1', 5);
  journal.setFull(true);
  const error = await rejectsWith(t, deposit(system, '1'), 'StorageFull');
  t.equal(error.retryAfterSeconds, 60);
  t.equal(await system.ask(account, '1', { type: 'withdraw', amount: 2 }), 3);
  t.equal(await balance(system, '1'), 3, 'reads are still served');
  journal.setFull(false);
  t.equal(await deposit(system, '1'), 4);
  t.equal(system.counters().refused.storage, 1);
});

t.test('bounds: beyond the bound of live actors the one idle longest leaves memory', async (t) => {
  const { system, settle } = createTestActors({ kinds: [account], limits: { liveActorsMax: 3 } });
  for (const id of ['1', '2', '3']) system.now(account, id, { type: 'hit' });
  system.now(account, '1', { type: 'hit' });
  system.now(account, '4', { type: 'hit' });
  t.equal(system.counters().live['account'], 3);
  t.equal(system.now(account, '1', { type: 'hit' }), 3, 'used lately: still there');
  t.equal(system.now(account, '2', { type: 'hit' }), 1, 'starts anew');
  for (let id = 10; id < 50; id += 1) await deposit(system, String(id));
  await settle();
  t.equal(system.counters().live['account'], 3);
  t.equal(await balance(system, '10'), 1, 'what is durable comes back');
});

t.test('ids: an id that no journal could take is a bug of the caller, not of an actor', async (t) => {
  const { system, bugs } = createTestActors({ kinds: [account] });
  for (const id of ['', 'x'.repeat(300), 'a\0b']) {
    await t.rejects(deposit(system, id), TypeError);
    await t.rejects(system.tell(account, id, { type: 'receive', text: 'x' }), TypeError);
    t.notOk(system.exists(account, id));
    t.match(await system.query(account, id, { type: 'state' }), { balance: 0 });
  }
  t.same(bugs, []);
  t.same(system.administration.failing(), []);
});

t.test('bounds: an Idempotency-Key has 1 to 256 bytes', async (t) => {
  const { system } = createTestActors({ kinds: [account] });
  const ask = (idempotencyKey: string) =>
    system.ask(account, '1', { type: 'deposit', amount: 1 }, { idempotencyKey });
  for (const key of ['', 'k'.repeat(257), 'a\0']) {
    const error = await rejectsWith(t, ask(key), 'InvalidInput');
    t.equal(error.detail, 'Idempotency-Key');
  }
  t.equal(await ask('k'.repeat(256)), 1);
});

t.test('bounds: names that the journal could not take fail their turn, and nothing else', async (t) => {
  const { system, bugs, advance } = createTestActors({ kinds: [account] });
  const long = 'x'.repeat(2_000);
  const commands: readonly Asked<AccountProtocol, 'claim' | 'remind' | 'send'>[] = [
    { type: 'claim', name: long },
    { type: 'remind', name: long, dueMs: 1 },
    { type: 'send', toId: long, text: 'x' },
    { type: 'send', toId: '', text: 'x' },
  ];
  for (const command of commands) {
    await rejectsWith(t, system.ask(account, '1', command), 'InternalError');
    await advance(2_000);
  }
  t.equal(bugs.length, 4);
  t.equal(await deposit(system, '1'), 1);
  await t.rejects(system.administration.metaPut(long, 1), TypeError);
});
