/** The sandbox payments: the merchant's orders, the gate for holders of a code, and the money they book. */
import fc from 'fast-check';
import t from 'tap';
import { DECLINED_CARD } from '../../src/sandbox/payments/gate.ts';
import type { SandboxAnswer, SandboxStore } from '../../src/sandbox/store.ts';
import { runs } from '../support/depth.ts';
import {
  asHolder,
  balance,
  caller,
  type Fields,
  get,
  logPath,
  minorOf,
  NOW_MS,
  openStore,
  post,
  refusalOf,
  reopen,
  resultOf,
} from '../support/sandbox.ts';

const CARD = { cardNumber: '4242424242424242', expiry: '01/26', cvc: '123' };
const TX_HASH = 'ab'.repeat(32);

const create = (store: SandboxStore, fields: Fields = {}, crm = '7') =>
  post(store, '/payments/v1/orders/create', crm, { currency: 'DEMO', amount: '20.50', ...fields });
const gate = (store: SandboxStore, verb: string, code: unknown, fields: Fields = {}) => {
  const method = verb === 'order_info' || verb === 'terminals' ? 'GET' : 'POST';
  return asHolder(store, 'wallet', [method, `/payments/v1/gate/${verb}`], { code, ...fields });
};
const stateOf = async (store: SandboxStore, code: unknown) =>
  resultOf(await gate(store, 'order_info', code))['state'];

async function newCode(store: SandboxStore, fields: Fields = {}): Promise<unknown> {
  return resultOf(await create(store, fields))['code'];
}

t.test('payment order: paid by card, it books amount less fee and notifies the merchant', async (t) => {
  const path = await logPath(t);
  const store = await openStore(t, path);
  const order = resultOf(await create(store, { description: 'tea', externalId: '1' }));
  t.match(order, { state: 'open', amount: '20.50', description: 'tea', code: /^[\w-]{22}$/ });
  t.strictSame(resultOf(await create(store, { externalId: '1' })), order, 'the same number opens one order');
  t.strictSame(refusalOf(await create(store, { externalId: '1', amount: '1' })), [409, 2109]);
  const { code } = order;
  t.match(resultOf(await gate(store, 'order_info', code)), { state: 'open', amount: '20.50', payment: null });
  const { terminals } = resultOf(await gate(store, 'terminals', code));
  t.match(terminals, [{ method: 'card' }, { method: 'p2p' }]);
  const declined = await gate(store, 'pay_card', code, { ...CARD, cardNumber: DECLINED_CARD });
  t.strictSame(refusalOf(declined), [402, 2410]);
  t.equal(await stateOf(store, code), 'open', 'a declined card leaves the order open');
  const paid = resultOf(await gate(store, 'pay_card', code, { ...CARD, cardNumber: '4242 4242 4242 4242' }));
  t.match(paid, { state: 'completed', method: 'card', card: '4242', fee: '0.20', txHash: null });
  t.equal(await balance(store, '7', 'DEMO'), '1020.30');
  t.strictSame(refusalOf(await gate(store, 'pay_card', code, CARD)), [409, 2403]);
  const { body: events } = await store.events('wallet', new Map());
  t.match(JSON.parse(events).result.events, [
    { type: 'TxInWallet', crmId: '7', data: { txType: 7, tag: 'tea' } },
  ]);
  const again = await reopen(t, store, path);
  t.equal(await balance(again, '7', 'DEMO'), '1020.30');
  const merchant = caller(again, 'payments', '7');
  const info = await merchant.read('orders/info', { id: String(order['id']) });
  t.match(info, { state: 'paid', payments: [{ state: 'declined', card: '0002' }, { id: paid['id'] }] });
  const listed = await merchant.read('payments/list', { limit: '1' });
  t.match(listed, { payments: [{ id: paid['id'] }], next: paid['id'] });
  t.strictSame(await merchant.read('payments/get', { id: String(paid['id']) }), paid);
});

t.test('payment order: one payment under way at a time; cancelled, the order is open again', async (t) => {
  const store = await openStore(t);
  const code = await newCode(store);
  const waiting = resultOf(await gate(store, 'pay_p2p', code));
  t.match(waiting, { state: 'waiting', account: /^DE/, reference: /^P\d+-1$/ });
  const pending = resultOf(await gate(store, 'order_info', code));
  t.match(pending, { state: 'pending', payment: { id: waiting['id'] } });
  for (const verb of ['pay_p2p', 'pay_card', 'pay_crypto'])
    t.strictSame(refusalOf(await gate(store, verb, code, CARD)), [409, 2404], verb);
  for (const verb of ['cancel_crypto', 'confirm_crypto'])
    t.strictSame(refusalOf(await gate(store, verb, code, { txHash: TX_HASH })), [409, 2406], verb);
  t.match(resultOf(await gate(store, 'cancel_p2p', code)), { id: waiting['id'], state: 'cancelled' });
  t.strictSame(refusalOf(await gate(store, 'cancel_p2p', code)), [409, 2406]);
  const confirm = (crm: string, paymentId: unknown) =>
    post(store, '/payments/v1/payments/confirm', crm, { paymentId });
  t.strictSame(refusalOf(await confirm('7', waiting['id'])), [409, 2406], 'a cancelled one');
  const second = resultOf(await gate(store, 'pay_p2p', code));
  t.strictSame(refusalOf(await confirm('8', second['id'])), [404, 2405], 'by its merchant alone');
  t.match(resultOf(await confirm('7', second['id'])), { state: 'completed', fee: '0.00' });
  t.equal(await balance(store, '7', 'DEMO'), '1020.50');
  t.strictSame(refusalOf(await confirm('7', second['id'])), [409, 2406], 'once');
});

