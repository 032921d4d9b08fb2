/** The admin JSON (config.md "Admin JSON"), a file a noun. Admin sessions from allowed addresses only: the pipeline asks. */
import type { LiveSettings } from '../../../domain/settings/settings.ts';
import type { AnyRoute } from '../../http/route.ts';
import type { HealthFacts } from '../info.ts';
import { createAdminAccountRoutes } from './accounts.ts';
import { type AdminAppDeps, createAdminAppRoutes } from './apps.ts';
import { type CatalogDeps, createAdminCatalogRoute } from './catalog.ts';
import { createAdminKeyRoutes } from './keys.ts';
import { createAdminOperationRoutes, type OperationDeps } from './operations.ts';
import { createAdminRecordRoutes } from './records.ts';
import { createAdminSettingRoutes } from './settings.ts';
import { createAdminStaffRoutes, type StaffDeps } from './staff.ts';
import { type AdminWebhookDeps, createAdminWebhookRoutes } from './webhooks.ts';

interface AdminDeps extends StaffDeps, OperationDeps, CatalogDeps, AdminAppDeps, AdminWebhookDeps {
  readonly webhooks: AdminAppDeps['webhooks'] & AdminWebhookDeps['webhooks'];
  readonly settings: LiveSettings;
  readonly health: () => HealthFacts;
}

export function createAdminRoutes(deps: AdminDeps): AnyRoute[] {
  return [
    ...createAdminSettingRoutes(deps.settings),
    ...createAdminAccountRoutes(deps),
    ...createAdminKeyRoutes(deps.administration),
    ...createAdminAppRoutes(deps),
    ...createAdminWebhookRoutes(deps),
    ...createAdminRecordRoutes(deps),
    ...createAdminStaffRoutes(deps),
    ...createAdminOperationRoutes(deps),
    createAdminCatalogRoute(deps),
  ];
}
