/** Composes a gateway from its configuration, and stops it in the right order. */

import { availableParallelism } from 'node:os';
import { setTimeout as wait } from 'node:timers/promises';
import { OWNS_ALL } from '../actors/runtime/ownership.ts';
import { nodeSchedule } from '../actors/runtime/runtime-context.ts';
import type { Configuration } from '../domain/config/configuration.ts';
import { isNoRoom } from '../domain/disk-faults.ts';
import { featuresOf } from '../domain/features.ts';
import { SharedBounds } from '../domain/limits/shared-bounds.ts';
import { LiveSettings } from '../domain/settings/settings.ts';
import { HOUR_MS } from '../domain/time.ts';
import { Dashboard } from '../io/admin/dashboard.ts';
import { History } from '../io/admin/history/history.ts';
import { answerCommand } from '../io/admin/mcp-servers.ts';
import { openApiKeyCipher } from '../io/apps/api-keys.ts';
import { bootId, markClosed, requireNoNode, settleLastRun } from '../io/cluster/node-folder.ts';
import { openFileCodes } from '../io/files/download/file-code.ts';
import { MARKER_WAIT_MS } from '../io/files/storage/folder-proof.ts';
import { httpLibrary } from '../io/http/listen/library.ts';
import type { Pipeline } from '../io/http/pipeline.ts';
import { createModuleClient } from '../io/modules/client.ts';
import { openKeyAges } from '../io/modules/key-ages.ts';
import type { Log } from '../io/observability/log.ts';
import { LoopDelay } from '../io/observability/loop-delay.ts';
import { residentMemory } from '../io/observability/machine.ts';
import type { MetricReadings } from '../io/observability/metric-table.ts';
import { createMetrics, type Metrics } from '../io/observability/metrics.ts';
import { Profiles } from '../io/observability/profiles.ts';
import { createWorkerPool, type WorkerPool } from '../workers/pool.ts';
import { enterCluster, openActorJournal, startActors } from './actors.ts';
import { openAdminNodes } from './admin-nodes.ts';
import type { OpenedCluster } from './cluster/open.ts';
import { openConnect, openUpstreamCredentials } from './connect.ts';
import { type HeldFolder, holdFolder } from './data-directory.ts';
import { openLiveConnections } from './event-streams.ts';
import { type EventDelivery, startEventDelivery } from './events.ts';
import { type FileTransport, openDrafts, startFileTransport, warnOfUnusedSendfile } from './files.ts';
import { FolderRequests } from './folder-requests.ts';
import { createPipelines, degradedParts, type Pipelines } from './http.ts';
import type { HttpDeps } from './http-deps.ts';
import { joinRuns } from './joined-runs.ts';
import { checkJournal, checkPages } from './journal.ts';
import { dropReceipt } from './journal-copy.ts';
import { reserveListeners } from './listeners.ts';
import { observeRequests } from './metrics.ts';
import { eventModulesOf, moduleAddresses, moduleRules, startSandbox } from './modules.ts';
import type { AssemblyOptions } from './options.ts';
import { openPorts } from './ports.ts';
import { openCatalog } from './served-catalog.ts';
import { addressOf, resolveSite } from './site.ts';
import { createSetupLink, openStaff } from './staff.ts';
import { openTelemetry } from './telemetry.ts';
import { startWebhooks, type WebhookDelivery } from './webhooks.ts';

/** Tasks that wait for or run on the worker threads. */
const WORKER_QUEUE_MAX = 10_000;
/** Time for running requests to end at a stop (drain: 13 s in all). */
const DRAIN_MS = 10_000;
/** A node reports that it leaves so long before it listens no more: proxies ask for its health at intervals. */
const ANNOUNCE_MS = 1_000;
/** Each connection closes with its next answer. Idle ones are waited for so long. */
const LAST_ANSWERS_MS = 2_000;
const POLL_MS = 20;
/** Shortest interval between two reloads on SIGHUP. */
const REREAD_INTERVAL_MS = 1_000;
/** Time for polls of events under way to end before the node leaves. */
const LAST_EVENTS_MS = 500;
/** Time for requests to end before the node leaves; those that last longer ask the new owners. */
const SHORT_DRAIN_MS = 1_000;

