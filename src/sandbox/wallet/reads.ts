/** Reads of a wallet account: overview, balances, history, addresses. */
import { toIso } from '../../domain/time.ts';
import { boundOf, limitOf, type ModuleCall, pageOf, requiredId } from '../call-arguments.ts';
import { SandboxError } from '../errors.ts';
import { addressOf, available, INCOMING, type Transaction, TxState, type WalletAccount } from './account.ts';
import { CURRENCIES, type Currency, formatAmount, readCurrency } from './currencies.ts';

export function info(account: WalletAccount): object {
  return {
    userId: account.userId,
    utcCreate: toIso(account.openedMs),
    transactions: account.transactions.length,
    currencies: [...CURRENCIES.values()].map((currency) => ({
      currency: currency.code,
      name: currency.name,
      precision: currency.precision,
      netType: currency.netType,
      transferMin: formatAmount(1n, currency),
      transferFee: formatAmount(0n, currency),
      withdrawMin: formatAmount(currency.withdrawMin, currency),
      withdrawFee: formatAmount(currency.withdrawFee, currency),
    })),
  };
}

export function balances(account: WalletAccount, call: ModuleCall): object {
  const code = call.query.get('currency');
  const wanted = code === undefined ? [...CURRENCIES.values()] : [readCurrency(code)];
  return {
    balances: wanted.map((currency) => ({
      currency: currency.code,
      ...holdings(account, currency),
      precision: currency.precision,
    })),
  };
}

function holdings(account: WalletAccount, currency: Currency): object {
  return {
    balance: formatAmount(account.balances.get(currency.code) ?? 0n, currency),
    available: formatAmount(available(account, currency), currency),
    locked: formatAmount(account.held.get(currency.code) ?? 0n, currency),
  };
}

/** Newest first. `before` continues with older ones (`next` of the page before), `after` keeps to newer ones. */
export function history(account: WalletAccount, call: ModuleCall): object {
  const code = call.query.get('currency');
  const only = code === undefined ? undefined : readCurrency(code).code;
  const limit = limitOf(call.query, 20, 100);
  const olderThan = boundOf(call, 'before');
  const newerThan = boundOf(call, 'after');
  const found: Transaction[] = [];
  for (let index = account.transactions.length - 1; index >= 0 && found.length <= limit; index -= 1) {
    const transaction = account.transactions[index];
    if (transaction === undefined || (only !== undefined && transaction.currency.code !== only)) continue;
    const id = BigInt(transaction.id);
    if (newerThan !== undefined && id <= newerThan) break;
    if (olderThan === undefined || id < olderThan) found.push(transaction);
  }
  const { items, next } = pageOf(found, limit);
  return { transactions: items.map(wireForm), next };
}

export function transaction(account: WalletAccount, call: ModuleCall): object {
  const id = requiredId(call.query.get('id'), 'id');
  const found = account.transactions.find((candidate) => candidate.id === id);
  if (found === undefined) throw new SandboxError('UnknownTransaction');
  return wireForm(found);
}

export function addresses(account: WalletAccount, call: ModuleCall): object {
  const code = call.query.get('currency');
  const wanted = code === undefined ? [...CURRENCIES.values()] : [readCurrency(code)];
  return {
    addresses: wanted.map((currency) => ({
      currency: currency.code,
      netType: currency.netType,
      address: addressOf(account.userId, currency),
    })),
  };
}

/** A transaction as the wallet's answers show it: amounts are decimal strings. */
export function wireForm(transaction: Transaction): object {
  const { id, currency, txType, externalId, partnerInfo, tag, utcMs } = transaction;
  return {
    id,
    tick: id,
    currency: currency.code,
    txType,
    state: TxState.Completed,
    direction: INCOMING.has(txType) ? 'in' : 'out',
    amount: formatAmount(transaction.amount, currency),
    fee: formatAmount(transaction.fee, currency),
    externalId,
    appId: '0',
    partnerInfo,
    tag,
    dateTime: toIso(utcMs),
  };
}
