/** Webhooks from the event log to the receivers: order, retries, poisoned events, crashes, isolation. */
import t from 'tap';
import { user } from '../../../src/actors/accounts/user.ts';
import { app } from '../../../src/actors/apps/app.ts';
import { DAY_MS, HOUR_MS, MINUTE_MS, SECOND_MS } from '../../../src/domain/time.ts';
import { seeds } from '../../support/depth.ts';
import { simulateWebhooks } from '../../support/events/webhook-simulation.ts';
import {
  cipher,
  numbersOf,
  OWNER,
  type Rig,
  type RigFault,
  startRig,
} from '../../support/events/webhooks.ts';
import { expectCaught } from '../../support/planted-fault.ts';
import { rejectsWith } from '../../support/rejections.ts';

/** Histories with kills at full depth. */
const KILL_SEEDS = 100;
/** Seeds within which a planted fault must show. */
const FAULT_SEEDS = 50;

/** Longer than the 30 s of tap: the machine may be busy. */
t.setTimeout(240_000);

const ORIGIN = { ip: '192.0.2.1', userAgent: 'test' };
const URL_OF = (appId: string) => `https://hook${appId}.example/`;
const range = (from: number, to: number) => Array.from({ length: to - from + 1 }, (_, index) => from + index);

/** Receivers that answer when the returned function is called. */
function holdAnswers(rig: Rig): () => void {
  let open = () => {};
  const gate = new Promise<number>((resolve) => {
    open = () => resolve(200);
  });
  rig.receivers.answer = () => gate;
  return open;
}

const approve = (rig: Rig, appId: string, flags: object = { approved: true, mcpEnabled: true }) =>
  rig.ask(appId, { type: 'administer', flags, by: '1', address: '192.0.2.9' });

function remove({ actors }: Rig, appId: string): Promise<unknown> {
  const reply = { appId, sessionsClosed: 0 };
  const command = { type: 'remove', commandId: 'c', ownerId: OWNER, reply, origin: ORIGIN } as const;
  return actors.system.tell(app, appId, command);
}

// covers R14
t.test(
  'delivery: events after the registration, in order, one body each while they come one by one',
  async (t) => {
    const rig = await startRig(t, []);
    rig.log.append();
    rig.clock.nowMs += 1;
    await rig.register('77');
    for (let n = 0; n < 3; n += 1) await rig.append();
    t.same(rig.receivers.numbers(), [2, 3, 4]);
    t.equal(rig.receivers.got.length, 3);
    const view = await rig.view('77');
    t.match(view, { successCount: 3, failedCount: 0, lastTick: '1004' });
    t.match(view.webhook, { state: 'active', failures: 0, retryAtMs: null });
    const delivered = { outcome: 'delivered', status: 200, source: 'live', attempt: 1, answer: 'said' };
    t.match(await rig.lines('77'), [
      { number: 1, ...delivered, sequences: [2] },
      { number: 2 },
      { number: 3, firstTick: '1004', lastTick: '1004' },
    ]);
  },
);

t.test('delivery: an event that names an application of its own user is sent once', async (t) => {
  const rig = await startRig(t, ['77', '78']);
  rig.log.append({ userId: OWNER, appId: '77' });
  await rig.append(1, { userId: OWNER });
  for (const appId of ['77', '78']) t.same(rig.receivers.numbers(URL_OF(appId)), [1, 2], appId);
});

// covers R88
t.test('delivery: a backlog is sent in batches of at most 100; maxBatch 1 never combines', async (t) => {
  const rig = await startRig(t);
  await rig.register('78', { maxBatch: 1 });
  const open = holdAnswers(rig);
  await rig.append();
  await rig.append(130);
  open();
  await rig.settle();
  while (rig.dispatcher.counters().pending > 0) await rig.settle();
  const sizes = (appId: string) =>
    rig.receivers.got.filter(({ url }) => url === URL_OF(appId)).map(({ body }) => numbersOf(body).length);
  t.same(sizes('77'), [1, 100, 30]);
  t.same(new Set(sizes('78')), new Set([1]));
  for (const appId of ['77', '78']) t.same(rig.receivers.numbers(URL_OF(appId)), range(1, 131));
  t.match(await rig.view('77'), { successCount: 3, lastTick: '1131' });
});

