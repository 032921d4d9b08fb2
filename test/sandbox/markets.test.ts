/** The sandbox markets: swaps against the pool, the order book, rooms; and that no money appears or is lost. */
import fc from 'fast-check';
import t from 'tap';
import type { SandboxStore } from '../../src/sandbox/store.ts';
import { CURRENCIES, formatAmount } from '../../src/sandbox/wallet/currencies.ts';
import { runs } from '../support/depth.ts';
import {
  balance,
  caller,
  type Fields,
  get,
  logPath,
  minorOf,
  openStore,
  post,
  refusalOf,
  reopen,
  resultOf,
} from '../support/sandbox.ts';

const PAIR = 'GATE-DEMO';
const CANCEL = '/markets/v1/orders/cancel';
const SELL = { pair: PAIR, side: 'sell', price: '2.00', amount: '10' };
const order = (store: SandboxStore, crm: string, fields: Fields) =>
  post(store, '/markets/v1/orders/create', crm, { ...SELL, ...fields });
const swap = (store: SandboxStore, crm: string, fields: Fields) =>
  post(store, '/markets/v1/swaps/create', crm, { from: 'DEMO', to: 'GATE', amount: '100', ...fields });
const ordersOf = async (store: SandboxStore, crm: string, query: Record<string, string> = {}) =>
  resultOf(await get(store, '/markets/v1/orders/list', crm, query))['orders'] as Fields[];

async function holdings(store: SandboxStore, crm: string): Promise<Fields[]> {
  return resultOf(await get(store, '/wallet/v1/balance/get', crm))['balances'] as Fields[];
}

t.test('swap: gives what was quoted, moves the rate, shows in the wallet and as events', async (t) => {
  const path = await logPath(t);
  const store = await openStore(t, path);
  const query = { from: 'DEMO', to: 'GATE', amount: '100' };
  const quote = resultOf(await get(store, '/markets/v1/swaps/quote', '7', query));
  t.strictSame(quote, { ...query, amount: '100.00', pair: PAIR, receive: '39.87840964', feePercent: '0.30' });
  const body = { receiveMin: '39.87840964', externalId: '5' };
  const made = resultOf(await swap(store, '7', body));
  t.match(made, { from: 'DEMO', to: 'GATE', amount: '100.00', received: '39.87840964', externalId: '5' });
  t.equal(await balance(store, '7', 'DEMO'), '900.00');
  t.equal(await balance(store, '7', 'GATE'), '1039.87840964');
  t.strictSame(resultOf(await swap(store, '7', { externalId: 5 })), made, 'the same number swaps once');
  t.strictSame(refusalOf(await swap(store, '7', { externalId: '5', amount: '1' })), [409, 2109]);
  const { body: events } = await store.events('wallet', new Map());
  t.match(JSON.parse(events).result.events, [
    { type: 'SwapChanged', crmId: '7', data: { currency: 'DEMO', txType: 5 } },
    { type: 'SwapChanged', crmId: '7', data: { currency: 'GATE', txType: 6 } },
  ]);
  const after = resultOf(await get(store, '/markets/v1/swaps/quote', '7', query));
  t.ok(Number(after['receive']) < Number(quote['receive']), 'the next one gets less');
  const seen = resultOf(await get(store, '/markets/v1/candles/list', '7', { pair: PAIR }));
  t.match(seen['candles'], [{ open: '2.50', close: '2.50', volume: made['received'], trades: 1 }]);
  const info = resultOf(await get(store, '/markets/v1/rates/list', '7'));
  const again = await reopen(t, store, path);
  t.strictSame(resultOf(await get(again, '/markets/v1/rates/list', '7')), info, 'the pool is as it was');
  t.strictSame(resultOf(await swap(again, '7', { externalId: '5' })), made);
});

