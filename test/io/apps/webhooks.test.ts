/** Webhooks as their owner and the admins see them: deliveries, resend, ping, enable, over the pipeline and the verbs of other nodes. */
import t, { type Test } from 'tap';
import { DAY_MS, HOUR_MS, MINUTE_MS, toIso } from '../../../src/domain/time.ts';
import { packFrame, unpackFrame } from '../../../src/io/cluster/frames.ts';
import { createAppWebhookRoutes } from '../../../src/io/routes/app-webhooks.ts';
import type { LoggedAttempt } from '../../../src/io/webhooks/attempt-log.ts';
import { WebhookDispatcher } from '../../../src/io/webhooks/dispatcher.ts';
import { WebhookOwnerApi } from '../../../src/io/webhooks/owner-api.ts';
import { WebhookOwnerWork, type WebhookVerb, webhookVerbs } from '../../../src/io/webhooks/owner-work.ts';
import { cookie, refused } from '../../support/account.ts';
import { CIPHER, SHOP, startAdmin } from '../../support/admin.ts';
import { MemoryEventLog, numbersOf, TestReceivers } from '../../support/events/webhooks.ts';

interface Delivery {
  readonly number: number;
  readonly webhookId: string;
  readonly source: string;
  readonly outcome: string;
  readonly status: number | null;
}
interface Listed {
  readonly items: Delivery[];
  readonly parked: { webhookId: string; tick: string }[];
  readonly resends: { resendId: string; events: number }[];
  readonly oldestUndeliveredSeconds: number | null;
}

/** The operations of owners as a node offers them that does not deliver itself: arguments and results travel. */
function remoteOwnerApi(deps: ConstructorParameters<typeof WebhookOwnerWork>[0]): WebhookOwnerApi {
  const work = new WebhookOwnerWork(deps);
  const verbs = webhookVerbs(work, () => undefined);
  const travelled = (value: unknown) => unpackFrame(packFrame(value).subarray(4));
  return new WebhookOwnerApi({
    work,
    atDeliverer: async <Result>(
      verb: WebhookVerb,
      appId: string,
      _here: () => Promise<Result>,
      ...args: readonly unknown[]
    ) => {
      const [id, ...rest] = travelled([appId, ...args]) as unknown[];
      return travelled(await verbs[verb](id, ...rest)) as Result;
    },
    isOffered: () => true,
  });
}

async function start(t: Test) {
  const receivers = new TestReceivers();
  const attempts: LoggedAttempt[] = [];
  let dispatcher: WebhookDispatcher | undefined;
  let ownerApi: WebhookOwnerApi | undefined;
  const late = <T extends object>(value: () => T | undefined) =>
    new Proxy({} as T, {
      get: (_target, name) => {
        const found = value();
        const member: unknown = found === undefined ? undefined : Reflect.get(found, name);
        return typeof member === 'function' ? member.bind(found) : member;
      },
    });
  const fixture = await startAdmin({
    routes: () => createAppWebhookRoutes(late(() => ownerApi)),
    webhooks: {
      oldestUndeliveredSeconds: async (id, nowMs) =>
        (await ownerApi?.oldestUndeliveredSeconds(id, nowMs)) ?? null,
      payload: async (call, id, webhookId) => {
        if (ownerApi === undefined) throw new Error('not started');
        return ownerApi.payload(call, id, webhookId);
      },
    },
    webhookPort: {
      changed: (appId) => dispatcher?.changed(appId),
      tell: async () => ({ ok: true, value: null }),
    },
  });
  const { actors } = fixture;
  const log = new MemoryEventLog(actors.clock.read);
  dispatcher = new WebhookDispatcher({
    actors: actors.system,
    administration: actors.system.administration,
    log,
    sender: receivers,
    cipher: CIPHER,
    clock: actors.clock.read,
    schedule: { immediate: (task) => setImmediate(task), timer: actors.clock.timer },
    attemptLog: undefined,
    tracing: undefined,
    onBug: (error) => t.fail(String(error)),
  });
  await dispatcher.start();
  ownerApi = remoteOwnerApi({
    ...{ dispatcher, actors: actors.system, log, clock: actors.clock.read },
    attemptLog: (attempt) => attempts.push(attempt),
  });
  t.teardown(() => fixture.stop());
  const appId = await fixture.register({ ...SHOP, webhookUrl: 'https://shop.example/hook' });
  const { owner } = fixture;
  const send = (path: string, body: object, account = owner, headers: Record<string, string> = {}) =>
    fixture.post(`/auth/v1/app/${path}`, { id: appId, ...body }, { ...cookie(account.sid), ...headers });
  const deliveries = async (query = '', account = owner) =>
    (await fixture.get(`/auth/v1/app/deliveries?id=${appId}${query}`, cookie(account.sid))).result as Listed;
  const append = async (count = 1) => {
    for (let n = 0; n < count; n += 1) log.append({ userId: owner.userId });
    for (let n = 0; n < 5; n += 1) await actors.settle();
  };
  const numbers = async (query: string) => (await deliveries(query)).items.map(({ number }) => number);
  return { ...fixture, receivers, attempts, log, appId, send, deliveries, numbers, append };
}

