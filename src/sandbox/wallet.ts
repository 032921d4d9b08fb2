/**
 * The stand-in wallet module: the seven endpoints behind the wallet tools (docs/modules.md). An account is opened, with
 * its opening credits, by the first call of its user.
 */
import { CURRENCIES } from './currencies.ts';
import { type Account, Ledger, type Opened, type WalletRecord } from './ledger.ts';
import { callerOf, type ModuleCall, type ModuleEndpoint, type SandboxModule } from './module.ts';
import type { SandboxRecord } from './record-log.ts';
import { transfer, withdraw } from './wallet-orders.ts';
import { addresses, balances, history, info, transaction } from './wallet-reads.ts';

export function createWallet(): SandboxModule {
  const ledger = new Ledger();
  const endpoint = (
    method: 'GET' | 'POST',
    path: string,
    handle: (account: Account, call: ModuleCall, ledger: Ledger) => object,
  ): ModuleEndpoint => ({
    method,
    path,
    calledFor: 'user',
    handle: (call) => handle(accountOf(ledger, call), call, ledger),
  });
  return {
    name: 'wallet',
    endpoints: [
      endpoint('GET', '/wallet/v1/info/get', info),
      endpoint('GET', '/wallet/v1/balance/get', balances),
      endpoint('GET', '/wallet/v1/transactions/list', history),
      endpoint('GET', '/wallet/v1/transactions/get', transaction),
      endpoint('GET', '/wallet/v1/addresses/list', addresses),
      endpoint('POST', '/wallet/v1/transfers/create', transfer),
      endpoint('POST', '/wallet/v1/withdrawals/create', withdraw),
    ],
    events: ledger.events,
    apply: (record: SandboxRecord) => ledger.apply(record as WalletRecord),
  };
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