// covers R85
t.test(
  'rotation: deliveries carry the former key for 24 hours or until the owner ends that, signed with both',
  async (t) => {
    const rig = await startRig(t, []);
    const { receivers } = rig;
    const deliver = async () => {
      await rig.append();
      return receivers.got.at(-1)?.apiKeys;
    };
    const rotate = async () => {
      const { apiKey, sealed: key } = cipher.issue();
      await rig.ask('77', { type: 'rotateKey', userId: OWNER, key, origin: ORIGIN });
      return apiKey;
    };
    await rig.register('77');
    const { sent: first = '' } = (await deliver()) ?? {};
    const second = await rotate();
    t.same(await deliver(), { sent: first, signing: [second, first] });
    rig.clock.nowMs += DAY_MS - 1;
    await rig.restart();
    t.same(await deliver(), { sent: first, signing: [second, first] }, 'to the last millisecond');
    rig.clock.nowMs += 1;
    t.same(await deliver(), { sent: second, signing: [second] }, 'after 24 hours');

    const third = await rotate();
    receivers.answer = () => 500;
    t.same(await deliver(), { sent: second, signing: [third, second] });
    const { webhookId } = receivers.got.at(-1) ?? {};
    await rig.ask('77', { type: 'endKeyOverlap', userId: OWNER, origin: ORIGIN });
    await rig.restart();
    receivers.answer = () => 200;
    await rig.actors.advance(10 * SECOND_MS);
    await rig.settle();
    t.match(receivers.got.at(-1), { webhookId, apiKeys: { sent: third, signing: [third] } }, 'a retry too');
  },
);

// covers R91
t.test('routing: other users, other applications, filters and own events', async (t) => {
  const rig = await startRig(t, []);
  await rig.register('77', { currencies: ['BTC'], netTypes: [7] });
  await rig.register('78', { ownerId: '202' });
  await rig.register('79', { ownerId: '303', webhookUrl: null });
  rig.log.append({ userId: undefined });
  rig.log.append({ currency: 'BTC', netType: 7 });
  rig.log.append({ currency: 'EUR' });
  rig.log.append({ netType: 0 });
  rig.log.append({ module: 'gateway' });
  rig.log.append({ userId: '202', currency: 'EUR' });
  rig.log.append({ userId: '303' });
  await rig.append(1, { userId: '404', appId: '78' });
  t.same(rig.receivers.numbers(URL_OF('77')), [1, 2]);
  const unapproved = 'not approved: nothing about others, even where it is named';
  t.same(rig.receivers.numbers(URL_OF('78')), [1, 6], unapproved);
  await approve(rig, '78');
  rig.log.append({ userId: '404', appId: '78' });
  await rig.append(1, { userId: '404', appId: '77' });
  t.same(rig.receivers.numbers(URL_OF('78')), [1, 6, 9]);
  t.notOk(rig.receivers.got.some(({ url }) => url === URL_OF('79')));
  t.equal(rig.dispatcher.counters().pending, 0);
});

t.test(
  'consent: from the grant on and not after the revocation, also for what waits to be tried again',
  async (t) => {
    const rig = await startRig(t);
    await approve(rig, '77');
    const system = () => rig.actors.system;
    await rig.append(1, { userId: '505' });
    rig.clock.nowMs += 1;
    const indexEntry = { ownerId: OWNER, openedTick: '1', keyTick: '0', mcpPublicKey: null };
    await system().ask(user, '505', { type: 'grantAppAccess', appId: '77', indexEntry, origin: ORIGIN });
    await rig.settle();
    await rig.append(1, { userId: '505' });
    t.same(rig.receivers.numbers(), [2]);
    rig.receivers.answer = () => 500;
    rig.log.append({ userId: '505' });
    await rig.append();
    await rig.actors.advance(MINUTE_MS);
    t.ok(
      rig.receivers.got.some(({ body }) => numbersOf(body).includes(3)),
      'it was tried',
    );
    await system().ask(user, '505', { type: 'revokeAppAccess', appId: '77', origin: ORIGIN });
    rig.receivers.answer = () => 200;
    await rig.append(1, { userId: '505', appId: '77' });
    await rig.actors.advance(10 * MINUTE_MS);
    t.same(rig.receivers.numbers(), [2, 4], 'the retry is cut anew without the person');
  },
);

