/** The two listeners at work: gate, route tables, pages, metrics, and the pipelines between them. */
import type { Limiter } from '../actors/limits/limiter.ts';
import type { RunningSystem } from '../actors/runtime/system.ts';
import type { Configuration } from '../domain/config/configuration.ts';
import { SharedBounds } from '../domain/limits/shared-bounds.ts';
import type { LiveSettings } from '../domain/settings/settings.ts';
import type { Site } from '../domain/site.ts';
import { openChallenges } from '../io/accounts/challenges.ts';
import type { Dashboard } from '../io/admin/dashboard.ts';
import type { ApiKeyCipher } from '../io/apps/api-keys.ts';
import type { FileCodes } from '../io/files/download/file-code.ts';
import { FileRemovals } from '../io/files/storage/removals.ts';
import { createPipeline, type Pipeline } from '../io/http/pipeline.ts';
import type { AnyRoute, SessionLookup } from '../io/http/route.ts';
import type { Server } from '../io/http/server.ts';
import type { Services } from '../io/http/services.ts';
import { createSessionLookup } from '../io/http/session-lookup.ts';
import type { LiveCatalog } from '../io/mcp/catalog.ts';
import type { ModuleClient } from '../io/modules/client.ts';
import type { Log } from '../io/observability/log.ts';
import { residentMemory } from '../io/observability/machine.ts';
import type { Metrics } from '../io/observability/metrics.ts';
import { newRequestId } from '../io/observability/request-ids.ts';
import type { Reload } from '../io/routes/admin/catalog.ts';
import type { DraftDeps } from '../io/routes/files-v2.ts';
import { createRoutes } from '../io/routes/index.ts';
import { createInternalRoutes } from '../io/routes/internal.ts';
import type { SupervisedSandbox } from '../sandbox/supervisor.ts';
import type { WorkerPool } from '../workers/pool.ts';
import type { EventDelivery } from './events.ts';
import type { FileTransport } from './files.ts';
import { type FinishedRequests, readMetrics } from './metrics.ts';
import type { AssemblyOptions } from './options.ts';
import { countersOf } from './part-counters.ts';
import { internalSite } from './site.ts';
import type { OpenedStaff } from './staff.ts';
import { openPages } from './static-pages.ts';
import type { WebhookDelivery } from './webhooks.ts';

export interface HttpDeps extends OpenedStaff {
  readonly configuration: Configuration;
  readonly options: AssemblyOptions;
  readonly settings: LiveSettings;
  readonly actors: RunningSystem;
  readonly cipher: ApiKeyCipher;
  readonly events: EventDelivery;
  readonly webhooks: WebhookDelivery;
  readonly workers: WorkerPool;
  readonly modules: ModuleClient;
  readonly files: FileTransport;
  readonly fileCodes: FileCodes;
  readonly drafts: DraftDeps;
  readonly site: Site;
  readonly moduleAddresses: ReadonlyMap<string, string>;
  readonly publicPaths: ReadonlyMap<string, readonly string[]>;
  readonly catalog: LiveCatalog;
  readonly reload: Reload;
  readonly limiter: Limiter;
  readonly bounds: SharedBounds;
  readonly metrics: Metrics;
  readonly requests: FinishedRequests;
  readonly dashboard: Dashboard;
  readonly publicServer: Server;
  readonly internalServer: Server;
  readonly sandbox: SupervisedSandbox | undefined;
}

export interface Pipelines {
  readonly public: Pipeline;
  readonly internal: Pipeline;
}

/** Builds both route tables and what serves them once the ports are open. */
export function createPipelines(deps: HttpDeps): Pipelines {
  const { configuration, options, settings, actors, limiter, metrics, publicServer } = deps;
  const { site, dashboard } = deps;
  const sessionLookup = sessionLookupOf(deps);
  const challenges = openChallenges(deps.cipher);
  const startedMs = performance.now();
  const rss = residentMemory(() => performance.now());
  const facts = () => ({
    databaseConnected: actors.healthy,
    activeSessions: actors.count('sidHash') + actors.count('sessionHash'),
    rssBytes: rss(),
  });
  const pipelineOf = (
    routes: readonly AnyRoute[],
    listener: { site: Site; proxyProtocol: boolean; notFound?: Services['notFound'] },
    bounds: SharedBounds,
  ) =>
    createPipeline({
      routes,
      actors,
      settings,
      sessionLookup,
      ...listener,
      limiter,
      bounds,
      challenges,
      onSignedUp: (userId) => deps.sandbox?.signedUp(userId),
      clock: Date.now,
      elapsed: () => performance.now(),
      newRequestId,
      trustedProxies: configuration.trustedProxies,
      crowded: publicServer.crowded,
      onBug: (error, requestId) => options.log.error({ err: error, requestId }, 'a request failed by a bug'),
      onUntrustedProxy: warnOnce(options.log),
      onFinished(record) {
        deps.requests.observe(record);
        dashboard.observe(record);
      },
    });
  const api = createRoutes({
    ...deps,
    webhooks: deps.webhooks.ownerApi,
    onCall(call) {
      metrics.observeCall(call);
      dashboard.observeCall(call);
    },
    eventLog: deps.events.log,
    administration: actors.administration,
    health: facts,
  });
  const pages = openPages(configuration, api);
  const publicPipeline = pipelineOf(
    [...api, ...pages.routes],
    { site, proxyProtocol: configuration.listen.proxyProtocol, notFound: pages.notFound },
    deps.bounds,
  );
  const read = () => readMetrics(deps, publicPipeline);
  dashboard.read(read);
  metrics.sample(read);
  const counters = countersOf(deps, publicPipeline);
  const internalFacts = () => ({
    ...facts(),
    version: options.version,
    uptimeSeconds: Math.round((performance.now() - startedMs) / 1000),
    parts: Object.fromEntries(Object.entries(counters).map(([name, source]) => [name, source()])),
  });
  const { storage, directory } = deps.files;
  const keys = deps.events.keys;
  const removals = new FileRemovals({ keys, actors, storage, directory, clock: Date.now });
  const internalPipeline = pipelineOf(
    createInternalRoutes(metrics, internalFacts, deps.events.intake, removals),
    { site: internalSite(site, configuration.internal), proxyProtocol: false },
    // Of its own: metrics and modules are served whatever the public listener holds.
    new SharedBounds(settings),
  );
  return { public: publicPipeline, internal: internalPipeline };
}

function sessionLookupOf({ actors, site, staff, options }: HttpDeps): SessionLookup {
  return createSessionLookup({
    actors,
    clock: Date.now,
    adminPublicKeys: site.adminPublicKeys,
    roleOf: (userId) => staff.roleOf(userId),
    onTouchFailed: (error) => options.log.error({ err: error }, 'the last use of a session was not written'),
  });
}

/** The first admin request through a proxy that is not trusted: the others say nothing new. */
function warnOnce(log: Log): (address: string) => void {
  let warned = false;
  return (address) => {
    if (warned) return;
    warned = true;
    log.warn(
      { address },
      'an admin route was asked with X-Forwarded-For from an address that is not in TrustedProxies, and refused',
    );
  };
}
