/** Puts the file transport together: where the bytes lie, and what actors and routes are given to reach them. */
import { unlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { FilePort } from './actors/runtime/ports.ts';
import { nodeSchedule } from './actors/runtime/world.ts';
import { FolderUnusable, makeFolder } from './data-folder.ts';
import type { Configuration } from './domain/configuration.ts';
import type { SettingsReader } from './domain/settings.ts';
import { LocalStorage } from './io/files/local.ts';
import { filePort } from './io/files/port.ts';
import { Receiver, type ReceiverCounters } from './io/files/receiver.ts';
import type { FileStorage, StorageCounters } from './io/files/storage.ts';
import { Throttle, type ThrottleCounters } from './io/files/throttle.ts';
import type { Log } from './io/log.ts';
import type { WorkerPool } from './workers/pool.ts';

export interface FileTransportOptions {
  readonly configuration: Configuration;
  readonly settings: SettingsReader;
  readonly workers: WorkerPool;
  readonly log: Log;
}

export interface FileTransport {
  readonly storage: FileStorage;
  /** For the actor system. */
  readonly port: FilePort;
  /** The bandwidth limiter. */
  readonly throttle: Throttle;
  /** Takes the bodies of uploads. */
  readonly receiver: Receiver;
  counters(): {
    readonly storage: StorageCounters;
    readonly bandwidth: ThrottleCounters;
    readonly uploads: ReceiverCounters;
  };
  close(): Promise<void>;
}

/** Throws `FolderUnusable` when the folder of the bytes cannot be made or written. */
export function openFileTransport(options: FileTransportOptions): FileTransport {
  const { configuration, settings, workers, log } = options;
  const storage = openStorage(configuration, log);
  const throttle = new Throttle({
    settings,
    elapsed: () => performance.now(),
    timer: nodeSchedule.timer,
  });
  const receiver = new Receiver(workers);
  return {
    storage,
    port: filePort(storage, workers),
    throttle,
    receiver,
    counters: () => ({
      storage: storage.counters(),
      bandwidth: throttle.counters(),
      uploads: receiver.counters(),
    }),
    close() {
      throttle.close();
      return storage.close();
    },
  };
}

function openStorage({ localFileStoragePath, dataPath }: Configuration, log: Log): FileStorage {
  const root = localFileStoragePath ?? join(dataPath, 'files');
  makeWritableFolder(root, localFileStoragePath === undefined ? 'DataPath' : 'LocalFileStoragePath');
  return new LocalStorage({ root, onFault: (message) => log.error({ message }, 'file storage') });
}

/** Writes a byte to see: permissions alone do not show a file system that is mounted read-only or full. */
function makeWritableFolder(path: string, key: string): void {
  makeFolder(path, key);
  const probe = join(path, '.writable');
  try {
    writeFileSync(probe, '1', { mode: 0o600 });
    unlinkSync(probe);
  } catch (error) {
    throw new FolderUnusable(error instanceof Error ? error.message : String(error), key);
  }
}
