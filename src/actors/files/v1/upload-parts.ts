/** Chunks of a v1 upload that are stored, and the completion that follows from the last one. */
import type { ErrorName } from '../../../domain/errors.ts';
import { chunkedPartBytesMax } from '../../../domain/files/chunk-table.ts';
import {
  CHUNK_BYTES,
  COMPLETION_RETRY_MS,
  chunkSizeBytes,
  completionRefusal,
  FILE_HARD_CAP_BYTES,
  type FileKey,
  isUndecided,
  repeatedCompletionError,
} from '../../../domain/files/files.ts';
import type { AuditRecord } from '../../runtime/actor.ts';
import {
  Later,
  type Message,
  type Outcome,
  type Refusal,
  refuse,
  runOf,
  type Turn,
} from '../../runtime/actor.ts';
import type { FilePort, PortResult, Ports } from '../../runtime/ports.ts';
import { messageTo } from '../../runtime/protocol.ts';
import { storedChunks } from './upload-check.ts';
import { EXPIRY_TIMER, type ExpireUpload, endUpload } from './upload-ending.ts';
import { type FinishUpload, type StoredChunk, UPLOAD } from './upload-messages.ts';
import { expiryTimer } from './upload-opening.ts';
import {
  activeUpload,
  evolveUpload,
  finishedBy,
  isReplaced,
  isWhole,
  type Upload,
  type UploadEvent,
  type UploadState,
  wholeCrc32,
} from './upload-state.ts';

/**
 * Replacements in one upload; as many as the largest file has chunks. Each takes a commit, and keeps the upload from
 * its expiry.
 */
const REPLACEMENTS_MAX = FILE_HARD_CAP_BYTES / CHUNK_BYTES;
const OTHER_BYTES = 'the file has other bytes than those acknowledged; send its missing chunks again';
export const IS_COMPLETE = 'the file is complete, with another checksum of this chunk';

const FINISH_TIMER = 'finish';
/** Callers that may wait for one completion. */
const WAITERS_MAX = 16;

/** The bytes of this chunk are in the part and have this CRC-32; the part's table says so too (decision 0045). */
export interface StoreChunk {
  readonly type: 'storeChunk';
  /** Key of the upload whose part has the bytes: another may have been opened under the same id meanwhile. */
  readonly uploadKey: string;
  readonly uploadId: number;
  readonly chunkNumber: number;
  readonly crc32: number;
}

/**
 * The chunk will get other bytes, which are whole and have this CRC-32. Once it is answered it is missing, so that a crash
 * cannot leave the former checksum with the new bytes.
 */
export interface ReplaceChunk extends Omit<StoreChunk, 'type'> {
  readonly type: 'replaceChunk';
}

export interface Published {
  readonly type: 'published';
  readonly uploadKey: string;
  /** The same as in `FinishUpload`. */
  readonly storedBy: string;
  /** Chunks that a crash took, or a late writer; nothing was published then. */
  readonly lost: readonly number[];
  readonly error: ErrorName | null;
}

export function storeChunk(
  state: UploadState,
  command: StoreChunk,
  turn: Turn,
): Outcome<UploadEvent, StoredChunk> | Refusal {
  const { uploadKey, uploadId, chunkNumber } = command;
  const active = activeUpload(state, uploadId, turn);
  if (active === undefined) return remembered(state, command, turn);
  if (active.uploadKey !== uploadKey) return refuse('InvalidID');
  const stored = active.chunks[chunkNumber];
  if (stored === undefined) return refuse('InvalidPart');
  if (isReplaced(active, command)) return storeLate(state, active, command, turn);
  if (stored === null) return storeNew(state, active, command, turn);
  // Found whole by a restart: its last chunk was written, the answer and the completion were not.
  if (active.phase === 'open' && isWhole(active)) return storeNew(state, active, command, turn);
  if (active.phase !== 'completing' || active.lastChunk !== chunkNumber)
    return { reply: noFileYet(chunkNumber), ...unawaited(turn) };
  return waitForEnd(state, turn);
}

/**
 * Written without an announcement, so while the chunk was missing: another node has stored other bytes since. Which of
 * them the part has, its copy will show. After an announcement the announced bytes are there, or will be.
 */
