/** Rules of webhook deliveries: whose events an application gets, how bodies are cut, what an answer means, when to try again. */
import fc from 'fast-check';
import t from 'tap';
import { DAY_MS, HOUR_MS, MINUTE_MS, SECOND_MS } from '../../../src/domain/time.ts';
import { backoffMs, readRetryAfter } from '../../../src/domain/webhooks/backoff.ts';
import { batchLength, bodyOf, webhookIdOf } from '../../../src/domain/webhooks/batch.ts';
import {
  afterRejection,
  afterSuccess,
  classify,
  extended,
  type FailureRun,
  isHopeless,
} from '../../../src/domain/webhooks/outcome.ts';
import {
  allowedBy,
  type RoutedEvent,
  routeOf,
  type Subscriber,
} from '../../../src/domain/webhooks/routing.ts';
import { BATCH_BYTES_MAX } from '../../../src/domain/webhooks/types.ts';
import { runs } from '../../support/depth.ts';

const APP: Subscriber = {
  appId: '77',
  ownerId: '101',
  approved: true,
  currencies: [],
  netTypes: [],
  sinceMs: 1_000,
};
const EVENT: RoutedEvent = {
  module: 'wallet',
  userId: undefined,
  appId: undefined,
  currency: undefined,
  netType: undefined,
  acceptedMs: 2_000,
};
const NO_ACCESS = { grantedMs: null, revoked: false };

t.test('routing: events of the owner and of all users pass, those of other users need access', async (t) => {
  t.equal(routeOf(EVENT, APP), 'yes', 'concerns everybody');
  t.equal(routeOf({ ...EVENT, userId: '101' }, APP), 'yes', 'the owner');
  t.equal(routeOf({ ...EVENT, userId: '102' }, APP), 'consent', 'another account');
  t.equal(routeOf({ ...EVENT, userId: '102', appId: '77' }, APP), 'consent', 'names the application');
  const unapproved = { ...APP, approved: false };
  t.equal(routeOf({ ...EVENT, userId: '101' }, unapproved), 'yes', 'approval is not needed for the owner');
  t.equal(routeOf({ ...EVENT, userId: '102', appId: '77' }, unapproved), 'no');
  t.equal(routeOf({ ...EVENT, module: 'gateway', userId: '101' }, APP), 'no', "the gateway's own");
  const ownOfApp = { ...EVENT, module: 'gateway', userId: '101', appId: '77' };
  t.equal(routeOf(ownOfApp, unapproved), 'yes', 'the gateway speaks of the application itself');
  t.equal(routeOf({ ...ownOfApp, appId: '78' }, APP), 'no', 'the gateway speaks of another one');
  t.equal(routeOf({ ...EVENT, acceptedMs: 999 }, APP), 'no', 'from before the webhook was set');
});

t.test('routing: what a person decided, from that moment on; a revocation beats everything', async (t) => {
  const event = { ...EVENT, userId: '102' };
  const named = { ...event, appId: '77' };
  t.equal(allowedBy(NO_ACCESS, event, APP), false);
  t.equal(allowedBy(NO_ACCESS, named, APP), true, 'the event names the application');
  t.equal(allowedBy(NO_ACCESS, { ...event, appId: '78' }, APP), false, 'it names another one');
  t.equal(allowedBy({ grantedMs: 2_000, revoked: false }, event, APP), true);
  t.equal(allowedBy({ grantedMs: 2_001, revoked: false }, event, APP), false, 'from before the consent');
  t.equal(allowedBy({ grantedMs: 1, revoked: true }, named, APP), false);
});

t.test('routing: any event that gets through satisfies a rule that names it', async () => {
  const id = fc.constantFrom('101', '102', '77', '78');
  const some = <T>(value: fc.Arbitrary<T>) => fc.option(value, { nil: undefined });
  const event = fc.record<RoutedEvent>({
    module: fc.constantFrom('wallet', 'core', 'gateway'),
    userId: some(id),
    appId: some(id),
    currency: some(fc.constantFrom('BTC', 'btc', 'EUR')),
    netType: some(fc.constantFrom(0, 7)),
    acceptedMs: fc.nat(4_000),
  });
  const subscriber = fc.record<Subscriber>({
    appId: fc.constant('77'),
    ownerId: fc.constant('101'),
    approved: fc.boolean(),
    currencies: fc.subarray(['Btc', 'EUR', 'XMR']),
    netTypes: fc.subarray([0, 7, 255]),
    sinceMs: fc.nat(4_000),
  });
  const consent = fc.record({ grantedMs: fc.option(fc.nat(4_000)), revoked: fc.boolean() });
  fc.assert(
    fc.property(event, subscriber, consent, (each, app, answer) => {
      const route = routeOf(each, app);
      const passes = route === 'yes' || (route === 'consent' && allowedBy(answer, each, app));
      const own = each.userId === undefined || each.userId === app.ownerId;
      const allowed =
        !answer.revoked && (each.appId === app.appId || (answer.grantedMs ?? 5_000) <= each.acceptedMs);
      const filtered =
        (each.currency !== undefined &&
          app.currencies.length > 0 &&
          !app.currencies.some((code) => code.toUpperCase() === each.currency?.toUpperCase())) ||
        (each.netType !== undefined && app.netTypes.length > 0 && !app.netTypes.includes(each.netType));
      const isFor = each.module === 'gateway' ? each.appId === app.appId : own || (app.approved && allowed);
      const expected = each.acceptedMs >= app.sinceMs && !filtered && isFor;
      return passes === expected;
    }),
    runs(20_000),
  );
});

