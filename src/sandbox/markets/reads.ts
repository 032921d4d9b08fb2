/** Public reads of the sandbox markets: rates, quotes, candles, assets and networks. */
import { toIso } from '../../domain/time.ts';
import { limitOf, type ModuleCall } from '../call-arguments.ts';
import { SandboxError } from '../errors.ts';
import { CURRENCIES, type Currency, formatAmount, readAmount, readCurrency } from '../wallet/currencies.ts';
import { PAIRS, type Pair, pairOf, poolOutput, readPair, SWAP_FEE, SWAP_FEE_BASE } from './pairs.ts';
import type { Markets, Trade } from './state.ts';

const DAY_MS = 86_400_000;
const INTERVALS_SECONDS = [60, 300, 900, 3600, 14_400, 86_400];

interface Quote {
  readonly pair: Pair;
  readonly from: Currency;
  readonly to: Currency;
  readonly paid: bigint;
  readonly got: bigint;
}

/** Returns the result that a swap would have now. */
export function quoteOf(markets: Markets, field: (name: string) => unknown): Quote {
  const from = readCurrency(field('from'));
  const to = readCurrency(field('to'));
  const pair = pairOf(from, to);
  const paid = readAmount(field('amount'), from);
  const pool = markets.poolOf(pair);
  const sells = from.code === pair.base.code;
  const got = sells ? poolOutput(paid, pool.base, pool.quote) : poolOutput(paid, pool.quote, pool.base);
  if (got === 0n) throw new SandboxError('BadAmount', `too small to give any ${to.code}`);
  return { pair, from, to, paid, got };
}

export function swapInfo(markets: Markets, call: ModuleCall): object {
  const { pair, from, to, paid, got } = quoteOf(markets, (name) => call.query.get(name));
  return {
    pair: pair.code,
    from: from.code,
    to: to.code,
    amount: formatAmount(paid, from),
    receive: formatAmount(got, to),
    feePercent: formatPercent(),
  };
}

export function rates(markets: Markets, call: ModuleCall): object {
  return {
    utcNow: toIso(call.nowMs),
    rates: pairsOf(call).map((pair) => {
      const { base, quote } = markets.poolOf(pair);
      const price = (quote * pair.lot) / base;
      const fee = (price * SWAP_FEE) / SWAP_FEE_BASE;
      return {
        pair: pair.code,
        base: pair.base.code,
        quote: pair.quote.code,
        rate: formatAmount(price, pair.quote),
        buy: formatAmount(price + fee, pair.quote),
        sell: formatAmount(price - fee, pair.quote),
      };
    }),
  };
}

export function tradeInfo(markets: Markets, call: ModuleCall): object {
  const pair = readPair(call.query.get('pair'));
  const open = [...markets.openOrders.values()].filter((one) => one.pair === pair && one.roomId === null);
  const bids = open.filter(({ side }) => side === 'buy').map(({ price }) => price);
  const asks = open.filter(({ side }) => side === 'sell').map(({ price }) => price);
  const recent = markets.trades.filter((one) => one.pair === pair && one.utcMs > call.nowMs - DAY_MS);
  const last = markets.trades.findLast((one) => one.pair === pair);
  const price = (value: bigint | undefined) => (value === undefined ? null : formatAmount(value, pair.quote));
  return {
    pair: pair.code,
    lotSize: formatAmount(pair.lot, pair.base),
    priceStep: formatAmount(1n, pair.quote),
    bestBid: price(extreme(bids, (one, other) => one > other)),
    bestAsk: price(extreme(asks, (one, other) => one < other)),
    lastPrice: price(last === undefined ? undefined : priceOf(last)),
    trades24h: recent.length,
    volume24h: formatAmount(
      recent.reduce((sum, { base }) => sum + base, 0n),
      pair.base,
    ),
  };
}

/** Oldest first, the last `limit` ones. An interval without a trade has no candle. */
export function candles(markets: Markets, call: ModuleCall): object {
  const pair = readPair(call.query.get('pair'));
  const interval = Number(call.query.get('intervalSeconds') ?? 3600);
  if (!INTERVALS_SECONDS.includes(interval))
    throw new SandboxError('BadRequest', `intervalSeconds is one of ${INTERVALS_SECONDS.join(', ')}`);
  const limit = limitOf(call.query, 100, 500);
  const intervals = new Map<number, Trade[]>();
  for (const trade of markets.trades) {
    if (trade.pair !== pair) continue;
    const startMs = trade.utcMs - (trade.utcMs % (interval * 1000));
    const found = intervals.get(startMs);
    if (found === undefined) intervals.set(startMs, [trade]);
    else found.push(trade);
  }
  const shown = [...intervals].slice(-limit).map(([startMs, trades]) => candle(pair, startMs, trades));
  return { pair: pair.code, intervalSeconds: interval, candles: shown };
}

export function assets(_markets: Markets, _call: ModuleCall): object {
  return {
    assets: [...CURRENCIES.values()].map(({ code, name, precision }) => ({
      currency: code,
      name,
      precision,
      pairs: [...PAIRS.values()]
        .filter(({ base, quote }) => base.code === code || quote.code === code)
        .map((pair) => pair.code),
    })),
  };
}

export function networks(_markets: Markets, call: ModuleCall): object {
  const code = call.query.get('currency');
  const wanted = code === undefined ? [...CURRENCIES.values()] : [readCurrency(code)];
  return {
    networks: wanted.map((currency) => ({
      currency: currency.code,
      netType: currency.netType,
      network: `${currency.name} network`,
      withdrawMin: formatAmount(currency.withdrawMin, currency),
      withdrawFee: formatAmount(currency.withdrawFee, currency),
    })),
  };
}

function candle(pair: Pair, startMs: number, trades: readonly Trade[]): object {
  const prices = trades.map(priceOf);
  const price = (value: bigint | undefined) => formatAmount(value ?? 0n, pair.quote);
  return {
    dateTime: toIso(startMs),
    open: price(prices[0]),
    high: price(extreme(prices, (one, other) => one > other)),
    low: price(extreme(prices, (one, other) => one < other)),
    close: price(prices.at(-1)),
    volume: formatAmount(
      trades.reduce((sum, { base }) => sum + base, 0n),
      pair.base,
    ),
    trades: trades.length,
  };
}

function pairsOf(call: ModuleCall): Pair[] {
  const code = call.query.get('pair');
  return code === undefined ? [...PAIRS.values()] : [readPair(code)];
}

/** Quote units per whole coin, rounded down: shown, never booked. */
function priceOf({ pair, base, quote }: Trade): bigint {
  return (quote * pair.lot) / base;
}

function extreme(
  values: readonly bigint[],
  beats: (one: bigint, other: bigint) => boolean,
): bigint | undefined {
  let best: bigint | undefined;
  for (const value of values) if (best === undefined || beats(value, best)) best = value;
  return best;
}

function formatPercent(): string {
  return `${SWAP_FEE / 100n}.${(SWAP_FEE % 100n).toString().padStart(2, '0')}`;
}