t.test('swap: every refusal has its code and moves nothing', async (t) => {
  const store = await openStore(t);
  const cases: [Fields, number, number][] = [
    [{ from: 'EUR' }, 400, 2101],
    [{ to: 'DEMO' }, 400, 2301],
    [{ amount: '1000.01' }, 409, 2102],
    [{ amount: '0' }, 400, 2103],
    [{ amount: 5 }, 400, 2103],
    [{ amount: '0.001' }, 400, 2103],
    [{ from: 'GATE', to: 'DEMO', amount: '0.00000001' }, 400, 2103],
    [{ receiveMin: '40' }, 409, 2302],
    [{ receiveMin: 'x' }, 400, 2103],
    [{ externalId: 'x' }, 400, 2002],
  ];
  for (const [fields, status, code] of cases)
    t.strictSame(refusalOf(await swap(store, '7', fields)), [status, code], JSON.stringify(fields));
  t.strictSame(refusalOf(await swap(store, '7', { amount: '1000.01', receiveMin: null })), [409, 2102]);
  t.equal(await balance(store, '7', 'DEMO'), '1000.00');
  const queries: [string, Record<string, string>, number][] = [
    ['rates/list', { pair: 'A-B' }, 2301],
    ['trades/info', {}, 2301],
    ['candles/list', { pair: PAIR, intervalSeconds: '61' }, 2002],
    ['candles/list', { pair: PAIR, limit: '501' }, 2002],
    ['networks/list', { currency: 'EUR' }, 2101],
    ['rooms/list', { joined: 'yes' }, 2002],
    ['orders/list', { state: 'gone' }, 2002],
    ['orders/list', { pair: 'A-B' }, 2301],
    ['orders/list', { before: 'x' }, 2002],
    ['orders/list', { roomId: '1' }, 2307],
  ];
  for (const [path, query, code] of queries)
    t.equal(refusalOf(await get(store, `/markets/v1/${path}`, '7', query))[1], code, path);
});

t.test(
  'orders: held, matched by price and then by time, at the price of the one that was there',
  async (t) => {
    const store = await openStore(t);
    const dear = resultOf(await order(store, '8', { price: '2.10', amount: '4' }));
    const first = resultOf(await order(store, '8', { price: '2.00', amount: '3', externalId: '1' }));
    const second = resultOf(await order(store, '9', { price: '2.00', amount: '3' }));
    t.match(first, { state: 'open', filled: '0.00000000', externalId: '1' });
    t.strictSame(resultOf(await order(store, '8', { price: '2.00', amount: '3', externalId: '1' })), first);
    t.match(await holdings(store, '8'), [
      {},
      { balance: '1000.00000000', available: '993.00000000', locked: '7.00000000' },
    ]);
    const info = await caller(store, 'markets', '7').read('trades/info', { pair: PAIR });
    t.match(info, { bestAsk: '2.00', bestBid: null, lastPrice: null });
    const bought = resultOf(await order(store, '7', { side: 'buy', price: '2.10', amount: '8' }));
    t.match(bought, { state: 'filled', filled: '8.00000000' });
    t.equal(await balance(store, '7', 'DEMO'), '983.80', '6 at 2.00 and 2 at 2.10');
    t.match(await holdings(store, '7'), [{ locked: '0.00' }, { balance: '1008.00000000' }]);
    const filled = { id: first['id'], state: 'filled' };
    t.match(await ordersOf(store, '8'), [filled, { id: dear['id'], filled: '2.00000000' }]);
    t.match(await ordersOf(store, '9', { state: 'filled' }), [{ id: second['id'] }]);
    const before = await ordersOf(store, '8', { before: String(first['id']), limit: '1', pair: PAIR });
    t.match(before, [{ id: dear['id'] }]);
    const cancel = (crm: string, orderId: unknown) => post(store, CANCEL, crm, { orderId });
    t.strictSame(refusalOf(await cancel('7', dear['id'])), [404, 2303], 'not another one’s');
    t.match(resultOf(await cancel('8', dear['id'])), { state: 'cancelled', filled: '2.00000000' });
    t.strictSame(refusalOf(await cancel('8', dear['id'])), [409, 2304]);
    t.match(await holdings(store, '8'), [
      { balance: '1010.20' },
      { balance: '995.00000000', locked: '0.00000000' },
    ]);
    const { body: events } = await store.events('wallet', new Map());
    const types = (JSON.parse(events).result.events as { type: string }[]).map(({ type }) => type);
    const traded = types.filter((type) => type === 'ExchangeChanged');
    t.equal(traded.length, 12, 'three trades, two sides, out and in');
    t.equal(types.length - traded.length, 11, 'four orders opened, three trades of two, one cancelled');
  },
);

