/** The admin JSON (config.md "Admin JSON"), a file a noun. Admin sessions from allowed addresses only: the pipeline asks. */
import type { LiveSettings } from '../../domain/settings.ts';
import type { AnyRoute } from '../http/route.ts';
import { createAdminAccountRoutes } from './admin-accounts.ts';
import { type AdminAppParts, createAdminAppRoutes } from './admin-apps.ts';
import { type CataloguePart, createAdminCatalogueRoute } from './admin-catalogue.ts';
import { type AdminDeliveryParts, createAdminDeliveryRoutes } from './admin-deliveries.ts';
import { createAdminKeyRoutes } from './admin-keys.ts';
import { createAdminRecordRoutes } from './admin-records.ts';
import { createAdminSettingRoutes } from './admin-settings.ts';
import { createAdminStaffRoutes, type StaffParts } from './admin-staff.ts';
import { createAdminWorkRoutes, type WorkParts } from './admin-work.ts';
import type { HealthFacts } from './info.ts';

export interface AdminParts extends StaffParts, WorkParts, CataloguePart, AdminAppParts, AdminDeliveryParts {
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
    createAdminCatalogueRoute(parts),
  ];
}
