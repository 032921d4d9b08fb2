/** The admin JSON, one file a noun: for sessions of admins from allowed addresses (`auth: 'admin'` of each route). */
import type { Administration } from '../../../actors/runtime/administration.ts';
import type { KnownModule } from '../../admin/modules.ts';
import type { AnyRoute } from '../../http/table/route.ts';
import type { UpstreamAdministration } from '../../mcp/upstreams/servers.ts';
import { type AdminAccountDeps, createAdminAccountRoutes } from './accounts.ts';
import { type AdminAppDeps, createAdminAppRoutes } from './apps.ts';
import { createAdminAttentionRoute } from './attention.ts';
import { type CatalogDeps, createAdminCatalogRoute, createAdminListsRoute } from './catalog.ts';
import { createAdminExportRoutes } from './export.ts';
import { createAdminHistoryRoute } from './history.ts';
import { createAdminKeyRoutes } from './keys.ts';
import { createAdminMcpServerRoutes } from './mcp-servers.ts';
import { createAdminModulesRoute } from './modules.ts';
import { createAdminNodesRoute } from './nodes.ts';
import { createAdminOperationRoutes, type OperationDeps } from './operations.ts';
import { createAdminRecordRoutes, type RecordDeps } from './records.ts';
import { type AdminSettingDeps, createAdminSettingRoutes } from './settings.ts';
import { createAdminStaffRoutes, type StaffDeps } from './staff.ts';
import { createAdminToolRoutes } from './tools.ts';
import { type AdminWebhookDeps, createAdminWebhookRoutes } from './webhooks.ts';

export interface AdminDeps {
  readonly settings: AdminSettingDeps;
  readonly accounts: AdminAccountDeps;
  readonly keys: Administration;
  readonly apps: AdminAppDeps;
  readonly webhooks: AdminWebhookDeps;
  readonly records: RecordDeps;
  readonly staff: StaffDeps;
  readonly operations: OperationDeps;
  readonly catalog: CatalogDeps;
  readonly mcpServers: UpstreamAdministration;
  readonly knownModules: readonly KnownModule[];
}

export function createAdminRoutes(deps: AdminDeps): AnyRoute[] {
  const { administration } = deps.accounts;
  const audit = { log: administration, cluster: deps.records.auditCluster };
  return [
    ...createAdminSettingRoutes(deps.settings),
    ...createAdminAccountRoutes(deps.accounts),
    ...createAdminKeyRoutes(deps.keys),
    ...createAdminAppRoutes(deps.apps),
    ...createAdminWebhookRoutes(deps.webhooks),
    ...createAdminRecordRoutes(deps.records),
    ...createAdminStaffRoutes(deps.staff),
    ...createAdminOperationRoutes(deps.operations),
    createAdminNodesRoute(deps.operations.nodes),
    createAdminHistoryRoute(deps.operations.nodes),
    createAdminAttentionRoute({
      ...deps.operations,
      apps: deps.apps,
      mcpServers: deps.mcpServers,
      known: deps.knownModules,
    }),
    createAdminModulesRoute({ ...deps.operations, catalog: deps.catalog.catalog, known: deps.knownModules }),
    ...createAdminToolRoutes({ ...deps.operations, catalog: deps.catalog.catalog }),
    createAdminListsRoute(deps.catalog),
    createAdminCatalogRoute(deps.catalog),
    ...createAdminMcpServerRoutes(deps.mcpServers),
    ...createAdminExportRoutes({ apps: deps.apps, accounts: deps.accounts, audit }),
  ];
}
