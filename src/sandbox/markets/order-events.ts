/**
 * Wallet events of an order: opened, traded, filled or cancelled. The payload is that of every wallet event (spec
 * 2.6), with the order in place of the transaction.
 */

import type { ModuleEvent } from '../events.ts';
import { eventOf, TxType } from '../wallet/account.ts';
import type { Order } from './order.ts';

/** Numbers of `state` in these events. */
const STATES = { open: 1, filled: 2, cancelled: 3 } as const;
/** A gateway id is Unix milliseconds times 2^20 and a counter. */
const COUNTER_BITS = 20n;

/** `tick`: of what happened to the order; `amount` is the whole order in the currency that it pays with. */
export function orderChanged(order: Order, tick: string): ModuleEvent {
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
