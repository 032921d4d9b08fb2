/**
 * State of the v1 uploads of one user: the one that is active (spec 2.7: one per user), those that finished lately, and
 * what given-up ones have left behind. The bytes never enter the journal; the checksums of chunks do.
 */

import { type ErrorName, invariant } from '../../../domain/errors.ts';
import { combineCrc32 } from '../../../domain/files/crc32-combine.ts';
import { chunkCount, chunkSizeBytes } from '../../../domain/files/files.ts';
import { MINUTE_MS, SECOND_MS } from '../../../domain/time.ts';
import type { Turn } from '../../runtime/actor.ts';

/** A part that finished an upload, sent again within this, gets the same answer (spec 4.6). */
const FINISHED_MEMORY_MS = 10 * MINUTE_MS;
/** Finished uploads of one user that are remembered; the oldest go first. */
const FINISHED_MAX = 64;
/** Leftovers of one user; with so many the chat module does not answer, and nothing new is opened. */
export const LEFTOVERS_MAX = 16;

/** The grant of UploadSlots. */
export interface UploadFacts {
  /** The gateway's name of the upload: of the slot, the pending message, the held disk space. Rises with time. */
  readonly uploadKey: string;
  /** The declared CRC-32, unsigned: the client's name of the upload. */
  readonly uploadId: number;
  readonly name: string;
  readonly sizeBytes: number;
  /** Null: personal storage. */
  readonly chatId: string | null;
  readonly message: string | null;
  readonly linkedMessageId: string | null;
}

/** The way in which an upload ended; an error name is reported to the uploader. */
export type UploadEnding = 'complete' | 'cancelled' | 'expired' | ErrorName;

/** Chunks whose bytes were replaced. Their part may have a late writer of former bytes, so it is never published itself. */
interface Replacing {
  /** CRC-32 that each may have, by its number: what a part has of another one is from before. */
  readonly crc32s: Readonly<Record<number, number>>;
  readonly times: number;
}

/**
 * - `open`: chunks may come. `completing`: all are there, bytes and message are being published.
 * - `leaving`: ended; waiting callers are answered once UploadSlots has freed the slot.
 */
export interface Upload {
  readonly phase: 'open' | 'completing' | 'leaving';
  readonly uploadKey: string;
  readonly uploadId: number;
  readonly sizeBytes: number;
  readonly fileId: string;
  /** CRC-32 of each chunk that is stored, null for those that are missing. */
  readonly chunks: readonly (number | null)[];
  /** Absent before the first chunk is sent again with other bytes. */
  readonly replacing?: Replacing;
  /** Time at which it was opened or got its last chunk, Unix milliseconds. */
  readonly activeMs: number;
  /** The chunk that completed it. */
  readonly lastChunk: number | null;
  readonly ending: UploadEnding | null;
  /** Commands that are answered when the upload leaves. */
  readonly waiters: readonly string[];
}

interface FinishedUpload {
  readonly uploadId: number;
  readonly chunkNumber: number;
  readonly crc32: number;
  readonly fileId: string;
  readonly untilMs: number;
}

/** Message and bytes of an upload that was given up, until both are gone. */
export interface Leftover {
  readonly uploadKey: string;
  /** Null: no bytes, perhaps a message. */
  readonly fileId: string | null;
  readonly failures: number;
}

export interface UploadState {
  readonly userId: string;
  readonly current: Upload | null;
  readonly finished: readonly FinishedUpload[];
  readonly leftovers: readonly Leftover[];
}

export type UploadEvent =
  | {
      readonly type: 'uploadOpened';
      readonly uploadKey: string;
      readonly uploadId: number;
      readonly sizeBytes: number;
      readonly fileId: string;
      readonly utcMs: number;
    }
  | {
      readonly type: 'chunkStored';
      readonly chunkNumber: number;
      readonly crc32: number;
      readonly utcMs: number;
    }
  /** It is missing until bytes with this CRC-32 are written. */
  | { readonly type: 'chunkReplaced'; readonly chunkNumber: number; readonly crc32: number }
  /** The part has other bytes. An upload that was completing is open again. */
  | { readonly type: 'chunksLost'; readonly chunks: readonly number[]; readonly utcMs: number }
  | { readonly type: 'allStored'; readonly chunkNumber: number }
  | { readonly type: 'waiterJoined'; readonly commandId: string }
  | { readonly type: 'uploadEnded'; readonly ending: UploadEnding }
  | { readonly type: 'uploadLeft'; readonly utcMs: number }
  | { readonly type: 'leftBehind'; readonly uploadKey: string; readonly fileId: string | null }
  | { readonly type: 'cleaningFailed'; readonly uploadKey: string }
  | { readonly type: 'cleaned'; readonly uploadKey: string };

export function evolveUpload(state: UploadState, event: UploadEvent): UploadState {
  switch (event.type) {
    case 'uploadOpened':
      return opened(state, event);
    case 'leftBehind': {
      const { uploadKey, fileId } = event;
      return { ...state, leftovers: [...state.leftovers, { uploadKey, fileId, failures: 0 }] };
    }
    case 'cleaningFailed': {
      const leftovers = state.leftovers.map((one) =>
        one.uploadKey === event.uploadKey ? { ...one, failures: one.failures + 1 } : one,
      );
      return { ...state, leftovers };
    }
    case 'cleaned':
      return {
        ...state,
        leftovers: state.leftovers.filter(({ uploadKey }) => uploadKey !== event.uploadKey),
      };
    case 'uploadLeft':
      return left(state, event.utcMs);
    default:
      return state.current === null ? state : { ...state, current: changed(state.current, event) };
  }
}