export interface Assembly {
  readonly url: string;
  readonly internal: string;
  readonly sandbox: string | undefined;
  /** Version of uWebSockets.js. */
  readonly httpLibrary: string;
  /** The address for people: passkeys need the host name that they were created for. */
  readonly home: string;
  /** Address at which the first admin enrolls; undefined when an admin exists. */
  readonly setupAddress: string | undefined;
  /** Reloads the catalog and the certificate, once a second at most. On a fault, which is logged, the current ones stay. */
  reread(): void;
  /** Parts that stand still. */
  degraded(): readonly string[];
  stop(): Promise<void>;
}

/** Starts everything. Throws `HttpLibraryUnusable`, `ListenError`, `Folder…`, `Journal…` and `SealKeyUnusable`. */
export async function assemble(configuration: Configuration, given: AssemblyOptions): Promise<Assembly> {
  const { log } = given;
  const settings = new LiveSettings(configuration.settings);
  const bounds = new SharedBounds(settings);
  const telemetry = openTelemetry({ configuration, settings, log, version: given.version });
  if (telemetry.follow !== undefined) log.follow?.(telemetry.follow);
  const listeners = await reserveListeners(configuration, settings, bounds, log);
  const { publicServer, renewCertificate, exchange } = listeners;
  const { folder, options } = await openFolder(configuration, given);
  const sandbox = await startSandbox(configuration, log, given.sandboxThread);
  const addresses = moduleAddresses(configuration, sandbox);
  const catalogs = openCatalog(configuration, addresses, options, () => ({ ...deps, eventLog: events.log }));
  const opened = await openActorJournal(configuration, settings, options);
  const metrics = createMetrics(() => pipelines.readings(), configuration.cluster !== undefined);
  const cluster = await enterCluster({ opened, configuration, settings, metrics, exchange }, options);
  const base = { configuration, settings, log, ...catalogs, addresses, ownership: cluster?.view ?? OWNS_ALL };
  const work = cluster?.work ?? OWNS_ALL;
  const features = () => featuresOf(cluster?.features());
  const workers = openWorkers(configuration, log);
  const modules = createModuleClient({ clock: Date.now, bounds });
  const chatUrl = addresses.get('chat');
  const dashboard = new Dashboard(() => pipelines.readings());
  const shown = { dashboard, history: openHistory(metrics, () => pipelines.readings()) };
  const requests = observeRequests(configuration, metrics, telemetry.follow);
  const logId = cluster?.pgLog.logId;
  const late = { actors: () => actors, cipher: () => cipher, site: () => site };
  const files = await startFileTransport({ ...base, ...late, modules, chatUrl, logId, exchange }, cluster);
  let delivery: WebhookDelivery | undefined;
  const calls = { workers, modules, files, chatUrl, actors: () => actors, webhooks: () => delivery };
  const credentials = openUpstreamCredentials({ ...base, ...late, bounds });
  const opening = { ...base, ...calls, ownership: work, features, logId, upstreams: credentials.port };
  const { ports, accountEvents, codeSecret, eventLog } = openPorts(opening);
  const { local, actors } = startActors({ ...base, ...opened, cluster, ports, onFatal: options.onFatal });
  await cluster?.join();
  await codeSecret();
  warnOfUnusedSendfile(configuration, settings, files.storage, log);
  unlessDiskFull(() => folder.markJournal(), log);
  bounds.observe('uploadSlots', () => actors.count('crc32'));
  const hasChat = chatUrl !== undefined;
  const site = resolveSite(configuration, options.version, publicServer.port, hasChat, features);
  const staff = await openStaff(actors, local, site, base.ownership);
  const cipher = await openApiKeyCipher(actors.administration, configuration);
  const connect = await openConnect({ ...base, actors, cipher, bounds, site });
  const fileCodes = openFileCodes(cipher);
  await recoverFiles(files, cluster, log);
  const node = cluster && { admits: () => cluster.view.admits, leaseMs: cluster.leaseMs };
  const own = { actors, eventLog: await eventLog(), bounds, sandbox, modules, ownership: work, node };
  const deliveryDeps = { ...base, ...own, local, cluster, sink: requests.sink, cipher, telemetry };
  const events = startEventDelivery(deliveryDeps);
  delivery = startWebhooks({ ...deliveryDeps, features });
  followOwners(cluster, events, delivery, log);
  const keyed = eventModulesOf(configuration, sandbox);
  const keySince = await openKeyAges(actors.administration, cipher, keyed, Date.now());
  const panel = { ...deliveryDeps, ...staff, ...shown, files, webhooks: delivery, keySince };
  const deps: HttpDeps = {
    ...{ configuration, cluster, options, settings, actors, cipher, workers, modules, files, fileCodes },
    ...{ events, accountEvents, webhooks: delivery, connect, site, features, credentials },
    drafts: openDrafts({ actors, settings, files, fileCodes }),
    ...staff,
    moduleAddresses: addresses,
    moduleRules: moduleRules(configuration, sandbox),
    ...catalogs,
    ...openLiveConnections({ ...base, actors, bounds, cluster }),
    ...openAdminNodes({ ...panel, read: options.readAgain }),
    ...{ bounds, metrics, ...shown, requests, telemetry },
    ...listeners,
    sandbox,
  };
  const pipelines = createPipelines(deps);
  telemetry.exportMetrics(() => metrics.snapshot());
  await listeners.open(pipelines.public.handle, pipelines.internal.handle);
  return assemblyOf(deps, pipelines, folder, renewCertificate);
}