// covers R64
t.test(
  'deliveries: the newest without a cursor, the next ones behind a number, nothing of others',
  async (t) => {
    const { append, deliveries, receivers, get, post, appId, owner, signUp, actors, numbers } =
      await start(t);
    await append();
    receivers.answer = () => ({ status: 500, answer: 'broken <here>' });
    await append();
    t.match(await deliveries(), {
      items: [
        { number: 1, source: 'live', outcome: 'delivered', status: 200, class: null, events: 1, attempt: 1 },
        { number: 2, outcome: 'failed', status: 500, answer: 'broken <here>', milliseconds: 3 },
      ],
      parked: [],
      resends: [],
      oldestUndeliveredSeconds: 0,
    });
    await actors.advance(2 * MINUTE_MS);
    const all = await deliveries();
    t.ok(all.items.length > 3);
    t.same(await numbers('&after=1&limit=2'), [2, 3]);
    t.same(await numbers('&limit=1'), [all.items.length]);
    t.equal(all.oldestUndeliveredSeconds, 120);
    const outsider = await signUp();
    const path = `/auth/v1/app/deliveries?id=${appId}`;
    refused(t, await get(path, cookie(outsider.sid)), 404, /Not found/);
    refused(t, await get(`${path}&after=-1`, cookie(owner.sid)), 400, /after/);
    for (const query of ['id=x', 'appId=x', '', `id=1&appId=${appId}`])
      refused(t, await get(`/auth/v1/app/deliveries?${query}`, cookie(owner.sid)), 400, /appId/);
    const named = (name: string) => get(`/auth/v1/app/deliveries?${name}=${appId}`, cookie(owner.sid));
    t.same((await named('appId')).result, (await named('id')).result);
    for (const route of ['ping', 'enable', 'resend']) {
      const ask = (body: object) => post(`/auth/v1/app/${route}`, body, cookie(owner.sid));
      t.notMatch((await ask({ appId })).error ?? {}, { detail: /appId/ }, route);
      refused(t, await ask({ webhookId: 'x' }), 400, /appId/);
      refused(t, await ask({ appId, id: '1' }), 400, /appId and id/);
    }
  },
);

// covers R64
t.test(
  'resend: one webhook by its id, same id and bytes, marked; the cursor and later events stay',
  async (t) => {
    const { append, deliveries, receivers, send, appId, signUp, get, owner } = await start(t);
    await append(3);
    const [first] = (await deliveries()).items;
    await append();
    const before = receivers.got.length;
    const answer = await send('resend', { webhookId: first?.webhookId });
    t.match(answer, { status: 200, result: { resendId: /^[0-9]+$/, events: 3 } });
    await append(0);
    t.equal(receivers.got.length, before + 1);
    const [again] = receivers.got.slice(-1);
    t.match(again, { resent: true, webhookId: first?.webhookId, body: receivers.got[0]?.body });
    t.match((await deliveries()).items.at(-1), { source: 'resend', outcome: 'delivered', events: 3 });
    const info = await get(`/auth/v1/app/info?id=${appId}`, cookie(owner.sid));
    t.match(info.result, { last_tick: '1004', success_count: 3 }, 'the cursor did not move');
    t.same((await deliveries()).resends, []);
    refused(t, await send('resend', { webhookId: 'msg_unknown' }), 404, /no such delivery/);
    const foreign = await send('resend', { webhookId: first?.webhookId }, await signUp());
    refused(t, foreign, 404, /no such application/);
    refused(t, await send('resend', {}), 400, /webhookId or from/);
    refused(t, await send('resend', { webhookId: 'x', from: toIso(0) }), 400, /not together/);
  },
);

