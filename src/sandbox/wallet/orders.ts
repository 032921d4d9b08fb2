/**
 * Orders that move money: transfers to other users and withdrawals. The caller's own number makes a repeated one
 * harmless.
 */

import { type ModuleCall, optionalId, optionalText, requiredId, requiredText } from '../call-arguments.ts';
import { SandboxError } from '../errors.ts';
import { available, type Transaction, TxType, type WalletAccount } from './account.ts';
import { formatAmount, readAmount, readCurrency } from './currencies.ts';
import { commitWallet, type Ledger } from './ledger.ts';
import { wireForm } from './reads.ts';

const NOTE_CHARACTERS_MAX = 256;
const ADDRESS = /^[A-Za-z0-9][A-Za-z0-9:._-]{3,255}$/;

export function transfer(account: WalletAccount, call: ModuleCall, ledger: Ledger): object {
  const currency = readCurrency(call.body['currency']);
  const amount = readAmount(call.body['amount'], currency);
  const toUserId = requiredId(call.body['toUserId'], 'toUserId');
  const tag = optionalText(call, 'tag', NOTE_CHARACTERS_MAX) ?? null;
  const externalId = optionalId(call, 'externalId') ?? null;
  if (toUserId === account.userId) throw new SandboxError('SameAccount');
  if (ledger.account(toUserId) === undefined)
    throw new SandboxError('UnknownReceiver', 'no user with this id has an account here');
  const earlier = repeated(account, externalId, {
    txType: TxType.TransferOut,
    currency,
    amount,
    partnerInfo: toUserId,
  });
  if (earlier !== undefined) return outcome(account, earlier);
  if (available(account, currency) < amount) throw new SandboxError('InsufficientFunds');
  const outId = call.tick();
  const inId = call.tick();
  commitWallet(call, 'transferred', {
    tick: inId,
    utcMs: call.nowMs,
    currency: currency.code,
    minor: amount.toString(),
    fromUserId: account.userId,
    toUserId,
    outId,
    inId,
    externalId,
    tag,
  });
  return outcome(account, account.transactions.at(-1));
}

export function withdraw(account: WalletAccount, call: ModuleCall, ledger: Ledger): object {
  const currency = readCurrency(call.body['currency']);
  const amount = readAmount(call.body['amount'], currency);
  const address = requiredText(call, 'address', 256, 'BadAddress');
  const tag = optionalText(call, 'tag', NOTE_CHARACTERS_MAX) ?? null;
  const externalId = optionalId(call, 'externalId') ?? null;
  if (!ADDRESS.test(address)) throw new SandboxError('BadAddress', '4 to 256 letters, digits, : . _ -');
  const netType = call.body['netType'] ?? currency.netType;
  if (netType !== currency.netType)
    throw new SandboxError('BadRequest', `netType of ${currency.code} is ${currency.netType}`);
  if (amount < currency.withdrawMin)
    throw new SandboxError('BadAmount', `at least ${formatAmount(currency.withdrawMin, currency)}`);
  if (ledger.ownsAddress(address)) throw new SandboxError('OwnAddress');
  const earlier = repeated(account, externalId, {
    txType: TxType.Withdrawal,
    currency,
    amount,
    partnerInfo: address,
  });
  if (earlier !== undefined) return outcome(account, earlier);
  const whole = amount + currency.withdrawFee;
  if (available(account, currency) < whole)
    throw new SandboxError('InsufficientFunds', `${formatAmount(whole, currency)} with the fee`);
  const txId = call.tick();
  commitWallet(call, 'withdrawn', {
    tick: txId,
    utcMs: call.nowMs,
    currency: currency.code,
    minor: amount.toString(),
    feeMinor: currency.withdrawFee.toString(),
    userId: account.userId,
    txId,
    externalId,
    address,
    tag,
  });
  return outcome(account, account.transactions.at(-1));
}

/** The operation that the caller's own number stands for already; refused when it was another one. */
function repeated(
  account: WalletAccount,
  externalId: string | null,
  wanted: Pick<Transaction, 'txType' | 'currency' | 'amount' | 'partnerInfo'>,
): Transaction | undefined {
  const earlier = externalId === null ? undefined : account.operations.get(externalId);
  if (earlier === undefined) return undefined;
  const same =
    earlier.txType === wanted.txType &&
    earlier.currency === wanted.currency &&
    earlier.amount === wanted.amount &&
    earlier.partnerInfo === wanted.partnerInfo;
  if (!same) throw new SandboxError('OperationConflict');
  return earlier;
}

/** A booked operation and what the account holds now. */
function outcome(account: WalletAccount, transaction: Transaction | undefined): object {
  if (transaction === undefined) throw new Error('a booked transaction is missing');
  const { currency } = transaction;
  const balance = formatAmount(account.balances.get(currency.code) ?? 0n, currency);
  return { ...wireForm(transaction), balance };
}
