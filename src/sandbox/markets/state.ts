/** Pools, orders, rooms and trades of the sandbox markets, rebuilt by applying their records to the wallet's books. */

import { EventList, type ModuleEvent } from '../events.ts';
import { Operations } from '../operations.ts';
import { applying } from '../record-log.ts';
import { blank, currencyOf, eventOf, type Transaction, TxType } from '../wallet/account.ts';
import type { Currency } from '../wallet/currencies.ts';
import type { Ledger } from '../wallet/ledger.ts';
import type { Order, OrderState } from './order.ts';
import { PAIRS, type Pair, pairOf, readPair } from './pairs.ts';
import type { MarketsRows } from './records.ts';

/** Trades kept for candles and the latest price. */
const TRADES_MAX = 10_000;

export interface Room {
  readonly id: string;
  readonly name: string;
  readonly pair: Pair;
  readonly ownerId: string;
  readonly members: Set<string>;
  readonly utcMs: number;
  open: boolean;
}

export interface Trade {
  readonly utcMs: number;
  readonly pair: Pair;
  /** Smallest units of each currency that changed hands. */
  readonly base: bigint;
  readonly quote: bigint;
}

export interface Swap {
  readonly id: string;
  readonly from: Currency;
  readonly to: Currency;
  readonly paid: bigint;
  readonly got: bigint;
  readonly externalId: string | null;
  readonly utcMs: number;
}

/** Reserves of a pool, in smallest units. */
export interface Pool {
  base: bigint;
  quote: bigint;
}

export class Markets {
  readonly events = new EventList('markets');
  readonly pools = new Map([...PAIRS.values()].map((pair) => [pair.code, initialPool(pair)]));
  readonly orders = new Map<string, Order>();
  /** Open orders alone, oldest first. */
  readonly openOrders = new Map<string, Order>();
  readonly rooms = new Map<string, Room>();
  readonly swaps = new Map<string, Swap>();
  readonly operations = new Operations();
  /** Oldest first; trades in rooms are visible to their members only. */
  trades: Trade[] = [];
  readonly ledger: Ledger;

  constructor(ledger: Ledger) {
    this.ledger = ledger;
  }

  poolOf(pair: Pair): Pool {
    const pool = this.pools.get(pair.code);
    if (pool === undefined) throw new Error(`no pool for ${pair.code}`);
    return pool;
  }

  existingOrder(id: string): Order {
    const order = this.orders.get(id);
    if (order === undefined) throw new Error(`the log names the unknown order ${id}`);
    return order;
  }

  existingRoom(id: string): Room {
    const room = this.rooms.get(id);
    if (room === undefined) throw new Error(`the log names the unknown room ${id}`);
    return room;
  }

  readonly apply = applying<MarketsRows>({
    swapped: (record) => {
      const [from, to] = [currencyOf(record.from), currencyOf(record.to)];
      const pair = pairOf(from, to);
      const { userId, outId, inId, externalId, utcMs } = record;
      const paid = BigInt(record.paid);
      const got = BigInt(record.got);
      const sells = from.code === pair.base.code;
      const pool = this.poolOf(pair);
      pool.base += sells ? paid : -got;
      pool.quote += sells ? -got : paid;
      this.#exchange(userId, [outId, from, paid], [inId, to, got], externalId ?? outId, utcMs, 'SwapChanged');
      this.swaps.set(outId, { id: outId, from, to, paid, got, externalId, utcMs });
      this.operations.note(userId, externalId, ['swap', from.code, to.code, record.paid], outId);
      this.#trade({ utcMs, pair, base: sells ? paid : got, quote: sells ? got : paid });
    },
    ordered: (record) => {
      const pair = readPair(record.pair);
      const { orderId: id, userId, side, roomId, externalId, utcMs } = record;
      const price = BigInt(record.price);
      const order: Order = {
        id,
        userId,
        pair,
        side,
        price,
        lots: BigInt(record.lots),
        roomId,
        externalId,
        utcMs,
        filledLots: 0n,
        state: 'open',
      };
      this.orders.set(id, order);
      this.openOrders.set(id, order);
      this.#hold(order, order.lots);
      const wanted = ['order', pair.code, side, record.price, record.lots, roomId ?? ''];
      this.operations.note(userId, externalId, wanted, id);
      this.ledger.events.add(orderChanged(order, id));
      for (const fill of record.fills)
        this.#fill(order, this.existingOrder(fill.orderId), BigInt(fill.lots), fill.txIds, utcMs);
    },
    orderCancelled: ({ orderId, tick }) => {
      this.#cancel(this.existingOrder(orderId), tick);
    },
    roomCreated: (record) => {
      const pair = readPair(record.pair);
      const { roomId: id, name, userId: ownerId, utcMs } = record;
      this.rooms.set(id, { id, name, pair, ownerId, members: new Set([ownerId]), utcMs, open: true });
    },
    roomJoined: ({ roomId, userId }) => {
      this.existingRoom(roomId).members.add(userId);
    },
    /** The open orders of a closed room end, and what they held is free again. */
    roomClosed: ({ roomId, tick }) => {
      this.existingRoom(roomId).open = false;
      for (const order of [...this.openOrders.values()])
        if (order.roomId === roomId) this.#cancel(order, tick);
    },
  });

