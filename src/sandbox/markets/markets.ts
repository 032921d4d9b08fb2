/** The sandbox markets module: swaps against a pool, an order book, trading rooms and what is public about them. */

import { toIso } from '../../domain/time.ts';
import { type ModuleCall, optionalId } from '../call-arguments.ts';
import { SandboxError } from '../errors.ts';
import { endpointOf, type ModuleEndpoint, type SandboxModule } from '../module.ts';
import { available } from '../wallet/account.ts';
import { accountOf } from '../wallet/account-opening.ts';
import { formatAmount, readAmount } from '../wallet/currencies.ts';
import type { Ledger } from '../wallet/ledger.ts';
import { MARKETS_ENDPOINTS } from './interface.ts';
import { cancelOrder, createOrder, listOrders } from './order-book.ts';
import { assets, candles, networks, quoteOf, rates, swapInfo, tradeInfo } from './reads.ts';
import { commitMarkets } from './records.ts';
import { closeRoom, createRoom, joinRoom, listRooms } from './rooms.ts';
import { Markets, type Swap } from './state.ts';

export function createMarkets(ledger: Ledger): SandboxModule {
  const markets = new Markets(ledger);
  const endpoint = (
    key: keyof typeof MARKETS_ENDPOINTS,
    handle: (markets: Markets, call: ModuleCall) => object,
  ): ModuleEndpoint => endpointOf('markets', MARKETS_ENDPOINTS, key, 'user', (call) => handle(markets, call));
  return {
    name: 'markets',
    endpoints: [
      endpoint('GET rates/list', rates),
      endpoint('GET swaps/quote', swapInfo),
      endpoint('POST swaps/create', createSwap),
      endpoint('GET trades/info', tradeInfo),
      endpoint('GET candles/list', candles),
      endpoint('GET assets/list', assets),
      endpoint('GET networks/list', networks),
      endpoint('GET rooms/list', listRooms),
      endpoint('POST rooms/create', createRoom),
      endpoint('POST rooms/join', joinRoom),
      endpoint('POST rooms/close', closeRoom),
      endpoint('GET orders/list', listOrders),
      endpoint('POST orders/create', createOrder),
      endpoint('POST orders/cancel', cancelOrder),
    ],
    events: markets.events,
    apply: markets.apply,
  };
}

/** Refused when the pool would give less than `receiveMin`: the rate may have moved since the quote. */
function createSwap(markets: Markets, call: ModuleCall): object {
  const account = accountOf(markets.ledger, call);
  const { userId } = account;
  const { from, to, paid, got } = quoteOf(markets, (name) => call.body[name]);
  const least = call.body['receiveMin'] ?? undefined;
  const receiveMin = least === undefined ? 0n : readAmount(least, to);
  const externalId = optionalId(call, 'externalId') ?? null;
  const wanted = ['swap', from.code, to.code, paid.toString()];
  const earlier = markets.operations.earlier(userId, externalId, wanted);
  if (earlier !== undefined) return wireSwap(markets.swaps.get(earlier));
  if (got < receiveMin) throw new SandboxError('RateMoved', `now ${formatAmount(got, to)} ${to.code}`);
  if (available(account, from) < paid) throw new SandboxError('InsufficientFunds');
  const outId = call.tick();
  const inId = call.tick();
  commitMarkets(call, 'swapped', {
    tick: inId,
    utcMs: call.nowMs,
    userId,
    from: from.code,
    to: to.code,
    paid: paid.toString(),
    got: got.toString(),
    outId,
    inId,
    externalId,
  });
  return wireSwap(markets.swaps.get(outId));
}

function wireSwap(swap: Swap | undefined): object {
  if (swap === undefined) throw new Error('a booked swap is missing');
  const { id, from, to, paid, got, externalId, utcMs } = swap;
  return {
    id,
    from: from.code,
    to: to.code,
    amount: formatAmount(paid, from),
    received: formatAmount(got, to),
    externalId: externalId ?? id,
    dateTime: toIso(utcMs),
  };
}