t.test('payment order: crypto is proven by a transaction that counts once', async (t) => {
  const store = await openStore(t);
  const first = await newCode(store, { currency: 'GATE' });
  const second = await newCode(store, { currency: 'GATE' });
  const asked = resultOf(await gate(store, 'pay_crypto', first, { terminalId: 3 }));
  t.match(asked, { address: /^gate1[0-9a-f]{38}$/ });
  for (const txHash of ['', 'ab', 'g'.repeat(64), 5, undefined])
    t.equal((await gate(store, 'confirm_crypto', first, { txHash })).status, 400, String(txHash));
  const confirmed = resultOf(await gate(store, 'confirm_crypto', first, { txHash: `0x${TX_HASH}` }));
  t.match(confirmed, { txHash: TX_HASH });
  t.equal(await balance(store, '7', 'GATE'), '1020.50000000');
  resultOf(await gate(store, 'pay_crypto', second));
  const again = await gate(store, 'confirm_crypto', second, { txHash: TX_HASH.toUpperCase() });
  t.strictSame(refusalOf(again), [409, 2412]);
  t.match(resultOf(await gate(store, 'cancel_crypto', second)), { state: 'cancelled' });
  t.equal(await balance(store, '7', 'GATE'), '1020.50000000');
});

t.test('payment order: expires by the clock, whatever it waits for', async (t) => {
  let nowMs = NOW_MS;
  const store = await openStore(t, undefined, () => nowMs);
  const code = await newCode(store, { lifetimeSeconds: 60 });
  const waiting = resultOf(await gate(store, 'pay_p2p', code));
  nowMs += 59_999;
  t.equal(await stateOf(store, code), 'pending');
  nowMs += 1;
  t.equal(await stateOf(store, code), 'expired');
  for (const verb of ['pay_card', 'pay_p2p', 'cancel_p2p'])
    t.strictSame(refusalOf(await gate(store, verb, code, CARD)), [409, 2402], verb);
  const late = await post(store, '/payments/v1/payments/confirm', '7', { paymentId: waiting['id'] });
  t.strictSame(refusalOf(late), [409, 2402]);
  t.equal(await balance(store, '7', 'DEMO'), '1000.00');
});

t.test('payments: every refusal has its code and books nothing', async (t) => {
  const store = await openStore(t);
  const orders: [Fields, number][] = [
    [{ currency: 'EUR' }, 2101],
    [{ amount: '0' }, 2103],
    [{ amount: '1.001' }, 2103],
    [{ amount: 5 }, 2103],
    [{ lifetimeSeconds: 59 }, 2002],
    [{ lifetimeSeconds: 604_801 }, 2002],
    [{ lifetimeSeconds: '60' }, 2002],
    [{ description: 'x'.repeat(257) }, 2002],
    [{ externalId: 'x' }, 2002],
  ];
  const refusals: unknown[] = [];
  for (const [fields] of orders) refusals.push([fields, refusalOf(await create(store, fields))[1]]);
  t.same(refusals, orders);
  const code = await newCode(store);
  const cards: [Fields, number][] = [
    [{ cardNumber: '4242424242424241' }, 2409],
    [{ cardNumber: '42' }, 2409],
    [{ cardNumber: undefined }, 2409],
    [{ expiry: '12/25' }, 2409],
    [{ expiry: '13/26' }, 2409],
    [{ cvc: '12' }, 2409],
    [{ terminalId: '2' }, 2408],
    [{ terminalId: '9' }, 2407],
  ];
  refusals.length = 0;
  for (const [fields] of cards) {
    const answer = await gate(store, 'pay_card', code, { ...CARD, ...fields });
    refusals.push([fields, refusalOf(answer)[1]]);
  }
  t.same(refusals, cards);
  t.strictSame(refusalOf(await gate(store, 'pay_crypto', code)), [400, 2408], 'DEMO is not paid with crypto');
  const reads: [string, Record<string, string>, number][] = [
    ['orders/info', { id: '1' }, 2401],
    ['orders/info', {}, 2002],
    ['payments/get', { id: '1' }, 2405],
    ['payments/list', { state: 'gone' }, 2002],
    ['payments/list', { orderId: '1' }, 2401],
    ['terminals/list', { currency: 'EUR' }, 2101],
  ];
  for (const [path, query, expected] of reads)
    t.equal(refusalOf(await get(store, `/payments/v1/${path}`, '7', query))[1], expected, path);
  const { id } = resultOf(await create(store));
  const foreign = await caller(store, 'payments', '8').notRead('orders/info', { id: String(id) });
  t.equal(foreign[1], 2401, 'another’s');
  t.equal(await balance(store, '7', 'DEMO'), '1000.00');
});

