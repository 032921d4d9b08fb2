/** Tells modules that an account was removed (docs/modules.md, "Accounts"). A call is repeated until the module answers 2xx. */
import type { AccountEventPort } from '../../actors/runtime/ports.ts';
import { SECOND_MS } from '../../domain/time.ts';
import { parseEndpoint } from '../http-client/endpoint.ts';
import { gatewayHeaders } from '../http-client/headers.ts';
import type { ModuleClient } from './client.ts';

const TIMEOUT_MS = 10 * SECOND_MS;

interface AccountEventOptions {
  readonly modules: Pick<ModuleClient, 'call'>;
  /** Base addresses of the modules that want to know, by name. */
  readonly addresses: ReadonlyMap<string, string>;
  readonly project: string;
  readonly newRequestId: () => string;
  readonly onGaveUp: (userId: string, module: string) => void;
}

export interface AccountEvents extends AccountEventPort {
  /** Calls that a module confirmed, that failed, and modules that are not asked again. */
  counters(): { readonly told: number; readonly failed: number; readonly dead: number };
}

export function createAccountEvents(options: AccountEventOptions): AccountEvents {
  const { addresses, onGaveUp } = options;
  const counts = { told: 0, failed: 0, dead: 0 };
  return {
    async tellRemoval(userId, modules) {
      // One that the configuration no longer names has nothing to confirm.
      const names = (modules ?? [...addresses.keys()]).filter((name) => addresses.has(name));
      const confirmed = await Promise.all(names.map((name) => tell(options, name, userId)));
      const left = names.filter((_, index) => confirmed[index] !== true);
      counts.told += names.length - left.length;
      counts.failed += left.length;
      return left;
    },
    gaveUp(userId, modules) {
      counts.dead += modules.length;
      for (const module of modules) onGaveUp(userId, module);
    },
    counters: () => ({ ...counts }),
  };
}

async function tell(
  { modules, addresses, project, newRequestId }: AccountEventOptions,
  name: string,
  userId: string,
): Promise<boolean> {
  const endpoint = `${name}:/${name}/v1/accounts/removed`;
  const parsed = parseEndpoint(endpoint, addresses);
  if (!parsed.ok) return false;
  const { origin, path: pathname } = parsed.endpoint;
  const facts = { project, requestId: newRequestId() };
  const result = await modules.call({
    method: 'POST',
    url: { origin, pathname, search: '' },
    headers: { ...gatewayHeaders({ kind: 'anonymous' }, facts), 'content-type': 'application/json' },
    body: JSON.stringify({ userId }),
    timeoutMs: TIMEOUT_MS,
    endpoint,
  });
  return result.ok && result.answer.status >= 200 && result.answer.status < 300;
}
