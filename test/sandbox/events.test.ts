/** Events of the sandbox modules: every type of spec 6.3, the core module's own, and pages that never split a tick. */
import t from 'tap';
import { readEvents } from '../../src/domain/events/intake.ts';
import { routeOf } from '../../src/domain/webhooks/routing.ts';
import type { SandboxStore } from '../../src/sandbox/store.ts';
import {
  caller,
  type Fields,
  get,
  logPath,
  openStore,
  post,
  refusalOf,
  reopen,
  resultOf,
} from '../support/sandbox.ts';

const PAIR = 'GATE-DEMO';
const WALLET_FIELDS =
  'amount appId currency dateTime externalId fee id partnerInfo state tag tick txType'.split(' ');

interface Told {
  readonly module: string;
  readonly tick: string;
  readonly type: string;
  readonly crmId?: string;
  readonly netType?: number;
  readonly data: Fields;
}

async function page(store: SandboxStore, module: string, query: Record<string, string> = {}) {
  const { body } = await store.events(module, new Map(Object.entries(query)));
  return { body, events: (JSON.parse(body) as { result: { events: Told[] } }).result.events };
}

const order = (store: SandboxStore, crm: string, fields: Fields): Promise<Fields> =>
  caller(store, 'markets', crm).act('orders/create', { pair: PAIR, price: '2.00', amount: '2', ...fields });

// covers R25 R92
t.test('sandbox events: every type of spec 6.3 comes from something that a user can do', async (t) => {
  const store = await openStore(t);
  await get(store, '/wallet/v1/info/get', '8');
  const transfer = { currency: 'DEMO', amount: '1.50', toUserId: '8', tag: 'tea' };
  resultOf(await post(store, '/wallet/v1/transfers/create', '7', transfer));
  resultOf(await post(store, '/markets/v1/swaps/create', '7', { from: 'DEMO', to: 'GATE', amount: '10' }));
  await order(store, '8', { side: 'sell' });
  await order(store, '7', { side: 'buy' });
  resultOf(await post(store, '/chat/v1/messages/send', '7', { chatId: '1', text: 'hello' }));
  resultOf(await post(store, '/core/v1/notices/create', '7', { text: 'fire drill' }));
  const told = (await Promise.all(['wallet', 'chat', 'core'].map((module) => page(store, module)))).flatMap(
    ({ events }) => events,
  );
  t.same([...new Set(told.map(({ module, type }) => `${module} ${type}`))].sort(), [
    'chat NewChatMessage',
    'core NoticePosted',
    'wallet ExchangeChanged',
    'wallet OrderChanged',
    'wallet SwapChanged',
    'wallet TransferCompleted',
    'wallet TxInWallet',
  ]);
  for (const { module, type, data } of told) {
    if (module === 'wallet') t.same(Object.keys(data).sort(), WALLET_FIELDS, type);
  }
  t.match(
    told.find(({ type }) => type === 'TxInWallet'),
    { crmId: '8', data: { currency: 'DEMO', txType: 3, state: 2, tag: 'tea', appId: '0' } },
  );
  const { body } = await page(store, 'wallet');
  t.match(body, '"amount":1.50,"fee":0.00,', 'numbers with all their digits');
  const list = body.slice('{"result":'.length, -1);
  t.equal(
    [...readEvents(list, 1_000, String)].length,
    told.filter(({ module }) => module === 'wallet').length,
  );
});

// covers R91
t.test(
  'sandbox events: those of the wallet name the network of their currency, for routing alone',
  async (t) => {
    const path = await logPath(t);
    const store = await openStore(t, path);
    await get(store, '/wallet/v1/info/get', '8');
    const move = (path: string, fields: Fields) => post(store, `/wallet/v1/${path}/create`, '7', fields);
    resultOf(await move('transfers', { currency: 'DEMO', amount: '1.50', toUserId: '8' }));
    resultOf(await move('withdrawals', { currency: 'GATE', amount: '20', address: 'elsewhere' }));
    resultOf(await post(store, '/markets/v1/swaps/create', '7', { from: 'DEMO', to: 'GATE', amount: '10' }));
    await order(store, '8', { side: 'sell' });
    await order(store, '7', { side: 'buy' });
    resultOf(await post(store, '/chat/v1/messages/send', '7', { chatId: '1', text: 'hello' }));
    const { body, events } = await page(store, 'wallet');
    const networks = new Map([
      ['DEMO', 1],
      ['GATE', 2],
    ]);
    t.equal(new Set(events.map(({ type }) => type)).size, 5, 'every type of the wallet');
    for (const { type, netType, data } of events)
      t.equal(netType, networks.get(String(data['currency'])), `${type} ${data['currency']}`);
    t.same(
      (await page(store, 'chat')).events.map(({ netType }) => netType),
      [undefined],
    );

    const read = [...readEvents(body.slice('{"result":'.length, -1), 1_000, String)];
    t.notOk(
      read.some(({ jsonText }) => jsonText.includes('netType')),
      'not sent on',
    );
    const wanting = (netTypes: number[]) => {
      const app = { appId: '77', ownerId: '7', approved: true, currencies: [], netTypes, sinceMs: 0 };
      const got = read.filter((event) => routeOf({ ...event, acceptedMs: 1 }, app) !== 'no');
      return new Set(got.map(({ jsonText }) => (JSON.parse(jsonText) as Told).data['currency']));
    };
    t.same(wanting([1]), new Set(['DEMO']));
    t.same(wanting([2]), new Set(['GATE']));
    t.same(wanting([3]), new Set());
    t.same(wanting([]), new Set(['DEMO', 'GATE']));

    const again = await reopen(t, store, path);
    t.equal((await page(again, 'wallet')).body, body);
  },
);

