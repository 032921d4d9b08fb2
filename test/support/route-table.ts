/** The route table of the public listener for tests that read definitions: no handler of it can run. */
import type { AnyRoute } from '../../src/io/http/route.ts';
import { NodeSignals } from '../../src/io/mcp/node-signals.ts';
import { createRoutes, type RouteDeps } from '../../src/io/routes/index.ts';

export function routeTable(): AnyRoute[] {
  const none = {};
  const admin = {
    settings: none,
    accounts: none,
    keys: none,
    apps: none,
    webhooks: none,
    records: none,
    staff: none,
    operations: none,
    catalog: none,
  };
  const deps: Record<keyof RouteDeps, object> = {
    health: none,
    accounts: none,
    apiKeys: none,
    webhooks: none,
    eventStreams: none,
    v1Uploads: none,
    v2Uploads: none,
    downloads: none,
    mcp: { signals: new NodeSignals() },
    connect: none,
    admin,
    proxy: { moduleRules: new Map() },
  };
  return createRoutes(deps as unknown as RouteDeps);
}