function storeLate(
  state: UploadState,
  { phase, replacing }: Upload,
  command: StoreChunk,
  turn: Turn,
): Outcome<UploadEvent, StoredChunk> | Refusal {
  const { chunkNumber, crc32 } = command;
  const event: UploadEvent = { type: 'chunkReplaced', chunkNumber, crc32 };
  const marked = evolveUpload(state, event);
  if (phase !== 'open' || replacing?.crc32s[chunkNumber] !== undefined || marked.current === null)
    return refuse('ChecksumError', 'other bytes have replaced these');
  const { unawaited: _, ...stored } = storeNew(marked, marked.current, command, turn);
  return { ...stored, events: [event, ...(stored.events ?? [])] };
}

export function replaceChunk(
  state: UploadState,
  command: ReplaceChunk,
  turn: Turn,
): Outcome<UploadEvent, null> | Refusal {
  const { uploadKey, uploadId, chunkNumber, crc32 } = command;
  const active = activeUpload(state, uploadId, turn);
  if (active?.uploadKey !== uploadKey) return refuse('InvalidID');
  if (active.phase !== 'open') return refuse('ChecksumError', IS_COMPLETE);
  if (active.chunks[chunkNumber] === undefined) return refuse('InvalidPart');
  if ((active.replacing?.times ?? 0) >= REPLACEMENTS_MAX)
    return refuse('ChecksumError', 'too many chunks were replaced');
  return { events: [{ type: 'chunkReplaced', chunkNumber, crc32 }], reply: null };
}

/** The part that finished an upload, sent again. */
function remembered(
  state: UploadState,
  command: StoreChunk,
  turn: Turn,
): Outcome<UploadEvent, StoredChunk> | Refusal {
  const finished = finishedBy(state, command, turn.nowMs);
  if (finished === undefined) return refuse('InvalidID');
  if (finished.leaving) return waitForEnd(state, turn);
  const { chunkNumber } = command;
  return { reply: { chunkNumber, fileId: finished.fileId } satisfies StoredChunk };
}

function waitForEnd(
  { current }: UploadState,
  { commandId }: Turn,
): Outcome<UploadEvent, StoredChunk> | Refusal {
  if ((current?.waiters.length ?? 0) >= WAITERS_MAX) return refuse('Overloaded');
  return { events: [{ type: 'waiterJoined', commandId }], reply: new Later(commandId) };
}

function storeNew(
  state: UploadState,
  active: Upload,
  { chunkNumber, crc32 }: StoreChunk,
  turn: Turn,
): Outcome<UploadEvent, StoredChunk> {
  const event: UploadEvent = { type: 'chunkStored', chunkNumber, crc32, utcMs: turn.nowMs };
  if (!isWhole(active, chunkNumber))
    return { events: [event], reply: noFileYet(chunkNumber), ...unawaited(turn) };
  const { current } = evolveUpload(state, event);
  if (current === null || wholeCrc32(current) !== active.uploadId) {
    const ended = endUpload(state, active, 'ChecksumError', turn.commandId);
    return { ...ended, events: [event, ...(ended.events ?? [])] };
  }
  return {
    events: [event, { type: 'allStored', chunkNumber }, { type: 'waiterJoined', commandId: turn.commandId }],
    timers: [{ name: EXPIRY_TIMER, dueMs: null }],
    send: [finishMessage(state.userId, active.uploadKey, turn.commandId)],
    reply: new Later(turn.commandId),
  };
}

/** After a crash the part's table has the chunk (decision 0045). The next owner of an upload knows what the log says. */
function unawaited({ hasPeers }: Turn): { readonly unawaited?: true } {
  return hasPeers ? {} : { unawaited: true };
}

function noFileYet(chunkNumber: number): StoredChunk {
  return { chunkNumber, fileId: null };
}

function finishMessage(userId: string, uploadKey: string, storedBy: string): Message {
  const command: FinishUpload = { type: 'finishUpload', uploadKey, storedBy };
  return messageTo(UPLOAD, userId, command);
}

/**
 * Writes nothing by itself: until it is done a crash has the message delivered again, and every step may be repeated.
 * After a restart the bytes are hashed first: what was acknowledged was not synced to the disk.
 */
