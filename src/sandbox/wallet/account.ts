/**
 * One account of the wallet: exact balances, what is held back for open orders, and its transactions in the forms that
 * replies and events show. It changes only while a record is applied.
 */
import { createHash } from 'node:crypto';
import { toIso } from '../../domain/time.ts';
import { CURRENCIES, type Currency, formatAmount } from './currencies.ts';

/** Numbers of `txType` (spec 2.6 leaves them open). */
export const TxType = {
  Opening: 1,
  TransferOut: 2,
  TransferIn: 3,
  Withdrawal: 4,
  ExchangeOut: 5,
  ExchangeIn: 6,
  PaymentIn: 7,
  /** Types in events of orders only; the books hold what an order trades. */
  OrderToBuy: 8,
  OrderToSell: 9,
} as const;
/** Numbers of `state`. The sandbox has no network to wait for: everything it books is completed. */
export const TxState = { Completed: 2 } as const;

/** Types of incoming transactions; all others are outgoing. */
export const INCOMING: ReadonlySet<number> = new Set([
  TxType.Opening,
  TxType.TransferIn,
  TxType.ExchangeIn,
  TxType.PaymentIn,
]);

export interface Transaction {
  readonly id: string;
  readonly currency: Currency;
  readonly txType: number;
  readonly amount: bigint;
  readonly fee: bigint;
  /** The number the sender gave the operation, else the sender's transaction id; the same on both sides. */
  readonly externalId: string;
  readonly partnerInfo: string | null;
  readonly tag: string | null;
  readonly utcMs: number;
}

export interface WalletAccount {
  readonly userId: string;
  readonly openedMs: number;
  /** Whole holdings, held ones included. */
  readonly balances: Map<string, bigint>;
  /** The part of a balance that open orders hold. */
  readonly held: Map<string, bigint>;
  /** Oldest first. */
  readonly transactions: Transaction[];
  /** Transactions by the user's own numbers (`externalId`). */
  readonly operations: Map<string, Transaction>;
}

export function available(account: WalletAccount, currency: Currency): bigint {
  return (account.balances.get(currency.code) ?? 0n) - (account.held.get(currency.code) ?? 0n);
}

/** Deposit address of an account: always the same, and nothing to be kept. */
export function addressOf(userId: string, currency: Currency): string {
  const digest = createHash('sha256').update(`${currency.code}:${userId}`).digest('hex');
  return `${currency.code.toLowerCase()}1${digest.slice(0, 38)}`;
}

export function currencyOf(code: string): Currency {
  const currency = CURRENCIES.get(code);
  if (currency === undefined) throw new Error(`the log names the unknown currency ${code}`);
  return currency;
}

export function blank(id: string, currency: Currency, utcMs: number): Transaction {
  const none = { partnerInfo: null, tag: null };
  return { id, currency, txType: 0, amount: 0n, fee: 0n, externalId: id, utcMs, ...none };
}

export function book(account: WalletAccount, change: bigint, transaction: Transaction): void {
  const { code } = transaction.currency;
  account.balances.set(code, (account.balances.get(code) ?? 0n) + change);
  account.transactions.push(transaction);
}

export function eventData(transaction: Transaction): string {
  return eventOf({ ...transaction, tick: transaction.id, state: TxState.Completed });
}

/** The fields of spec 2.6. `amount` and `fee` are JSON numbers with the digits of the books. */
export function eventOf(event: Transaction & { readonly tick: string; readonly state: number }): string {
  const { id, tick, currency, txType, state, externalId, partnerInfo, tag, utcMs } = event;
  const head = { id, tick, currency: currency.code, txType, state };
  const tail = { externalId, appId: '0', partnerInfo, tag, dateTime: toIso(utcMs) };
  const amount = formatAmount(event.amount, currency);
  const fee = formatAmount(event.fee, currency);
  return `${JSON.stringify(head).slice(0, -1)},"amount":${amount},"fee":${fee},${JSON.stringify(tail).slice(1)}`;
}
