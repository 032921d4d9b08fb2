/** Composes the file transport: the storage, the ports of the actors, and the services of the routes. */

import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { user } from '../actors/accounts/user.ts';
import { UPLOAD_SLOTS_ID, uploadSlots } from '../actors/files/v1/upload-slots.ts';
import type { GatewayActors } from '../actors/gateway-actors.ts';
import type { LimitExchange } from '../actors/limits/limit-exchange.ts';
import type { ActorSystem } from '../actors/runtime/actor.ts';
import type { Ports, WorkerPort } from '../actors/runtime/ports.ts';
import { nodeSchedule } from '../actors/runtime/runtime-context.ts';
import type { Configuration } from '../domain/config/configuration.ts';
import { areInBuckets } from '../domain/config/file-servers.ts';
import { isNoRoom } from '../domain/disk-faults.ts';
import type { SettingsReader } from '../domain/settings/settings.ts';
import { SendBuffers } from '../io/files/download/buffers.ts';
import { type DownloadCounters, Downloads } from '../io/files/download/downloads.ts';
import { FileMetadataCache, type FileMetadataCacheCounters } from '../io/files/download/file-cache.ts';
import type { FileCodes } from '../io/files/download/file-code.ts';
import { filePort } from '../io/files/storage/actor-port.ts';
import { FileCalls } from '../io/files/storage/file-calls.ts';
import { LocalStorage } from '../io/files/storage/local.ts';
import { MarkerFolder, type Markers } from '../io/files/storage/marker-folder.ts';
import type { FileStorage, StorageCounters } from '../io/files/storage/port.ts';
import { RemoteStorage } from '../io/files/storage/remote.ts';
import { type Direction, QUOTA_SETTING, Throttle, type ThrottleCounters } from '../io/files/throttle.ts';
import { BodyReceiver, type ReceiverCounters } from '../io/files/upload/receiver.ts';
import {
  noteCleanStop,
  type RecoveryOptions,
  recoverUploads,
  wantedFiles,
} from '../io/files/upload/recovery.ts';
import { textPreview } from '../io/files/upload/text-preview.ts';
import { PartUploads } from '../io/files/upload/v1-parts.ts';
import { DraftUploads } from '../io/files/upload/v2-stream.ts';
import { type ChatFiles, chatFilesOf } from '../io/modules/chat-files.ts';
import type { ModuleClient } from '../io/modules/client.ts';
import type { Log } from '../io/observability/log.ts';
import { newRequestId } from '../io/observability/request-ids.ts';
import type { DraftDeps } from '../io/routes/files-v2.ts';
import { createWorkerPool, type WorkerCounters } from '../workers/pool.ts';
import type { OpenedCluster } from './cluster/open.ts';
import { folderFault, makeFolder } from './data-directory.ts';
import { type FileServers, fileServersOf } from './storage/file-servers.ts';

/**
 * Separate from the threads that verify logins, because a hanging disk blocks the threads that write to it. One thread
 * hashes and writes 1.6 GB/s (docs/optimizations.md).
 */
const THREADS = 1;
/** 60 v1 uploads and some thousand v2 streams, four tasks each. */
const QUEUE_MAX = 10_000;

interface FileTransportOptions {
  readonly configuration: Configuration;
  readonly settings: SettingsReader;
  readonly modules: ModuleClient;
  /** Called only while a task runs: the actors start after their ports. */
  readonly actors: () => GatewayActors;
  /** Base address of the chat module; undefined where there is none. */
  readonly chatUrl: string | undefined;
  /** Other nodes of a cluster share the quotas of bandwidth. */
  readonly exchange?: LimitExchange | undefined;
  readonly log: Log;
  /** Id of the log of a cluster. */
  readonly logId?: string | undefined;
  /** True if this node has the same folder as the other nodes. Always unless given. */
  readonly sharesFiles?: () => boolean;
}

export interface FileTransport {
  readonly storage: FileStorage;
  /** Markers in the folder that nodes share, under the id of their log. */
  markers(logId: string): Markers;
  /** Undefined without a chat module. */
  readonly chatFiles: ChatFiles | undefined;
  /** Ports for the actor system. */
  readonly ports: Pick<Ports, 'files' | 'chatFiles'>;
  readonly throttle: Throttle;
  /** Threads for file bytes only. */
  readonly workers: WorkerPort;
  readonly receiver: BodyReceiver;
  /** Metadata of finished files, from the chat module. */
  readonly fileCache: FileMetadataCache;
  /** The sender, with the quota of each version. */
  readonly v1: Downloads;
  readonly v2: Downloads;
  counters(): {
    readonly storage: StorageCounters;
    readonly bandwidth: ThrottleCounters;
    readonly uploads: ReceiverCounters;
    readonly v1Parts: ReturnType<PartUploads['counters']>;
    readonly workers: WorkerCounters;
    readonly fileCache: FileMetadataCacheCounters;
    readonly v1Downloads: DownloadCounters;
    readonly v2Downloads: DownloadCounters;
  };
  /** Parts of v1 uploads. */
  readonly uploads: PartUploads;
  readonly servers: FileServers;
  /** Continues the work of an earlier run. Must resolve before the first request. `node`: see `recoverUploads`. */
  recover(node?: RecoveryOptions['node']): Promise<void>;
  /** Notes that all received bytes are complete, so the next run need not check them. */
  finish(): Promise<void>;
  close(): Promise<void>;
}