// covers R89
t.test(
  'failure: the same id and bytes again, steps of 5 s to an hour, counters and a notification',
  async (t) => {
    const rig = await startRig(t);
    rig.receivers.answer = () => 503;
    await rig.append(2);
    const sentAt: number[] = [];
    rig.receivers.answer = () => {
      sentAt.push(rig.clock.nowMs);
      return 503;
    };
    const startMs = rig.clock.nowMs;
    await rig.actors.advance(4 * HOUR_MS);
    const gaps = sentAt.map((atMs, index) => atMs - (sentAt[index - 1] ?? startMs));
    const steps = [5 * SECOND_MS, 15 * SECOND_MS, MINUTE_MS, 5 * MINUTE_MS, 15 * MINUTE_MS, HOUR_MS, HOUR_MS];
    for (const [index, stepMs] of steps.entries()) {
      const gapMs = gaps[index] ?? 0;
      t.ok(gapMs >= 0.8 * stepMs - 1 && gapMs <= 1.2 * stepMs + 1, `wait ${index}: ${gapMs}`);
    }
    const first = rig.receivers.got[0];
    for (const { webhookId, body } of rig.receivers.got.slice(1))
      t.same({ webhookId, body }, { webhookId: first?.webhookId, body: first?.body });
    t.match(rig.notices, [{ type: 'WebhookFailing', ownerId: OWNER, data: { appId: '77', status: 503 } }]);
    const counters = { successCount: 0, failedCount: sentAt.length + 1, lastTick: '0' };
    t.match(await rig.view('77'), { ...counters, webhook: { state: 'failing' } });
    t.ok((rig.dispatcher.oldestUndeliveredMs('77') ?? 0) <= startMs, 'the admin sees how long it waits');
    rig.receivers.answer = () => 200;
    await rig.actors.advance(2 * HOUR_MS);
    t.same(rig.receivers.numbers(), [1, 2]);
    t.match(await rig.view('77'), { webhook: { state: 'active', failures: 0 }, lastTick: '1002' });
    t.equal(rig.notices.at(-1)?.type, 'WebhookRecovered');
    t.equal(rig.dispatcher.oldestUndeliveredMs('77'), undefined);
  },
);

t.test('probe: a receiver that could not be reached is tried with one event, then with all', async (t) => {
  const rig = await startRig(t);
  rig.receivers.answer = () => ({ failure: 'unreachable', sent: false });
  await rig.append(10);
  rig.receivers.answer = () => 200;
  await rig.actors.advance(MINUTE_MS);
  t.same(
    rig.receivers.got.map(({ body }) => numbersOf(body).length),
    [10, 1, 9],
  );
  t.same(rig.receivers.numbers(), range(1, 10));
});

t.test(
  'poison: one event that is refused is found, tried five times, parked; all others arrive',
  async (t) => {
    const rig = await startRig(t);
    rig.receivers.answer = () => 503;
    await rig.append();
    for (let n = 2; n <= 60; n += 1) rig.log.append();
    rig.receivers.answer = ({ body }) => (numbersOf(body).includes(37) ? 422 : 200);
    await rig.actors.advance(20 * MINUTE_MS);
    t.same(
      rig.receivers.numbers(),
      range(1, 60).filter((n) => n !== 37),
    );
    const alone = rig.receivers.got.filter(({ body }) => JSON.stringify(numbersOf(body)) === '[37]');
    t.equal(alone.length, 5);
    t.equal(new Set(alone.map(({ webhookId }) => webhookId)).size, 1);
    const { webhook } = await rig.view('77');
    t.match(webhook.parked, [{ sequence: 37, tick: '1037', status: 422, webhookId: alone[0]?.webhookId }]);
    t.match(webhook, { state: 'active' });
    t.match(
      rig.notices.filter(({ type }) => type === 'WebhookEventParked'),
      [{ data: { tick: '1037', status: 422 } }],
    );
    const outcomes = (await rig.lines('77')).map(({ outcome }) => outcome);
    t.equal(outcomes.filter((outcome) => outcome === 'parked').length, 1);
    t.ok(outcomes.includes('split'));
  },
);

