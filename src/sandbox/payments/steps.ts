/** One payment: how it starts, how it ends, and how it shows. */
import { toIso } from '../../domain/time.ts';
import { type ModuleCall, optionalId } from '../call-arguments.ts';
import { formatAmount } from '../wallet/currencies.ts';
import {
  commitPayments,
  type Payment,
  type PaymentOrder,
  type Payments,
  type PaymentsRows,
} from './state.ts';
import { feeOf, readTerminal } from './terminals.ts';

type PaymentStart = Pick<PaymentsRows['paymentStarted'], 'method' | 'details' | 'settled'>;

export function startPayment(
  payments: Payments,
  order: PaymentOrder,
  { method, details, settled }: PaymentStart,
  call: ModuleCall,
): Payment {
  const terminal = readTerminal(optionalId(call, 'terminalId'), method, order.currency);
  const paymentId = call.tick();
  commitPayments(call, 'paymentStarted', {
    tick: settled === null ? paymentId : call.tick(),
    utcMs: call.nowMs,
    paymentId,
    orderId: order.id,
    terminalId: terminal.id,
    method,
    details,
    settled,
  });
  return payments.existingPayment(paymentId);
}

/** Ends a payment; completed, it books the money. */
export function endPayment(
  { id: paymentId }: Payment,
  state: PaymentsRows['paymentEnded']['state'],
  call: ModuleCall,
  txHash: string | null = null,
): void {
  commitPayments(call, 'paymentEnded', { utcMs: call.nowMs, paymentId, state, txHash });
}

/** A payment as its merchant and its payer see it. */
export function paymentForm(payment: Payment): object {
  const { id, order, terminalId, method, state, details, txHash, utcMs } = payment;
  const { card = null, account = null, reference = null, address = null } = details;
  return {
    id,
    orderId: order.id,
    terminalId,
    method,
    state,
    currency: order.currency.code,
    amount: formatAmount(order.amount, order.currency),
    fee: formatAmount(feeOf(method, order.amount), order.currency),
    card,
    account,
    reference,
    address,
    txHash,
    dateTime: toIso(utcMs),
  };
}
