/** The account of a call: opened, with its opening credits, at the sign-up of its user or by the first call. */

import { callerOf, type ModuleCall } from '../call-arguments.ts';
import type { WalletAccount } from './account.ts';
import { CURRENCIES } from './currencies.ts';
import type { Ledger, Opened } from './ledger.ts';

export function accountOf(ledger: Ledger, call: ModuleCall): WalletAccount {
  const userId = callerOf(call);
  const known = ledger.account(userId);
  if (known !== undefined) return known;
  const txIds = [...CURRENCIES.keys()].map(() => call.tick());
  const tick = txIds.at(-1) ?? call.tick();
  const opened: Opened = { module: 'wallet', type: 'opened', tick, userId, utcMs: call.nowMs, txIds };
  call.commit(opened);
  return ledger.existing(userId);
}
