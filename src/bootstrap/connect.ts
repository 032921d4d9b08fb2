/** Composes the authorization server for hosts that connect by URL, and logins of people at other MCP servers. */

import type { GatewayActors } from '../actors/gateway-actors.ts';
import type { Ownership } from '../actors/runtime/ownership.ts';
import type { Configuration } from '../domain/config/configuration.ts';
import { GatewayError } from '../domain/errors.ts';
import type { SharedBounds } from '../domain/limits/shared-bounds.ts';
import type { SettingsReader } from '../domain/settings/settings.ts';
import type { Site } from '../domain/site.ts';
import { openChallenges } from '../io/accounts/challenges.ts';
import type { ApiKeyCipher } from '../io/apps/api-keys.ts';
import { OAuthClientRegistry, openHostsRow } from '../io/connect/clients.ts';
import { ConnectCounters } from '../io/connect/counters.ts';
import { ClientDocuments } from '../io/connect/documents.ts';
import { policyOf } from '../io/connect/policy.ts';
import { createResources, mcpResource } from '../io/connect/resources.ts';
import { openSealers } from '../io/connect/sealed.ts';
import type { LiveCatalog } from '../io/mcp/catalog.ts';
import { type CredentialDeps, UpstreamCredentials } from '../io/mcp/credentials/credentials.ts';
import type { ConnectDeps } from '../io/routes/connect.ts';
import { createResolver } from '../io/webhooks/ssrf-guard.ts';
import { untilServed } from './actors.ts';

interface ConnectOptions {
  readonly configuration: Configuration;
  readonly settings: SettingsReader;
  readonly actors: GatewayActors;
  readonly cipher: ApiKeyCipher;
  readonly catalog: LiveCatalog;
  readonly bounds: SharedBounds;
  readonly site: Site;
  readonly ownership: Ownership;
}

export interface Connect extends ConnectDeps {
  close(): Promise<void>;
}

export async function openConnect(options: ConnectOptions): Promise<Connect> {
  const { configuration, settings, actors, cipher, catalog, bounds, site, ownership } = options;
  const { production, oauthDocumentAllow: allow } = configuration;
  const policy = policyOf(configuration);
  const sealers = openSealers(cipher);
  const elapsed = () => performance.now();
  const documents = new ClientDocuments({
    rules: () => ({ production, allow, ports: settings.get('WebhookPorts') }),
    resolve: createResolver(elapsed),
    redirects: policy.redirects.document,
    elapsed,
    bound: bounds.of('clientDocuments'),
  });
  await untilServed(() => openHostsRow(actors, site.baseUrl, ownership)).catch(unlessFull);
  return {
    resources: createResources([mcpResource(site)], (name) => catalog.current.profiles.get(name)),
    policy,
    sealers,
    clients: new OAuthClientRegistry({ policy, documents, sealers }),
    counters: new ConnectCounters(),
    catalog,
    challenges: { challenges: openChallenges(cipher), openBound: bounds.of('challenges') },
    close: async () => documents.close(),
  };
}

/** A full disk must not stop the start: hosts without an application are refused until the next one. */
function unlessFull(error: unknown): void {
  if (!(error instanceof GatewayError) || error.row !== 'StorageFull') throw error;
}

interface CredentialOptions extends Pick<CredentialDeps, 'actors' | 'cipher' | 'site'> {
  readonly served: { readonly configured: ReturnType<CredentialDeps['servers']> };
  readonly settings: SettingsReader;
  readonly bounds: SharedBounds;
}

/** Its dependencies open later: no call comes before. */
export function openUpstreamCredentials({
  settings,
  bounds,
  served,
  ...parts
}: CredentialOptions): UpstreamCredentials {
  const elapsed = () => performance.now();
  return new UpstreamCredentials({
    ...parts,
    servers: () => served.configured,
    ports: () => settings.get('WebhookPorts'),
    resolve: createResolver(elapsed),
    elapsed,
    clock: Date.now,
    bound: bounds.of('upstreamLogins'),
  });
}
