/** The merchant's side of payments: opening payment orders, following them, confirming what arrived by bank transfer. */
import { toIso } from '../../domain/time.ts';
import {
  boundOf,
  callerOf,
  limitOf,
  type ModuleCall,
  optionalId,
  optionalText,
  pageOf,
  requiredId,
} from '../call-arguments.ts';
import { makeCode } from '../codes.ts';
import { SandboxError } from '../errors.ts';
import { accountOf } from '../wallet/account-opening.ts';
import { formatAmount, readAmount, readCurrency } from '../wallet/currencies.ts';
import { commitPayments, type Payment, type PaymentOrder, type Payments, stateOf } from './state.ts';
import { endPayment, paymentForm } from './steps.ts';
import { terminalsOf } from './terminals.ts';

const DESCRIPTION_CHARACTERS_MAX = 256;
const LIFETIME_SECONDS = 3_600;
const LIFETIME_MIN_SECONDS = 60;
const LIFETIME_MAX_SECONDS = 604_800;
/** Unpaid orders of one merchant. */
const OPEN_MAX = 1_000;
const STATES = ['waiting', 'completed', 'cancelled', 'declined'] as const;

export function createPaymentOrder(payments: Payments, call: ModuleCall): object {
  const { userId } = accountOf(payments.ledger, call);
  const currency = readCurrency(call.body['currency']);
  const amount = readAmount(call.body['amount'], currency);
  const description = optionalText(call, 'description', DESCRIPTION_CHARACTERS_MAX) ?? null;
  const lifetimeSeconds = readLifetime(call.body['lifetimeSeconds']);
  const externalId = optionalId(call, 'externalId') ?? null;
  const earlier = payments.operations.earlier(userId, externalId, [currency.code, amount.toString()]);
  if (earlier !== undefined) return merchantForm(payments.existingOrder(earlier), call.nowMs);
  const unpaid = [...payments.orders.values()].filter(
    (order) => order.merchantId === userId && ['open', 'pending'].includes(stateOf(order, call.nowMs)),
  );
  if (unpaid.length >= OPEN_MAX) throw new SandboxError('TooManyOrders');
  const orderId = call.tick();
  commitPayments(call, 'orderCreated', {
    tick: orderId,
    utcMs: call.nowMs,
    orderId,
    merchantId: userId,
    code: makeCode(),
    currency: currency.code,
    minor: amount.toString(),
    description,
    externalId,
    expiresMs: call.nowMs + lifetimeSeconds * 1000,
  });
  return merchantForm(payments.existingOrder(orderId), call.nowMs);
}

export function paymentOrderInfo(payments: Payments, call: ModuleCall): object {
  const order = ownOrder(payments, call, call.query.get('id'));
  return { ...merchantForm(order, call.nowMs), payments: order.payments.map(paymentForm) };
}

export function merchantTerminals(_payments: Payments, call: ModuleCall): object {
  return { terminals: terminalsOf(call.query.get('currency')) };
}

/** Payments on the caller's orders, newest first. */
export function listPayments(payments: Payments, call: ModuleCall): object {
  const userId = callerOf(call);
  const wanted = call.query.get('orderId');
  const only = wanted === undefined ? undefined : ownOrder(payments, call, wanted);
  const state = call.query.get('state');
  if (state !== undefined && !STATES.some((one) => one === state))
    throw new SandboxError('BadRequest', `state is one of ${STATES.join(', ')}`);
  const limit = limitOf(call.query, 20, 100);
  const before = boundOf(call, 'before');
  const found = [...payments.payments.values()].reverse().filter((payment) => {
    if (payment.order.merchantId !== userId || (only !== undefined && payment.order !== only)) return false;
    return (
      (state === undefined || payment.state === state) &&
      (before === undefined || BigInt(payment.id) < before)
    );
  });
  const { items, next } = pageOf(found, limit);
  return { payments: items.map(paymentForm), next };
}

export function getPayment(payments: Payments, call: ModuleCall): object {
  return paymentForm(ownPayment(payments, call, call.query.get('id')));
}

/** A bank transfer is not seen by the gate: the merchant says that it arrived. */
export function confirmPayment(payments: Payments, call: ModuleCall): object {
  const payment = ownPayment(payments, call, call.body['paymentId']);
  if (payment.method !== 'p2p' || payment.state !== 'waiting') throw new SandboxError('NoPendingPayment');
  if (stateOf(payment.order, call.nowMs) === 'expired') throw new SandboxError('PaymentOrderExpired');
  endPayment(payment, 'completed', call);
  return paymentForm(payment);
}

function merchantForm(order: PaymentOrder, nowMs: number): object {
  const { id, code, currency, amount, description, externalId, utcMs, expiresMs } = order;
  return {
    id,
    code,
    state: stateOf(order, nowMs),
    currency: currency.code,
    amount: formatAmount(amount, currency),
    description,
    externalId: externalId ?? id,
    dateTime: toIso(utcMs),
    expiresUtc: toIso(expiresMs),
  };
}

function ownOrder(payments: Payments, call: ModuleCall, id: unknown): PaymentOrder {
  const order = payments.orders.get(requiredId(id, 'id'));
  if (order !== undefined && order.merchantId === callerOf(call)) return order;
  throw new SandboxError('UnknownPaymentOrder');
}

function ownPayment(payments: Payments, call: ModuleCall, id: unknown): Payment {
  const payment = payments.payments.get(requiredId(id, 'id of the payment'));
  if (payment !== undefined && payment.order.merchantId === callerOf(call)) return payment;
  throw new SandboxError('UnknownPayment');
}

function readLifetime(value: unknown): number {
  if (value === undefined || value === null) return LIFETIME_SECONDS;
  if (
    typeof value === 'number' &&
    Number.isInteger(value) &&
    value >= LIFETIME_MIN_SECONDS &&
    value <= LIFETIME_MAX_SECONDS
  )
    return value;
  throw new SandboxError(
    'BadRequest',
    `lifetimeSeconds is a whole number from ${LIFETIME_MIN_SECONDS} to ${LIFETIME_MAX_SECONDS}`,
  );
}