function openHistory({ series }: Metrics, read: () => MetricReadings): History {
  return new History({
    ...{ read, series },
    clock: Date.now,
    schedule: nodeSchedule,
    rssBytes: residentMemory(() => performance.now()),
    loopDelay: new LoopDelay(),
  });
}

/** A node recovers beside requests: its log has all that was acknowledged, and other nodes serve meanwhile. */
async function recoverFiles(
  files: FileTransport,
  cluster: OpenedCluster | undefined,
  log: Log,
): Promise<void> {
  if (cluster === undefined) {
    await files.recover();
    return;
  }
  const node = { ownership: cluster.view, keepSinceMs: Date.now() - HOUR_MS };
  // A folder that is not that of the other nodes says nothing about uploads.
  const recovered = cluster.folderShared().then(() => files.recover(node));
  recovered.catch((error: unknown) => log.write('uploadsNotRecovered', { err: error }));
  // So the first requests find files served. A node with another folder serves the rest.
  await Promise.race([cluster.folderShared(), wait(MARKER_WAIT_MS)]);
}

/** Moves the work that has an owner with its partition, in a cluster. */
function followOwners(
  cluster: OpenedCluster | undefined,
  events: EventDelivery,
  webhooks: WebhookDelivery,
  log: Log,
): void {
  cluster?.work.follow(() => {
    events.ownershipChanged();
    webhooks.ownershipChanged().catch((error: unknown) => log.write('webhooksFailed', { err: error }));
  });
}

function assemblyOf(
  deps: HttpDeps,
  pipelines: Pipelines,
  folder: HeldFolder,
  renewCertificate: () => Promise<void>,
): Assembly {
  const { configuration, publicServer, internalServer, sandbox, site, reload } = deps;
  deps.served.open();
  deps.history.open();
  const folderDeps = { dataPath: configuration.dataPath, clock: Date.now, log: deps.options.log };
  const profiles = new Profiles(folderDeps);
  const requests = new FolderRequests({
    ...folderDeps,
    answer: {
      adminRecover: (_, uid) => recoverAdmin(deps, uid),
      profile: (body) => profiles.answer(body),
      mcpServers: (body, uid) => answerCommand(deps.served.servers, deps.actors, body, uid),
    },
  });
  return {
    url: addressOf(configuration.listen, publicServer.port),
    internal: addressOf({ host: configuration.internal.host, tls: undefined }, internalServer.port),
    sandbox: sandbox?.url,
    httpLibrary: httpLibrary().version,
    home: site.baseUrl,
    setupAddress: deps.setupAddress,
    reread: joinRuns({
      run: () => Promise.all([reload(), renewCertificate()]),
      intervalMs: REREAD_INTERVAL_MS,
      timer: nodeSchedule.timer,
    }),
    degraded: () => degradedParts(deps),
    async stop() {
      requests.stop();
      await shutDown(deps, pipelines);
      await sandbox?.close();
      if (configuration.cluster !== undefined) markClosed(configuration.dataPath);
      folder.release();
    },
  };
}

/** The record is on disk before the link is made. */
async function recoverAdmin({ actors, setupLinks, site, options }: HttpDeps, uid: number): Promise<string> {
  const record = { utcMs: Date.now(), event: 'admin_recovery', userId: null, fields: { uid } } as const;
  await actors.administration.auditFirst(record);
  options.log.write('adminRecovery');
  return createSetupLink(setupLinks, site.baseUrl, true);
}

function openWorkers({ workerThreads }: Configuration, log: Log): WorkerPool {
  return createWorkerPool({
    threads: workerThreads || Math.max(1, availableParallelism() - 1),
    queueMax: WORKER_QUEUE_MAX,
    onFault: (message) => log.write('workerFault', { detail: message }),
  });
}

