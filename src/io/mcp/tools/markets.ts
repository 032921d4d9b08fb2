/**
 * Built-in tools of the markets module (spec 2.4): rates, swaps and candles. Prices are public and open to every login. A swap
 * moves money, so it needs a proven key and is closed to applications.
 */
import type { JsonObject } from '../input-schema.ts';
import type { ToolRow } from '../tool.ts';
import { READS, SPENDS } from './annotations.ts';
import { amount, currency, inputOf, limit, onceOnly } from './arguments.ts';

const reading = { method: 'GET', appScope: true, annotations: READS } as const;

/** The code of a trading pair. */
export function pair(description: string): JsonObject {
  return {
    type: 'string',
    description,
    maxLength: 33,
    pattern: '^[A-Za-z0-9_]{2,16}-[A-Za-z0-9_]{2,16}$',
    examples: ['GATE-DEMO'],
  };
}

export const MARKET_TOOLS: Readonly<Record<string, ToolRow>> = {
  market_get_rates: {
    ...reading,
    endpoint: 'markets:/markets/v1/rates/list',
    title: 'Exchange rates',
    description:
      'Returns the present rate of each trading pair with the prices at which one coin is bought and sold by a swap, fee included, in the quote currency. Rates move with every swap: ask market_swap_info for a definite amount.',
    inputSchema: inputOf({ pair: pair('Only this pair. Omit it to get all of them.') }),
  },
  market_swap_info: {
    ...reading,
    endpoint: 'markets:/markets/v1/swaps/quote',
    title: 'What a swap would give',
    description:
      'Calculates what a swap of one currency into another would give right now, fee included, without doing it. Call it before market_create_swap, and pass a little less than `receive` there as `receiveMin`.',
    inputSchema: inputOf(
      {
        from: currency('Currency to give.'),
        to: currency('Currency to get.'),
        amount: amount('Amount to give, an exact decimal above zero, as text.'),
      },
      ['from', 'to', 'amount'],
    ),
  },
  market_get_trade_info: {
    ...reading,
    endpoint: 'markets:/markets/v1/trades/info',
    title: 'State of a trading pair',
    description:
      'Describes one trading pair: lot size and price step that orders must keep, best open bid and ask, last price, and number and volume of the trades of the last 24 hours. Call it before market_create_order.',
    inputSchema: inputOf({ pair: pair('Pair to describe.') }, ['pair']),
  },
  market_create_swap: {
    method: 'POST',
    restricted: ['McpBasic'],
    annotations: SPENDS,
    endpoint: 'markets:/markets/v1/swaps/create',
    title: 'Swap currencies',
    description:
      'Swaps money of the logged-in user from one currency into another, at once and at the present rate; it cannot be undone. Ask market_swap_info first and confirm both amounts with the person. Nothing moves when the balance is too small or the swap would give less than `receiveMin`.',
    inputSchema: inputOf(
      {
        from: currency('Currency to give.'),
        to: currency('Currency to get.'),
        amount: amount('Amount to give, an exact decimal above zero, as text.'),
        receiveMin: amount('The least to accept in the other currency; the swap is refused below it.'),
        externalId: onceOnly,
      },
      ['from', 'to', 'amount'],
    ),
  },
  get_candles: {
    ...reading,
    endpoint: 'markets:/markets/v1/candles/list',
    title: 'Price candles',
    description:
      'Returns the candles of a pair, oldest first: opening, highest, lowest and closing price and the traded volume of each interval. Intervals without a trade are left out.',
    inputSchema: inputOf(
      {
        pair: pair('Pair whose prices to return.'),
        intervalSeconds: {
          type: 'integer',
          description: 'Length of one candle in seconds.',
          enum: [60, 300, 900, 3600, 14400, 86400],
          default: 3600,
          examples: [3600],
        },
        limit: limit('How many candles to return at most, the latest ones.', 500, 100),
      },
      ['pair'],
    ),
  },
  assets: {
    ...reading,
    endpoint: 'markets:/markets/v1/assets/list',
    title: 'Currencies',
    description:
      'Lists the currencies of this platform with name, number of decimal places and the pairs that trade them. Call it when you need to know which codes exist.',
    inputSchema: inputOf({}),
  },
  tokens_networks: {
    ...reading,
    endpoint: 'markets:/markets/v1/networks/list',
    title: 'Networks of the currencies',
    description:
      'Lists the networks on which each currency can be deposited and withdrawn, with the number (`netType`) that wallet_create_withdraw takes, the smallest withdrawal and its fee.',
    inputSchema: inputOf({ currency: currency('Only networks of this currency.') }),
  },
};
