/** The admin JSON (config.md "Admin JSON"), a file a noun. Admin sessions from allowed addresses only: the pipeline asks. */
import type { LiveSettings } from '../../../domain/settings/settings.ts';
import type { AnyRoute } from '../../http/route.ts';
import type { HealthFacts } from '../info.ts';
import { createAdminAccountRoutes } from './accounts.ts';
import { type AdminAppParts, createAdminAppRoutes } from './apps.ts';
import { type CatalogPart, createAdminCatalogRoute } from './catalog.ts';
import { createAdminKeyRoutes } from './keys.ts';
import { createAdminWorkRoutes, type WorkParts } from './operations.ts';
import { createAdminRecordRoutes } from './records.ts';
import { createAdminSettingRoutes } from './settings.ts';
import { createAdminStaffRoutes, type StaffParts } from './staff.ts';
import { type AdminDeliveryParts, createAdminDeliveryRoutes } from './webhooks.ts';

interface AdminParts extends StaffParts, WorkParts, CatalogPart, AdminAppParts, AdminDeliveryParts {
  readonly webhooks: AdminAppParts['webhooks'] & AdminDeliveryParts['webhooks'];
  readonly settings: LiveSettings;
  readonly health: () => HealthFacts;
}

export function createAdminRoutes(parts: AdminParts): AnyRoute[] {
  return [
    ...createAdminSettingRoutes(parts.settings),
    ...createAdminAccountRoutes(parts),
    ...createAdminKeyRoutes(parts.administration),
    ...createAdminAppRoutes(parts),
    ...createAdminDeliveryRoutes(parts),
    ...createAdminRecordRoutes(parts),
    ...createAdminStaffRoutes(parts),
    ...createAdminWorkRoutes(parts),
    createAdminCatalogRoute(parts),
  ];
}
