/** The sandbox modules together: they share the wallet's books, so that all money is booked once. */
import { type ChatModule, createChat } from './chat/chat.ts';
import { CHAT_SCHEMAS } from './chat/interface.ts';
import { createContacts } from './contacts/contacts.ts';
import { createCore } from './core/core.ts';
import { CORE_SCHEMAS } from './core/interface.ts';
import { MARKETS_SCHEMAS } from './markets/interface.ts';
import { createMarkets } from './markets/markets.ts';
import type { SandboxModule } from './module.ts';
import { PAYMENTS_SCHEMAS } from './payments/interface.ts';
import { createPayments } from './payments/payments.ts';
import { type JsonSchema, SHARED_SCHEMAS } from './schemas.ts';
import type { SandboxModuleName } from './start.ts';
import { WALLET_SCHEMAS } from './wallet/interface.ts';
import { Ledger } from './wallet/ledger.ts';
import { createWallet } from './wallet/wallet.ts';

/** Schemas by their names in docs/modules.openapi.json. */
export const SANDBOX_SCHEMAS: Readonly<Record<string, JsonSchema>> = {
  ...SHARED_SCHEMAS,
  ...WALLET_SCHEMAS,
  ...MARKETS_SCHEMAS,
  ...PAYMENTS_SCHEMAS,
  ...CHAT_SCHEMAS,
  ...CORE_SCHEMAS,
};

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
    contacts: createContacts(),
  };
  return { byName: new Map(Object.entries(modules)), chat };
}