export function finishUpload(
  { userId, current }: UploadState,
  { uploadKey, storedBy }: FinishUpload,
  turn: Turn,
): Outcome<UploadEvent, null, Published> {
  if (current?.uploadKey !== uploadKey || current.phase !== 'completing') return {};
  const restarted = runOf(storedBy) !== runOf(turn.commandId);
  return {
    next: async (ports) => ({
      type: 'published',
      uploadKey,
      storedBy,
      ...(await publish(userId, current, restarted, ports)),
    }),
  };
}

async function publish(
  userId: string,
  current: Upload,
  restarted: boolean,
  ports: Ports,
): Promise<Pick<Published, 'lost' | 'error'>> {
  const { uploadKey, fileId, sizeBytes, uploadId: crc32 } = current;
  const result = (error: ErrorName | null, lost: readonly number[] = []) => ({ lost, error });
  const { files, chatFiles } = ports;
  if (files === undefined || chatFiles === undefined) return result('ChartApiFileError');
  const key = { owner: userId, fileId };
  if (restarted && !files.isDurable) {
    const { lost, isPartGone, isUnread } = await storedChunks(files, key, current);
    if (isUnread) return result('TaskTimedOut');
    // Perhaps the part is gone because it was published: then publishing succeeds once more.
    const earlier = lost.length > 0 && isPartGone ? await publishBytes(files, key, current) : undefined;
    if (earlier?.ok === false && isUndecided(earlier.error)) return result(earlier.error);
    if (lost.length > 0 && earlier?.ok !== true) {
      if (lost.length === current.chunks.length) await files.create(key);
      return result(null, lost);
    }
  }
  const published = await publishBytes(files, key, current);
  if (!published.ok) return result(published.error);
  if (published.value.length > 0) return result(null, published.value);
  const completed = await chatFiles.complete({ fileId, userId, sizeBytes, crc32 });
  if (!completed.ok) return result(restarted ? repeatedCompletionError(completed.error) : completed.error);
  files.release(uploadKey);
  return result(null);
}

/**
 * Numbers of the chunks that have other bytes than those acknowledged last. A part that other nodes write may have a late
 * writer at any time, so it is copied.
 */
async function publishBytes(
  files: FilePort,
  key: FileKey,
  { chunks, sizeBytes, replacing }: Upload,
): Promise<PortResult<readonly number[]>> {
  if (replacing === undefined && !files.isShared) {
    const published = await files.publish(key, sizeBytes, chunkedPartBytesMax(sizeBytes));
    return published.ok ? { ok: true, value: [] } : published;
  }
  return await files.publishCopy(
    key,
    chunks.map((crc32, at) => ({ crc32: crc32 ?? 0, sizeBytes: chunkSizeBytes(at, sizeBytes) ?? 0 })),
  );
}

export function published(
  state: UploadState,
  { uploadKey, storedBy, lost, error }: Published,
  turn: Turn,
): Outcome<UploadEvent, null, ExpireUpload | FinishUpload> {
  const { userId, current } = state;
  if (current?.uploadKey !== uploadKey || current.phase !== 'completing') return {};
  if (lost.length > 0) {
    const event: UploadEvent = { type: 'chunksLost', chunks: lost, utcMs: turn.nowMs };
    return {
      events: [event],
      timers: expiryTimer(evolveUpload(state, event), turn),
      answers: current.waiters.map((commandId) => ({
        commandId,
        refusal: refuse('ChecksumError', OTHER_BYTES),
      })),
    };
  }
  if (error !== null && isUndecided(error)) {
    const command: FinishUpload = { type: 'finishUpload', uploadKey, storedBy };
    const refusal = refuse('TaskTimedOut');
    return {
      answers: current.waiters.map((commandId) => ({ commandId, refusal })),
      timers: [{ name: FINISH_TIMER, dueMs: turn.nowMs + COMPLETION_RETRY_MS, command }],
    };
  }
  if (error !== null) return endUpload(state, current, completionRefusal(error));
  const { fileId, sizeBytes, uploadId: crc32 } = current;
  const audit: AuditRecord = {
    utcMs: turn.nowMs,
    event: 'file_uploaded',
    userId,
    fields: { fileId, sizeBytes, crc32 },
  };
  return { ...endUpload(state, current, 'complete'), audit: [audit] };
}