/** A new upload wins over the memory of a finished one with the same id. */
function opened(state: UploadState, event: Extract<UploadEvent, { type: 'uploadOpened' }>): UploadState {
  const { uploadKey, uploadId, sizeBytes, fileId, utcMs } = event;
  const current: Upload = {
    phase: 'open',
    uploadKey,
    uploadId,
    sizeBytes,
    fileId,
    chunks: Array.from({ length: chunkCount(sizeBytes) }, () => null),
    activeMs: utcMs,
    lastChunk: null,
    ending: null,
    waiters: [],
  };
  const finished = state.finished.filter((one) => one.uploadId !== uploadId && one.untilMs > utcMs);
  return { ...state, current, finished };
}

type ChangeEvent = Extract<
  UploadEvent,
  { type: 'chunkStored' | 'chunkReplaced' | 'chunksLost' | 'allStored' | 'waiterJoined' | 'uploadEnded' }
>;

function changed(current: Upload, event: ChangeEvent): Upload {
  const isOpen = current.phase !== 'leaving' || event.type === 'waiterJoined';
  invariant(isOpen, 'an upload that has ended changes no more');
  switch (event.type) {
    case 'chunkStored':
      return {
        ...current,
        chunks: current.chunks.with(event.chunkNumber, event.crc32),
        activeMs: event.utcMs,
      };
    case 'chunkReplaced': {
      const { crc32s, times } = current.replacing ?? { crc32s: {}, times: 0 };
      return {
        ...current,
        chunks: current.chunks.with(event.chunkNumber, null),
        replacing: { crc32s: { ...crc32s, [event.chunkNumber]: event.crc32 }, times: times + 1 },
      };
    }
    case 'chunksLost': {
      const lost = new Set(event.chunks);
      const chunks = current.chunks.map((crc32, at) => (lost.has(at) ? null : crc32));
      return { ...current, phase: 'open', chunks, activeMs: event.utcMs, lastChunk: null, waiters: [] };
    }
    case 'allStored':
      return { ...current, phase: 'completing', lastChunk: event.chunkNumber };
    case 'waiterJoined':
      return { ...current, waiters: [...current.waiters, event.commandId] };
    case 'uploadEnded':
      return { ...current, phase: 'leaving', ending: event.ending };
  }
}

function left(state: UploadState, utcMs: number): UploadState {
  const { current } = state;
  const live = state.finished.filter(({ untilMs }) => untilMs > utcMs);
  if (current?.ending !== 'complete' || current.lastChunk === null)
    return { ...state, current: null, finished: live };
  const { uploadId, lastChunk, fileId } = current;
  const finished: FinishedUpload = {
    uploadId,
    chunkNumber: lastChunk,
    crc32: current.chunks[lastChunk] ?? 0,
    fileId,
    untilMs: utcMs + FINISHED_MEMORY_MS,
  };
  return { ...state, current: null, finished: [...live, finished].slice(-FINISHED_MAX) };
}

type Time = Pick<Turn, 'nowMs' | 'settings'>;

/** Returns the time at which the upload expires unless a chunk is stored before, Unix milliseconds. */
export function expiryMs({ activeMs }: Upload, { settings }: Pick<Turn, 'settings'>): number {
  return activeMs + settings.get('UploadInactivitySeconds') * SECOND_MS;
}

/** The upload of this id that may still get chunks or a cancellation. One that is past its time is gone already. */
export function activeUpload({ current }: UploadState, uploadId: number, time: Time): Upload | undefined {
  if (current === null || current.uploadId !== uploadId || current.phase === 'leaving') return undefined;
  return current.phase === 'open' && time.nowMs >= expiryMs(current, time) ? undefined : current;
}

/** The file that this part has finished, lately or this moment (`leaving`: its slot is not free yet). */
export function finishedBy(
  { current, finished }: UploadState,
  part: { readonly uploadId: number; readonly chunkNumber: number; readonly crc32: number },
  nowMs: number,
): { readonly fileId: string; readonly leaving: boolean } | undefined {
  const { uploadId, chunkNumber, crc32 } = part;
  if (current?.ending === 'complete' && current.uploadId === uploadId) {
    const same = current.lastChunk === chunkNumber && current.chunks[chunkNumber] === crc32;
    return same ? { fileId: current.fileId, leaving: true } : undefined;
  }
  const found = finished.findLast((one) => one.uploadId === uploadId && one.untilMs > nowMs);
  if (found?.chunkNumber !== chunkNumber || found.crc32 !== crc32) return undefined;
  return { fileId: found.fileId, leaving: false };
}

/** Is every chunk stored, once `added` is? */
export function isWhole({ chunks }: Upload, added?: number): boolean {
  return chunks.every((crc32, at) => crc32 !== null || at === added);
}

/** Numbers of the chunks that are missing, in order. */
export function missingChunks({ chunks }: Upload): number[] {
  return chunks.flatMap((crc32, at) => (crc32 === null ? [at] : []));
}

/** The chunk is written, or may be written: bytes with another CRC-32 replace it, and have to be announced. */
export function isReplaced(
  { chunks, replacing }: Upload,
  { chunkNumber, crc32 }: { readonly chunkNumber: number; readonly crc32: number },
): boolean {
  return (chunks[chunkNumber] ?? replacing?.crc32s[chunkNumber] ?? crc32) !== crc32;
}

/** CRC-32 of the whole file once every chunk is stored. */
export function wholeCrc32({ chunks, sizeBytes }: Upload): number {
  return chunks.reduce<number>(
    (whole, crc32, at) => combineCrc32(whole, crc32 ?? 0, chunkSizeBytes(at, sizeBytes) ?? 0),
    0,
  );
}
