/**
 * The payer's side of payments: actions of a holder of the code of a payment order. One payment is under way at a
 * time; a declined or cancelled one leaves the order open for the next.
 */
import { createHash } from 'node:crypto';
import { toIso } from '../../domain/time.ts';
import { type ModuleCall, requiredText } from '../call-arguments.ts';
import { opened } from '../codes.ts';
import { SandboxError } from '../errors.ts';
import { formatAmount } from '../wallet/currencies.ts';
import { type Payment, type PaymentOrder, type Payments, stateOf, waitingPayment } from './state.ts';
import { endPayment, paymentForm, startPayment } from './steps.ts';
import { type PaymentMethod, terminalsOf } from './terminals.ts';

/** The card whose bank always says no; every other number with a right check digit pays. */
export const DECLINED_CARD = '4000000000000002';
const CARD = /^[0-9]{12,19}$/;
const TX_HASH = /^[0-9a-f]{64}$/;

export function gateInfo(payments: Payments, call: ModuleCall): object {
  const order = opened(payments.byCode, call);
  const { id, currency, amount, description, expiresMs } = order;
  const waiting = waitingPayment(order);
  return {
    id,
    state: stateOf(order, call.nowMs),
    currency: currency.code,
    amount: formatAmount(amount, currency),
    description,
    expiresUtc: toIso(expiresMs),
    payment: waiting === undefined ? null : paymentForm(waiting),
  };
}

export function gateTerminals(payments: Payments, call: ModuleCall): object {
  return { terminals: terminalsOf(opened(payments.byCode, call).currency.code) };
}

/** Settled at once: paid, or declined by the bank of the card. */
export function payCard(payments: Payments, call: ModuleCall): object {
  const order = payableOrder(payments, call);
  const number = requiredText(call, 'cardNumber', 23, 'BadCard').replaceAll(' ', '');
  checkCard(number, call);
  const declined = number === DECLINED_CARD;
  const start = { method: 'card', details: { card: number.slice(-4) } } as const;
  const payment = startPayment(
    payments,
    order,
    { ...start, settled: declined ? 'declined' : 'completed' },
    call,
  );
  if (declined) throw new SandboxError('CardDeclined');
  return paymentForm(payment);
}

/** Waits for the merchant, who sees whether the transfer with this reference arrived. */
export function payP2p(payments: Payments, call: ModuleCall): object {
  const order = payableOrder(payments, call);
  const reference = `P${order.id.slice(-10)}-${order.payments.length + 1}`;
  const details = { account: 'DE02120300000000202051', reference };
  return paymentForm(startPayment(payments, order, { method: 'p2p', details, settled: null }, call));
}

/** Waits for the payer, who proves it with the hash of the transaction. */
export function payCrypto(payments: Payments, call: ModuleCall): object {
  const order = payableOrder(payments, call);
  const digest = createHash('sha256').update(`${order.id}:${order.payments.length}`).digest('hex');
  const details = { address: `gate1${digest.slice(0, 38)}` };
  return paymentForm(startPayment(payments, order, { method: 'crypto', details, settled: null }, call));
}

export function confirmCrypto(payments: Payments, call: ModuleCall): object {
  const payment = pendingPayment(payments, call, 'crypto');
  const txHash = requiredText(call, 'txHash', 66, 'BadTxHash').toLowerCase().replace(/^0x/, '');
  if (!TX_HASH.test(txHash)) throw new SandboxError('BadTxHash', '64 hexadecimal digits');
  if (payments.txHashes.has(txHash)) throw new SandboxError('TxHashUsed');
  endPayment(payment, 'completed', call, txHash);
  return paymentForm(payment);
}

export function cancelP2p(payments: Payments, call: ModuleCall): object {
  return cancel(pendingPayment(payments, call, 'p2p'), call);
}

export function cancelCrypto(payments: Payments, call: ModuleCall): object {
  return cancel(pendingPayment(payments, call, 'crypto'), call);
}

function cancel(payment: Payment, call: ModuleCall): object {
  endPayment(payment, 'cancelled', call);
  return paymentForm(payment);
}

function payableOrder(payments: Payments, call: ModuleCall): PaymentOrder {
  const order = opened(payments.byCode, call);
  const state = stateOf(order, call.nowMs);
  if (state === 'open') return order;
  if (state === 'pending') throw new SandboxError('PaymentPending');
  throw new SandboxError(state === 'paid' ? 'PaymentOrderPaid' : 'PaymentOrderExpired');
}

function pendingPayment(payments: Payments, call: ModuleCall, method: PaymentMethod): Payment {
  const order = opened(payments.byCode, call);
  const state = stateOf(order, call.nowMs);
  if (state === 'paid') throw new SandboxError('PaymentOrderPaid');
  if (state === 'expired') throw new SandboxError('PaymentOrderExpired');
  const payment = waitingPayment(order);
  if (payment === undefined || payment.method !== method) throw new SandboxError('NoPendingPayment');
  return payment;
}

function checkCard(number: string, call: ModuleCall): void {
  if (!CARD.test(number) || !hasCheckDigit(number)) throw new SandboxError('BadCard', 'cardNumber');
  const expiry = requiredText(call, 'expiry', 5, 'BadCard');
  const [, month = '', year = ''] = /^(0[1-9]|1[0-2])\/([0-9]{2})$/.exec(expiry) ?? [];
  if (month === '') throw new SandboxError('BadCard', 'expiry is MM/YY');
  if (Date.UTC(2000 + Number(year), Number(month)) <= call.nowMs)
    throw new SandboxError('BadCard', 'expired');
  if (!/^[0-9]{3,4}$/.test(requiredText(call, 'cvc', 4, 'BadCard'))) throw new SandboxError('BadCard', 'cvc');
}

/** The check digit of ISO/IEC 7812-1 (Luhn). */
function hasCheckDigit(number: string): boolean {
  let sum = 0;
  for (const [at, digit] of [...number].reverse().entries()) {
    const value = at % 2 === 1 ? Number(digit) * 2 : Number(digit);
    sum += value > 9 ? value - 9 : value;
  }
  return sum % 10 === 0;
}
