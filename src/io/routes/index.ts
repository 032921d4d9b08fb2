/** The route table of the public listener: every group, in the order of the explorer. */
import type { Administration } from '../../actors/runtime/administration.ts';
import type { LiveSettings } from '../../domain/settings/settings.ts';
import type { ApiKeyCipher } from '../apps/api-keys.ts';
import type { AnyRoute } from '../http/route.ts';
import { CapabilityCodes } from '../mcp/capability.ts';
import type { LiveCatalog } from '../mcp/catalog.ts';
import { GATEWAY_SERVICES } from '../mcp/tools/gateway.ts';
import type { StreamHub } from '../sse/hub.ts';
import type { WebhookOwnerApi } from '../webhooks/owner-api.ts';
import type { Reload } from './admin/catalog.ts';
import { createAdminRoutes } from './admin/index.ts';
import type { OperationDeps } from './admin/operations.ts';
import type { StaffDeps } from './admin/staff.ts';
import { createAppWebhookRoutes } from './app-webhooks.ts';
import { createAppRoutes } from './apps.ts';
import { login, loginOptions, loginOptionsFor, registerOptions } from './auth.ts';
import { loginEmail, loginPhone } from './codes.ts';
import { createDocsRoutes } from './docs.ts';
import { createDownloadRoutes, type DownloadDeps } from './downloads.ts';
import { createEventStreamRoute } from './event-stream.ts';
import { createV1UploadRoutes, type V1UploadDeps } from './files-v1.ts';
import { createDraftRoutes, type DraftDeps } from './files-v2.ts';
import { createHealthRoute, getInfo, type HealthFacts, info } from './info.ts';
import { registerKey, removeKey, updateKey, userKeys } from './keys.ts';
import { createMcpRoutes } from './mcp.ts';
import { mcpLogin } from './mcp-login.ts';
import { createProxyRoutes, type ProxyDeps } from './proxy.ts';
import { endSessions, loginLog, logout, sessions } from './sessions.ts';

export interface RouteDeps extends ProxyDeps, StaffDeps, OperationDeps, Omit<DownloadDeps, 'files'> {
  readonly files: DownloadDeps['files'] & V1UploadDeps['files'];
  readonly settings: LiveSettings;
  readonly catalog: LiveCatalog;
  readonly cipher: ApiKeyCipher;
  readonly events: { readonly streams: StreamHub };
  readonly administration: Administration;
  readonly drafts: DraftDeps;
  readonly health: () => HealthFacts;
  readonly reload: Reload;
  readonly webhooks: WebhookOwnerApi;
}

export function createRoutes(deps: RouteDeps): AnyRoute[] {
  const routes = [
    createHealthRoute(deps.health),
    getInfo,
    info,
    registerOptions,
    loginOptions,
    loginOptionsFor,
    login,
    loginPhone,
    loginEmail,
    logout,
    registerKey,
    userKeys,
    updateKey,
    removeKey,
    sessions,
    endSessions,
    loginLog,
    ...createAppRoutes(deps.cipher),
    createEventStreamRoute(() => deps.events.streams),
    ...createV1UploadRoutes(deps),
    ...createAppWebhookRoutes(deps.webhooks),
    mcpLogin,
    ...createMcpRoutes({
      catalog: deps.catalog,
      modules: deps.modules,
      gateway: GATEWAY_SERVICES,
      codes: new CapabilityCodes(deps),
      onCall: deps.onCall,
    }),
    ...createDownloadRoutes(deps),
    ...createDraftRoutes(deps.drafts),
    ...createAdminRoutes(deps),
    ...createProxyRoutes(deps),
  ];
  return [...routes, ...createDocsRoutes(routes)];
}
