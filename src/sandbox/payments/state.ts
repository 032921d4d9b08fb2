/** Payment orders of merchants and the payments on them, rebuilt by applying their records to the wallet's books. */

import { EventList } from '../events.ts';
import { Operations } from '../operations.ts';
import { applying, committing, type SandboxRecord } from '../record-log.ts';
import { blank, currencyOf, type Transaction, TxType } from '../wallet/account.ts';
import type { Currency } from '../wallet/currencies.ts';
import type { Ledger } from '../wallet/ledger.ts';
import { feeOf, type PaymentMethod } from './terminals.ts';

/** The fields of each record. */
export interface PaymentsRows {
  readonly orderCreated: {
    readonly utcMs: number;
    readonly orderId: string;
    readonly merchantId: string;
    /** Capability code: gives its holder access to the order. */
    readonly code: string;
    readonly currency: string;
    /** Smallest units, decimal. */
    readonly minor: string;
    readonly description: string | null;
    readonly externalId: string | null;
    readonly expiresMs: number;
  };
  readonly paymentStarted: {
    readonly utcMs: number;
    readonly paymentId: string;
    readonly orderId: string;
    readonly terminalId: string;
    readonly method: PaymentMethod;
    readonly details: PaymentDetails;
    /** Result of a payment that ended in the same step; null for one that waits. */
    readonly settled: PaymentsRows['paymentEnded']['state'] | null;
  };
  readonly paymentEnded: {
    readonly utcMs: number;
    readonly paymentId: string;
    readonly state: 'completed' | 'cancelled' | 'declined';
    /** The transaction that a crypto payment was proven with; null otherwise. */
    readonly txHash: string | null;
  };
}

export const commitPayments = committing<PaymentsRows>('payments');

type Ending = Pick<PaymentsRows['paymentEnded'] & SandboxRecord, 'state' | 'txHash' | 'tick' | 'utcMs'>;

/** Details that the payer needs or gave; never a whole card number. */
interface PaymentDetails {
  readonly card?: string;
  readonly account?: string;
  readonly reference?: string;
  readonly address?: string;
}

export interface Payment {
  readonly id: string;
  readonly order: PaymentOrder;
  readonly terminalId: string;
  readonly method: PaymentMethod;
  readonly details: PaymentDetails;
  readonly utcMs: number;
  state: 'waiting' | PaymentsRows['paymentEnded']['state'];
  txHash: string | null;
}

export interface PaymentOrder {
  readonly id: string;
  readonly merchantId: string;
  readonly code: string;
  readonly currency: Currency;
  readonly amount: bigint;
  readonly description: string | null;
  readonly externalId: string | null;
  readonly utcMs: number;
  readonly expiresMs: number;
  /** Oldest first. */
  readonly payments: Payment[];
}

type PaymentOrderState = 'open' | 'pending' | 'paid' | 'expired';

export class Payments {
  readonly events = new EventList('payments');
  readonly orders = new Map<string, PaymentOrder>();
  readonly byCode = new Map<string, PaymentOrder>();
  readonly payments = new Map<string, Payment>();
  readonly operations = new Operations();
  readonly txHashes = new Set<string>();
  readonly ledger: Ledger;

  constructor(ledger: Ledger) {
    this.ledger = ledger;
  }

  existingOrder(id: string): PaymentOrder {
    const order = this.orders.get(id);
    if (order === undefined) throw new Error(`the log names the unknown payment order ${id}`);
    return order;
  }

  existingPayment(id: string): Payment {
    const payment = this.payments.get(id);
    if (payment === undefined) throw new Error(`the log names the unknown payment ${id}`);
    return payment;
  }

  readonly apply = applying<PaymentsRows>({
    orderCreated: (record) => {
      const { orderId: id, merchantId, code, description, externalId, utcMs, expiresMs } = record;
      const currency = currencyOf(record.currency);
      const facts = { merchantId, code, currency, description, externalId, utcMs, expiresMs };
      const order: PaymentOrder = { id, ...facts, amount: BigInt(record.minor), payments: [] };
      this.orders.set(id, order);
      this.byCode.set(code, order);
      this.operations.note(merchantId, externalId, [currency.code, record.minor], id);
    },
    paymentStarted: (record) => {
      const { paymentId: id, terminalId, method, details, utcMs } = record;
      const order = this.existingOrder(record.orderId);
      const payment: Payment = {
        id,
        order,
        terminalId,
        method,
        details,
        utcMs,
        state: 'waiting',
        txHash: null,
      };
      order.payments.push(payment);
      this.payments.set(id, payment);
      const { settled, tick } = record;
      if (settled !== null) this.#end(payment, { state: settled, txHash: null, tick, utcMs });
    },
    paymentEnded: (record) => this.#end(this.existingPayment(record.paymentId), record),
  });

  /** A completed payment books the money, less the fee, with the merchant. */
  #end(payment: Payment, { state, txHash, tick, utcMs }: Ending): void {
    payment.state = state;
    payment.txHash = txHash;
    if (txHash !== null) this.txHashes.add(txHash);
    if (state !== 'completed') return;
    const { id, merchantId, currency, amount, description } = payment.order;
    const fee = feeOf(payment.method, amount);
    const transaction: Transaction = {
      ...blank(tick, currency, utcMs),
      txType: TxType.PaymentIn,
      amount,
      fee,
      externalId: id,
      partnerInfo: payment.method,
      tag: description,
    };
    this.ledger.post(merchantId, amount - fee, transaction, 'TxInWallet');
  }
}

/** The payment that an order waits for. */
export function waitingPayment({ payments }: PaymentOrder): Payment | undefined {
  return payments.find(({ state }) => state === 'waiting');
}

/** An order that was not paid in time is expired, whatever it waits for. */
export function stateOf(order: PaymentOrder, nowMs: number): PaymentOrderState {
  if (order.payments.some(({ state }) => state === 'completed')) return 'paid';
  if (nowMs >= order.expiresMs) return 'expired';
  return waitingPayment(order) === undefined ? 'open' : 'pending';
}
