/**
 * The v1 uploads of one user, of which one at a time is active (spec 2.7, 4.6). Owns which chunks arrived, and what is
 * to be done at an end: bytes first, then the message, then the slot, then the answer; each step that a crash must not
 * swallow is a durable message.
 */
import { chunkOffsetBytes, chunkSizeBytes } from '../../../domain/files/files.ts';
import type { SettingsReader } from '../../../domain/settings/settings.ts';
import { defineActor, type Outcome, type Refusal, refuse, type Turn } from '../../runtime/actor.ts';
import { type CheckUpload, checkUpload, type UploadChecked, uploadChecked } from './upload-check.ts';
import {
  type CleanedUp,
  type CleanUp,
  cleanedUp,
  cleanUp,
  type DropUpload,
  dropUpload,
  type ExpireUpload,
  endUpload,
  expireUpload,
  type SlotFreed,
  slotFreed,
} from './upload-ending.ts';
import { type OpenUpload, openUpload, type Prepared, prepared } from './upload-opening.ts';
import {
  type FinishUpload,
  finishUpload,
  type Published,
  published,
  type StoreChunk,
  storeChunk,
} from './upload-parts.ts';
import {
  activeUpload,
  evolveUpload,
  expiryMs,
  finishedBy,
  missingChunks,
  type UploadEvent,
  type UploadState,
} from './upload-state.ts';

export interface CancelUpload {
  readonly type: 'cancelUpload';
  readonly uploadId: number;
}

export type UploadCommand =
  | OpenUpload
  | Prepared
  | StoreChunk
  | FinishUpload
  | Published
  | CancelUpload
  | ExpireUpload
  | DropUpload
  | SlotFreed
  | CleanUp
  | CleanedUp
  | CheckUpload
  | UploadChecked;

/** What is missing (refuses like the commands); whose parts a sweep has to leave alone. */
export type UploadQuery =
  | {
      readonly type: 'status';
      readonly uploadId: number;
      readonly nowMs: number;
      readonly settings: SettingsReader;
    }
  | { readonly type: 'fileIds' };

/**
 * Volatile: may this chunk be sent, and where does it go? Answered within the turn, also while earlier chunks are still
 * on their way to the journal: nothing of the answer leaves the gateway but a refusal.
 */
export interface FindPlace {
  readonly type: 'findPlace';
  readonly uploadId: number;
  readonly chunkNumber: number;
  readonly crc32: number;
}

/** A chunk that has a place. `known`: it is stored already, only the answer is wanted. */
export interface PartPlace {
  readonly uploadKey: string;
  readonly fileId: string;
  readonly positionBytes: number;
  readonly sizeBytes: number;
  readonly known: boolean;
}

export interface UploadStatus {
  readonly uploadId: number;
  readonly chunkCount: number;
  readonly missing: readonly number[];
  readonly expiresMs: number;
}

export const upload = defineActor<UploadState, UploadCommand, UploadEvent, UploadQuery>({
  kind: 'upload',
  version: 1,
  limits: { mailbox: 256, snapshotEvery: 200, idleMs: 60_000 },
  initial: (userId) => ({ userId, current: null, finished: [], leftovers: [] }),
  evolve: evolveUpload,
  decide(state, command, turn) {
    switch (command.type) {
      case 'openUpload':
        return openUpload(state, command, turn);
      case 'prepared':
        return prepared(state, command, turn);
      case 'storeChunk':
        return storeChunk(state, command, turn);
      case 'finishUpload':
        return finishUpload(state, command, turn);
      case 'published':
        return published(state, command, turn);
      case 'cancelUpload':
        return cancel(state, command, turn);
      case 'expireUpload':
        return expireUpload(state, command, turn);
      case 'dropUpload':
        return dropUpload(state);
      case 'slotFreed':
        return slotFreed(state, command, turn);
      case 'cleanUp':
        return cleanUp(state, command);
      case 'cleanedUp':
        return cleanedUp(state, command, turn);
      case 'checkUpload':
        return checkUpload(state, command);
      case 'uploadChecked':
        return uploadChecked(state, command, turn);
    }
  },
  decideNow: (state, _volatile, command, turn) => placeOf(state, command as FindPlace, turn),

  query(state, query): UploadStatus | readonly string[] | Refusal {
    switch (query.type) {
      case 'status':
        return statusOf(state, query);
      case 'fileIds':
        return state.current === null || state.current.phase === 'leaving' ? [] : [state.current.fileId];
    }
  },
  frees: (command) => 'type' in command && command.type === 'cancelUpload',
});

/** One that is completing has finished for its owner: there is nothing left to cancel. */
function cancel(state: UploadState, { uploadId }: CancelUpload, turn: Turn): Outcome<UploadEvent> | Refusal {
  const active = activeUpload(state, uploadId, turn);
  return active?.phase === 'open'
    ? endUpload(state, active, 'cancelled', turn.commandId)
    : refuse('InvalidID');
}

/** In the order of refusals: 1305, 1306; then the route judges the bytes: 1307, 1308. */
function placeOf(state: UploadState, command: FindPlace, turn: Turn): PartPlace | Refusal {
  const { uploadId, chunkNumber, crc32 } = command;
  const active = activeUpload(state, uploadId, turn);
  if (active === undefined) {
    const finished = finishedBy(state, command, turn.nowMs);
    if (finished === undefined) return refuse('InvalidID');
    return { uploadKey: '', fileId: finished.fileId, positionBytes: 0, sizeBytes: 0, known: true };
  }
  const sizeBytes = chunkSizeBytes(chunkNumber, active.sizeBytes);
  if (sizeBytes === undefined) return refuse('InvalidPart');
  const stored = active.chunks[chunkNumber] ?? null;
  if (stored !== null && stored !== crc32)
    return refuse('ChecksumError', 'the chunk is stored with another one');
  const { uploadKey, fileId } = active;
  return {
    uploadKey,
    fileId,
    positionBytes: chunkOffsetBytes(chunkNumber),
    sizeBytes,
    known: stored !== null,
  };
}

function statusOf(
  state: UploadState,
  query: Extract<UploadQuery, { type: 'status' }>,
): UploadStatus | Refusal {
  const active = activeUpload(state, query.uploadId, query);
  if (active === undefined) return refuse('InvalidID');
  return {
    uploadId: active.uploadId,
    chunkCount: active.chunks.length,
    missing: missingChunks(active),
    expiresMs: expiryMs(active, query),
  };
}
