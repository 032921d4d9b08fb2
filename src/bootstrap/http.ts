/** Composes both listeners: session lookup, route tables, pages, and the pipelines. */
import type { Configuration } from '../domain/config/configuration.ts';
import { SharedBounds } from '../domain/limits/shared-bounds.ts';
import type { Site } from '../domain/site.ts';
import { FileRemovals } from '../io/files/storage/removals.ts';
import { createSessionLookup } from '../io/http/checks/session-lookup.ts';
import { httpLibrary } from '../io/http/listen/library.ts';
import type { Server } from '../io/http/listen/server.ts';
import { createPipeline, type Pipeline } from '../io/http/pipeline.ts';
import type { AnyRoute, SessionLookup } from '../io/http/table/route.ts';
import type { Services } from '../io/http/table/services.ts';
import type { Log } from '../io/observability/log.ts';
import { LoopWatch } from '../io/observability/loop-watch.ts';
import { residentMemory } from '../io/observability/machine.ts';
import type { MetricReadings } from '../io/observability/metric-table.ts';
import { newRequestId } from '../io/observability/request-ids.ts';
import { createInternalRoutes } from '../io/routes/internal.ts';
import type { Tracing } from '../io/tracing/tracing.ts';
import type { HttpDeps } from './http-deps.ts';
import { readMetrics } from './metrics.ts';
import { countersOf } from './part-counters.ts';
import { openRoutes } from './routes.ts';
import { internalSite } from './site.ts';
import { openPages } from './static-pages.ts';

export interface Pipelines {
  readonly public: Pipeline;
  readonly internal: Pipeline;
  /** Readings of all parts of the gateway, for a scrape or a sample of the dashboard. */
  readings(): MetricReadings;
}

/** Options that the public and the internal listener have each for itself. */
interface ListenerOptions {
  readonly site: Site;
  readonly proxyProtocol: boolean;
  readonly tracing?: Tracing | undefined;
  readonly sendfileHeader?: string | undefined;
  readonly connections?: Server;
  readonly notFound?: Services['notFound'];
}

/** Names of the parts with work or threads that stand still, and of the folder of files where it is not that of other nodes. */
export function degradedParts({
  workers,
  files,
  cluster,
}: Pick<HttpDeps, 'workers' | 'files' | 'cluster'>): readonly string[] {
  const { workers: hashing, storage } = files.counters();
  const stuck = {
    workers: workers.counters().stuck > 0,
    files: hashing.stuck + storage.calls.stuck > 0,
    sharedFolder: cluster?.sharesFiles() === false,
  };
  return Object.entries(stuck).flatMap(([name, isStuck]) => (isStuck ? [name] : []));
}

/** Builds both route tables and what serves them once the ports are open. */
export function createPipelines(deps: HttpDeps): Pipelines {
  const { configuration, options, settings, actors, cluster, limiter, metrics, publicServer } = deps;
  const { site, dashboard, features } = deps;
  const sessionLookup = sessionLookupOf(deps);
  const startedMs = performance.now();
  const rss = residentMemory(() => performance.now());
  const health = () => ({
    databaseConnected: actors.healthy && cluster?.node.keepsUp !== false,
    activeSessions: actors.count('sidHash') + actors.count('sessionHash'),
    rssBytes: rss(),
    degraded: degradedParts(deps),
  });
  const loopWatch = loopWatchOf(deps);
  const pipelineOf = (routes: readonly AnyRoute[], listener: ListenerOptions, bounds: SharedBounds) =>
    createPipeline({
      routes,
      missingFeatures: () => features().missing,
      actors,
      settings,
      sessionLookup,
      ...listener,
      limiter,
      bounds,
      clock: Date.now,
      elapsed: performance.now.bind(performance),
      newRequestId,
      trustedProxies: configuration.trustedProxies,
      loopWatch,
      onBug: (error, requestId) => options.log.write('requestFailed', { err: error, requestId }),
      onUntrustedProxy: warnOnce(options.log),
      observers: [...deps.requests.observers, dashboard],
    });
  const api = openRoutes(deps, sessionLookup, health);
  const pages = openPages(configuration, api);
  const publicPipeline = pipelineOf(
    [...api, ...pages.routes],
    {
      site,
      proxyProtocol: configuration.listen.proxyProtocol,
      sendfileHeader: configuration.sendfileBehind?.header.toLowerCase(),
      notFound: pages.notFound,
      connections: publicServer,
      tracing: deps.telemetry.tracing,
    },
    deps.bounds,
  );
  const counters = countersOf(deps, publicPipeline);
  const internalHealth = () => ({
    ...health(),
    version: options.version,
    httpLibrary: `uWebSockets.js ${httpLibrary().version}`,
    node: process.version.slice(1),
    uptimeSeconds: Math.round((performance.now() - startedMs) / 1000),
    cluster: cluster?.facts(),
    parts: Object.fromEntries(Object.entries(counters).map(([name, source]) => [name, source()])),
  });
  const { storage, fileCache } = deps.files;
  const keys = deps.events.keys;
  const removals = new FileRemovals({ keys, actors, storage, fileCache, clock: Date.now });
  const events = deps.events.intake;
  const internalRoutes = createInternalRoutes({ metrics, health: internalHealth, events, removals });
  warnOfUnknownRoutes(configuration, [...api, ...pages.routes, ...internalRoutes], options.log);
  const internalPipeline = pipelineOf(
    internalRoutes,
    { site: internalSite(site, configuration.internal), proxyProtocol: false },
    // Bounds of its own, so that load on the public listener does not block metrics and modules.
    new SharedBounds(settings),
  );
  return {
    public: publicPipeline,
    internal: internalPipeline,
    readings: () => readMetrics(deps, publicPipeline),
  };
}

/** Routes of modules are known as late as here. */
function warnOfUnknownRoutes(
  { log: { sample } }: Configuration,
  routes: readonly AnyRoute[],
  log: Log,
): void {
  const known = new Set(routes.map(({ path }) => path));
  for (const route of Object.keys(sample)) if (!known.has(route)) log.write('sampledRouteUnknown', { route });
}

function loopWatchOf({ metrics, options }: HttpDeps): LoopWatch {
  return new LoopWatch((tick) => {
    metrics.observeLongTick(tick);
    options.log.write('loopHeld', { ...tick });
  });
}

function sessionLookupOf({ actors, site, staff, options, exchange }: HttpDeps): SessionLookup {
  return createSessionLookup({
    actors,
    clock: Date.now,
    adminPublicKeys: site.adminPublicKeys,
    staff,
    shared: exchange?.counts,
    onTouchFailed: (error) => options.log.write('sessionUnwritten', { err: error }),
  });
}

/** Only the first admin request through an untrusted proxy is logged; the next ones say the same. */
function warnOnce(log: Log): (address: string) => void {
  let warned = false;
  return (address) => {
    if (warned) return;
    warned = true;
    log.write('untrustedProxy', { clientAddress: address });
  };
}
