/** Puts v2 uploads together: what their routes are given of the file transport. */
import type { ActorSystem } from './actors/runtime/actor.ts';
import type { SettingsReader } from './domain/settings.ts';
import type { FileTransport } from './file-transport.ts';
import { DraftUploads } from './io/files/draft-uploads.ts';
import type { FileCodes } from './io/files/file-code.ts';
import type { DraftParts } from './io/routes/files-v2.ts';
import type { WorkerPool } from './workers/pool.ts';

export interface DraftOptions {
  readonly actors: ActorSystem;
  readonly settings: SettingsReader;
  readonly files: FileTransport;
  readonly fileCodes: FileCodes;
  readonly workers: WorkerPool;
}

export function openDrafts({ actors, settings, files, fileCodes, workers }: DraftOptions): DraftParts {
  const { storage, receiver, throttle } = files;
  return {
    uploads: new DraftUploads({ actors, settings, storage, receiver, throttle, workers }),
    codes: fileCodes,
  };
}