/** Throws `FolderUnusable`, `JournalUnusable` when the folder of the bytes cannot be created or written. */
export function openFileTransport(options: FileTransportOptions): FileTransport {
  const { configuration, settings, modules, chatUrl, log } = options;
  // The folder is made before the threads start: one that cannot be used ends the start.
  const folder = makeStorageFolder(configuration);
  const workers = createWorkerPool({
    threads: THREADS,
    queueMax: QUEUE_MAX,
    onFault: (message) => log.write('fileWorkerFault', { detail: message }),
  });
  const calls = new FileCalls();
  const storage = openStorage(options, { folder, workers, calls });
  const throttle = new Throttle({
    settings,
    elapsed: performance.now.bind(performance),
    timer: nodeSchedule.timer,
    shared: options.exchange?.bandwidth,
  });
  const standsStill = () => workers.counters().stuck > 0 || storage.counters().calls.stuck > 0;
  const receiver = new BodyReceiver(workers, { folder, standsStill });
  const chatFiles = chatFilesOf(chatUrl, {
    modules,
    project: configuration.project,
    newRequestId,
    isBlocked: async (userId) => (await options.actors().query(user, userId, { type: 'account' })).blocked,
    textOf: (file) => textPreview(storage, file),
  });
  const fileCache = new FileMetadataCache(chatFiles);
  const { v1, v2 } = openDownloads(options, storage, throttle);
  const servers = fileServersOf(storage, log);
  const uploads = new PartUploads({ storage, receiver, throttle });
  return {
    storage,
    chatFiles,
    markers: (logId) => new MarkerFolder(folder, logId, calls),
    ports: {
      files: filePort(storage, workers, options.sharesFiles),
      ...(chatFiles === undefined ? {} : { chatFiles }),
    },
    uploads,
    servers,
    recover: (node) => recover(options, { storage, servers }, node),
    finish: () => noteCleanStop(options.actors().administration),
    throttle,
    workers,
    receiver,
    fileCache,
    v1,
    v2,
    counters: () => ({
      storage: storage.counters(),
      bandwidth: throttle.counters(),
      uploads: receiver.counters(),
      v1Parts: uploads.counters(),
      workers: workers.counters(),
      fileCache: fileCache.counters(),
      v1Downloads: v1.counters(),
      v2Downloads: v2.counters(),
    }),
    async close() {
      servers.leave();
      throttle.close();
      await workers.close();
      await storage.close();
    },
  };
}

async function recover(
  { actors: actorsOf, log }: FileTransportOptions,
  { storage, servers }: Pick<FileTransport, 'storage' | 'servers'>,
  node: RecoveryOptions['node'],
): Promise<void> {
  const actors = actorsOf();
  servers.sweepDaily({
    isOwner: () => node?.ownership.owns(uploadSlots.kind, UPLOAD_SLOTS_ID) !== false,
    wanted: () => wantedFiles(actors),
  });
  const { administration } = actors;
  const report = await recoverUploads({ actors, administration, storage, ...(node && { node }) });
  if (report.uploads > 0 || report.partsSwept > 0) log.write('uploadsRecovered', report);
}

/** The senders of both versions, over the same buffers. */
function openDownloads(
  { configuration: { sendfileBehind }, settings, log }: FileTransportOptions,
  storage: FileStorage,
  throttle: Throttle,
): { readonly v1: Downloads; readonly v2: Downloads } {
  const buffers = new SendBuffers();
  const open = (direction: Direction) =>
    new Downloads({
      storage,
      buffers,
      pace: (owner) => throttle.open(direction, owner),
      proxy: sendfileBehind && {
        prefix: sendfileBehind.prefix,
        // nginx knows no quota that is shared by a person's downloads.
        isUsed: () => settings.get(QUOTA_SETTING[direction]) === 0,
      },
      // Chunks and checksums are headers of v1, which a storage does not send.
      mayRedirect: () => direction === 'download' && settings.get(QUOTA_SETTING[direction]) === 0,
      onFault: (message, error) => log.write('downloadFailed', { detail: message, err: error }),
    });
  return { v1: open('v1Download'), v2: open('download') };
}

