/**
 * Built-in tools of the payments module (spec 2.4): for merchants by session, for payers by the code of a payment order
 * (capability mode). Orders need a proven key or an application of the merchant. An application opens orders only with a
 * proven key, because its id and public key are no secrets.
 */
import type { JsonObject } from '../input-schema.ts';
import type { ToolRow } from '../tool.ts';
import { ADDS, ENDS, READS, SPENDS } from './annotations.ts';
import { amount, before, choice, currency, id, inputOf, limit, line, note, onceOnly } from './arguments.ts';

const merchant = { restricted: ['McpBasic'], appScope: true, proof: 'personal' } as const;
const reading = { method: 'GET', annotations: READS } as const;
const gate = { capabilityModule: 'wallet', capabilityCodeBodyProperty: 'code' } as const;
const ORDER = '1882417349637701632';
const PAYMENT = '1882417349637701700';

/** The code is an argument for clients that can set neither the URL nor a header. */
const code: JsonObject = {
  type: 'string',
  description: 'Code of the payment order. Leave it out when the connection carries it already.',
  minLength: 8,
  maxLength: 64,
  examples: ['q3vT0yD5mZr8kLwA2xNc9g'],
};
const terminalId = id('Which of the ways in payment_terminals. Omit it to take the usual one.', '1');

export const PAYORDER_TOOLS: Readonly<Record<string, ToolRow>> = {
  payorder_info: {
    ...merchant,
    ...reading,
    endpoint: 'payments:/payments/v1/orders/info',
    title: 'One payment order',
    description:
      'Returns one payment order of the logged-in merchant: state (open, pending, paid, expired), amount, the code to hand to the payer, when it expires, and the payments tried on it.',
    inputSchema: inputOf({ id: id('Id of the order, from payorder_create or payorder_payments.', ORDER) }, [
      'id',
    ]),
  },
  payorder_terminals: {
    ...reading,
    appScope: true,
    endpoint: 'payments:/payments/v1/terminals/list',
    title: 'Ways to be paid',
    description:
      'Lists the ways in which payers can pay: card, transfer between bank accounts (p2p) and crypto, each with its currency and the fee that the merchant bears. Call it before payorder_create to see which currencies can be paid.',
    inputSchema: inputOf({ currency: currency('Only ways that take this currency.') }),
  },
  payorder_payments: {
    ...merchant,
    ...reading,
    endpoint: 'payments:/payments/v1/payments/list',
    title: 'Payments received and tried',
    description:
      'Lists the payments on the orders of the logged-in merchant, newest first, with state (waiting, completed, cancelled, declined), amount and fee. For the next page pass `next` as `before`.',
    inputSchema: inputOf({
      orderId: id('Only payments on this order.', ORDER),
      state: choice('Only payments in this state.', ['completed', 'waiting', 'cancelled', 'declined']),
      before,
      limit: limit('How many payments to return at most.', 100, 20),
    }),
  },
  payorder_payment: {
    ...merchant,
    ...reading,
    endpoint: 'payments:/payments/v1/payments/get',
    title: 'One payment',
    description:
      'Returns one payment on an order of the logged-in merchant by its id: way, state, amount, fee, and the reference or transaction it was made with.',
    inputSchema: inputOf({ id: id('Id of the payment, from payorder_payments.', PAYMENT) }, ['id']),
  },
  payorder_create: {
    ...merchant,
    proof: 'always',
    method: 'POST',
    annotations: ADDS,
    endpoint: 'payments:/payments/v1/orders/create',
    title: 'Ask for a payment',
    description:
      'Opens a payment order: a request for money to the logged-in merchant. Moves no money by itself. Returns a `code`: anyone with it can see the order and pay it, without an account. The order expires without a payment in time.',
    inputSchema: inputOf(
      {
        currency: currency('Currency to be paid in.'),
        amount: amount('Amount to be paid, an exact decimal above zero, as text.'),
        description: note('What is paid for; the payer sees it.'),
        lifetimeSeconds: {
          type: 'integer',
          description: 'Seconds until the order expires.',
          minimum: 60,
          maximum: 604800,
          default: 3600,
          examples: [3600],
        },
        externalId: onceOnly,
      },
      ['currency', 'amount'],
    ),
  },
};

