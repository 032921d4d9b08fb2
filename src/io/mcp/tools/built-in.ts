/**
 * The catalog without configuration: groups of tools, and resources. Resources of the gateway are public; those of a module
 * need a session, as tools do.
 */
import type { BuiltInRows } from '../catalog.ts';
import type { ResourceRow } from '../tool.ts';
import { CHAT_READ_TOOLS } from './chat.ts';
import { CHAT_ANONYMOUS_TOOLS } from './chat-anonymous.ts';
import { CHAT_CHANGE_TOOLS } from './chat-changes.ts';
import { GATEWAY_TOOLS } from './gateway.ts';
import { MARKET_TOOLS } from './markets.ts';
import { ORDER_TOOLS, ROOM_TOOLS } from './orders.ts';
import { PAYMENT_TOOLS, PAYORDER_TOOLS } from './payments.ts';
import { WALLET_TOOLS } from './wallet.ts';

const RESOURCES: Readonly<Record<string, ResourceRow>> = {
  'gatehouse://gateway/info': {
    endpoint: 'gateway:/auth/v1/get_info',
    name: 'Gateway information',
    description: 'Project, version and present time of this gateway, as GET /auth/v1/get_info answers.',
    mimeType: 'application/json',
    sessionScope: false,
  },
  'gatehouse://wallet/info': {
    endpoint: 'wallet:/wallet/v1/info/get',
    name: 'Wallet overview',
    description: 'Currencies, decimal places, fees and smallest amounts of the wallet of the logged-in user.',
    mimeType: 'application/json',
    appScope: true,
    proof: 'personal',
  },
  'gatehouse://wallet/balance': {
    endpoint: 'wallet:/wallet/v1/balance/get',
    name: 'Wallet balance',
    description: 'The balance of the logged-in user in every currency, as exact decimal strings.',
    mimeType: 'application/json',
    appScope: true,
    proof: 'personal',
  },
};

/** Groups of spec 2.4, whose table is printed from them. */
export const TOOL_GROUPS = {
  Gateway: GATEWAY_TOOLS,
  Wallet: WALLET_TOOLS,
  Markets: MARKET_TOOLS,
  'Trading rooms': ROOM_TOOLS,
  Orders: ORDER_TOOLS,
  'Payment orders (merchant)': PAYORDER_TOOLS,
  'Payment gate (capability)': PAYMENT_TOOLS,
  'Chat (session mode)': { ...CHAT_READ_TOOLS, ...CHAT_CHANGE_TOOLS },
  'Chat (anonymous capability)': CHAT_ANONYMOUS_TOOLS,
};

export const BUILT_IN: BuiltInRows = {
  tools: Object.assign({}, ...Object.values(TOOL_GROUPS)) as BuiltInRows['tools'],
  resources: RESOURCES,
};
