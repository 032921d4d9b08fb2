/** Puts v2 uploads together: what their routes are given of the file transport. */
import type { ActorSystem } from '../actors/runtime/actor.ts';
import { nodeSchedule } from '../actors/runtime/runtime-context.ts';
import type { SettingsReader } from '../domain/settings/settings.ts';
import type { FileCodes } from '../io/files/download/file-code.ts';
import { DraftUploads } from '../io/files/upload/v2-stream.ts';
import type { DraftParts } from '../io/routes/files-v2.ts';
import type { FileTransport } from './files.ts';

export interface DraftOptions {
  readonly actors: ActorSystem;
  readonly settings: SettingsReader;
  readonly files: FileTransport;
  readonly fileCodes: FileCodes;
}

export function openDrafts({ actors, settings, files, fileCodes }: DraftOptions): DraftParts {
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
