/** Built-in resources. The gateway's own are public facts; those of a module need a session like the tools do. */
import type { ResourceRow } from '../tool.ts';

export const BUILT_IN_RESOURCES: Readonly<Record<string, ResourceRow>> = {
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
  },
  'gatehouse://wallet/balance': {
    endpoint: 'wallet:/wallet/v1/balance/get',
    name: 'Wallet balance',
    description: 'The balance of the logged-in user in every currency, as exact decimal strings.',
    mimeType: 'application/json',
    appScope: true,
  },
};
