/**
 * Requests and answers of the endpoints of the sandbox markets module. docs/modules.openapi.json is printed from it.
 */
import type { Interface } from '../module.ts';
import {
  AMOUNT,
  BOOLEAN,
  CURRENCY,
  ID,
  ID_GIVEN,
  INTEGER,
  list,
  nullable,
  object,
  oneOf,
  PAIR,
  TEXT,
  UTC,
} from '../schemas.ts';

const ORDER = object({
  id: ID,
  userId: ID,
  pair: PAIR,
  side: oneOf('buy', 'sell'),
  state: oneOf('open', 'filled', 'cancelled'),
  price: AMOUNT,
  amount: AMOUNT,
  filled: AMOUNT,
  roomId: nullable(ID),
  externalId: ID,
  dateTime: UTC,
});

const ROOM = object({
  id: ID,
  name: TEXT,
  pair: PAIR,
  ownerId: ID,
  state: oneOf('open', 'closed'),
  members: INTEGER,
  joined: BOOLEAN,
  dateTime: UTC,
});

export const MARKETS_SCHEMAS = { Order: ORDER, Room: ROOM };

export const MARKETS_ENDPOINTS = {
  'GET rates/list': {
    summary: 'Present rates; of one pair or of all',
    gives: object({
      utcNow: UTC,
      rates: list(
        object({ pair: PAIR, base: CURRENCY, quote: CURRENCY, rate: AMOUNT, buy: AMOUNT, sell: AMOUNT }),
      ),
    }),
  },
  'GET swaps/quote': {
    summary: 'What a swap would give now',
    gives: object({
      pair: PAIR,
      from: CURRENCY,
      to: CURRENCY,
      amount: AMOUNT,
      receive: AMOUNT,
      feePercent: AMOUNT,
    }),
  },
  'POST swaps/create': {
    summary: 'A swap at the present rate; the same externalId again returns the first one',
    gives: object({
      id: ID,
      from: CURRENCY,
      to: CURRENCY,
      amount: AMOUNT,
      received: AMOUNT,
      externalId: ID,
      dateTime: UTC,
    }),
  },
  'GET trades/info': {
    summary: 'State of one pair',
    gives: object({
      pair: PAIR,
      lotSize: AMOUNT,
      priceStep: AMOUNT,
      bestBid: nullable(AMOUNT),
      bestAsk: nullable(AMOUNT),
      lastPrice: nullable(AMOUNT),
      trades24h: INTEGER,
      volume24h: AMOUNT,
    }),
  },
  'GET candles/list': {
    summary: 'Candles, oldest first; none where nothing was traded',
    gives: object({
      pair: PAIR,
      intervalSeconds: INTEGER,
      candles: list(
        object({
          dateTime: UTC,
          open: AMOUNT,
          high: AMOUNT,
          low: AMOUNT,
          close: AMOUNT,
          volume: AMOUNT,
          trades: INTEGER,
        }),
      ),
    }),
  },
  'GET assets/list': {
    summary: 'Currencies and the pairs that trade them',
    gives: object({
      assets: list(object({ currency: CURRENCY, name: TEXT, precision: INTEGER, pairs: list(PAIR) })),
    }),
  },
  'GET networks/list': {
    summary: 'Networks of the currencies',
    gives: object({
      networks: list(
        object({
          currency: CURRENCY,
          netType: INTEGER,
          network: TEXT,
          withdrawMin: AMOUNT,
          withdrawFee: AMOUNT,
        }),
      ),
    }),
  },
  'GET rooms/list': {
    summary: 'Open rooms and the closed ones the user was in, newest first',
    gives: object({ rooms: list(ROOM) }),
  },
  'POST rooms/create': { summary: 'A room of the user', gives: ROOM },
  'POST rooms/join': { summary: 'Membership in an open room', gives: ROOM },
  'POST rooms/close': {
    summary: 'The end of a room and of the open orders in it; for its owner',
    gives: ROOM,
  },
  'GET orders/list': {
    summary: 'Own orders, or those of a joined room, newest first',
    gives: object({ orders: list(ORDER), next: nullable(ID) }),
  },
  'POST orders/create': { summary: 'A limit order; what it meets is traded at once', gives: ORDER },
  'POST orders/cancel': {
    name: 'cancel_order',
    summary: 'The end of an open order of the user; no tool calls it',
    takes: object({ orderId: ID_GIVEN }),
    gives: ORDER,
  },
} as const satisfies Interface;
