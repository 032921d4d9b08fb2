/**
 * The wallet's books: accounts, exact balances and transactions. State changes only by applying a record, so that a
 * replay gives the same books; every record moves money completely or not at all.
 */
import { createHash } from 'node:crypto';
import { toIso } from '../domain/time.ts';
import { CURRENCIES, type Currency, formatAmount, openingBalance } from './currencies.ts';
import { EventList } from './events.ts';
import type { SandboxRecord } from './record-log.ts';

/** Numbers of `txType` (spec 2.6 leaves them open). */
export const TxType = { Opening: 1, TransferOut: 2, TransferIn: 3, Withdrawal: 4 } as const;
/** Numbers of `state`. The sandbox has no network to wait for: everything it books is completed. */
export const TxState = { Completed: 2 } as const;

export interface Opened extends SandboxRecord {
  readonly type: 'opened';
  readonly userId: string;
  readonly utcMs: number;
  /** Ids of the opening credits, one a currency, in the order of `CURRENCIES`. */
  readonly txIds: readonly string[];
}

export interface Transferred extends SandboxRecord {
  readonly type: 'transferred';
  readonly utcMs: number;
  readonly currency: string;
  /** Smallest units, decimal. */
  readonly minor: string;
  readonly fromUserId: string;
  readonly toUserId: string;
  readonly outId: string;
  readonly inId: string;
  /** The sender's own number for it; null without one. */
  readonly externalId: string | null;
  readonly tag: string | null;
}

export interface Withdrawn extends SandboxRecord {
  readonly type: 'withdrawn';
  readonly utcMs: number;
  readonly currency: string;
  readonly minor: string;
  readonly feeMinor: string;
  readonly userId: string;
  readonly txId: string;
  readonly externalId: string | null;
  readonly address: string;
  readonly tag: string | null;
}

export type WalletRecord = Opened | Transferred | Withdrawn;

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

export interface Account {
  readonly userId: string;
  readonly openedMs: number;
  readonly balances: Map<string, bigint>;
  /** Oldest first. */
  readonly transactions: Transaction[];
  /** What the user's own numbers (`externalId`) were used for. */
  readonly operations: Map<string, Transaction>;
}

export class Ledger {
  readonly events = new EventList('wallet');
  readonly #accounts = new Map<string, Account>();
  readonly #addresses = new Set<string>();

  account(userId: string): Account | undefined {
    return this.#accounts.get(userId);
  }

  /** Whether a deposit address belongs to an account of this wallet. */
  ownsAddress(address: string): boolean {
    return this.#addresses.has(address);
  }

  apply(record: WalletRecord): void {
    switch (record.type) {
      case 'opened':
        this.#open(record);
        break;
      case 'transferred':
        this.#transfer(record);
        break;
      case 'withdrawn':
        this.#withdraw(record);
        break;
    }
  }

  #open(record: Opened): void {
    const { userId, utcMs } = record;
    const account: Account = {
      userId,
      openedMs: utcMs,
      balances: new Map(),
      transactions: [],
      operations: new Map(),
    };
    this.#accounts.set(userId, account);
    for (const [index, currency] of [...CURRENCIES.values()].entries()) {
      const id = record.txIds[index] ?? record.tick;
      this.#addresses.add(addressOf(userId, currency));
      const amount = openingBalance(currency);
      book(account, amount, { ...blank(id, currency, utcMs), txType: TxType.Opening, amount });
    }
  }

  #transfer(record: Transferred): void {
    const { fromUserId, toUserId, outId, inId, tag, utcMs } = record;
    const currency = currencyOf(record.currency);
    const amount = BigInt(record.minor);
    const shared = { amount, tag, externalId: record.externalId ?? outId };
    const out: Transaction = {
      ...blank(outId, currency, utcMs),
      ...shared,
      txType: TxType.TransferOut,
      partnerInfo: toUserId,
    };
    const into: Transaction = {
      ...blank(inId, currency, utcMs),
      ...shared,
      txType: TxType.TransferIn,
      partnerInfo: fromUserId,
    };
    const sender = this.#existing(fromUserId);
    book(sender, -amount, out);
    if (record.externalId !== null) sender.operations.set(record.externalId, out);
    book(this.#existing(toUserId), amount, into);
    this.events.add({ tick: outId, type: 'TransferCompleted', crmId: fromUserId, data: eventData(out) });
    this.events.add({ tick: inId, type: 'TxInWallet', crmId: toUserId, data: eventData(into) });
  }

  #withdraw(record: Withdrawn): void {
    const { userId, txId, address, tag, utcMs } = record;
    const currency = currencyOf(record.currency);
    const amount = BigInt(record.minor);
    const fee = BigInt(record.feeMinor);
    const transaction: Transaction = {
      ...blank(txId, currency, utcMs),
      txType: TxType.Withdrawal,
      amount,
      fee,
      externalId: record.externalId ?? txId,
      partnerInfo: address,
      tag,
    };
    const account = this.#existing(userId);
    book(account, -(amount + fee), transaction);
    if (record.externalId !== null) account.operations.set(record.externalId, transaction);
    this.events.add({ tick: txId, type: 'TransferCompleted', crmId: userId, data: eventData(transaction) });
  }

  #existing(userId: string): Account {
    const account = this.#accounts.get(userId);
    if (account === undefined) throw new Error(`the log books on the unopened account ${userId}`);
    return account;
  }
}

/** Deposit address of an account: always the same, and nothing to be kept. */
export function addressOf(userId: string, currency: Currency): string {
  const digest = createHash('sha256').update(`${currency.code}:${userId}`).digest('hex');
  return `${currency.code.toLowerCase()}1${digest.slice(0, 38)}`;
}

function currencyOf(code: string): Currency {
  const currency = CURRENCIES.get(code);
  if (currency === undefined) throw new Error(`the log names the unknown currency ${code}`);
  return currency;
}

function blank(id: string, currency: Currency, utcMs: number): Transaction {
  const none = { partnerInfo: null, tag: null };
  return { id, currency, txType: 0, amount: 0n, fee: 0n, externalId: id, utcMs, ...none };
}

function book(account: Account, change: bigint, transaction: Transaction): void {
  const { code } = transaction.currency;
  account.balances.set(code, (account.balances.get(code) ?? 0n) + change);
  account.transactions.push(transaction);
}

/** The fields of spec 2.6. `amount` and `fee` are JSON numbers with the digits of the books. */
function eventData(transaction: Transaction): string {
  const { id, currency, txType, externalId, partnerInfo, tag, utcMs } = transaction;
  const head = { id, tick: id, currency: currency.code, txType, state: TxState.Completed };
  const tail = { externalId, appId: '0', partnerInfo, tag, dateTime: toIso(utcMs) };
  const amount = formatAmount(transaction.amount, currency);
  const fee = formatAmount(transaction.fee, currency);
  return `${JSON.stringify(head).slice(0, -1)},"amount":${amount},"fee":${fee},${JSON.stringify(tail).slice(1)}`;
}