  /** The price is that of the order that was there first; a buyer who offered more gets the rest back. */
  #fill(taker: Order, maker: Order, lots: bigint, txIds: readonly string[], utcMs: number): void {
    const [quoteOut = '', baseIn = '', baseOut = '', quoteIn = ''] = txIds;
    const [buy, sell] = taker.side === 'buy' ? [taker, maker] : [maker, taker];
    const { pair } = taker;
    const base = lots * pair.lot;
    const quote = lots * maker.price;
    this.#hold(buy, -lots);
    this.#hold(sell, -lots);
    for (const order of [buy, sell]) {
      order.filledLots += lots;
      if (order.filledLots === order.lots) this.#end(order, 'filled');
    }
    const paid = [quoteOut, pair.quote, quote] as const;
    const type = 'ExchangeChanged';
    this.#exchange(buy.userId, paid, [baseIn, pair.base, base], buy.id, utcMs, type);
    this.#exchange(
      sell.userId,
      [baseOut, pair.base, base],
      [quoteIn, pair.quote, quote],
      sell.id,
      utcMs,
      type,
    );
    for (const order of [buy, sell]) this.ledger.events.add(orderChanged(order, quoteIn));
    if (taker.roomId === null) this.#trade({ utcMs, pair, base, quote });
  }

  #cancel(order: Order, tick: string): void {
    this.#hold(order, order.filledLots - order.lots);
    this.#end(order, 'cancelled');
    this.ledger.events.add(orderChanged(order, tick));
  }

  #end(order: Order, state: OrderState): void {
    order.state = state;
    this.openOrders.delete(order.id);
  }

  /** A buyer holds what the lots cost at the own price, a seller the coins. */
  #hold({ userId, pair, side, price }: Order, lots: bigint): void {
    if (side === 'buy') this.ledger.hold(userId, pair.quote, lots * price);
    else this.ledger.hold(userId, pair.base, lots * pair.lot);
  }

  #exchange(
    userId: string,
    [outId, from, paid]: readonly [string, Currency, bigint],
    [inId, to, got]: readonly [string, Currency, bigint],
    externalId: string,
    utcMs: number,
    eventType: string,
  ): void {
    const out: Transaction = {
      ...blank(outId, from, utcMs),
      txType: TxType.ExchangeOut,
      amount: paid,
      externalId,
    };
    const into: Transaction = {
      ...blank(inId, to, utcMs),
      txType: TxType.ExchangeIn,
      amount: got,
      externalId,
    };
    this.ledger.post(userId, -paid, out, eventType);
    this.ledger.post(userId, got, into, eventType);
  }

  #trade(trade: Trade): void {
    this.trades.push(trade);
    if (this.trades.length > TRADES_MAX * 1.1) this.trades = this.trades.slice(-TRADES_MAX);
  }
}

function initialPool({ baseReserve, quoteReserve }: Pair): Pool {
  return { base: baseReserve, quote: quoteReserve };
}

/** Numbers of `state` in these events. */
const STATES = { open: 1, filled: 2, cancelled: 3 } as const;
/** A gateway id is Unix milliseconds times 2^20 and a counter. */
const COUNTER_BITS = 20n;

/** `tick`: of what happened to the order; `amount` is the whole order in the currency that it pays with. */
function orderChanged(order: Order, tick: string): ModuleEvent {
  const { id, userId, pair, side, price, lots, externalId, state } = order;
  const buys = side === 'buy';
  const currency = buys ? pair.quote : pair.base;
  const data = eventOf({
    id,
    tick,
    currency,
    txType: buys ? TxType.OrderToBuy : TxType.OrderToSell,
    state: STATES[state],
    amount: buys ? lots * price : lots * pair.lot,
    fee: 0n,
    externalId: externalId ?? id,
    partnerInfo: null,
    tag: pair.code,
    utcMs: Number(BigInt(tick) >> COUNTER_BITS),
  });
  return { tick, type: 'OrderChanged', crmId: userId, netType: currency.netType, data };
}
