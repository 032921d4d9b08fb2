/**
 * Requests and answers of the endpoints of the sandbox payments module. docs/modules.openapi.json is printed from it.
 */
import type { Interface } from '../module.ts';
import {
  AMOUNT,
  CAPABILITY,
  CODE,
  CURRENCY,
  ID,
  ID_GIVEN,
  list,
  nullable,
  object,
  oneOf,
  TEXT,
  UTC,
} from '../schemas.ts';

const PAYMENT = object({
  id: ID,
  orderId: ID,
  terminalId: ID,
  method: oneOf('card', 'p2p', 'crypto'),
  state: oneOf('waiting', 'completed', 'cancelled', 'declined'),
  currency: CURRENCY,
  amount: AMOUNT,
  fee: AMOUNT,
  card: nullable({ type: 'string', pattern: '^[0-9]{4}$' }),
  account: nullable(TEXT),
  reference: nullable(TEXT),
  address: nullable(TEXT),
  txHash: nullable(TEXT),
  dateTime: UTC,
});

const TERMINAL = object({
  id: ID,
  method: oneOf('card', 'p2p', 'crypto'),
  name: TEXT,
  currency: CURRENCY,
  feePercent: AMOUNT,
});

const ORDER_PROPERTIES = {
  id: ID,
  code: CODE,
  state: oneOf('open', 'pending', 'paid', 'expired'),
  currency: CURRENCY,
  amount: AMOUNT,
  description: nullable(TEXT),
  externalId: ID,
  dateTime: UTC,
  expiresUtc: UTC,
};
const PAYMENT_ORDER = object(ORDER_PROPERTIES);

export const PAYMENTS_SCHEMAS = { Payment: PAYMENT, Terminal: TERMINAL, PaymentOrder: PAYMENT_ORDER };

export const PAYMENTS_ENDPOINTS = {
  'POST orders/create': { summary: 'A request for money, with the code to pay it', gives: PAYMENT_ORDER },
  'GET orders/info': {
    summary: 'One payment order of the merchant',
    gives: object({ ...ORDER_PROPERTIES, payments: list(PAYMENT) }),
  },
  'GET terminals/list': { summary: 'Ways to be paid', gives: object({ terminals: list(TERMINAL) }) },
  'GET payments/list': {
    summary: 'Payments on the orders of the merchant, newest first',
    gives: object({ payments: list(PAYMENT), next: nullable(ID) }),
  },
  'GET payments/get': { summary: 'One payment on an order of the merchant', gives: PAYMENT },
  'POST payments/confirm': {
    name: 'confirm_payment',
    summary: 'The merchant saw a bank transfer arrive; no tool calls it',
    takes: object({ paymentId: ID_GIVEN }),
    gives: PAYMENT,
  },
  'GET gate/order_info': {
    summary: 'The order that the code stands for',
    gives: object({
      id: ID,
      state: oneOf('open', 'pending', 'paid', 'expired'),
      currency: CURRENCY,
      amount: AMOUNT,
      description: nullable(TEXT),
      expiresUtc: UTC,
      payment: nullable(PAYMENT),
    }),
  },
  'GET gate/terminals': { summary: 'Ways to pay the order', gives: object({ terminals: list(TERMINAL) }) },
  'POST gate/pay_card': { summary: 'A card payment, settled at once', gives: PAYMENT },
  'POST gate/pay_p2p': { summary: 'A payment by bank transfer that waits for the merchant', gives: PAYMENT },
  'POST gate/cancel_p2p': { summary: 'The end of the bank transfer that is under way', gives: PAYMENT },
  'POST gate/pay_crypto': { summary: 'A crypto payment that waits for its proof', gives: PAYMENT },
  'POST gate/confirm_crypto': { summary: 'The proof of the crypto payment under way', gives: PAYMENT },
  'POST gate/cancel_crypto': { summary: 'The end of the crypto payment that is under way', gives: PAYMENT },
  'GET capability/resolve': {
    name: 'resolve_payment_code',
    summary: 'What a code opens; called by the gateway for itself, refused with X-Crm or X-Scopes',
    takes: object({ code: TEXT }),
    gives: CAPABILITY,
  },
} as const satisfies Interface;