t.test(
  'poison: a receiver that refuses everything: each event is parked, dropping them is asked for',
  async (t) => {
    const rig = await startRig(t);
    rig.receivers.answer = () => 400;
    await rig.append(4);
    await rig.actors.advance(2 * HOUR_MS);
    t.same(
      (await rig.view('77')).webhook.parked.map(({ sequence }) => sequence),
      range(1, 4),
    );
    t.match(await rig.view('77'), { lastTick: '0', successCount: 0, webhook: { state: 'failing' } });
    rig.receivers.answer = () => 200;
    await rig.ask('77', { type: 'enableWebhook', userId: OWNER, dropParked: true, origin: ORIGIN });
    await rig.append();
    t.same(rig.receivers.numbers(), [5]);
    t.match((await rig.view('77')).webhook, { state: 'active', parked: [] });
  },
);

// covers R64 R89
t.test(
  '410: the webhook is disabled at once, the owner is notified, enabling resumes at the cursor',
  async (t) => {
    const rig = await startRig(t);
    await rig.append();
    rig.receivers.answer = () => 410;
    await rig.append(2);
    await rig.actors.advance(DAY_MS);
    t.equal(rig.receivers.got.length, 2, 'nothing more is sent');
    t.match((await rig.view('77')).webhook, { state: 'disabled', reason: 'gone' });
    t.match(rig.notices, [{ type: 'WebhookDisabled', data: { reason: 'gone', status: 410 } }]);
    rig.receivers.answer = () => 200;
    await rig.restart();
    t.equal(rig.receivers.got.length, 2, 'nor after a restart');
    const range = { after: 0, until: 3, sequences: null, events: 3 };
    const resend = { type: 'resendEvents', ...range, userId: OWNER, origin: ORIGIN } as const;
    await rejectsWith(t, rig.ask('77', resend), 'WebhookDisabled');
    const enable = { type: 'enableWebhook', dropParked: false, origin: ORIGIN } as const;
    await rejectsWith(t, rig.ask('77', { ...enable, userId: '999' }), 'NotFound');
    await rig.ask('77', { ...enable, userId: OWNER });
    await rig.actors.advance(MINUTE_MS);
    t.same(rig.receivers.numbers(), [1, 2, 3]);
  },
);

// covers R89
t.test(
  'disabling: after three days of failures, not before; another address starts again at once',
  async (t) => {
    const rig = await startRig(t);
    rig.receivers.answer = () => 404;
    await rig.append();
    await rig.actors.advance(3 * DAY_MS - HOUR_MS);
    t.match((await rig.view('77')).webhook, { state: 'failing' });
    await rig.actors.advance(3 * HOUR_MS);
    t.match((await rig.view('77')).webhook, { state: 'disabled', reason: 'failing' });
    const attempts = rig.receivers.got.length;
    t.ok(attempts > 60, 'hourly while enabled');
    rig.receivers.answer = () => 200;
    await rig.actors.advance(DAY_MS);
    t.equal(rig.receivers.got.length, attempts);
    await rig.register('77', { webhookUrl: 'https://moved.example/' });
    await rig.actors.advance(MINUTE_MS);
    t.same(rig.receivers.numbers('https://moved.example/'), [1]);
    t.match((await rig.view('77')).webhook, { state: 'active' });
  },
);

t.test('application: removed, no row keeps a line of its log', async (t) => {
  const rig = await startRig(t);
  await rig.append();
  const { journal } = rig.actors;
  t.match(await rig.lines('77'), [{ answer: 'said' }]);
  t.ok(journal.searchText().includes('"answer":"said"'));
  await remove(rig, '77');
  await rig.settle();
  t.same(await rig.lines('77'), []);
  t.notOk(journal.searchText().includes('"answer":"said"'));
});