t.test('orders: every refusal has its code and holds nothing', async (t) => {
  const store = await openStore(t);
  await order(store, '7', { amount: '900' });
  const cases: [Fields, number, number][] = [
    [{ pair: 'X-Y' }, 400, 2301],
    [{ side: 'hold' }, 400, 2002],
    [{ price: '2.001' }, 400, 2103],
    [{ amount: '1.5' }, 400, 2103],
    [{ amount: '101' }, 409, 2102],
    [{ side: 'buy', price: '1000', amount: '2' }, 409, 2102],
    [{ side: 'buy', amount: '1' }, 409, 2305],
    [{ roomId: '1' }, 404, 2307],
    [{ roomId: 'x' }, 400, 2002],
  ];
  for (const [fields, status, code] of cases)
    t.strictSame(refusalOf(await order(store, '7', fields)), [status, code], JSON.stringify(fields));
  t.match(await holdings(store, '7'), [{ locked: '0.00' }, { locked: '900.00000000' }]);
  t.strictSame(refusalOf(await swap(store, '7', { from: 'GATE', to: 'DEMO', amount: '101' })), [409, 2102]);
  const out = { currency: 'GATE', amount: '101', toUserId: '8' };
  await get(store, '/wallet/v1/info/get', '8');
  const held = await caller(store, 'wallet', '7').notAct('transfers/create', out);
  t.strictSame(held, [409, 2102], 'held is held');
  for (let count = 0; count < 99; count += 1) resultOf(await order(store, '7', { amount: '1' }));
  t.strictSame(refusalOf(await order(store, '7', { amount: '1' })), [409, 2306]);
});

t.test('rooms: members alone see and place orders in them; closing frees what they hold', async (t) => {
  const path = await logPath(t);
  const store = await openStore(t, path);
  const room = (verb: string, crm: string, body: Fields) =>
    caller(store, 'markets', crm).act(`rooms/${verb}`, body);
  const notRoom = (verb: string, crm: string, body: Fields) =>
    caller(store, 'markets', crm).notAct(`rooms/${verb}`, body);
  const made = await room('create', '7', { name: 'Mill', pair: PAIR });
  const roomId = made['id'];
  t.match(made, { ownerId: '7', state: 'open', members: 1, joined: true });
  t.strictSame(refusalOf(await order(store, '8', { roomId })), [403, 2309]);
  const inRoom = { roomId: String(roomId) };
  t.strictSame(await caller(store, 'markets', '8').notRead('orders/list', inRoom), [403, 2309]);
  t.match(await room('join', '8', { roomId }), { members: 2, joined: true });
  t.match(await room('join', '8', { roomId }), { members: 2 }, 'twice changes nothing');
  resultOf(await order(store, '8', { roomId }));
  const publicly = resultOf(await order(store, '9', { side: 'buy' }));
  t.match(publicly, { state: 'open' }, 'the public book does not meet it');
  t.match(resultOf(await order(store, '7', { side: 'buy', roomId, amount: '4' })), { state: 'filled' });
  t.match(await ordersOf(store, '7', inRoom), [{ userId: '7' }, { userId: '8', filled: '4.00000000' }]);
  const info = resultOf(await get(store, '/markets/v1/trades/info', '9', { pair: PAIR }));
  t.match(info, { lastPrice: null, trades24h: 0, bestAsk: null });
  t.strictSame(await notRoom('close', '8', { roomId }), [403, 2310]);
  t.match(await room('close', '7', { roomId }), { state: 'closed' });
  t.strictSame(await notRoom('close', '7', { roomId }), [409, 2308], 'close');
  t.strictSame(await notRoom('join', '9', { roomId }), [409, 2308], 'join');
  t.strictSame(refusalOf(await order(store, '8', { roomId })), [409, 2308]);
  t.match(await ordersOf(store, '8'), [{ state: 'cancelled' }]);
  t.match(await holdings(store, '8'), [{}, { balance: '996.00000000', locked: '0.00000000' }]);
  t.strictSame(await notRoom('join', '9', { roomId: '5' }), [404, 2307]);
  t.strictSame(await notRoom('create', '9', { name: ' ', pair: PAIR }), [400, 2002]);
  t.strictSame(await notRoom('create', '9', { name: 'x' }), [400, 2301]);
  for (let count = 0; count < 20; count += 1) await room('create', '9', { name: 'x', pair: PAIR });
  t.strictSame(await notRoom('create', '9', { name: 'x', pair: PAIR }), [409, 2312]);
  const again = await reopen(t, store, path);
  const rooms = async (crm: string, joined: string) =>
    resultOf(await get(again, '/markets/v1/rooms/list', crm, { joined }))['rooms'] as Fields[];
  t.match(await rooms('8', 'true'), [{ id: roomId, state: 'closed' }]);
  t.equal((await rooms('8', 'false')).length, 20, 'a closed room is shown to those who were in it');
});

