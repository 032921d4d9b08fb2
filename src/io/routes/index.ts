/** The route table of the public listener: every group, in the order of the explorer. */
import type { ApiKeyCipher } from '../apps/api-keys.ts';
import { protectedEndpoint } from '../connect/mcp-endpoint.ts';
import { CONNECT_PROFILE_PATH } from '../connect/resources.ts';
import type { AnyRoute } from '../http/table/route.ts';
import type { McpDeps } from '../mcp/dispatcher.ts';
import type { StreamHub } from '../sse/hub.ts';
import type { WebhookOwnerApi } from '../webhooks/owner-api.ts';
import { type AccountDeps, createAccountRoutes } from './account.ts';
import { type AdminDeps, createAdminRoutes } from './admin/index.ts';
import { createAppWebhookRoutes } from './app-webhooks.ts';
import { createAppRoutes } from './apps.ts';
import { createAuthRoutes, type LoginDeps } from './auth.ts';
import { loginEmail, loginPhone } from './codes.ts';
import { type ConnectDeps, createConnectRoutes } from './connect.ts';
import { connectedHosts, endConnectedHost } from './connected-hosts.ts';
import { createContactSyncRoutes } from './contact-sync.ts';
import { createDocsRoutes } from './docs.ts';
import { createDownloadRoutes, type DownloadDeps } from './downloads.ts';
import { createEventStreamRoute } from './event-stream.ts';
import { createV1UploadRoutes, type V1UploadDeps } from './files-v1.ts';
import { createDraftRoutes, type DraftDeps } from './files-v2.ts';
import { createHealthRoute, getInfo, type HealthFacts, info, relatedOrigins } from './info.ts';
import { createKeyRoutes } from './keys.ts';
import { createMcpRoutes } from './mcp.ts';
import { mcpLogin } from './mcp-login.ts';
import { createMcpProfilesRoute } from './mcp-profiles.ts';
import { createProxyRoutes, type ProxyDeps } from './proxy.ts';
import { endSessions, loginLog, logout, sessions } from './sessions.ts';
import { createUpstreamRoutes, type UpstreamDeps } from './upstreams.ts';

export interface RouteDeps {
  readonly health: () => HealthFacts;
  readonly accounts: LoginDeps;
  readonly account: AccountDeps;
  readonly apiKeys: ApiKeyCipher;
  readonly webhooks: WebhookOwnerApi;
  readonly eventStreams: StreamHub;
  readonly v1Uploads: V1UploadDeps;
  readonly v2Uploads: DraftDeps;
  readonly downloads: DownloadDeps;
  readonly mcp: McpDeps;
  readonly connect: ConnectDeps;
  readonly upstreams: UpstreamDeps;
  readonly admin: AdminDeps;
  readonly proxy: ProxyDeps;
}

export function createRoutes(deps: RouteDeps): AnyRoute[] {
  const routes = [
    createHealthRoute(deps.health),
    getInfo,
    relatedOrigins,
    info,
    ...createAuthRoutes(deps.accounts),
    loginPhone,
    loginEmail,
    logout,
    ...createKeyRoutes(deps.accounts),
    ...createContactSyncRoutes(deps.proxy),
    sessions,
    endSessions,
    loginLog,
    ...createAccountRoutes(deps.account),
    connectedHosts,
    endConnectedHost,
    ...createUpstreamRoutes(deps.upstreams),
    ...createAppRoutes(deps.apiKeys),
    createEventStreamRoute(deps.eventStreams),
    ...createV1UploadRoutes(deps.v1Uploads),
    ...createAppWebhookRoutes(deps.webhooks),
    mcpLogin,
    createMcpProfilesRoute(deps.mcp),
    ...createMcpRoutes(deps.mcp, undefined, [protectedEndpoint(), protectedEndpoint(CONNECT_PROFILE_PATH)]),
    ...createConnectRoutes(deps.connect),
    ...createDownloadRoutes(deps.downloads),
    ...createDraftRoutes(deps.v2Uploads),
    ...createAdminRoutes(deps.admin),
    ...createProxyRoutes(deps.proxy),
  ];
  return [...routes, ...createDocsRoutes(routes)];
}