// covers R91
t.test('filters: an event without the field passes, an empty list filters nothing', async (t) => {
  const only = { ...APP, currencies: ['BTC'], netTypes: [7] };
  t.equal(routeOf(EVENT, only), 'yes');
  t.equal(routeOf({ ...EVENT, currency: 'BTC', netType: 7 }, only), 'yes');
  t.equal(routeOf({ ...EVENT, currency: 'EUR' }, only), 'no');
  t.equal(routeOf({ ...EVENT, netType: 0 }, only), 'no', 'zero is a value');
  t.equal(routeOf({ ...EVENT, currency: 'EUR', netType: 0 }, APP), 'yes');
  t.equal(routeOf({ ...EVENT, currency: '' }, only), 'no', 'an empty code is another one');
});

// covers R91
t.test('filters: currency codes compare without case', async (t) => {
  const lower = { ...APP, currencies: ['eur', 'usdt_Trc20'] };
  for (const currency of ['EUR', 'Eur', 'eur', 'USDT_TRC20'])
    t.equal(routeOf({ ...EVENT, currency }, lower), 'yes', currency);
  for (const currency of ['EURO', 'EU', 'USDT', 'usdt-trc20'])
    t.equal(routeOf({ ...EVENT, currency }, lower), 'no', currency);
  t.equal(routeOf({ ...EVENT, currency: 'eur' }, { ...APP, currencies: ['EUR'] }), 'yes');
});

// covers R88
t.test('body: one event as it is, several as an array in order, never more than the bounds', async (t) => {
  const jsonText = fc.string({ maxLength: 60 }).map((text) => ({ jsonText: JSON.stringify({ text }) }));
  fc.assert(
    fc.property(
      fc.array(jsonText, { minLength: 1, maxLength: 150 }),
      fc.integer({ min: 1, max: 120 }),
      (events, max) => {
        const length = batchLength(events, max);
        const body = bodyOf(events.slice(0, length));
        const parsed: unknown = JSON.parse(body);
        const expected = events.slice(0, length).map((event) => JSON.parse(event.jsonText));
        t.same(length === 1 ? [parsed] : parsed, expected);
        return length === Math.min(max, events.length) && Array.isArray(parsed) === length > 1;
      },
    ),
    runs(),
  );
  t.equal(
    bodyOf([{ jsonText: '{"amount":1.50}' }, { jsonText: '{"amount":1e2}' }]),
    '[{"amount":1.50},{"amount":1e2}]',
  );
});

// covers R88
t.test('body: 256 KB end a batch, in bytes and not characters; one event alone may be longer', async (t) => {
  const large = { jsonText: 'é'.repeat(BATCH_BYTES_MAX / 4) };
  t.equal(Buffer.byteLength(large.jsonText), BATCH_BYTES_MAX / 2);
  t.equal(batchLength([large, large], 100), 1, 'two halves and the brackets are too much');
  t.equal(batchLength([{ jsonText: 'x'.repeat(BATCH_BYTES_MAX / 2 - 3) }, large], 100), 2, 'to the byte');
  t.equal(batchLength([{ jsonText: 'x'.repeat(BATCH_BYTES_MAX / 2 - 2) }, large], 100), 1);
  t.equal(batchLength([{ jsonText: 'x'.repeat(BATCH_BYTES_MAX * 2) }, large], 100), 1);
  t.equal(batchLength([], 100), 0);
});

t.test('webhook id: the same for the same events of the same application and log only', async (t) => {
  t.equal(webhookIdOf('e', '77', [1, 2]), webhookIdOf('e', '77', [1, 2]));
  const others = [
    webhookIdOf('e', '77', [1, 2]),
    webhookIdOf('f', '77', [1, 2]),
    webhookIdOf('e', '78', [1, 2]),
    webhookIdOf('e', '77', [12]),
    webhookIdOf('e', '77', [1]),
  ];
  t.equal(new Set(others).size, others.length);
  t.match(webhookIdOf('e', '77', [1]), /^msg_[A-Za-z0-9_-]{27}$/);
});

