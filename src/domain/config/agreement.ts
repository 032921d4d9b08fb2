/**
 * The part of the configuration that all nodes of a cluster should have alike: a difference is shown, and nothing is
 * refused.
 */
import { hash } from 'node:crypto';
import { sortedJson } from '../raw-json.ts';
import type { Configuration } from './configuration.ts';
import { withoutKeys } from './file-servers.ts';

/** SHA-256 of the agreed keys. The order of keys within an object has no effect. */
export function agreementOf(configuration: Configuration): Uint8Array {
  const { project, baseUrl, fido2, fileServers, admin, allowedOrigins, modules } = configuration;
  const { mcpTools, mcpResources, mcpProfiles, mcpServers } = configuration;
  const { oauthClients, oauthClientHosts, oauthDocuments, oauthPrivateRedirects, oauthRootMetadata } =
    configuration;
  const agreed = {
    project,
    baseUrl,
    fido2,
    fileServers: Object.fromEntries(
      Object.entries(fileServers).map(([above, server]) => [above, withoutKeys(server)]),
    ),
    publicKeys: [...admin.publicKeys].sort(),
    allowedOrigins: [...allowedOrigins].sort(),
    modules: Object.keys(modules).sort(),
    mcpTools,
    mcpResources,
    mcpProfiles,
    oauthClients,
    oauthClientHosts: [...oauthClientHosts].sort(),
    oauthDocuments,
    oauthPrivateRedirects: [...oauthPrivateRedirects].sort(),
    oauthRootMetadata,
    // Without any, the value is that of versions that have none: nodes of both run during an upgrade.
    ...contactSyncOf(modules),
    ...(Object.keys(mcpServers).length === 0 ? {} : { mcpServers: withoutHeaders(mcpServers) }),
  };
  return hash('sha256', sortedJson(agreed), 'buffer');
}

function contactSyncOf(modules: Configuration['modules']): object {
  const named = Object.entries(modules).find(([, { contactSync }]) => contactSync);
  return named === undefined ? {} : { contactSync: named[0] };
}

/** Each node may have tokens of its own, and programs in other folders. */
function withoutHeaders(servers: Configuration['mcpServers']): object {
  return Object.fromEntries(
    Object.entries(servers).map(([name, { command, environment, title, login, ...server }]) => {
      const headers = Object.keys(server.headers).sort();
      const own = login === null ? {} : { title, login: { ...login, client: login.client?.id ?? null } };
      // A server by address without logins keeps the form of versions that had no other servers.
      return [name, command === undefined ? { ...server, headers, ...own } : { ...server, isCommand: true }];
    }),
  );
}