t.test(
  'payment codes: resolved for the gateway alone; a wrong code is one and the same refusal',
  async (t) => {
    const store = await openStore(t);
    const order = resultOf(await create(store));
    const query = new Map([['code', String(order['code'])]]);
    const asked = { method: 'GET', path: '/payments/v1/capability/resolve', query, crm: undefined, body: {} };
    t.strictSame(resultOf(await store.handle({ ...asked, scopes: undefined })), {
      family: 'wallet',
      scope: 'payment_order',
      id: order['id'],
      expiresUtc: order['expiresUtc'],
    });
    for (const one of [{ crm: '7', scopes: undefined }, { scopes: 'Capability:wallet' }])
      t.strictSame(refusalOf(await store.handle({ ...asked, ...one })), [403, 2007]);
    const refusals = new Set<string>();
    for (const code of ['', 'x', 'A'.repeat(22), `${order['code']}x`, '__proto__']) {
      const answer = await store.handle({ ...asked, query: new Map([['code', code]]), scopes: undefined });
      t.strictSame(refusalOf(answer), [404, 2009], code);
      refusals.add(answer.body);
      refusals.add((await gate(store, 'order_info', code)).body);
      refusals.add((await gate(store, 'pay_card', code, CARD)).body);
    }
    t.equal(refusals.size, 1);
    const path = '/payments/v1/gate/order_info';
    const held = { method: 'GET', path, query, body: {} };
    for (const [crm, scopes] of [
      ['7', 'McpVerified'],
      ['7', 'Capability:wallet'],
      [undefined, 'Capability:chat'],
      [undefined, undefined],
    ] as const)
      t.strictSame(refusalOf(await store.handle({ ...held, crm, scopes })), [403, 2007], `${crm} ${scopes}`);
    t.equal(
      refusalOf(await asHolder(store, 'wallet', ['GET', '/payments/v1/orders/info'], { id: '1' }))[0],
      401,
    );
  },
);

t.test(
  'payments: a merchant gets exactly what was paid less the fees, over random steps and restarts',
  async (t) => {
    const VERBS = 'pay_card declined pay_p2p cancel_p2p confirm pay_crypto confirm_crypto'.split(' ');
    const step = fc.record({
      at: fc.nat({ max: 2 }),
      verb: fc.constantFrom(...VERBS),
      restart: fc.boolean(),
    });
    let hashes = 0;
    await fc.assert(
      fc.asyncProperty(
        fc.array(step, { maxLength: 14 }),
        fc.integer({ min: 1, max: 99_999 }),
        async (steps, minor) => {
          const path = await logPath(t);
          let store = await openStore(t, path);
          const amount = `${Math.trunc(minor / 100)}.${String(minor % 100).padStart(2, '0')}`;
          const codes = [
            await newCode(store, { amount }),
            await newCode(store, { amount }),
            await newCode(store, { currency: 'GATE', amount }),
          ];
          let [demo, coins] = [100_000n, 100_000_000_000n];
          for (const { at, verb, restart } of steps) {
            const code = codes[at];
            hashes += 1;
            let answer: SandboxAnswer;
            if (verb === 'confirm') {
              const { payment } = resultOf(await gate(store, 'order_info', code));
              const paymentId = (payment as Fields | null)?.['id'] ?? '1';
              answer = await post(store, '/payments/v1/payments/confirm', '7', { paymentId });
            } else if (verb === 'declined')
              answer = await gate(store, 'pay_card', code, { ...CARD, cardNumber: DECLINED_CARD });
            else {
              const txHash = hashes.toString(16).padStart(64, '0');
              answer = await gate(store, verb, code, { ...CARD, txHash });
            }
            const payment = answer.status === 200 ? resultOf(answer) : {};
            if (payment['state'] === 'completed') {
              const net = minorOf(payment['amount']) - minorOf(payment['fee']);
              if (at === 2) coins += net;
              else demo += net;
            }
            if (!restart) continue;
            await store.close();
            store = await openStore(t, path);
          }
          t.equal(minorOf(await balance(store, '7', 'DEMO')), demo);
          t.equal(minorOf(await balance(store, '7', 'GATE')), coins);
          await store.close();
        },
      ),
      runs(50),
    );
  },
);
