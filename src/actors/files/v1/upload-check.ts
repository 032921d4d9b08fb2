/**
 * Check of a v1 upload after a restart, before it continues. Its disk space is reserved again. After an unclean stop its
 * chunks are hashed: those of the journal, which were not synced, and those of the part's table, which it may not know.
 */
import { chunkOffsetBytes, chunkSizeBytes, type FileKey, isUndecided } from '../../../domain/files/files.ts';
import type { Outcome, Turn } from '../../runtime/actor.ts';
import type { FilePort, PortResult } from '../../runtime/ports.ts';
import { isReplaced, type Upload, type UploadEvent, type UploadState } from './upload-state.ts';

export interface CheckUpload {
  readonly type: 'checkUpload';
  readonly uploadKey: string;
  /** The last run did not end in order. */
  readonly rehash: boolean;
}

export interface UploadChecked {
  readonly type: 'uploadChecked';
  readonly uploadKey: string;
  readonly lost: readonly number[];
  readonly found: readonly WrittenChunk[];
}

/** Chunks that the check took away from the upload, and gave to it. */
export interface CheckedChunks {
  readonly lost: number;
  readonly found: number;
}

/** State of the chunks that the journal knows. */
interface StoredChunks {
  readonly lost: readonly number[];
  /** There is no part, or none of its chunks in full. One with other bytes is there: it must not be published. */
  readonly isPartGone: boolean;
  /** The part was not read, and this says nothing about its bytes. */
  readonly isUnread: boolean;
}

/** A chunk whose bytes the part should have. */
interface WrittenChunk {
  readonly chunkNumber: number;
  readonly crc32: number;
}

const NOTHING: CheckedChunks = { lost: 0, found: 0 };
const ALL_THERE: StoredChunks = { lost: [], isPartGone: false, isUnread: false };

/** The completion checks an upload that was completing. */
export function checkUpload(
  { userId, current }: UploadState,
  { uploadKey, rehash }: CheckUpload,
): Outcome<UploadEvent, CheckedChunks, UploadChecked> {
  if (current?.uploadKey !== uploadKey || current.phase !== 'open') return { reply: NOTHING };
  return {
    next: async ({ files }) => {
      const key = { owner: userId, fileId: current.fileId };
      // It was accepted while there was room; that others have filled the disk since shows when it is written.
      await files?.reserve(uploadKey, current.sizeBytes);
      const { lost, isUnread } =
        rehash && files !== undefined ? await storedChunks(files, key, current) : ALL_THERE;
      const found = rehash && files !== undefined ? await foundChunks(files, key, current) : [];
      const stored = current.chunks.filter((crc32) => crc32 !== null).length;
      // Nothing of the part is worth keeping, and perhaps there is none: its name was not synced either.
      if (rehash && !isUnread && lost.length === stored && found.length === 0) await files?.create(key);
      return { type: 'uploadChecked', uploadKey, lost, found };
    },
  };
}

export function uploadChecked(
  { current }: UploadState,
  { uploadKey, lost, found }: UploadChecked,
  turn: Turn,
): Outcome<UploadEvent, CheckedChunks> {
  if (current?.uploadKey !== uploadKey || current.phase !== 'open') return { reply: NOTHING };
  const utcMs = turn.nowMs;
  const events: UploadEvent[] = [];
  if (lost.length > 0) events.push({ type: 'chunksLost', chunks: lost, utcMs });
  for (const chunk of found) events.push({ type: 'chunkStored', ...chunk, utcMs });
  return { events, reply: { lost: lost.length, found: found.length } };
}

/**
 * Chunks of the part's table that the journal does not know and whose bytes match. An entry alone proves nothing, nor do
 * bytes that were being replaced.
 */
async function foundChunks(files: FilePort, key: FileKey, upload: Upload): Promise<WrittenChunk[]> {
  const table = await files.readTable(key, upload.sizeBytes);
  if (!table.ok) return [];
  const unknown = table.value.flatMap((crc32, chunkNumber) =>
    crc32 === null || upload.chunks[chunkNumber] !== null || isReplaced(upload, { chunkNumber, crc32 })
      ? []
      : [{ chunkNumber, crc32 }],
  );
  const hashes = await hashesOf(files, key, upload, unknown);
  return unknown.filter(({ crc32 }, at) => hashes.ok && hashes.value[at] === crc32);
}

/** Lost are those that are not in the part as they were acknowledged; all of them when it cannot be read. */
export async function storedChunks(files: FilePort, key: FileKey, upload: Upload): Promise<StoredChunks> {
  const stored = upload.chunks.flatMap((crc32, chunkNumber) =>
    crc32 === null ? [] : [{ chunkNumber, crc32 }],
  );
  const hashed = await hashesOf(files, key, upload, stored);
  const hashes = hashed.ok ? hashed.value : undefined;
  return {
    lost: stored.filter(({ crc32 }, at) => hashes?.[at] !== crc32).map(({ chunkNumber }) => chunkNumber),
    isPartGone: hashes?.every((hash) => hash === undefined) === true,
    isUnread: !hashed.ok && isUndecided(hashed.error),
  };
}

function hashesOf(
  files: FilePort,
  key: FileKey,
  { sizeBytes }: Upload,
  chunks: readonly WrittenChunk[],
): Promise<PortResult<readonly (number | undefined)[]>> {
  const ranges = chunks.map(({ chunkNumber }) => ({
    positionBytes: chunkOffsetBytes(chunkNumber),
    lengthBytes: chunkSizeBytes(chunkNumber, sizeBytes) ?? 0,
  }));
  return files.hashRanges(key, ranges);
}
