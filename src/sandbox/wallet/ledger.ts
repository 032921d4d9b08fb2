/**
 * The wallet's books: accounts, exact balances and transactions. State changes only by applying a record, so that a
 * replay gives the same books; every record moves money completely or not at all.
 */

import { EventList } from '../events.ts';
import { applying, committing } from '../record-log.ts';
import {
  addressOf,
  blank,
  book,
  currencyOf,
  eventData,
  type Transaction,
  TxType,
  type WalletAccount,
} from './account.ts';
import { CURRENCIES, type Currency, openingBalance } from './currencies.ts';

/** The fields of each record. */
interface WalletRows {
  readonly opened: {
    readonly userId: string;
    readonly utcMs: number;
    /** Ids of the opening credits, one a currency, in the order of `CURRENCIES`. */
    readonly txIds: readonly string[];
  };
  readonly transferred: {
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
  };
  readonly withdrawn: {
    readonly utcMs: number;
    readonly currency: string;
    readonly minor: string;
    readonly feeMinor: string;
    readonly userId: string;
    readonly txId: string;
    readonly externalId: string | null;
    readonly address: string;
    readonly tag: string | null;
  };
}

export const commitWallet = committing<WalletRows>('wallet');

export class Ledger {
  readonly events = new EventList('wallet');
  readonly #accounts = new Map<string, WalletAccount>();
  readonly #addresses = new Set<string>();

  account(userId: string): WalletAccount | undefined {
    return this.#accounts.get(userId);
  }

  /** True if a deposit address belongs to an account of this wallet. */
  ownsAddress(address: string): boolean {
    return this.#addresses.has(address);
  }

  readonly apply = applying<WalletRows>({
    opened: (record) => {
      const { userId, utcMs } = record;
      const account: WalletAccount = {
        userId,
        openedMs: utcMs,
        balances: new Map(),
        held: new Map(),
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
    },
    transferred: (record) => {
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
      const sender = this.existing(fromUserId);
      book(sender, -amount, out);
      if (record.externalId !== null) sender.operations.set(record.externalId, out);
      book(this.existing(toUserId), amount, into);
      this.tell(fromUserId, out, 'TransferCompleted');
      this.tell(toUserId, into, 'TxInWallet');
    },
    withdrawn: (record) => {
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
      const account = this.existing(userId);
      book(account, -(amount + fee), transaction);
      if (record.externalId !== null) account.operations.set(record.externalId, transaction);
      this.tell(userId, transaction, 'TransferCompleted');
    },
  });

  existing(userId: string): WalletAccount {
    const account = this.#accounts.get(userId);
    if (account === undefined) throw new Error(`the log books on the unopened account ${userId}`);
    return account;
  }

  /** Books one side of a settlement of another module, and notifies the user by an event of the given type. */
  post(userId: string, change: bigint, transaction: Transaction, eventType: string): void {
    book(this.existing(userId), change, transaction);
    this.tell(userId, transaction, eventType);
  }

  tell(userId: string, transaction: Transaction, type: string): void {
    const { id: tick, currency } = transaction;
    const { netType } = currency;
    this.events.add({ tick, type, crmId: userId, netType, data: eventData(transaction) });
  }

  /** Holds a part of the balance for an open order; a negative change gives it back. */
  hold(userId: string, currency: Currency, change: bigint): void {
    const { held } = this.existing(userId);
    held.set(currency.code, (held.get(currency.code) ?? 0n) + change);
  }
}