/** Locks the data folder, and checks that its journal may be opened. `options` mark a failure in the folder. */
async function openFolder(
  { dataPath, cluster }: Configuration,
  given: AssemblyOptions,
): Promise<{ readonly folder: HeldFolder; readonly options: AssemblyOptions }> {
  const { log, newJournal } = given;
  const folder = await holdFolder(dataPath);
  if (folder.unlocked !== undefined) log.write('folderUnlocked', { detail: folder.unlocked });
  const isNode = cluster !== undefined;
  if (isNode) settleFolder(dataPath, log);
  else requireNoNode(dataPath);
  // A node fetches its state where there is none.
  checkJournal(dataPath, folder.hadJournal && !isNode, newJournal);
  dropReceipt(dataPath);
  if (folder.wasCutOff) {
    await checkPages(dataPath);
    log.write('journalChecked');
  }
  unlessDiskFull(() => folder.markServed(), log);
  return { folder, options: markingFailures(given, folder) };
}

/** After a failure of the journal the next start checks its pages. */
function markingFailures(options: AssemblyOptions, folder: HeldFolder): AssemblyOptions {
  return {
    ...options,
    onFatal(error) {
      folder.keepServed();
      options.onFatal(error);
    },
  };
}

/**
 * Settles the folder that the last run of a node left: a journal that cannot be used is set aside. Throws
 * `ClusterUnusable`.
 */
function settleFolder(dataPath: string, log: Log): void {
  const aside = settleLastRun(dataPath, bootId(), Date.now());
  if (aside !== undefined) log.write('journalSetAside', aside);
}

/** The state of the folder is a precaution: a full disk that cannot store it must not stop the gateway. */
function unlessDiskFull(mark: () => void, log: Log): void {
  try {
    mark();
  } catch (error) {
    if (!isNoRoom(error)) throw error;
    log.write('folderUnmarked', { err: error });
  }
}

/** Clients open connections to other nodes from now on; what they still send here is served. */
async function sendClientsAway(
  cluster: OpenedCluster,
  pipeline: Pipeline,
  {
    publicServer: server,
    sockets,
    events: { streams },
  }: Pick<HttpDeps, 'publicServer' | 'sockets' | 'events'>,
): Promise<void> {
  cluster.announceLeave();
  pipeline.closeConnections();
  await wait(ANNOUNCE_MS);
  server.stopListening();
  // No client ends such a connection by itself. New ones go to other nodes.
  await Promise.all([sockets.drain(), streams.drain()]);
  const endMs = performance.now() + LAST_ANSWERS_MS;
  while (server.counters().open > 0 && performance.now() < endMs) await wait(POLL_MS);
}

/** Stops in the order of dependencies: stop new work, let running work end, then close what it runs on. */
async function shutDown(deps: HttpDeps, pipelines: Pipelines): Promise<void> {
  const {
    actors,
    cluster,
    events,
    files,
    modules,
    options,
    publicServer,
    internalServer,
    requests,
    webhooks,
    workers,
  } = deps;
  if (cluster !== undefined) await sendClientsAway(cluster, pipelines.public, deps);
  publicServer.stopListening();
  deps.dashboard.close();
  deps.history.close();
  deps.drafts.uploads.suspend();
  const hooks = webhooks.stop();
  if (cluster !== undefined) {
    // Attempts under way are settled here, or repeated by the next owner.
    const attempts = Promise.race([hooks, wait(SHORT_DRAIN_MS)]);
    await Promise.all([pipelines.public.drain(SHORT_DRAIN_MS), attempts]);
    // Accepted and released events are written before the leave, if the database answers.
    await Promise.race([events.stop(), wait(LAST_EVENTS_MS)]);
    await cluster.leave(actors);
  }
  const left = await Promise.all(
    [pipelines.public, pipelines.internal, events.streams, deps.listChanges, deps.sockets].map((part) =>
      part.drain(DRAIN_MS),
    ),
  );
  const cut = left.reduce((sum, each) => sum + each, 0);
  if (cut > 0) options.log.write('requestsCut', { requests: cut, drainMs: DRAIN_MS });
  await hooks;
  if (cluster === undefined) {
    await events.stop();
    await actors.drain(DRAIN_MS);
    await files.finish();
  }
  await Promise.all([publicServer.close(), internalServer.close()]);
  await requests.close();
  await deps.telemetry.close();
  await deps.connect.close();
  await deps.served.servers.close();
  await modules.close();
  await workers.close();
  await cluster?.close();
  await actors.close();
  cluster?.audit.close();
  await files.close();
}
