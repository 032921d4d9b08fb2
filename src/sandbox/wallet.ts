/**
 * The stand-in wallet module: the seven endpoints behind the wallet tools (docs/modules.md). An account is opened, with
 * its opening credits, by the first call of its user.
 */
import { toIso } from '../domain/time.ts';
import { CURRENCIES, formatAmount, readAmount, readCurrency } from './currencies.ts';
import { SandboxError } from './errors.ts';
import {
  type Account,
  addressOf,
  Ledger,
  type Opened,
  type Transaction,
  type Transferred,
  TxState,
  TxType,
  type WalletRecord,
  type Withdrawn,
} from './ledger.ts';
import {
  callerOf,
  limitOf,
  type ModuleCall,
  type ModuleEndpoint,
  optionalText,
  requiredId,
  requiredText,
  type SandboxModule,
} from './module.ts';
import type { SandboxRecord } from './record-log.ts';

const NOTE_CHARACTERS_MAX = 256;
const TAG_CHARACTERS_MAX = 64;
const ADDRESS = /^[A-Za-z0-9][A-Za-z0-9:._-]{7,127}$/;

export function createWallet(): SandboxModule {
  const ledger = new Ledger();
  const endpoints: ModuleEndpoint[] = [
    get('/wallet/v1/info/get', (call) => infoOf(accountOf(ledger, call))),
    get('/wallet/v1/balance/get', (call) => balancesOf(accountOf(ledger, call), call.query.get('currency'))),
    get('/wallet/v1/transactions/list', (call) => history(accountOf(ledger, call), call)),
    get('/wallet/v1/transactions/get', (call) => transactionOf(accountOf(ledger, call), call)),
    get('/wallet/v1/addresses/list', (call) =>
      addressesOf(accountOf(ledger, call), call.query.get('currency')),
    ),
    post('/wallet/v1/transfers/create', (call) => transfer(ledger, call)),
    post('/wallet/v1/withdrawals/create', (call) => withdraw(ledger, call)),
  ];
  return {
    name: 'wallet',
    endpoints,
    events: ledger.events,
    apply: (record: SandboxRecord) => ledger.apply(record as WalletRecord),
  };
}

function get(path: string, handle: ModuleEndpoint['handle']): ModuleEndpoint {
  return { method: 'GET', path, calledFor: 'user', handle };
}

function post(path: string, handle: ModuleEndpoint['handle']): ModuleEndpoint {
  return { method: 'POST', path, calledFor: 'user', handle };
}

/** The caller's account, opened now if this is the first call. */
function accountOf(ledger: Ledger, call: ModuleCall): Account {
  const userId = callerOf(call);
  const known = ledger.account(userId);
  if (known !== undefined) return known;
  const txIds = [...CURRENCIES.keys()].map(() => call.tick());
  const tick = txIds.at(-1) ?? call.tick();
  const opened: Opened = { module: 'wallet', type: 'opened', tick, userId, utcMs: call.nowMs, txIds };
  call.commit(opened);
  const account = ledger.account(userId);
  if (account === undefined) throw new Error('an opened account is missing');
  return account;
}

function infoOf(account: Account): object {
  return {
    userId: account.userId,
    utcCreate: toIso(account.openedMs),
    transactions: account.transactions.length,
    currencies: [...CURRENCIES.values()].map((currency) => ({
      currency: currency.code,
      name: currency.name,
      precision: currency.precision,
      withdrawFee: formatAmount(currency.withdrawFee, currency),
    })),
  };
}

function balancesOf(account: Account, code: string | undefined): object {
  const wanted = code === undefined ? [...CURRENCIES.values()] : [readCurrency(code)];
  return {
    balances: wanted.map((currency) => ({
      currency: currency.code,
      balance: formatAmount(account.balances.get(currency.code) ?? 0n, currency),
      precision: currency.precision,
    })),
  };
}

