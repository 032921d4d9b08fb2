/** What the configurations of all nodes of a cluster should say alike: a difference is shown, and nothing is refused. */
import { hash } from 'node:crypto';
import { sortedJson } from '../raw-json.ts';
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
  return hash('sha256', sortedJson(agreed), 'buffer');
}
