/** Turns of an application's webhook: what comes late is ignored, what is parked is bounded, the log is a ring. */
import t from 'tap';
import { type AppProtocol, app } from '../../../src/actors/apps/app.ts';
import { type AppState, evolveApp, webhookOf } from '../../../src/actors/apps/app-state.ts';
import { deliveryLog, logPageId, PAGE_LINES, PAGES } from '../../../src/actors/apps/delivery-log.ts';
import { isRefusal, type Refusal, type Turn } from '../../../src/actors/runtime/actor.ts';
import { LiveSettings } from '../../../src/domain/settings/settings.ts';
import { DAY_MS } from '../../../src/domain/time.ts';
import {
  type AttemptResult,
  LOG_ATTEMPTS_MAX,
  PARKED_KEEP_MS,
  PARKED_MAX,
} from '../../../src/domain/webhooks/types.ts';
import { createTestActors } from '../../support/actors/actors.ts';

t.setTimeout(120_000);

const ORIGIN = { ip: '192.0.2.1', userAgent: 'test' };
type AppOutcome = Exclude<ReturnType<typeof app.decide>, Refusal>;

const OWNER = '101';

function turnAt(nowMs: number): Turn {
  return {
    nowMs,
    commandId: 'c1',
    settings: new LiveSettings(),
    hasPeers: false,
    newId: () => '9000',
    randomBytes: (length) => new Uint8Array(length),
  };
}

function decide(
  state: AppState,
  command: AppProtocol['command'],
  nowMs = 5_000,
): { state: AppState; outcome: AppOutcome } {
  const outcome = app.decide(state, command, turnAt(nowMs));
  if (isRefusal(outcome)) throw new Error(outcome.refuse);
  return { outcome, state: (outcome.events ?? []).reduce(evolveApp, state) };
}

function registered(): AppState {
  const patch = { name: 'Shop', url: 'https://shop.example', webhookUrl: 'https://shop.example/hook' };
  const key = { keyId: 'k', sealed: 's' };
  const command = { type: 'configure', commandId: 'c0', ownerId: OWNER, patch, key, origin: ORIGIN } as const;
  return decide(app.initial('77'), command).state;
}

const delivery = (sequence: number) =>
  ({
    webhookId: `msg_${sequence}`,
    source: 'live',
    sequences: [sequence],
    firstTick: String(sequence),
    lastTick: String(sequence),
    resendId: null,
  }) as const;

const result = (status: number): AttemptResult => ({
  status,
  failure: null,
  sent: true,
  retryAfterMs: null,
  elapsedMs: 1,
  answer: '',
});

const open = (sequence: number) => ({ type: 'openDelivery', delivery: delivery(sequence) }) as const;
const settle = (sequence: number, status: number) =>
  ({
    type: 'settleDelivery',
    webhookId: `msg_${sequence}`,
    result: result(status),
    behind: false,
    reopened: false,
  }) as const;

/** One event after the other is refused five times. */
function refuseAll(from: AppState, first: number, count: number, nowMs = 5_000): AppState {
  let state = from;
  for (let sequence = first; sequence < first + count; sequence += 1) {
    state = decide(state, open(sequence), nowMs).state;
    for (let attempt = 0; attempt < 5; attempt += 1)
      state = decide(state, settle(sequence, 400), nowMs).state;
  }
  return state;
}

t.test('delivery: one at a time; what comes late, twice or after the end changes nothing', async (t) => {
  const first = decide(registered(), open(1));
  t.match(first.outcome.reply, { open: { webhookId: 'msg_1', attempts: 0 } });
  const second = decide(first.state, open(2));
  t.same(second.outcome.events ?? [], []);
  t.match(second.outcome.reply, { open: { webhookId: 'msg_1' } }, 'the one that is under way stays');
  t.same(decide(first.state, settle(2, 200)).outcome.events ?? [], [], 'another one');
  const done = decide(first.state, settle(1, 200));
  t.match(done.state, {
    successCount: 1,
    lastTick: '1',
    delivery: { open: null, cursor: { tick: '1', sequence: 1 } },
  });
  t.same(decide(done.state, settle(1, 200)).outcome.events ?? [], [], 'settled twice');
  const reply = { appId: '77', sessionsClosed: 0 };
  const remove = { type: 'remove', commandId: 'c', ownerId: OWNER, reply, origin: ORIGIN } as const;
  const removed = decide(first.state, remove).state;
  t.match(decide(removed, settle(1, 200)), { outcome: { reply: null }, state: { phase: 'removed' } });
  t.equal(webhookOf(removed), undefined);
});

