import t from 'tap';
import { account } from '../../support/actors/account-kind.ts';
import { createTestActors, START_MS } from '../../support/actors/actors.ts';
import { rejectsWith } from '../../support/rejections.ts';

t.test('supervision: a throw is a 500, the instance waits, is replayed and has lost nothing', async (t) => {
  const actors = createTestActors({ kinds: [account] });
  const { system } = actors;
  const deposit = system.ask(account, '1', { type: 'deposit', amount: 5 });
  const error = await rejectsWith(t, system.ask(account, '1', { type: 'crash' }), 'InternalError');
  t.notMatch(error.message, /planted/, 'the reason stays inside');
  t.equal(await deposit, 5, 'what was written before is acknowledged');
  t.match(actors.bugs, [{ kind: 'account', id: '1', command: 'crash' }]);
  const waiting = await rejectsWith(
    t,
    system.ask(account, '1', { type: 'deposit', amount: 1 }),
    'Quarantined',
  );
  t.equal(waiting.retryAfterSeconds, 1);
  t.equal(await system.ask(account, '2', { type: 'deposit', amount: 1 }), 1, 'others go on');
  await actors.advance(300);
  t.equal(await system.ask(account, '1', { type: 'deposit', amount: 1 }), 6);
  t.equal(system.counters().refused.quarantine, 1);
});

t.test('supervision: the wait doubles with each failure in a row', async (t) => {
  const actors = createTestActors({ kinds: [account] });
  for (const leastMs of [100, 200, 400]) {
    await rejectsWith(t, actors.system.ask(account, '1', { type: 'crash' }), 'InternalError');
    const [entry] = actors.system.administration.failing();
    const waitMs = (entry?.blockedUntilMs ?? 0) - actors.clock.nowMs;
    t.ok(waitMs >= leastMs && waitMs <= 2 * leastMs, `${waitMs} ms`);
    await actors.advance(2 * leastMs);
  }
});

t.test('supervision: more than 5 failures in 60 s are a quarantine, until it is reset', async (t) => {
  const actors = createTestActors({ kinds: [account] });
  const { system } = actors;
  await system.ask(account, '1', { type: 'deposit', amount: 5 });
  for (let failure = 1; failure <= 6; failure += 1) {
    await rejectsWith(t, system.ask(account, '1', { type: 'crash' }), 'InternalError');
    if (failure < 6) await actors.advance(8_000);
  }
  await actors.advance(120_000);
  const error = await rejectsWith(t, system.ask(account, '1', { type: 'deposit', amount: 1 }), 'Quarantined');
  t.equal(error.retryAfterSeconds, 30);
  t.throws(() => system.now(account, '1', { type: 'hit' }), error);
  t.throws(() => system.query(account, '1', { type: 'state' }), error);
  t.match(system.administration.failing(), [{ id: '1', quarantined: true, lastError: 'planted' }]);
  t.equal(system.administration.export('account', '1').stored?.rows.length, 1);
  t.equal(system.counters().quarantines, 1);
  t.ok(system.administration.reset('account', '1'));
  t.equal(await system.ask(account, '1', { type: 'deposit', amount: 1 }), 6);
  t.notOk(system.administration.reset('account', '1'), 'nothing to reset any more');
});

t.test('supervision: a message that failed 3 times is a dead letter, the next one arrives', async (t) => {
  const actors = createTestActors({ kinds: [account] });
  await actors.system.tell(account, '1', { type: 'crash' });
  await actors.system.tell(account, '1', { type: 'receive', text: 'after' });
  await actors.advance(10_000);
  t.match(actors.system.administration.dead(10), [
    { kind: 'account', id: '1', command: { type: 'crash' }, reason: 'planted' },
  ]);
  t.equal(actors.bugs.length, 3);
  t.same([...actors.journal.mailboxes()], []);
  t.same((await actors.system.query(account, '1', { type: 'state' })).received, ['after']);
  const [letter] = actors.system.administration.dead(10);
  if (letter !== undefined) await actors.system.administration.removeDead(letter);
  t.same(actors.system.administration.dead(10), []);
});

t.test('supervision: an administrator skips the message that keeps an actor in quarantine', async (t) => {
  const actors = createTestActors({ kinds: [account] });
  const { system } = actors;
  for (let failure = 1; failure <= 6; failure += 1) {
    await rejectsWith(t, system.ask(account, '1', { type: 'crash' }), 'InternalError');
    await actors.advance(8_000);
  }
  await system.tell(account, '1', { type: 'receive', text: 'bad' });
  await system.tell(account, '1', { type: 'receive', text: 'good' });
  await actors.advance(60_000);
  t.same(system.administration.export('account', '1').nextMessage, { type: 'receive', text: 'bad' });
  t.ok(system.administration.skipNext('account', '1'));
  await actors.settle();
  t.same((await system.query(account, '1', { type: 'state' })).received, ['good']);
  t.match(system.administration.dead(10), [{ reason: 'skipped by an administrator' }]);
  t.notOk(system.administration.skipNext('account', '1'));
});

t.test('supervision: a message for a kind that no longer exists is a dead letter', async (t) => {
  const other = { ...account, kind: 'gone' };
  const actors = createTestActors({ kinds: [account] });
  await actors.system.tell(other, '1', { type: 'receive', text: 'x' });
  await actors.settle();
  t.match(actors.system.administration.dead(10), [{ kind: 'gone', id: '1' }]);
  t.equal(actors.system.counters().deadLettered, 1);
});

t.test('supervision: a message that is refused leaves the mailbox and is counted', async (t) => {
  const actors = createTestActors({ kinds: [account] });
  await actors.system.tell(account, '1', { type: 'refuse' });
  await actors.settle();
  t.same([...actors.journal.mailboxes()], []);
  t.equal(actors.system.counters().messagesRefused, 1);
  t.notOk(actors.system.exists(account, '1'));
});

t.test('supervision: a volatile command that throws costs the volatile state only', async (t) => {
  const actors = createTestActors({ kinds: [account] });
  await actors.system.ask(account, '1', { type: 'deposit', amount: 5 });
  t.equal(actors.system.now(account, '1', { type: 'hit' }), 6);
  t.throws(() => actors.system.now(account, '1', { type: 'crash' }), { message: 'Internal error' });
  await actors.advance(1_000);
  t.equal(actors.system.now(account, '1', { type: 'hit' }), 6, 'counting starts anew, the balance is there');
  t.equal(actors.bugs.length, 1);
});

t.test('supervision: a timer whose turn throws 3 times is a dead letter', async (t) => {
  const kind = {
    ...account,
    decide: (...[state, command, turn]: Parameters<typeof account.decide>) => {
      if (command.type === 'reminded') throw new Error('planted');
      return account.decide(state, command, turn);
    },
  };
  const actors = createTestActors({ kinds: [kind] });
  await actors.system.ask(kind, '1', { type: 'remind', name: 'a', dueMs: START_MS + 10 });
  await actors.advance(10_000);
  t.match(actors.system.administration.dead(10), [{ command: { type: 'reminded', name: 'a' } }]);
  t.same(actors.journal.timers(Number.MAX_SAFE_INTEGER, 10), []);
  t.equal(actors.system.counters().timersUnderWay, 0);
});
