/** Contract, section 6: events. */
import { setTimeout } from 'node:timers/promises';
import { type Check, checksOf } from '../check.ts';
import { type Answer, read } from '../client.ts';
import { expectOk } from '../unshown.ts';
import type { World } from '../world.ts';
import { firstEvent } from './1.ts';
import { eventOf, eventsAt, hooked } from './2-events.ts';

const event = (userId: string, n: number, more: object = {}) => ({
  module: 'core',
  tick: String(1_000 + n),
  type: 'Numbered',
  crmId: userId,
  data: { n, ...more },
});

const numbersAt = (world: World, path: string) =>
  eventsAt(world, path).map((each) => read(each, 'data.n') as number);

/** Resolves when the receiver has this event under the path. */
async function took(world: World, path: string, n: number): Promise<void> {
  await world.hook.until(() => numbersAt(world, path).includes(n));
}

/** Slow enough for the quotas of one address. Milliseconds. */
const POLL_MS = 250;

/** Polls the application as its owner until it matches. */
async function appUntil(
  world: World,
  auth: Record<string, string>,
  fits: (app: Answer) => boolean,
): Promise<Answer> {
  const endMs = performance.now() + 20_000;
  for (;;) {
    const list = expectOk('app/list', await world.get('/auth/v1/app/list', auth));
    if (fits(list) || performance.now() > endMs) return list;
    await setTimeout(POLL_MS);
  }
}

const CHANNELS = checksOf('6.1', {
  'an event of a pushing module and one of a polled module are both delivered': {
    sentence: 'Events come from backend modules. Modules push them or the gateway polls,',
    async run(t, world) {
      const { owner } = await hooked(world, 'collected');
      await world.pushed([event(owner.userId, 1)]);
      await took(world, 'collected', 1);
      const { auth } = await world.agent('McpVerified', owner);
      await world.toolJson(auth, 'market_create_swap', { from: 'DEMO', to: 'GATE', amount: '10' });
      t.equal((await eventOf(world, 'collected', 'SwapChanged'))['module'], 'wallet');
    },
  },
  'the same event is on the stream of its user and in the webhook of the application': {
    sentence:
      'then they go to browsers over a server-sent connection in real time, and to registered applications as webhooks.',
    also: [
      [
        '1',
        'Platform events: as webhooks (HTTP POST) to registered applications, and to browsers over a server-sent connection as they happen.',
      ],
    ],
    async run(t, world) {
      const { owner } = await hooked(world, 'channels');
      const streamed = firstEvent(world, owner.auth['Cookie'] ?? '', 'Numbered');
      await world.pushed([event(owner.userId, 2)]);
      const { mime, data } = await streamed;
      t.match(mime, /^text\/event-stream/);
      t.match(JSON.parse(data), { type: 'Numbered', data: { n: 2 } });
      await took(world, 'channels', 2);
      t.equal((await world.get('/auth/v1/events')).status, 401, 'not without a session');
    },
  },
});

