/** Puts a gateway together from its configuration, and takes it down again in the right order. */
import { randomUUID } from 'node:crypto';
import { availableParallelism } from 'node:os';
import { startActors } from './actor-start.ts';
import type { Limiter } from './actors/limiter.ts';
import type { RunningSystem } from './actors/runtime/system.ts';
import { createReload } from './catalogue-reload.ts';
import type { ConfigurationResult } from './config.ts';
import { holdFolder } from './data-folder.ts';
import type { Configuration } from './domain/configuration.ts';
import { LiveSettings } from './domain/settings.ts';
import { openDrafts } from './drafts.ts';
import { type EventDelivery, startEventDelivery } from './event-delivery.ts';
import { figuresOf } from './figures.ts';
import { type FileTransport, openFileTransport } from './file-transport.ts';
import { type FinishedRequests, observeRequests } from './finished-requests.ts';
import { type FileCodes, openFileCodes } from './io/files/file-code.ts';
import { createPipeline, type Pipeline } from './io/http/pipeline.ts';
import type { AnyRoute } from './io/http/route.ts';
import type { Server } from './io/http/server.ts';
import { createSessionGate } from './io/http/session-gate.ts';
import type { Log } from './io/log.ts';
import type { LiveCatalogue } from './io/mcp/catalogue.ts';
import { createMetrics, type Metrics } from './io/metrics.ts';
import { createModuleClient, type ModuleClient } from './io/modules/client.ts';
import type { Reload } from './io/routes/admin-catalogue.ts';
import { createRoutes } from './io/routes/index.ts';
import { createInternalRoutes } from './io/routes/internal.ts';
import { openVault, type Vault } from './io/vault.ts';
import { openListeners } from './listeners.ts';
import { moduleAddresses, openCatalogue, publicPaths, startStandIns } from './modules.ts';
import { openPages } from './pages.ts';
import { addressOf, resolveSite } from './site.ts';
import { openWebhooks, type WebhookDelivery } from './webhook-delivery.ts';
import { createWorkerPool, type WorkerPool } from './workers/pool.ts';

/** Tasks waiting for or running on the worker threads. */
const WORKER_QUEUE_MAX = 10_000;
/** Requests under way at a stop get so long to end (events.md "Drain": 13 s in all). */
const DRAIN_MS = 10_000;

export interface AssemblyOptions {
  readonly version: string;
  readonly log: Log;
  /** Reads the configuration again, for a reload. */
  readonly readAgain: () => ConfigurationResult;
  /** The journal failed: every waiter has its answer. */
  readonly onFatal: (error: Error) => void;
}

export interface Assembly {
  readonly url: string;
  readonly internal: string;
  readonly sandbox: string | undefined;
  /** A new catalogue from the configuration, read again; the faults when it is refused and the old one stays. */
  readonly reload: Reload;
  stop(): Promise<void>;
}

interface Parts {
  readonly configuration: Configuration;
  readonly options: AssemblyOptions;
  readonly settings: LiveSettings;
  readonly actors: RunningSystem;
  readonly vault: Vault;
  readonly events: EventDelivery;
  readonly webhooks: WebhookDelivery;
  readonly workers: WorkerPool;
  readonly modules: ModuleClient;
  readonly files: FileTransport;
  readonly fileCodes: FileCodes;
  readonly codesDelivered: boolean;
  readonly moduleAddresses: ReadonlyMap<string, string>;
  readonly publicPaths: ReadonlyMap<string, readonly string[]>;
  readonly catalogue: LiveCatalogue;
  readonly reload: Reload;
  readonly limiter: Limiter;
  readonly metrics: Metrics;
  readonly requests: FinishedRequests;
  readonly publicServer: Server;
  readonly internalServer: Server;
}