t.test(
  'markets: no money appears or is lost over random swaps, orders, cancellations and restarts',
  async (t) => {
    const users = ['1', '2', '3'];
    const step = fc.record({
      user: fc.constantFrom(...users),
      act: fc.constantFrom('swap', 'buy', 'sell', 'cancel'),
      to: fc.constantFrom('DEMO', 'GATE'),
      minor: fc.bigInt({ min: 1n, max: 90_000n }),
      price: fc.integer({ min: 180, max: 220 }),
      lots: fc.integer({ min: 1, max: 200 }),
      restart: fc.boolean(),
    });
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 14 }), async (steps) => {
        const path = await logPath(t);
        let store = await openStore(t, path);
        const pool = { DEMO: 0n, GATE: 0n };
        for (const user of users) await get(store, '/wallet/v1/info/get', user);
        for (const { user, act, to, minor, price, lots, restart } of steps) {
          if (act === 'swap') {
            const [from, amount] =
              to === 'GATE' ? (['DEMO', digits(minor, 2)] as const) : (['GATE', digits(minor, 4)] as const);
            const answer = await swap(store, user, { from, to, amount });
            if (answer.status === 200) {
              const made = resultOf(answer);
              pool[from] += minorOf(made['amount']);
              pool[to as 'DEMO'] -= minorOf(made['received']);
            }
          } else if (act === 'cancel') {
            const [open] = await ordersOf(store, user, { state: 'open' });
            if (open !== undefined) resultOf(await post(store, CANCEL, user, { orderId: open['id'] }));
          } else
            await order(store, user, { side: act, price: digits(BigInt(price), 2), amount: String(lots) });
          if (!restart) continue;
          await store.close();
          store = await openStore(t, path);
        }
        const held: Record<string, bigint> = { DEMO: pool.DEMO, GATE: pool.GATE };
        for (const user of users) {
          for (const { currency, balance: whole, available, locked } of await holdings(store, user)) {
            if ([whole, available, locked].some((text) => String(text).startsWith('-')))
              throw new Error(`${user} owes`);
            if (minorOf(available) + minorOf(locked) !== minorOf(whole))
              throw new Error('held money does not add up');
            held[String(currency)] = (held[String(currency)] ?? 0n) + minorOf(whole);
          }
          for (const one of await ordersOf(store, user, { state: 'open', limit: '100' }))
            resultOf(await post(store, CANCEL, user, { orderId: one['id'] }));
          for (const { locked } of await holdings(store, user))
            if (minorOf(locked) !== 0n) throw new Error('held for nothing');
        }
        for (const currency of CURRENCIES.values())
          t.equal(
            formatAmount(held[currency.code] ?? 0n, currency),
            `3000.${'0'.repeat(currency.precision)}`,
          );
        await store.close();
      }),
      runs(60),
    );
  },
);

function digits(minor: bigint, places: number): string {
  const text = minor.toString().padStart(places + 1, '0');
  return `${text.slice(0, -places)}.${text.slice(-places)}`;
}
