/** What the configurations of all nodes of a cluster should say alike: a difference is shown, and nothing is refused. */
import { hash } from 'node:crypto';
import type { Configuration } from './configuration.ts';

/** SHA-256 of the agreed keys. The order of keys within an object has no effect. */
export function agreementOf(configuration: Configuration): Uint8Array {
  const { project, baseUrl, fido2, fileServers, admin, allowedOrigins, modules } = configuration;
  const { mcpTools, mcpResources, mcpProfiles } = configuration;
  const { oauthClients, oauthClientHosts, oauthDocuments, oauthPrivateRedirects, oauthRootMetadata } =
    configuration;
  const agreed = {
    project,
    baseUrl,
    fido2,
    fileServers,
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
  };
  return hash('sha256', JSON.stringify(sorted(agreed)), 'buffer');
}

function sorted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sorted);
  if (typeof value !== 'object' || value === null) return value;
  const entries = Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1));
  return Object.fromEntries(entries.map(([key, each]) => [key, sorted(each)]));
}