t.test(
  'application: removed, disabled or without an address in mid-flight: nothing more is sent',
  async (t) => {
    const rig = await startRig(t, ['77', '78', '79']);
    const open = holdAnswers(rig);
    await rig.append(2);
    await remove(rig, '77');
    await approve(rig, '78', { disabled: true });
    await rig.register('79', { webhookUrl: null });
    rig.log.append();
    open();
    await rig.settle();
    await rig.actors.advance(HOUR_MS);
    t.equal(rig.receivers.got.length, 3);
    t.equal(rig.dispatcher.subscriptions.size, 0);
    t.same(await rig.lines('77'), [], 'the log of a removed application is emptied');
    rig.receivers.answer = () => 200;
    await approve(rig, '78', { disabled: false });
    await rig.register('79');
    rig.clock.nowMs += 1;
    await rig.append();
    await rig.actors.advance(MINUTE_MS);
    t.same(rig.receivers.numbers(URL_OF('78')), [1, 2, 3, 4], 'what came while it was disabled is delivered');
    t.same(rig.receivers.numbers(URL_OF('79')), [1, 2, 4], 'what came without an address is not');
  },
);

t.test('retention: events that left the log before delivery are reported as a gap', async (t) => {
  const rig = await startRig(t);
  rig.receivers.answer = () => 500;
  await rig.append(10);
  rig.log.trim(4);
  rig.receivers.answer = () => 200;
  // The newest events are in memory until then.
  await rig.restart();
  await rig.actors.advance(HOUR_MS);
  t.same(rig.receivers.numbers(), range(5, 10));
  t.match(
    rig.notices.filter(({ type }) => type === 'WebhookGap'),
    [{ data: { after: 0, until: 4 } }],
  );
});

t.test(
  'idle applications write nothing while events of others go by, and find their place after a restart',
  async (t) => {
    const rig = await startRig(t, []);
    for (let n = 0; n < 50; n += 1) await rig.register(String(200 + n), { ownerId: String(5_000 + n) });
    await rig.register('77');
    await rig.settle();
    const before = rig.actors.system.counters().groups;
    rig.log.pages = 0;
    await rig.append(300);
    await rig.settle();
    const deliveries = rig.receivers.got.length;
    t.ok(
      rig.actors.system.counters().groups - before <= 4 * deliveries,
      'commits of the one that has events',
    );
    await rig.actors.advance(MINUTE_MS);
    await rig.restart();
    rig.log.pages = 0;
    await rig.append(1, { userId: '5003' });
    t.same(rig.receivers.numbers(URL_OF('203')), [301]);
    t.ok(rig.log.pages < 40, `no search through the log for idle ones: ${rig.log.pages} pages`);
    t.equal(rig.receivers.numbers(URL_OF('77')).length, 300, 'and nothing is sent again');
  },
);

// covers R14
t.test(
  'kill -9 at any point: nothing skipped, in order, what comes twice has its id and its bytes',
  async (t) => {
    for (const seed of seeds(KILL_SEEDS)) {
      const broken = await simulateWebhooks(seed);
      if (broken !== undefined) t.fail(`seed ${seed}: ${broken}`);
    }
    t.pass();
  },
);

/** Each with a seed that shows it. */
const FAULTS: Record<string, { readonly fault: RigFault; readonly shownBy: number }> = {
  'an outcome that is written down and was never sent': { fault: 'settlesUnsent', shownBy: 1 },
  'an id that is another one at each attempt': { fault: 'newIds', shownBy: 8 },
  'a checkpoint ahead of what was delivered': { fault: 'earlyCheckpoint', shownBy: 4 },
};

for (const [name, { fault, shownBy }] of Object.entries(FAULTS)) {
  t.test(`kill -9 at any point: the simulation catches ${name}`, (t) =>
    expectCaught(t, { last: FAULT_SEEDS, shownBy }, (seed) => simulateWebhooks(seed, fault)),
  );
}