const DELIVERY = checksOf('6.2', {
  'POST, application/json, X-API-Key and the event; an application without webhookUrl gets nothing': {
    sentence:
      'An application with a webhookUrl gets a POST there, with Content-Type: application/json, the header X-API-Key, and a JSON body as in 2.6.',
    also: [['5.4', 'A webhook has the header X-API-Key: <APP_API_KEY>. Its receiver checks it.']],
    async run(t, world) {
      const { owner, apiKey } = await hooked(world, 'post');
      await world.app(owner, { name: 'Silent', url: 'https://silent.example' });
      await world.pushed([event(owner.userId, 10)]);
      await took(world, 'post', 10);
      const hook = world.hook.asked.filter(({ url }) => url === '/post');
      t.equal(hook.length, 1);
      t.match(hook[0], {
        method: 'POST',
        headers: { 'content-type': /^application\/json/, 'x-api-key': apiKey },
      });
      t.match(JSON.parse(String(hook[0]?.body)), { module: 'core', tick: '1010', type: 'Numbered' });
    },
  },
  'twenty events of one push arrive once each, in fewer than twenty deliveries': {
    sentence: 'A delivery may hold several events.',
    async run(t, world) {
      const { owner } = await hooked(world, 'combined');
      const numbers = Array.from({ length: 20 }, (_, at) => 20 + at);
      await world.pushed(numbers.map((n) => event(owner.userId, n)));
      await took(world, 'combined', 39);
      t.same(numbersAt(world, 'combined'), numbers);
      t.ok(world.hook.asked.filter(({ url }) => url === '/combined').length < 20);
    },
  },
  'events pushed in reverse order arrive in order': {
    sentence: 'The order of delivery is the order of ticks.',
    async run(t, world) {
      const { owner } = await hooked(world, 'ordered');
      await world.setting('EventReorderMilliseconds', 1_000);
      for (const n of [54, 53, 52, 51]) await world.pushed([event(owner.userId, n)]);
      await took(world, 'ordered', 54);
      await world.setting('EventReorderMilliseconds', 0);
      t.same(numbersAt(world, 'ordered'), [51, 52, 53, 54]);
    },
  },
  'after a 500 the same event comes again, before the next one; failed_count 1, success_count and last_tick follow':
    {
      sentence:
        'What failed is delivered again in the next cycle. … a delivery updates success_count or failed_count, and last_tick keeps the last event that was delivered, so that no event is skipped.',
      apart: true,
      async run(t, world) {
        const { owner } = await hooked(world, 'retried');
        let failures = 0;
        world.hook.answersOf.set('/retried', () => {
          failures += 1;
          return failures === 1 ? { status: 500 } : {};
        });
        await world.pushed([event(owner.userId, 60)]);
        const failed = await appUntil(world, owner.auth, (app) => app.at('result.0.failed_count') === 1);
        t.match(failed.at('result.0'), { failed_count: 1, success_count: 0 });
        await world.pushed([event(owner.userId, 61)]);
        await took(world, 'retried', 61);
        t.same(numbersAt(world, 'retried').slice(0, 2), [60, 60]);
        const done = await appUntil(
          world,
          owner.auth,
          (app) => String(app.at('result.0.last_tick')) === '1061',
        );
        t.equal(done.at('result.0.failed_count'), 1);
        t.ok(Number(done.at('result.0.success_count')) >= 1);
      },
    },
  'a delivery without an answer is waited for about 5 seconds, then it fails': {
    sentence: 'A receiver has about 5 seconds to answer.',
    apart: true,
    async run(t, world) {
      const { owner } = await hooked(world, 'silent');
      world.hook.answersOf.set('/silent', () => ({ none: 'hang' }));
      await world.pushed([event(owner.userId, 70)]);
      await took(world, 'silent', 70);
      const startMs = performance.now();
      await appUntil(world, owner.auth, (app) => app.at('result.0.failed_count') === 1);
      const tookMs = performance.now() - startMs;
      // The machine decides how much later it is seen.
      t.ok(tookMs > 4_000, `${tookMs} ms`);
    },
  },
  'events of other currencies or network types are filtered; those in the lists and those with neither field arrive':
    {
      sentence: 'currencies and netTypes restrict the events of an application.',
      async run(t, world) {
        const { owner } = await hooked(world, 'filtered', { currencies: ['DEMO'], netTypes: [1] });
        const { userId } = owner;
        await world.pushed([
          event(userId, 80, { currency: 'GATE' }),
          event(userId, 81, { netType: 2 }),
          event(userId, 82, { currency: 'DEMO', netType: 2 }),
          { ...event(userId, 83), netType: 2 },
          event(userId, 84, { currency: 'demo', netType: 1 }),
          { ...event(userId, 85), netType: 1 },
          event(userId, 86),
        ]);
        await took(world, 'filtered', 86);
        t.same(numbersAt(world, 'filtered'), [84, 85, 86]);
        t.notOk(
          world.hook.asked.some(({ url, body }) => url === '/filtered' && /"netType":1,"data"/.test(body)),
        );
      },
    },
});