/** Newest first; `after` is the `next` of the page before. */
function history(account: Account, call: ModuleCall): object {
  const code = call.query.get('currency');
  const only = code === undefined ? undefined : readCurrency(code).code;
  const after = call.query.get('after');
  const limit = limitOf(call.query, 20, 100);
  const olderThan = after === undefined ? undefined : BigInt(requiredId(after, 'after'));
  const found: Transaction[] = [];
  for (let index = account.transactions.length - 1; index >= 0 && found.length <= limit; index -= 1) {
    const transaction = account.transactions[index];
    if (transaction === undefined || (only !== undefined && transaction.currency.code !== only)) continue;
    if (olderThan === undefined || BigInt(transaction.id) < olderThan) found.push(transaction);
  }
  const page = found.slice(0, limit);
  return { transactions: page.map(wireForm), next: found.length > limit ? (page.at(-1)?.id ?? null) : null };
}

function transactionOf(account: Account, call: ModuleCall): object {
  const id = requiredId(call.query.get('id'), 'id');
  const transaction = account.transactions.find((candidate) => candidate.id === id);
  if (transaction === undefined) throw new SandboxError('UnknownTransaction');
  return wireForm(transaction);
}

function addressesOf(account: Account, code: string | undefined): object {
  const wanted = code === undefined ? [...CURRENCIES.values()] : [readCurrency(code)];
  return {
    addresses: wanted.map((currency) => ({
      currency: currency.code,
      address: addressOf(account.userId, currency),
    })),
  };
}

function transfer(ledger: Ledger, call: ModuleCall): object {
  const account = accountOf(ledger, call);
  const currency = readCurrency(call.body['currency']);
  const amount = readAmount(call.body['amount'], currency);
  const toUserId = requiredId(call.body['toUserId'], 'toUserId');
  const note = optionalText(call, 'note', NOTE_CHARACTERS_MAX) ?? null;
  if (toUserId === account.userId) throw new SandboxError('SameAccount');
  if (ledger.account(toUserId) === undefined) throw new SandboxError('UnknownReceiver');
  if ((account.balances.get(currency.code) ?? 0n) < amount) throw new SandboxError('InsufficientFunds');
  const outId = call.tick();
  const inId = call.tick();
  const record: Transferred = {
    module: 'wallet',
    type: 'transferred',
    tick: inId,
    utcMs: call.nowMs,
    currency: currency.code,
    minor: amount.toString(),
    fromUserId: account.userId,
    toUserId,
    outId,
    inId,
    note,
  };
  call.commit(record);
  return newest(account);
}

function withdraw(ledger: Ledger, call: ModuleCall): object {
  const account = accountOf(ledger, call);
  const currency = readCurrency(call.body['currency']);
  const amount = readAmount(call.body['amount'], currency);
  const address = requiredText(call, 'address', 128, 'BadAddress');
  const tag = optionalText(call, 'tag', TAG_CHARACTERS_MAX) ?? null;
  if (!ADDRESS.test(address)) throw new SandboxError('BadAddress', '8 to 128 letters, digits, : . _ -');
  if (ledger.ownsAddress(address)) throw new SandboxError('OwnAddress');
  const whole = amount + currency.withdrawFee;
  if ((account.balances.get(currency.code) ?? 0n) < whole)
    throw new SandboxError('InsufficientFunds', `${formatAmount(whole, currency)} with the fee`);
  const txId = call.tick();
  const record: Withdrawn = {
    module: 'wallet',
    type: 'withdrawn',
    tick: txId,
    utcMs: call.nowMs,
    currency: currency.code,
    minor: amount.toString(),
    feeMinor: currency.withdrawFee.toString(),
    userId: account.userId,
    txId,
    address,
    tag,
  };
  call.commit(record);
  return newest(account);
}

/** The transaction that was just booked, with the balance it left. */
function newest(account: Account): object {
  const transaction = account.transactions.at(-1);
  if (transaction === undefined) throw new Error('a booked transaction is missing');
  const { currency } = transaction;
  const balance = formatAmount(account.balances.get(currency.code) ?? 0n, currency);
  return { ...wireForm(transaction), balance };
}

function wireForm(transaction: Transaction): object {
  const { id, currency, txType, externalId, partnerInfo, tag, note, utcMs } = transaction;
  const incoming = txType === TxType.Opening || txType === TxType.TransferIn;
  return {
    id,
    tick: id,
    currency: currency.code,
    txType,
    state: TxState.Completed,
    direction: incoming ? 'in' : 'out',
    amount: formatAmount(transaction.amount, currency),
    fee: formatAmount(transaction.fee, currency),
    externalId,
    appId: '0',
    partnerInfo,
    tag,
    note,
    dateTime: toIso(utcMs),
  };
}
