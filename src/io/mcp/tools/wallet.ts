/**
 * Built-in tools of the wallet module (spec 2.4). Reads are open to McpBasic and applications by configuration. Tools that move
 * money are not: McpBasic proves no key, and an application acts without supervision.
 */
import type { ToolRow } from '../tool.ts';
import { READS, SPENDS } from './annotations.ts';
import { amount, currency, id, inputOf, limit, note, onceOnly } from './arguments.ts';

const reading = { method: 'GET', appScope: true, proof: 'personal', annotations: READS } as const;
const moving = { method: 'POST', restricted: ['McpBasic'] } as const;

export const WALLET_TOOLS: Readonly<Record<string, ToolRow>> = {
  wallet_get_info: {
    ...reading,
    endpoint: 'wallet:/wallet/v1/info/get',
    title: 'Wallet overview',
    description:
      "Describes the wallet of the logged-in user: which currencies it holds, each currency's number of decimal places, and the fees and smallest amounts of transfers and withdrawals. Call it first when you need to know which currency codes exist.",
    inputSchema: inputOf({}),
  },
  wallet_get_balance: {
    ...reading,
    endpoint: 'wallet:/wallet/v1/balance/get',
    title: 'Wallet balance',
    description:
      'Returns the balance of the logged-in user, what is available and what is locked, as exact decimal strings. Leave out `currency` for all currencies.',
    inputSchema: inputOf({
      currency: currency('Currency code to restrict the answer to. Omit it to get every currency.'),
    }),
  },
  wallet_get_history_transactions: {
    ...reading,
    endpoint: 'wallet:/wallet/v1/transactions/list',
    title: 'Transaction history',
    description:
      'Lists the transactions of the logged-in user, newest first: deposits, withdrawals and transfers, with amounts as exact decimals and `txType` and `state` as numbers. For the next page pass the `id` of the last transaction as `before`.',
    inputSchema: inputOf({
      currency: currency('Only transactions in this currency.'),
      before: id(
        'Only transactions older than the one with this id: the cursor of the next page.',
        '1842003',
      ),
      limit: limit('How many transactions to return at most.', 100, 20),
    }),
  },
  wallet_get_tx_info: {
    ...reading,
    endpoint: 'wallet:/wallet/v1/transactions/get',
    title: 'One transaction',
    description:
      'Returns one transaction of the logged-in user by its id, with state, fee, counterpart and tag. Use it to see whether a transfer or withdrawal has finished.',
    inputSchema: inputOf(
      {
        id: id('Transaction id, as the history or the answer to a transfer gives it.', '1842003'),
      },
      ['id'],
    ),
  },
  wallet_list_addresses: {
    ...reading,
    endpoint: 'wallet:/wallet/v1/addresses/list',
    title: 'Deposit addresses',
    description:
      'Lists the addresses at which the logged-in user receives deposits, with currency and network. Give such an address to someone who wants to pay the user.',
    inputSchema: inputOf({ currency: currency('Only addresses for this currency.') }),
  },
  wallet_internal_transfer: {
    ...moving,
    endpoint: 'wallet:/wallet/v1/transfers/create',
    title: 'Transfer to another user',
    description:
      'Moves money from the logged-in user to another user of this platform, at once and for good: it cannot be undone. Confirm the recipient, currency and amount with the person before calling. Fails without moving anything when the balance is too small or the recipient is unknown.',
    annotations: SPENDS,
    inputSchema: inputOf(
      {
        toUserId: id('User id of the recipient.', '1842001'),
        currency: currency('Currency to send.'),
        amount: amount('Amount to send, an exact decimal above zero, as text.'),
        tag: note('A note that both sides see.'),
        externalId: onceOnly,
      },
      ['toUserId', 'currency', 'amount'],
    ),
  },
  wallet_create_withdraw: {
    ...moving,
    endpoint: 'wallet:/wallet/v1/withdrawals/create',
    title: 'Withdraw to an outside address',
    description:
      'Sends money of the logged-in user to an address outside this platform. It cannot be undone, and a wrong address loses the money. Confirm address, currency and amount with the person before calling; the fee comes on top (see wallet_get_info).',
    annotations: { ...SPENDS, openWorldHint: true },
    inputSchema: inputOf(
      {
        currency: currency('Currency to withdraw.'),
        amount: amount('Amount to withdraw, an exact decimal above zero, as text, without the fee.'),
        address: {
          type: 'string',
          description: 'Destination address, exactly as the receiver gave it.',
          minLength: 4,
          maxLength: 256,
          examples: ['DE89370400440532013000'],
        },
        netType: {
          type: 'integer',
          description: 'Network of the address, as wallet_get_info numbers it. Omit it to use the usual one.',
          minimum: 0,
          maximum: 255,
          examples: [1],
        },
        tag: note('Memo or destination tag, where the network needs one.'),
        externalId: onceOnly,
      },
      ['currency', 'amount', 'address'],
    ),
  },
};
