/**
 * Built-in tools for limit orders and trading rooms (spec 2.4), served by the markets module. The list of rooms is open to
 * every login; orders and changes need a proven key.
 */
import type { ToolRow } from '../tool.ts';
import { ADDS, ENDS, READS, SETS, SPENDS } from './annotations.ts';
import { amount, before, choice, id, inputOf, limit, line, onceOnly } from './arguments.ts';
import { pair } from './markets.ts';

const reading = { method: 'GET', appScope: true, annotations: READS } as const;
const proven = { method: 'POST', restricted: ['McpBasic'] } as const;
const ROOM = '1882417349637701632';

export const ROOM_TOOLS: Readonly<Record<string, ToolRow>> = {
  room_list: {
    ...reading,
    endpoint: 'markets:/markets/v1/rooms/list',
    title: 'Trading rooms',
    description:
      'Lists the open trading rooms, newest first, and closed ones that the logged-in user was in: id, name, pair, owner, number of members and whether the user has joined. Orders placed in a room meet only orders of its members.',
    inputSchema: inputOf({
      joined: {
        type: 'boolean',
        description: 'True: only rooms that the user has joined. False: only others.',
        examples: [true],
      },
      limit: limit('How many rooms to return at most.', 200, 50),
    }),
  },
  room_create: {
    ...proven,
    annotations: ADDS,
    endpoint: 'markets:/markets/v1/rooms/create',
    title: 'Open a trading room',
    description:
      'Opens a trading room for one pair. The logged-in user owns it and is its first member; others see it in room_list and may join. Returns the id that orders name as `roomId`.',
    inputSchema: inputOf(
      { name: line('Name that everybody sees.', 64, 'Friday room'), pair: pair('Pair traded in the room.') },
      ['name', 'pair'],
    ),
  },
  room_close: {
    ...proven,
    annotations: ENDS,
    endpoint: 'markets:/markets/v1/rooms/close',
    title: 'Close a trading room',
    description:
      'Closes a trading room for good and cancels all open orders in it, those of other members too; the money that they held is free again. Only the owner may: ask before calling.',
    inputSchema: inputOf({ roomId: id('Id of the room, from room_list.', ROOM) }, ['roomId']),
  },
  room_join: {
    ...proven,
    annotations: SETS,
    endpoint: 'markets:/markets/v1/rooms/join',
    title: 'Join a trading room',
    description:
      'Makes the logged-in user a member of an open trading room, who sees its orders and may place some. Joining twice changes nothing.',
    inputSchema: inputOf({ roomId: id('Id of the room, from room_list.', ROOM) }, ['roomId']),
  },
};

export const ORDER_TOOLS: Readonly<Record<string, ToolRow>> = {
  market_get_orders: {
    ...reading,
    // A room contains orders of other people too.
    restricted: ['McpBasic'],
    proof: 'personal',
    endpoint: 'markets:/markets/v1/orders/list',
    title: 'Limit orders',
    description:
      'Lists the limit orders of the logged-in user, newest first, with state (open, filled, cancelled), price, amount and how much of it is filled. With `roomId` it lists the orders of everybody in a room that the user has joined. For the next page pass `next` as `before`.',
    inputSchema: inputOf({
      pair: pair('Only orders of this pair.'),
      state: choice('Only orders in this state.', ['open', 'filled', 'cancelled']),
      roomId: id('List the orders in this trading room instead of your own.', ROOM),
      before,
      limit: limit('How many orders to return at most.', 100, 20),
    }),
  },
  market_create_order: {
    ...proven,
    annotations: SPENDS,
    endpoint: 'markets:/markets/v1/orders/create',
    title: 'Place a limit order',
    description:
      "Places a limit order. What it meets at once is traded at the other side's price and cannot be undone; the rest stays open and holds the money until it is filled or cancelled. Confirm side, amount and price with the person. `amount` is a whole number of lots (market_get_trade_info).",
    inputSchema: inputOf(
      {
        pair: pair('Pair to trade.'),
        side: choice('Whether to buy or to sell the first currency of the pair.', ['buy', 'sell']),
        price: amount('Limit price of one coin, in the second currency of the pair.'),
        amount: {
          ...amount('How many coins, in the first currency of the pair, a whole number of lots.'),
          examples: ['3'],
        },
        roomId: id(
          'Place it in this trading room, which you have joined. Omit it for the public book.',
          ROOM,
        ),
        externalId: onceOnly,
      },
      ['pair', 'side', 'price', 'amount'],
    ),
  },
};
