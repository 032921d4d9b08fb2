/** The sandbox modules together: they share the wallet's books, so that all money is booked once. */
import { type ChatModule, createChat } from './chat/chat.ts';
import { createCore } from './core.ts';
import { createMarkets } from './markets/markets.ts';
import type { SandboxModule } from './module.ts';
import { createPayments } from './payments/payments.ts';
import { Ledger } from './wallet/ledger.ts';
import { createWallet } from './wallet/wallet.ts';

/** Names of the sandbox modules. */
export const SANDBOX_MODULES = ['wallet', 'chat', 'markets', 'payments', 'core'] as const;
export type SandboxModuleName = (typeof SANDBOX_MODULES)[number];

interface SandboxModules {
  readonly byName: ReadonlyMap<string, SandboxModule>;
  readonly chat: ChatModule;
}

export function createModules(): SandboxModules {
  const ledger = new Ledger();
  const chat = createChat();
  const modules: Record<SandboxModuleName, SandboxModule> = {
    wallet: createWallet(ledger),
    chat,
    markets: createMarkets(ledger),
    payments: createPayments(ledger),
    core: createCore(),
  };
  return { byName: new Map(Object.entries(modules)), chat };
}
