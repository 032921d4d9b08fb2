/** Limit orders: held funds, matching by price and then by time, and the lists that their owners and rooms see. */

import { toIso } from '../../domain/time.ts';
import {
  boundOf,
  callerOf,
  limitOf,
  type ModuleCall,
  optionalId,
  pageOf,
  requiredId,
} from '../call-arguments.ts';
import { SandboxError } from '../errors.ts';
import { available } from '../wallet/account.ts';
import { accountOf } from '../wallet/account-opening.ts';
import { formatAmount, readAmount } from '../wallet/currencies.ts';
import type { Order, OrderSide } from './order.ts';
import { type Pair, readPair } from './pairs.ts';
import { commitMarkets, type MarketsRows } from './records.ts';
import { joinedRoomOf } from './rooms.ts';
import type { Markets } from './state.ts';

/** Open orders of one user, and of all. */
const USER_ORDERS_MAX = 100;
const OPEN_ORDERS_MAX = 10_000;
const STATES = ['open', 'filled', 'cancelled'] as const;

export function createOrder(markets: Markets, call: ModuleCall): object {
  const account = accountOf(markets.ledger, call);
  const { userId } = account;
  const pair = readPair(call.body['pair']);
  const side = readSide(call.body['side']);
  const price = readAmount(call.body['price'], pair.quote);
  const lots = readLots(call.body['amount'], pair);
  const roomId = optionalId(call, 'roomId') ?? null;
  const externalId = optionalId(call, 'externalId') ?? null;
  const wanted = ['order', pair.code, side, price.toString(), lots.toString(), roomId ?? ''];
  const earlier = markets.operations.earlier(userId, externalId, wanted);
  if (earlier !== undefined) return wireOrder(markets.existingOrder(earlier));
  if (roomId !== null) checkRoom(markets, userId, roomId, pair);
  const [currency, needed] = side === 'buy' ? [pair.quote, lots * price] : [pair.base, lots * pair.lot];
  if (available(account, currency) < needed)
    throw new SandboxError('InsufficientFunds', `${formatAmount(needed, currency)} ${currency.code}`);
  const own = [...markets.openOrders.values()].filter((order) => order.userId === userId);
  if (own.length >= USER_ORDERS_MAX || markets.openOrders.size >= OPEN_ORDERS_MAX)
    throw new SandboxError('TooManyOrders');
  const orderId = call.tick();
  const fills = fillsOf(markets, { userId, pair, side, price, roomId }, lots, call);
  const tick = fills.at(-1)?.txIds.at(-1) ?? orderId;
  commitMarkets(call, 'ordered', {
    tick,
    utcMs: call.nowMs,
    orderId,
    userId,
    pair: pair.code,
    side,
    price: price.toString(),
    lots: lots.toString(),
    roomId,
    externalId,
    fills,
  });
  return wireOrder(markets.existingOrder(orderId));
}

/** The caller's own orders, newest first; with `roomId` all orders in a room of the caller. */
export function listOrders(markets: Markets, call: ModuleCall): object {
  const userId = callerOf(call);
  const { query } = call;
  const pair = query.get('pair') === undefined ? undefined : readPair(query.get('pair'));
  const state = query.get('state');
  if (state !== undefined && !STATES.some((one) => one === state))
    throw new SandboxError('BadRequest', `state is one of ${STATES.join(', ')}`);
  const room = query.get('roomId');
  const roomId = room === undefined ? undefined : joinedRoomOf(markets, userId, room).id;
  const limit = limitOf(query, 20, 100);
  const before = boundOf(call, 'before');
  const found = [...markets.orders.values()].reverse().filter((order) => {
    if (roomId === undefined ? order.userId !== userId : order.roomId !== roomId) return false;
    if (state !== undefined && order.state !== state) return false;
    return (pair === undefined || order.pair === pair) && (before === undefined || BigInt(order.id) < before);
  });
  const { items, next } = pageOf(found, limit);
  return { orders: items.map(wireOrder), next };
}

export function cancelOrder(markets: Markets, call: ModuleCall): object {
  const userId = callerOf(call);
  const order = markets.orders.get(requiredId(call.body['orderId'], 'orderId'));
  if (order === undefined || order.userId !== userId) throw new SandboxError('UnknownOrder');
  if (order.state !== 'open') throw new SandboxError('OrderClosed');
  commitMarkets(call, 'orderCancelled', { orderId: order.id });
  return wireOrder(order);
}

function checkRoom(markets: Markets, userId: string, roomId: string, pair: Pair): void {
  const room = joinedRoomOf(markets, userId, roomId);
  if (!room.open) throw new SandboxError('RoomClosed');
  if (room.pair !== pair) throw new SandboxError('UnknownPair', 'the room trades another one');
}

function readSide(value: unknown): OrderSide {
  if (value === 'buy' || value === 'sell') return value;
  throw new SandboxError('BadRequest', 'side is "buy" or "sell"');
}

function readLots(value: unknown, pair: Pair): bigint {
  const amount = readAmount(value, pair.base);
  if (amount % pair.lot === 0n) return amount / pair.lot;
  throw new SandboxError('BadAmount', `a whole number of lots of ${formatAmount(pair.lot, pair.base)}`);
}

/** Returns the fills of the order at once: the best price first, the older of two first. */
function fillsOf(
  markets: Markets,
  taker: Pick<Order, 'userId' | 'pair' | 'side' | 'price' | 'roomId'>,
  wantedLots: bigint,
  call: ModuleCall,
): MarketsRows['ordered']['fills'] {
  const buys = taker.side === 'buy';
  const meeting = [...markets.openOrders.values()]
    .filter(
      (order) => order.side !== taker.side && order.pair === taker.pair && order.roomId === taker.roomId,
    )
    .filter((order) => (buys ? order.price <= taker.price : order.price >= taker.price))
    .sort((one, other) => Number(buys ? one.price - other.price : other.price - one.price));
  const fills: { orderId: string; lots: string; txIds: string[] }[] = [];
  let left = wantedLots;
  for (const maker of meeting) {
    if (left === 0n) break;
    if (maker.userId === taker.userId) throw new SandboxError('OwnOrder');
    const open = maker.lots - maker.filledLots;
    const lots = open < left ? open : left;
    left -= lots;
    fills.push({
      orderId: maker.id,
      lots: lots.toString(),
      txIds: Array.from({ length: 4 }, () => call.tick()),
    });
  }
  return fills;
}

function wireOrder(order: Order): object {
  const { id, userId, pair, side, price, lots, filledLots, state, roomId, externalId, utcMs } = order;
  return {
    id,
    userId,
    pair: pair.code,
    side,
    state,
    price: formatAmount(price, pair.quote),
    amount: formatAmount(lots * pair.lot, pair.base),
    filled: formatAmount(filledLots * pair.lot, pair.base),
    roomId,
    externalId: externalId ?? id,
    dateTime: toIso(utcMs),
  };
}