/** User actions, each with the event that it causes. */
const TYPES: readonly (readonly [type: string, module: string, meaning: string])[] = [
  ['TxInWallet', 'wallet', 'A deposit or transfer came in'],
  ['SwapChanged', 'wallet', 'A swap has another state'],
  ['ExchangeChanged', 'wallet', 'An exchange transaction has another state'],
  ['OrderChanged', 'wallet', 'An order has another state'],
  ['TransferCompleted', 'wallet', 'A transfer, internal or external, is finished'],
  ['NewChatMessage', 'chat', 'A chat has a new message'],
];

/** Performs all actions once, with one application that receives the events. */
async function everyEvent(world: World): Promise<void> {
  const { owner } = await hooked(world, 'types');
  const { auth } = await world.agent('McpVerified', owner);
  const other = await world.agent();
  await world.toolJson(auth, 'wallet_get_balance');
  await world.toolJson(other.auth, 'wallet_get_balance');
  const transfer = { currency: 'DEMO', amount: '1.50' };
  await world.toolJson(other.auth, 'wallet_internal_transfer', { ...transfer, toUserId: owner.userId });
  await world.toolJson(auth, 'wallet_internal_transfer', { ...transfer, toUserId: other.person.userId });
  await world.toolJson(auth, 'market_create_swap', { from: 'DEMO', to: 'GATE', amount: '10' });
  const order = { pair: 'GATE-DEMO', price: '2.00', amount: '2' };
  await world.toolJson(auth, 'market_create_order', { ...order, side: 'sell' });
  await world.toolJson(other.auth, 'market_create_order', { ...order, side: 'buy' });
  const chat = read(await world.toolJson(other.auth, 'chat_create', { name: 'Events' }), 'result.id');
  await world.toolJson(other.auth, 'chat_add_member', { chatId: chat, userId: owner.userId });
  await world.toolJson(other.auth, 'chat_send_message', { chatId: chat, text: 'hello' });
}

const EVENT_TYPES: readonly Check[] = [
  ...TYPES.map(
    ([type, module, meaning], at): Check => ({
      section: '6.3',
      sentence: `${type} | ${module} | ${meaning}`,
      shows: `${type} arrives from ${module} when it happens`,
      async run(t, world) {
        if (at === 0) await everyEvent(world);
        t.match(await eventOf(world, 'types', type), { module, type, data: {} });
      },
    }),
  ),
  ...checksOf('6.3', {
    'an unknown type arrives under module core; under another module the push is refused': {
      sentence: 'Core modules of a customer may have types of their own, with the module core.',
      async run(t, world) {
        const { owner } = await hooked(world, 'custom');
        const own = { ...event(owner.userId, 90), type: 'HouseBuilt' };
        await world.pushed([own]);
        t.match(await eventOf(world, 'custom', 'HouseBuilt'), { module: 'core' });
        await t.rejects(world.pushed([{ ...own, module: 'wallet', tick: '1091' }]), /HTTP 4/);
      },
    },
  }),
];

const NOTIFICATIONS = checksOf('6.4', {
  'it is 200 without a body; another notification has no effect and no error': {
    sentence: '/mcp handles one notification, notifications/initialized.',
    also: [['4.1', 'notifications/initialized | none | 200 without a body.']],
    async run(t, world) {
      const { auth } = await world.agent();
      for (const method of ['notifications/initialized', 'notifications/unknown']) {
        const answer = await world.post('/mcp', auth, { jsonrpc: '2.0', method });
        t.same([answer.status, answer.text], [200, ''], method);
      }
      t.equal(
        (await world.tool(auth, 'wallet_get_balance')).at('error'),
        undefined,
        'the session stays open',
      );
    },
  },
});

export const CHECKS: readonly Check[] = [...CHANNELS, ...DELIVERY, ...EVENT_TYPES, ...NOTIFICATIONS];