t.test(
  'sandbox events: an order has events when it is opened, filled and cancelled, after a restart too',
  async (t) => {
    const path = await logPath(t);
    const store = await openStore(t, path);
    const { id: sold } = await order(store, '8', { side: 'sell', amount: '5' });
    const buy = { side: 'buy', price: '2.10', amount: '3', externalId: '44' };
    const { id: bought } = await order(store, '7', buy);
    resultOf(await post(store, '/markets/v1/orders/cancel', '8', { orderId: sold }));
    const { body, events } = await page(store, 'wallet');
    const orders = events.filter(({ type }) => type === 'OrderChanged');
    const ofOrder = { currency: 'GATE', txType: 9, amount: 5, fee: 0, tag: PAIR };
    t.match(orders, [
      { crmId: '8', data: { id: sold, state: 1, ...ofOrder } },
      {
        crmId: '7',
        data: { id: bought, state: 1, txType: 8, currency: 'DEMO', amount: 6.3, externalId: '44' },
      },
      { crmId: '7', data: { id: bought, state: 2 } },
      { crmId: '8', data: { id: sold, state: 1 } },
      { crmId: '8', data: { id: sold, state: 3 } },
    ]);
    for (const { tick, data } of orders) t.equal(data['tick'], tick);
    t.equal(orders[2]?.tick, orders[3]?.tick, 'one trade, two orders, one tick');
    const again = await reopen(t, store, path);
    t.equal((await page(again, 'wallet')).body, body);
  },
);

t.test('sandbox events: a page is longer than asked for rather than that it splits a tick', async (t) => {
  const store = await openStore(t);
  const room = resultOf(await post(store, '/markets/v1/rooms/create', '8', { name: 'Mill', pair: PAIR }));
  const roomId = room['id'];
  for (let count = 0; count < 3; count += 1) await order(store, '8', { side: 'sell', roomId });
  resultOf(await post(store, '/markets/v1/rooms/close', '8', { roomId }));
  const all = (await page(store, 'wallet')).events;
  t.equal(all.length, 6);
  t.equal(new Set(all.map(({ tick }) => tick)).size, 4, 'three orders ended at once');
  const seen: Told[] = [];
  let after = '0';
  for (;;) {
    const { events } = await page(store, 'wallet', { after, limit: '1' });
    if (events.length === 0) break;
    seen.push(...events);
    after = events.at(-1)?.tick ?? after;
  }
  t.same(seen, all);
});

// covers R92
t.test('sandbox core: notices go to all users or to one, and only they read them', async (t) => {
  const path = await logPath(t);
  const store = await openStore(t, path);
  const create = (crm: string | undefined, body: Fields) => post(store, '/core/v1/notices/create', crm, body);
  const list = async (from: SandboxStore, crm: string, query: Record<string, string> = {}) =>
    resultOf(await get(from, '/core/v1/notices/list', crm, query));
  const open = resultOf(await create('7', { text: 'for all' }));
  const closed = resultOf(await create('7', { text: 'for eight', toUserId: 8 }));
  t.match(closed, { fromUserId: '7', toUserId: '8', text: 'for eight' });
  t.same(refusalOf(await create(undefined, { text: 'x' })), [401, 2001]);
  t.same(refusalOf(await create('7', { text: ' ' })), [400, 2002]);
  t.same(refusalOf(await create('7', { text: 'x'.repeat(1_001) })), [400, 2002]);
  t.same(refusalOf(await create('7', { text: 'x', toUserId: 'y' })), [400, 2002]);
  const told = (await page(store, 'core')).events;
  t.match(told, [
    { data: { text: 'for all' } },
    { crmId: '8', data: { id: closed['id'], text: 'for eight' } },
  ]);
  t.equal(told[0]?.crmId, undefined, 'for everybody');
  const again = await reopen(t, store, path);
  t.same(await list(again, '9'), { notices: [open], next: null });
  t.same(await list(again, '8'), { notices: [closed, open], next: null });
  t.same(await list(again, '7', { limit: '1' }), { notices: [closed], next: closed['id'] });
  t.same(await list(again, '7', { before: String(closed['id']) }), { notices: [open], next: null });
});