// covers R64
t.test(
  'resend: a range of time, bounded in days and events; a repeat with the same key is one resend',
  async (t) => {
    const { append, receivers, send, actors, log, deliveries } = await start(t);
    await append(5);
    await actors.advance(HOUR_MS);
    const from = toIso(actors.clock.nowMs);
    await append(150);
    await actors.advance(HOUR_MS);
    const to = toIso(actors.clock.nowMs);
    await actors.advance(1);
    await append(5);
    const before = receivers.got.length;
    const headers = { 'Idempotency-Key': 'again' };
    const one = await send('resend', { from, to }, undefined, headers);
    t.match(one, { status: 200, result: { events: 150 } });
    t.same((await send('resend', { from, to }, undefined, headers)).result, one.result);
    await append(0);
    await append(0);
    const again = receivers.got.slice(before);
    t.ok(again.every(({ resent }) => resent));
    t.same(
      again.flatMap(({ body }) => numbersOf(body)),
      Array.from({ length: 150 }, (_, index) => index + 6),
    );
    const refusals: [object, number, RegExp][] = [
      [{ from: toIso(actors.clock.nowMs - 15 * DAY_MS) }, 400, /at most 14 days/],
      [{ from: to, to: from }, 400, /from, to/],
      [{ from: 'yesterday' }, 400, /from/],
      [{ from: '2026-13-45T00:00:00Z' }, 400, /from/],
      [{ from: toIso(0), to: toIso(1) }, 404, /nothing was delivered/],
    ];
    for (const [range, ...refusal] of refusals) refused(t, await send('resend', range), ...refusal);
    for (let n = 0; n < 10_001; n += 1) log.append({ userId: undefined });
    for (let n = 0; n < 60; n += 1) await append(0);
    t.equal((await deliveries()).oldestUndeliveredSeconds, null);
    refused(t, await send('resend', { from }), 400, /more than 10000 events/);
  },
);

// covers R64
t.test(
  'ping: a signed test event now, with the answer; no counter, no state, also of a disabled webhook',
  async (t) => {
    const { append, deliveries, receivers, attempts, send, get, appId, owner } = await start(t);
    receivers.answer = () => 410;
    await append();
    receivers.answer = () => ({ status: 201, answer: 'pong' });
    const answered = { delivered: true, status: 201, class: null, milliseconds: 3, answer: 'pong' };
    t.match(await send('ping', {}), { status: 200, result: { webhookId: /^ping_/, ...answered } });
    const sent = JSON.parse(receivers.got.at(-1)?.body ?? '');
    t.match(sent, { module: 'gateway', type: 'ping', data: { appId } });
    receivers.answer = () => ({ failure: 'blocked_address', sent: false });
    t.match((await send('ping', {})).result, { delivered: false, status: null, class: 'blocked_address' });
    const { result } = await get(`/auth/v1/app/info?id=${appId}`, cookie(owner.sid));
    t.match(result, { success_count: 0, failed_count: 1, webhook: { state: 'disabled', reason: 'gone' } });
    t.same(
      (await deliveries()).items.map(({ source, outcome }) => [source, outcome]),
      [
        ['live', 'failed'],
        ['ping', 'delivered'],
        ['ping', 'failed'],
      ],
    );
    t.match(attempts, [
      { appId, source: 'ping', attempt: 1, eventIds: undefined, result: { status: 201 }, retryAtMs: null },
      { appId, source: 'ping', attempt: 1, result: { failure: 'blocked_address' }, state: 'disabled' },
    ]);
    const { webhookId } = (await deliveries()).items[1] ?? {};
    refused(t, await send('resend', { webhookId }), 404, /no such delivery/);
    await send('upsert_usr_app', { webhookUrl: '' });
    refused(t, await send('ping', {}), 409, /Webhook disabled/);
  },
);

