/** Requests and answers of the endpoints of the sandbox wallet module. docs/modules.openapi.json is printed from it. */
import type { Interface } from '../module.ts';
import { AMOUNT, CURRENCY, ID, INTEGER, list, nullable, object, oneOf, TEXT, UTC } from '../schemas.ts';

const TRANSACTION = object({
  id: ID,
  tick: ID,
  currency: CURRENCY,
  txType: {
    type: 'integer',
    description:
      'The sandbox: 1 opening credit, 2 outgoing transfer, 3 incoming transfer, 4 withdrawal, 5 given in an exchange, 6 got in an exchange, 7 payment received.',
  },
  state: { type: 'integer', description: 'The sandbox: 2 completed.' },
  direction: oneOf('in', 'out'),
  amount: AMOUNT,
  fee: AMOUNT,
  externalId: ID,
  appId: ID,
  partnerInfo: nullable(TEXT),
  tag: nullable(TEXT),
  dateTime: UTC,
});

const OPERATION = { allOf: [TRANSACTION, object({ balance: AMOUNT })] };

export const WALLET_SCHEMAS = { Transaction: TRANSACTION, Operation: OPERATION };

export const WALLET_ENDPOINTS = {
  'GET info/get': {
    summary: 'The account and its currencies',
    gives: object({
      userId: ID,
      utcCreate: UTC,
      transactions: INTEGER,
      currencies: list(
        object({
          currency: CURRENCY,
          name: TEXT,
          precision: INTEGER,
          netType: INTEGER,
          transferMin: AMOUNT,
          transferFee: AMOUNT,
          withdrawMin: AMOUNT,
          withdrawFee: AMOUNT,
        }),
      ),
    }),
  },
  'GET balance/get': {
    summary: 'Balances; of one currency or of all',
    gives: object({
      balances: list(
        object({
          currency: CURRENCY,
          balance: AMOUNT,
          available: AMOUNT,
          locked: AMOUNT,
          precision: INTEGER,
        }),
      ),
    }),
  },
  'GET transactions/list': {
    summary: 'Transactions, newest first',
    takes: object({ after: ID }, ['after']),
    gives: object({ transactions: list(TRANSACTION), next: nullable(ID) }),
  },
  'GET transactions/get': { summary: 'One transaction of the user', gives: TRANSACTION },
  'GET addresses/list': {
    summary: 'Deposit addresses',
    gives: object({ addresses: list(object({ currency: CURRENCY, netType: INTEGER, address: TEXT })) }),
  },
  'POST transfers/create': {
    summary: 'Money to another user; the same externalId again returns the first operation',
    gives: OPERATION,
  },
  'POST withdrawals/create': {
    summary: 'Money to an outside address; the fee comes on top',
    gives: OPERATION,
  },
} as const satisfies Interface;
