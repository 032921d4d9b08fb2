/**
 * The v1 uploads of one user, of which one at a time is active (spec 2.7, 4.6). Owns which chunks arrived, and what is
 * to be done at an end: bytes first, then the message, then the slot, then the answer; each step that a crash must not
 * swallow is a durable message.
 */
import { chunkOffsetBytes, chunkSizeBytes } from '../../../domain/files/files.ts';
import {
  defineActor,
  type Outcome,
  type QueryView,
  type Refusal,
  refuse,
  type Turn,
} from '../../runtime/actor.ts';
import type { Protocol } from '../../runtime/protocol.ts';
import {
  type CheckedChunks,
  type CheckUpload,
  checkUpload,
  type UploadChecked,
  uploadChecked,
} from './upload-check.ts';
import {
  type CleanedUp,
  cleanedUp,
  cleanUp,
  dropUpload,
  type ExpireUpload,
  endUpload,
  expireUpload,
  slotFreed,
} from './upload-ending.ts';
import { type StoredChunk, UPLOAD, type UploadMessage } from './upload-messages.ts';
import { openUpload, type Prepared, prepared } from './upload-opening.ts';
import {
  finishUpload,
  IS_COMPLETE,
  type Published,
  published,
  type ReplaceChunk,
  replaceChunk,
  type StoreChunk,
  storeChunk,
} from './upload-parts.ts';
import {
  activeUpload,
  evolveUpload,
  expiryMs,
  finishedBy,
  isReplaced,
  missingChunks,
  type UploadEvent,
  type UploadState,
} from './upload-state.ts';

interface CancelUpload {
  readonly type: 'cancelUpload';
  readonly uploadId: number;
}

type UploadCommand =
  | UploadMessage
  | Prepared
  | StoreChunk
  | ReplaceChunk
  | Published
  | CancelUpload
  | ExpireUpload
  | CleanedUp
  | CheckUpload
  | UploadChecked;

/**
 * Queries: missing chunks (refuses like the commands); files whose parts a sweep has to leave alone; `findPosition` of
 * a node that does not own the upload.
 */
type UploadQuery =
  | { readonly type: 'status'; readonly uploadId: number }
  | { readonly type: 'fileIds' }
  | FindPosition;

/**
 * Volatile: may this chunk be sent, and where does it go? Answered within the turn, also while earlier chunks are still
 * on their way to the journal: nothing of the answer leaves the gateway but a refusal.
 */
export interface FindPosition {
  readonly type: 'findPosition';
  readonly uploadId: number;
  readonly chunkNumber: number;
  readonly crc32: number;
}

/** A chunk that has a place. `known`: it is stored already, only the answer is wanted. */
export interface ChunkPosition {
  readonly uploadKey: string;
  readonly fileId: string;
  readonly positionBytes: number;
  readonly sizeBytes: number;
  readonly fileBytes: number;
  readonly known: boolean;
  /** The chunk has other bytes: the actor is asked before these are written. */
  readonly replaces: boolean;
}

interface UploadStatus {
  readonly uploadId: number;
  readonly chunkCount: number;
  readonly missing: readonly number[];
  readonly expiresMs: number;
}

export type UploadProtocol = Protocol<
  UploadCommand,
  {
    readonly storeChunk: StoredChunk;
    readonly replaceChunk: null;
    readonly cancelUpload: null;
    readonly expireUpload: null;
    readonly checkUpload: CheckedChunks;
    readonly uploadChecked: CheckedChunks;
  },
  UploadQuery,
  {
    readonly status: UploadStatus;
    readonly fileIds: readonly string[];
    readonly findPosition: ChunkPosition;
  },
  FindPosition,
  { readonly findPosition: ChunkPosition }
>;

export const upload = defineActor<UploadState, UploadProtocol, UploadEvent>({
  kind: UPLOAD,
  version: 1,
  limits: { mailbox: 256, snapshotEvery: 200, idleMs: 60_000 },
  initial: (userId) => ({ userId, current: null, finished: [], leftovers: [] }),
  evolve: evolveUpload,
  decide: {
    openUpload,
    prepared,
    storeChunk,
    replaceChunk,
    finishUpload,
    published,
    cancelUpload: cancel,
    expireUpload,
    dropUpload,
    slotFreed,
    cleanUp,
    cleanedUp,
    checkUpload,
    uploadChecked,
  },
  decideNow: { findPosition: (state, _volatile, command, turn) => positionOf(state, command, turn) },
  query: {
    status: statusOf,
    findPosition: (state, query, _volatile, view) => positionOf(state, query, view),
    fileIds: ({ current }) => (current === null || current.phase === 'leaving' ? [] : [current.fileId]),
  },
  frees: ({ type }) => type === 'cancelUpload',
});

/** One that is completing has finished for its owner: there is nothing left to cancel. */
function cancel(
  state: UploadState,
  { uploadId }: CancelUpload,
  turn: Turn,
): Outcome<UploadEvent, null> | Refusal {
  const active = activeUpload(state, uploadId, turn);
  return active?.phase === 'open'
    ? endUpload(state, active, 'cancelled', turn.commandId)
    : refuse('InvalidID');
}

/** Checks in the order of refusals: 1305, 1306; then the route judges the bytes: 1307, 1308. */
function positionOf(state: UploadState, command: FindPosition, turn: QueryView): ChunkPosition | Refusal {
  const { uploadId, chunkNumber } = command;
  const active = activeUpload(state, uploadId, turn);
  if (active === undefined) {
    const finished = finishedBy(state, command, turn.nowMs);
    if (finished === undefined) return refuse('InvalidID');
    const { fileId } = finished;
    const nothing = { uploadKey: '', positionBytes: 0, sizeBytes: 0, fileBytes: 0 };
    return { ...nothing, fileId, known: true, replaces: false };
  }
  const sizeBytes = chunkSizeBytes(chunkNumber, active.sizeBytes);
  if (sizeBytes === undefined) return refuse('InvalidPart');
  const replaces = isReplaced(active, command);
  if (replaces && active.phase !== 'open') return refuse('ChecksumError', IS_COMPLETE);
  const { uploadKey, fileId } = active;
  return {
    uploadKey,
    fileId,
    positionBytes: chunkOffsetBytes(chunkNumber),
    sizeBytes,
    fileBytes: active.sizeBytes,
    known: active.chunks[chunkNumber] === command.crc32,
    replaces,
  };
}

function statusOf(
  state: UploadState,
  { uploadId }: Extract<UploadQuery, { type: 'status' }>,
  _volatile: undefined,
  view: QueryView,
): UploadStatus | Refusal {
  const active = activeUpload(state, uploadId, view);
  if (active === undefined) return refuse('InvalidID');
  return {
    uploadId: active.uploadId,
    chunkCount: active.chunks.length,
    missing: missingChunks(active),
    expiresMs: expiryMs(active, view),
  };
}
