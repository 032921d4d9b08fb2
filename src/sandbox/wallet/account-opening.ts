/** The account of a call: opened, with its opening credits, at the sign-up of its user or by the first call. */

import { callerOf, type ModuleCall } from '../call-arguments.ts';
import type { WalletAccount } from './account.ts';
import { CURRENCIES } from './currencies.ts';
import { commitWallet, type Ledger } from './ledger.ts';

export function accountOf(ledger: Ledger, call: ModuleCall): WalletAccount {
  const userId = callerOf(call);
  const known = ledger.account(userId);
  if (known !== undefined) return known;
  const txIds = [...CURRENCIES.keys()].map(() => call.tick());
  const tick = txIds.at(-1) ?? call.tick();
  commitWallet(call, 'opened', { tick, userId, utcMs: call.nowMs, txIds });
  return ledger.existing(userId);
}