t.test(
  'recovery: what may have gone out keeps its id when its receiver is away after the kill',
  async (t) => {
    const rig = await startRig(t);
    rig.receivers.answer = () => 'never';
    await rig.append(3);
    const [cut] = rig.receivers.got;
    t.same(numbersOf(cut?.body ?? '[]'), [1, 2, 3]);
    rig.receivers.answer = () => ({ failure: 'unreachable', sent: false });
    await rig.restart();
    rig.receivers.answer = () => 200;
    await rig.actors.advance(HOUR_MS);
    t.same(
      rig.receivers.taken.map(({ webhookId }) => webhookId),
      [cut?.webhookId],
    );
  },
);

t.test(
  'recovery: killed while it catches up, behind the common checkpoint: resumes at its cursor',
  async (t) => {
    const rig = await startRig(t, []);
    await rig.register('77', { maxBatch: 2 });
    await rig.register('78', { ownerId: '202' });
    const own = ({ url }: { url: string }) => url === URL_OF('77');
    rig.receivers.answer = (delivery) => (own(delivery) ? 500 : 200);
    for (let n = 0; n < 10; n += 1) rig.log.append();
    for (let n = 0; n < 5; n += 1) await rig.append(1, { userId: '202' });
    await rig.actors.advance(2 * MINUTE_MS);
    t.equal(rig.actors.system.administration.metaGet('webhooks'), 15, 'a failing one holds nothing back');
    let taken = 0;
    rig.receivers.answer = (delivery) => {
      taken += own(delivery) ? 1 : 0;
      return taken > 1 ? 'never' : 200;
    };
    await rig.actors.advance(10 * MINUTE_MS);
    t.same(rig.receivers.numbers(URL_OF('77')), [1, 2]);
    await rig.restart();
    rig.receivers.answer = () => 200;
    await rig.restart();
    await rig.actors.advance(10 * MINUTE_MS);
    t.same(rig.receivers.numbers(URL_OF('77')), range(1, 10));
    t.same(rig.receivers.numbers(URL_OF('78')), range(11, 15));
  },
);

t.test('quarantine: an application that does not answer loses nothing, others continue', async (t) => {
  const rig = await startRig(t, ['77', '78']);
  await rig.append();
  await rig.actors.advance(MINUTE_MS);
  rig.quarantined.add('77');
  await rig.append();
  t.same(rig.receivers.numbers(URL_OF('77')), [1]);
  await rig.restart();
  rig.log.append();
  await rig.actors.advance(10 * MINUTE_MS);
  t.same(rig.receivers.numbers(URL_OF('78')), [1, 2, 3]);
  await rig.restart();
  await rig.actors.advance(10 * MINUTE_MS);
  rig.quarantined.clear();
  await rig.actors.advance(2 * MINUTE_MS);
  t.same(rig.receivers.numbers(URL_OF('77')), [1, 2, 3]);
  t.same(rig.receivers.numbers(URL_OF('78')), [1, 2, 3]);
});

t.test('isolation: slots in total and per host; failing receivers delay no healthy one', async (t) => {
  const concurrency = { inFlightMax: 12, perHostMax: 4, failingMax: 6, failingMin: 2 };
  const rig = await startRig(t, [], { concurrency });
  for (let n = 0; n < 30; n += 1)
    await rig.register(String(300 + n), { webhookUrl: `https://${n < 20 ? 'hole' : 'fine'}.example/${n}` });
  rig.receivers.answer = () => 500;
  await rig.append(1, { userId: undefined });
  rig.receivers.answer = ({ url }) => (url.includes('hole') ? 'never' : 200);
  rig.receivers.inFlightPeak = 0;
  await rig.actors.advance(MINUTE_MS);
  t.equal(rig.receivers.taken.length, 10, 'all of the healthy host');
  const hanging = [...rig.receivers.inFlightByUrl].filter(
    ([url, count]) => url.includes('hole') && count > 0,
  );
  t.equal(hanging.length, 4, 'at most four of one host');
  t.ok(rig.receivers.inFlightPeak <= 12);
});
