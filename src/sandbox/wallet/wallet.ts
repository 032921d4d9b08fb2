/**
 * The sandbox wallet module: the seven endpoints behind the wallet tools (docs/sandbox.md). An account is opened, with
 * its opening credits, when its user signs up, or by the first call.
 */

import type { ModuleCall } from '../call-arguments.ts';
import { endpointOf, type ModuleEndpoint, type SandboxModule } from '../module.ts';
import type { WalletAccount } from './account.ts';
import { accountOf } from './account-opening.ts';
import { WALLET_ENDPOINTS } from './interface.ts';
import type { Ledger } from './ledger.ts';
import { transfer, withdraw } from './orders.ts';
import { addresses, balances, history, info, transaction } from './reads.ts';

export function createWallet(ledger: Ledger): SandboxModule {
  const endpoint = (
    key: keyof typeof WALLET_ENDPOINTS,
    handle: (account: WalletAccount, call: ModuleCall, ledger: Ledger) => object,
  ): ModuleEndpoint =>
    endpointOf('wallet', WALLET_ENDPOINTS, key, 'user', (call) =>
      handle(accountOf(ledger, call), call, ledger),
    );
  return {
    name: 'wallet',
    endpoints: [
      endpoint('GET info/get', info),
      endpoint('GET balance/get', balances),
      endpoint('GET transactions/list', history),
      endpoint('GET transactions/get', transaction),
      endpoint('GET addresses/list', addresses),
      endpoint('POST transfers/create', transfer),
      endpoint('POST withdrawals/create', withdraw),
    ],
    events: ledger.events,
    signedUp: (call) => {
      accountOf(ledger, call);
    },
    apply: ledger.apply,
  };
}