/** Starts everything. Throws `ListenError`, `FolderUnusable`, `FolderInUse`, `JournalUnusable`, `JournalTooNew`. */
export async function assemble(configuration: Configuration, options: AssemblyOptions): Promise<Assembly> {
  const { log } = options;
  const settings = new LiveSettings(configuration.settings);
  const { limiter, publicServer, internalServer } = await openListeners(configuration, settings);
  const letGo = await holdFolder(configuration.dataPath);
  const sandbox = await startStandIns(configuration, log);
  const addresses = moduleAddresses(configuration, sandbox);
  const catalogue = openCatalogue(configuration, addresses);
  const workers = createWorkerPool({
    threads: configuration.workerThreads || Math.max(1, availableParallelism() - 1),
    queueMax: WORKER_QUEUE_MAX,
    onFault: (message) => log.error({ message }, 'worker fault'),
  });
  const modules = createModuleClient({ clock: Date.now });
  const chatUrl = addresses.get('chat');
  const files = openFileTransport({ configuration, settings, modules, chatUrl, log });
  const webhookOpening = openWebhooks({ configuration, settings, log });
  const calls = { workers, modules, files, chatUrl, webhooks: webhookOpening.port };
  const actors = await startActors(configuration, settings, calls, options);
  const vault = await openVault(actors.administration);
  await files.recover(actors);
  const events = await startEventDelivery({ configuration, settings, actors, sandbox, modules, log });
  const webhooks = webhookOpening.start({ actors, vault, events });
  const reload = createReload({ read: options.readAgain, catalogue, addresses, log });
  const metrics = createMetrics();
  const parts = {
    configuration,
    options,
    settings,
    actors,
    vault,
    events,
    webhooks,
    workers,
    modules,
    files,
    fileCodes: openFileCodes(vault),
    codesDelivered: calls.chatUrl !== undefined,
    moduleAddresses: addresses,
    publicPaths: publicPaths(configuration),
    catalogue,
    reload,
    limiter,
    metrics,
    requests: observeRequests(configuration, metrics, Date.now),
    publicServer,
    internalServer,
  };
  const pipelines = serve(parts);
  return {
    url: addressOf(configuration.listen, publicServer.port),
    internal: addressOf({ host: configuration.internal.host, tls: undefined }, internalServer.port),
    sandbox: sandbox?.url,
    reload,
    async stop() {
      publicServer.stopListening();
      const hooks = webhooks.stop();
      const left = await Promise.all([...pipelines, events.streams].map((part) => part.drain(DRAIN_MS)));
      const cut = left.reduce((sum, requests) => sum + requests, 0);
      if (cut > 0)
        log.warn({ requests: cut, drainMs: DRAIN_MS }, 'requests were cut off at the deadline of the stop');
      await hooks;
      await events.stop();
      await actors.drain(DRAIN_MS);
      await files.finish(actors);
      await Promise.all([publicServer.close(), internalServer.close()]);
      await parts.requests.close();
      await modules.close();
      await workers.close();
      await actors.close();
      await files.close();
      await sandbox?.close();
      letGo();
    },
  };
}

function serve(parts: Parts): Pipeline[] {
  const { configuration, options, settings, actors, limiter, metrics, publicServer, internalServer } = parts;
  const site = resolveSite(configuration, options.version, publicServer.port, parts.codesDelivered);
  const gate = createSessionGate({
    actors,
    clock: Date.now,
    adminPublicKeys: site.adminPublicKeys,
    onTouchFailed: (error) => options.log.error({ err: error }, 'the last use of a session was not written'),
  });
  const startedMs = performance.now();
  const facts = () => ({
    databaseConnected: actors.healthy,
    activeSessions: actors.count('sidHash') + actors.count('sessionHash'),
    rssBytes: process.memoryUsage.rss(),
  });
  const pipelineOf = (routes: readonly AnyRoute[], checkHost: boolean) =>
    createPipeline({
      routes,
      actors,
      settings,
      gate,
      site: { ...site, checkHost },
      limiter,
      clock: Date.now,
      elapsed: () => performance.now(),
      newRequestId: () => randomUUID(),
      trustedProxies: configuration.trustedProxies,
      crowded: publicServer.crowded,
      onBug: (error, requestId) => options.log.error({ err: error, requestId }, 'a request failed by a bug'),
      onFinished: parts.requests.observe,
    });
  const api = createRoutes({
    ...parts,
    webhooks: parts.webhooks.desk,
    onCall: metrics.observeCall,
    administration: actors.administration,
    drafts: openDrafts(parts),
    health: facts,
  });
  const pages = openPages(configuration, api);
  pages.compress().catch((error: unknown) => options.log.error({ err: error }, 'a page was not compressed'));
  const publicPipeline = pipelineOf([...api, ...pages.routes], site.checkHost);
  const read = figuresOf(parts, publicPipeline);
  for (const [name, source] of Object.entries(read)) metrics.source(name, `Figures of ${name}.`, source);
  const internalFacts = () => ({
    ...facts(),
    version: options.version,
    uptimeSeconds: Math.round((performance.now() - startedMs) / 1000),
    parts: Object.fromEntries(Object.entries(read).map(([name, source]) => [name, source()])),
  });
  const internalPipeline = pipelineOf(
    createInternalRoutes(metrics, internalFacts, parts.events.intake),
    false,
  );
  publicServer.serve(publicPipeline.handle);
  internalServer.serve(internalPipeline.handle);
  return [publicPipeline, internalPipeline];
}