t.test('outcome: every status has one class', async (t) => {
  const statuses = Array.from({ length: 500 }, (_, index) => 100 + index);
  const expected = (status: number) => {
    if (status >= 200 && status < 300) return 'delivered';
    if ([400, 413, 422].includes(status)) return 'rejected';
    return status === 410 ? 'gone' : 'blocked';
  };
  t.same(
    statuses.map((status) => `${status} ${classify({ status })}`),
    statuses.map((status) => `${status} ${expected(status)}`),
  );
  t.equal(classify({ status: null }), 'blocked', 'no answer');
});

// covers R89
t.test('back-off: 5 s to an hour, ±20 %, Retry-After within one to two steps', async (t) => {
  const steps = [5 * SECOND_MS, 15 * SECOND_MS, MINUTE_MS, 5 * MINUTE_MS, 15 * MINUTE_MS, HOUR_MS, HOUR_MS];
  t.same(
    steps.map((_, index) => [0, 0.5, 1].map((chance) => backoffMs(index + 1, chance, null))),
    steps.map((stepMs) => [0.8 * stepMs, stepMs, 1.2 * stepMs]),
  );
  t.equal(backoffMs(1, 0.5, 7 * SECOND_MS), 7 * SECOND_MS, 'as the receiver asked');
  t.equal(backoffMs(1, 0.5, HOUR_MS), 10 * SECOND_MS, 'at most two steps');
  t.equal(backoffMs(6, 0.5, 2 * HOUR_MS), HOUR_MS, 'at most an hour');
  t.equal(backoffMs(3, 0.5, SECOND_MS), MINUTE_MS, 'not sooner than the step');
  const any = fc.option(fc.nat(10 * HOUR_MS));
  fc.assert(
    fc.property(
      fc.integer({ min: -1, max: 500 }),
      fc.double({ min: 0, max: 1, noNaN: true }),
      any,
      (n, chance, after) => {
        const stepMs = steps[Math.min(Math.max(n, 1), 6) - 1] ?? HOUR_MS;
        const waitMs = backoffMs(n, chance, after);
        return (
          waitMs >= 0.8 * stepMs - 1 && waitMs <= Math.max(1.2 * stepMs, Math.min(2 * stepMs, HOUR_MS)) + 1
        );
      },
    ),
    runs(),
  );
});

t.test('Retry-After: seconds or an HTTP date, everything else is nothing', async (t) => {
  const nowMs = Date.parse('2026-01-01T00:00:00Z');
  t.equal(readRetryAfter('120', nowMs), 120_000);
  t.equal(readRetryAfter('Thu, 01 Jan 2026 00:00:30 GMT', nowMs), 30_000);
  t.equal(readRetryAfter('0', nowMs), 0);
  for (const text of [
    undefined,
    '',
    '-5',
    '1.5',
    '1e3',
    'soon',
    '2026-01-01',
    '9999999999',
    'Thu, 01 Jan 2025 00:00:00 GMT',
  ])
    t.equal(readRetryAfter(text, nowMs), null, String(text));
});

// covers R89
t.test('disabling: 72 hours of failures only, 20 attempts, spread over 12 hours', async (t) => {
  const run: FailureRun = { attempts: 19, firstMs: 0, lastMs: 13 * HOUR_MS };
  t.equal(isHopeless(run, 3 * DAY_MS), true);
  t.equal(isHopeless(run, 3 * DAY_MS - 1), false, 'not yet three days');
  t.equal(isHopeless({ ...run, attempts: 18 }, 3 * DAY_MS), false, 'too few attempts');
  t.equal(isHopeless({ ...run, lastMs: 11 * HOUR_MS }, 4 * DAY_MS), false, 'the gateway was switched off');
  t.equal(isHopeless(null, 9 * DAY_MS), false, 'the first failure');
  t.same(extended(null, 5), { attempts: 1, firstMs: 5, lastMs: 5 });
  t.same(extended({ attempts: 3, firstMs: 5, lastMs: 6 }, 9), { attempts: 4, firstMs: 5, lastMs: 9 });
});

t.test(
  'search: a poisoned event among any others is found alone, all others go through before and after',
  async () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 100 }), fc.nat(99), (length, place) => {
        const poisoned = place % length;
        let search = { suspects: 0, limit: 100 };
        let at = 0;
        let refusals = 0;
        const delivered: number[] = [];
        while (at < length) {
          const batch = Array.from({ length: Math.min(search.limit, length - at) }, (_, index) => at + index);
          if (!batch.includes(poisoned)) {
            delivered.push(...batch);
            at += batch.length;
            search = afterSuccess(search, batch.length, 100);
          } else if (batch.length === 1) {
            at += 1;
            search = { suspects: 0, limit: 100 };
          } else {
            refusals += 1;
            search = afterRejection(batch.length);
          }
        }
        return delivered.length === length - 1 && refusals <= Math.ceil(Math.log2(length)) + 1;
      }),
      runs(),
    );
  },
);