/**
 * The same, once its file servers were found right; a node proves that the folder is that of the other nodes. Rejects with
 * the same errors.
 */
export async function startFileTransport(
  given: Omit<FileTransportOptions, 'sharesFiles'>,
  cluster: Pick<OpenedCluster, 'sharesFiles' | 'shareFolder' | 'pgLog'> | undefined,
): Promise<FileTransport> {
  const files = openFileTransport({ ...given, ...(cluster && { sharesFiles: cluster.sharesFiles }) });
  await files.servers.enter();
  // Into a bucket bytes go as they arrive: no folder is shared.
  if (!areInBuckets(given.configuration)) cluster?.shareFolder(files.markers(cluster.pgLog.logId));
  return files;
}

interface DraftOptions {
  readonly actors: ActorSystem;
  readonly settings: SettingsReader;
  readonly files: FileTransport;
  readonly fileCodes: FileCodes;
}

export function openDrafts({ actors, settings, files, fileCodes }: DraftOptions): DraftDeps {
  const { storage, receiver, throttle, workers } = files;
  return {
    uploads: new DraftUploads({
      actors,
      settings,
      storage,
      receiver,
      throttle,
      workers,
      clock: Date.now,
      timer: nodeSchedule.timer,
    }),
    codes: fileCodes,
  };
}

/** A configured folder wins over servers; without both, a folder beside the journal is used (spec 4.8). */
function isRemote({ localFileStoragePath, fileServers }: Configuration): boolean {
  return localFileStoragePath === undefined && Object.keys(fileServers).length > 0;
}

/** The folder of the bytes, or of uploads on their way to a storage server. */
function makeStorageFolder(configuration: Configuration): string {
  const { folder, key } = storageFolder(configuration);
  makeWritableFolder(folder, key);
  return folder;
}

/** `key` names it in the configuration. */
function storageFolder(configuration: Configuration): { readonly folder: string; readonly key: string } {
  const { localFileStoragePath, fileStagingPath, dataPath } = configuration;
  if (localFileStoragePath !== undefined)
    return { folder: localFileStoragePath, key: 'LocalFileStoragePath' };
  if (!isRemote(configuration)) return { folder: join(dataPath, 'files'), key: 'DataPath' };
  return fileStagingPath === undefined
    ? { folder: join(dataPath, 'uploads'), key: 'DataPath' }
    : { folder: fileStagingPath, key: 'FileStagingPath' };
}

interface StorageParts {
  readonly folder: string;
  readonly workers: WorkerPort;
  readonly calls: FileCalls;
}

function openStorage(
  { configuration, log, logId }: FileTransportOptions,
  { folder, workers, calls }: StorageParts,
): FileStorage {
  const { fileServers, sendfileBehind, cluster } = configuration;
  const isShared = cluster !== undefined;
  const full = {
    onFull: (message: string) => log.write('storageFull', { detail: message }),
    elapsed: performance.now.bind(performance),
  };
  const deps = {
    ...{ workers, calls, full },
    onFault: (message: string) => log.write('storageFault', { detail: message }),
  };
  if (isRemote(configuration))
    return new RemoteStorage({
      servers: fileServers,
      staging: folder,
      isShared,
      directLogId: areInBuckets(configuration) ? logId : undefined,
      ...deps,
    });
  return new LocalStorage({
    root: folder,
    isShared,
    readers: sendfileBehind === undefined ? 'own' : 'group',
    ...deps,
  });
}

/**
 * Writes a byte, because permissions do not show a read-only file system. A full disk is not a fault of the configuration:
 * uploads are refused until there is space.
 */
function makeWritableFolder(path: string, key: string): void {
  makeFolder(path, key);
  const probe = join(path, '.writable');
  try {
    writeFileSync(probe, '1', { mode: 0o600 });
  } catch (error) {
    if (!isNoRoom(error)) throw folderFault(error, path, key);
  }
  rmSync(probe, { force: true });
}

/** A proxy that waits for files and never receives one is rarely meant. Call it with the settings of the journal. */
export function warnOfUnusedSendfile(
  { sendfileBehind }: Configuration,
  settings: SettingsReader,
  storage: FileStorage,
  log: Log,
): void {
  if (sendfileBehind === undefined) return;
  if (storage.pathBelowRoot === undefined)
    log.write('sendfileUnused', { detail: 'files are on FileServers' });
  else if (settings.get('FileDownloadBytesPerSecond') > 0)
    log.write('sendfileUnused', { detail: 'FileDownloadBytesPerSecond is above 0' });
}
