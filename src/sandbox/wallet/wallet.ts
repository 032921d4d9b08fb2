/**
 * The sandbox wallet module: the seven endpoints behind the wallet tools (docs/sandbox.md). An account is opened, with
 * its opening credits, when its user signs up, or by the first call.
 */

import type { ModuleCall } from '../call-arguments.ts';
import type { ModuleEndpoint, SandboxModule } from '../module.ts';
import type { SandboxRecord } from '../record-log.ts';
import type { WalletAccount } from './account.ts';
import { accountOf } from './account-opening.ts';
import type { Ledger, WalletRecord } from './ledger.ts';
import { transfer, withdraw } from './orders.ts';
import { addresses, balances, history, info, transaction } from './reads.ts';

export function createWallet(ledger: Ledger): SandboxModule {
  const endpoint = (
    method: 'GET' | 'POST',
    path: string,
    handle: (account: WalletAccount, call: ModuleCall, ledger: Ledger) => object,
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
    signedUp: (call) => {
      accountOf(ledger, call);
    },
    apply: (record: SandboxRecord) => ledger.apply(record as WalletRecord),
  };
}