// covers R64
t.test('ping: waits for the delivery under way, so that the receiver has one at a time', async (t) => {
  const { append, receivers, send } = await start(t);
  let open = () => {};
  receivers.answer = () =>
    new Promise((resolve) => {
      open = () => resolve(200);
    });
  await append();
  const ping = send('ping', {});
  for (let n = 0; n < 20; n += 1) await append(0);
  t.equal(receivers.got.length, 1);
  receivers.answer = () => 200;
  open();
  t.match(await ping, { status: 200, result: { delivered: true } });
  await append();
  t.same(receivers.numbers().length, 3, 'and deliveries go on');
});

// covers R64
t.test(
  'enable: a disabled webhook continues from its cursor, parked events are kept unless dropped',
  async (t) => {
    const { append, deliveries, receivers, send, actors, signUp } = await start(t);
    receivers.answer = () => 422;
    await append();
    await actors.advance(HOUR_MS);
    const [parked] = (await deliveries()).parked;
    t.match(parked, { tick: '1001', status: 422 });
    receivers.answer = () => 410;
    await append(2);
    t.match((await send('enable', {}, await signUp())).status, 404);
    receivers.answer = () => 200;
    t.match(await send('enable', {}), { status: 200, result: { webhook: { state: 'active', parked: 1 } } });
    await append(0);
    t.same(receivers.numbers(), [2, 3]);
    t.match(await send('resend', { webhookId: parked?.webhookId }), { status: 200, result: { events: 1 } });
    await append(0);
    t.same(receivers.numbers(), [2, 3, 1]);
    t.same((await deliveries()).parked, [], 'what the receiver took is no longer parked');
    const enabled = await send('enable', { dropParked: true });
    t.match(enabled, { status: 200, result: { webhook: { state: 'active' } } });
  },
);

t.test(
  'deliveries: backwards from a number, with the type of the first event and the signature that was sent',
  async (t) => {
    const { append, deliveries, receivers, actors, owner, log, numbers } = await start(t);
    const signed = { timestamp: 1_795_167_000, signature: 'v1,abc' };
    receivers.answer = () => ({ status: 500, signed });
    log.append({ userId: owner.userId, type: 'OrderPaid' });
    await append();
    await actors.advance(2 * MINUTE_MS);
    const { items } = await deliveries();
    t.ok(items.length > 3);
    t.match(items[0], { type: 'OrderPaid', signed });
    t.same(await numbers('&before=4&limit=2'), [2, 3]);
    t.same((await deliveries('&before=1')).items, []);
  },
);

t.test(
  'payload: the bytes that were sent, for admins, while the events are kept; each look is in the audit log',
  async (t) => {
    const { append, deliveries, receivers, send, ask, appId, log, owner } = await start(t);
    await append(2);
    const [first] = (await deliveries()).items;
    const look = (webhookId = first?.webhookId, account?: typeof owner) =>
      ask(`delivery?appId=${appId}&webhookId=${webhookId}`, account);
    t.match(await look(), { status: 200, result: { payload: receivers.got[0]?.body } });
    t.match((await ask('audit?event=payload_read')).result, [
      { event: 'payload_read', fields: { appId, webhookId: first?.webhookId } },
    ]);
    refused(t, await look(first?.webhookId, owner), 403, /Access denied/);
    refused(t, await look('msg_unknown'), 404, /no such delivery/);
    await send('ping', {});
    refused(t, await look((await deliveries()).items.at(-1)?.webhookId), 404, /no such delivery/);
    log.trim(1);
    refused(t, await look(), 404, /no longer kept/);
  },
);

t.test('admins: state of every webhook and the age of its oldest undelivered event', async (t) => {
  const { append, receivers, actors, ask, administer, appId } = await start(t);
  receivers.answer = () => 503;
  await append();
  await actors.advance(5 * MINUTE_MS);
  const row = async () => ((await ask('apps')).result as { id: string }[]).find(({ id }) => id === appId);
  t.match(await row(), { webhook: { state: 'failing', reason: null }, oldestUndeliveredSeconds: 300 });
  await administer(appId, { disabled: true });
  t.match(await row(), { disabled: true, oldestUndeliveredSeconds: null });
});