t.test('delivery: cursor, counter and line of the log are in one turn', async (t) => {
  const { outcome } = decide(decide(registered(), open(1)).state, settle(1, 503));
  t.same(
    outcome.events?.map(({ type }) => type),
    ['deliveryFailed', 'attemptLogged'],
  );
  t.match(outcome.send, [
    {
      toKind: 'deliveryLog',
      toId: '77.0',
      command: { type: 'append', line: { number: 1, status: 503, attempt: 1 } },
    },
    {
      toKind: 'app',
      toId: '77',
      command: { type: 'tell', notice: { type: 'WebhookFailing', ownerId: OWNER } },
    },
  ]);
});

t.test(
  'delivery: an outcome that comes while an admin has the application disabled leaves it behind',
  async (t) => {
    const flags = { disabled: true };
    const administer = { type: 'administer', flags, by: '1', address: '192.0.2.9' } as const;
    const disabled = decide(decide(registered(), open(1)).state, administer).state;
    t.equal(webhookOf(disabled), undefined);
    const { state } = decide(disabled, settle(1, 200));
    t.match(
      state.delivery,
      { behind: true, cursor: { sequence: 1 } },
      'what comes meanwhile waits behind the cursor',
    );
  },
);

t.test(
  'parked events: bounded; with one more the webhook is disabled and none is lost; old ones leave',
  async (t) => {
    const full = refuseAll(registered(), 1, PARKED_MAX);
    t.equal(full.delivery.parked.length, PARKED_MAX);
    t.match(full.delivery, { state: 'failing', cursor: { sequence: PARKED_MAX } });
    const over = refuseAll(full, PARKED_MAX + 1, 1);
    t.match(over.delivery, {
      state: 'disabled',
      reason: 'parked',
      cursor: { sequence: PARKED_MAX },
      open: { sequences: [PARKED_MAX + 1] },
    });
    t.equal(over.delivery.parked.length, PARKED_MAX);
    t.equal(over.failedCount, 5 * (PARKED_MAX + 1));
    const later = refuseAll(full, PARKED_MAX + 1, 1, 5_000 + PARKED_KEEP_MS + 1);
    t.same(
      later.delivery.parked.map(({ sequence }) => sequence),
      [PARKED_MAX + 1],
    );
  },
);

t.test(
  'delivery log: a ring that holds the promised lines, forgets after days, and takes no line twice',
  async (t) => {
    const actors = createTestActors({ kinds: [deliveryLog] });
    const { clock } = actors;
    const lines = async () => {
      const pages = Array.from({ length: PAGES + 2 }, (_, page) =>
        actors.system.query(deliveryLog, logPageId('77', page), { type: 'lines' }),
      );
      return (await Promise.all(pages))
        .flat()
        .map(({ number }) => number)
        .toSorted((one, other) => one - other);
    };
    const append = async (number: number) => {
      const page = Math.floor((number - 1) / PAGE_LINES) % PAGES;
      const { source, ...rest } = delivery(number);
      const line = {
        ...result(200),
        ...rest,
        source,
        number,
        utcMs: clock.nowMs,
        attempt: 1,
        outcome: 'delivered' as const,
      };
      await actors.system.ask(deliveryLog, logPageId('77', page), { type: 'append', line });
    };
    const total = 2 * PAGES * PAGE_LINES + 30;
    for (let number = 1; number <= total; number += 1) await append(number);
    await append(total);
    const kept = await lines();
    t.ok(kept.length >= LOG_ATTEMPTS_MAX && kept.length <= PAGES * PAGE_LINES, `${kept.length}`);
    t.same(
      kept,
      Array.from({ length: kept.length }, (_, index) => total - kept.length + 1 + index),
    );
    await actors.restart();
    t.same(await lines(), kept);
    await actors.advance(6 * DAY_MS);
    await append(total + 1);
    await actors.advance(DAY_MS + 1);
    t.same(await lines(), [total + 1]);
    await actors.advance(DAY_MS);
    const { stored } = actors.system.administration.export('deliveryLog', logPageId('77', 0));
    t.notMatch(JSON.stringify(stored), /msg_1"/, 'nor is it on disk');
    t.same(actors.bugs, []);
  },
);
