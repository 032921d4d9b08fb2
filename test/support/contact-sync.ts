/** Accounts with contact sync before a module on node:http, which says what reached it. */
import http from 'node:http';
import { listenOnLoopback } from '../../kit/http.ts';
import { ASKED_METHODS } from '../../src/domain/config/configuration.ts';
import { createModuleClient } from '../../src/io/modules/client.ts';
import type { ModuleRules } from '../../src/io/proxy/reach.ts';
import type { WebSockets } from '../../src/io/proxy/web-sockets.ts';
import { createContactSyncRoutes } from '../../src/io/routes/contact-sync.ts';
import { createProxyRoutes, type ProxyDeps } from '../../src/io/routes/proxy.ts';
import { type Account, type AccountFixtureOptions, cookie, startAccounts } from './account.ts';
import { connectRaw, type RawAnswer, requestText } from './http.ts';

export interface Reached {
  readonly method: string;
  readonly url: string;
  readonly headers: http.IncomingHttpHeaders;
  readonly body: string;
}

export type ContactSyncFixture = Awaited<ReturnType<typeof startContactSync>>;

interface Options extends AccountFixtureOptions {
  /** Rules of the module `people`. */
  readonly rules?: ModuleRules;
}

export function basic(username: string, token: string): Record<string, string> {
  return { Authorization: `Basic ${Buffer.from(`${username}:${token}`).toString('base64')}` };
}

export async function startContactSync(options: Options = {}) {
  /** Requests that reached the module, in their order. */
  const reached: Reached[] = [];
  const backend = http.createServer((request, response) => {
    const parts: Buffer[] = [];
    request.on('data', (part: Buffer) => parts.push(part));
    request.on('end', () => {
      const { method = '', url = '', headers } = request;
      reached.push({ method, url, headers, body: Buffer.concat(parts).toString() });
      response.writeHead(207, { 'content-type': 'application/xml', DAV: '1, addressbook' }).end('<ok/>');
    });
  });
  const { url: address } = await listenOnLoopback(backend);
  const { rules = { contactSync: true, methods: ASKED_METHODS.slice(0, 4) }, ...accountOptions } = options;
  let closeModules: () => Promise<void> = async () => undefined;
  const accounts = startAccounts({
    ...accountOptions,
    routes: (_actors, bounds) => {
      const modules = createModuleClient({ clock: Date.now, bounds });
      closeModules = () => modules.close();
      const deps: ProxyDeps = {
        modules,
        sockets: {} as WebSockets,
        moduleAddresses: new Map([
          ['people', address],
          ['core', address],
        ]),
        moduleRules: new Map<string, ModuleRules>([
          ['core', {}],
          ['people', rules],
        ]),
        catalog: { current: { policy: { personalReads: true } } } as ProxyDeps['catalog'],
      };
      return [...createContactSyncRoutes(deps), ...createProxyRoutes(deps)];
    },
  });
  const send = async (
    method: string,
    path: string,
    headers: Record<string, string> = {},
    body?: string,
  ): Promise<RawAnswer> => {
    const connection = connectRaw(accounts.http.port);
    connection.send(requestText(method, path, headers, body));
    try {
      return await connection.answer(method === 'HEAD');
    } finally {
      connection.close();
    }
  };
  const add = (account: Account, body: object = { keyId: account.keyId, name: 'Phone' }) =>
    accounts.post('/auth/v1/contact_sync/token', body, cookie(account.sid));
  /** Allows the account's key, or takes that back. */
  const allow = (account: Account, cardDavAccess = true, keyId = account.keyId) =>
    accounts.post('/auth/v1/keys/update_key', { keyId, cardDavAccess }, cookie(account.sid));
  return {
    ...accounts,
    reached,
    send,
    allow,
    add,
    /** A token of an allowed key. */
    async token(account: Account, keyId = account.keyId) {
      const { result, error } = await add(account, { keyId });
      if (error !== undefined) throw new Error(JSON.stringify(error));
      return result as { id: string; token: string };
    },
    async close() {
      await closeModules();
      backend.closeAllConnections();
      await new Promise((resolve) => backend.close(resolve));
      await accounts.close();
    },
  };
}