export const PAYMENT_TOOLS: Readonly<Record<string, ToolRow>> = {
  payment_order_info: {
    ...gate,
    ...reading,
    endpoint: 'payments:/payments/v1/gate/order_info',
    title: 'What is to be paid',
    description:
      'Describes the payment order that the code stands for: amount, what it is for, state (open, pending, paid, expired), when it expires, and the payment under way, if any. Call it first and show the person the amount.',
    inputSchema: inputOf({ code }),
  },
  payment_terminals: {
    ...gate,
    ...reading,
    endpoint: 'payments:/payments/v1/gate/terminals',
    title: 'Ways to pay',
    description:
      'Lists the ways in which this payment order can be paid (`method`: card, p2p, crypto). Use the tool of the same name: payment_pay_card, payment_pay_p2p or payment_pay_crypto.',
    inputSchema: inputOf({ code }),
  },
  payment_pay_card: {
    ...gate,
    method: 'POST',
    annotations: { ...SPENDS, openWorldHint: true },
    endpoint: 'payments:/payments/v1/gate/pay_card',
    title: 'Pay by card',
    description:
      'Pays the order with a card, at once and for good. Only with card details that the person gave for this payment, after they confirmed the amount. A declined card leaves the order open for another try.',
    inputSchema: inputOf(
      {
        cardNumber: {
          type: 'string',
          description: 'Card number, digits with or without spaces.',
          pattern: '^[0-9](?: ?[0-9]){11,18}$',
          maxLength: 23,
          examples: ['4242 4242 4242 4242'],
        },
        expiry: {
          type: 'string',
          description: 'Month and year until which the card is valid, MM/YY.',
          pattern: '^(?:0[1-9]|1[0-2])/[0-9]{2}$',
          examples: ['09/31'],
        },
        cvc: {
          type: 'string',
          description: 'Check number of the card, 3 or 4 digits.',
          pattern: '^[0-9]{3,4}$',
          examples: ['123'],
        },
        terminalId,
        code,
      },
      ['cardNumber', 'expiry', 'cvc'],
    ),
  },
  payment_pay_p2p: {
    ...gate,
    method: 'POST',
    annotations: ADDS,
    endpoint: 'payments:/payments/v1/gate/pay_p2p',
    title: 'Pay by bank transfer',
    description:
      'Starts a payment by transfer between bank accounts and returns the account and the reference to send the money to. Nothing moves until the person makes that transfer; the order is paid when the merchant sees it. One payment can be under way at a time: payment_cancel_p2p ends it.',
    inputSchema: inputOf({ terminalId, code }),
  },
  payment_cancel_p2p: {
    ...gate,
    method: 'POST',
    annotations: ENDS,
    endpoint: 'payments:/payments/v1/gate/cancel_p2p',
    title: 'Give up the bank transfer',
    description:
      'Ends the payment by bank transfer that is under way, so that the order can be paid in another way. Never call it after the person sent the money: it would be lost from sight.',
    inputSchema: inputOf({ code }),
  },
  payment_pay_crypto: {
    ...gate,
    method: 'POST',
    annotations: ADDS,
    endpoint: 'payments:/payments/v1/gate/pay_crypto',
    title: 'Pay with crypto',
    description:
      'Starts a payment with crypto and returns the address and the exact amount to send. Nothing moves until the person sends it; then prove it with payment_confirm_crypto, or give up with payment_cancel_crypto.',
    inputSchema: inputOf({ terminalId, code }),
  },
  payment_confirm_crypto: {
    ...gate,
    method: 'POST',
    annotations: SPENDS,
    endpoint: 'payments:/payments/v1/gate/confirm_crypto',
    title: 'Prove the crypto payment',
    description:
      'Proves the crypto payment that is under way with the hash of the transaction that the person sent; the order is paid then. A hash counts once.',
    inputSchema: inputOf(
      {
        txHash: {
          ...line('Hash of the transaction, 64 hexadecimal digits.', 66, `9f${'0'.repeat(62)}`),
          pattern: '^(?:0x)?[0-9A-Fa-f]{64}$',
        },
        code,
      },
      ['txHash'],
    ),
  },
  payment_cancel_crypto: {
    ...gate,
    method: 'POST',
    annotations: ENDS,
    endpoint: 'payments:/payments/v1/gate/cancel_crypto',
    title: 'Give up the crypto payment',
    description:
      'Ends the crypto payment that is under way, so that the order can be paid in another way. Never call it after the person sent the money: it would be lost from sight.',
    inputSchema: inputOf({ code }),
  },
};
