/** The route tables of both listeners for tests that read definitions: no handler of them can run. */
import type { FileRemovals } from '../../src/io/files/storage/removals.ts';
import type { AnyRoute } from '../../src/io/http/table/route.ts';
import { NodeSignals } from '../../src/io/mcp/node-signals.ts';
import type { EventPush } from '../../src/io/modules/event-push.ts';
import { createMetrics } from '../../src/io/observability/metrics.ts';
import { createRoutes, type RouteDeps } from '../../src/io/routes/index.ts';
import { createInternalRoutes } from '../../src/io/routes/internal.ts';

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
    account: none,
    accounts: none,
    apiKeys: none,
    webhooks: none,
    eventStreams: none,
    v1Uploads: none,
    v2Uploads: none,
    downloads: none,
    mcp: { signals: new NodeSignals() },
    connect: none,
    upstreams: none,
    admin,
    proxy: { moduleRules: new Map() },
  };
  return createRoutes(deps as unknown as RouteDeps);
}

/** Routes of the internal listener. */
export function internalRouteTable(): AnyRoute[] {
  return createInternalRoutes({
    metrics: createMetrics(),
    health() {
      throw new Error('not called');
    },
    events: {} as EventPush,
    removals: {} as FileRemovals,
  });
}
