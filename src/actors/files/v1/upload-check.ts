/**
 * Check of a v1 upload after a restart, before it continues. Its disk space is reserved again. After an unclean start
 * every stored chunk is hashed, because an acknowledged chunk was not synced to the disk.
 */
import { chunkOffsetBytes, chunkSizeBytes, type FileKey } from '../../../domain/files/files.ts';
import type { Outcome, Turn } from '../../runtime/actor.ts';
import type { FilePort } from '../../runtime/ports.ts';
import type { Upload, UploadEvent, UploadState } from './upload-state.ts';

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
}

/** The reply is the number of lost chunks. The completion checks an upload that was completing. */
export function checkUpload(
  { userId, current }: UploadState,
  { uploadKey, rehash }: CheckUpload,
): Outcome<UploadEvent, number, UploadChecked> {
  if (current?.uploadKey !== uploadKey || current.phase !== 'open') return { reply: 0 };
  return {
    next: async ({ files }) => {
      const key = { owner: userId, fileId: current.fileId };
      // It was accepted while there was room; that others have filled the disk since shows when it is written.
      await files?.reserve(uploadKey, current.sizeBytes);
      const lost = rehash && files !== undefined ? await lostChunks(files, key, current) : [];
      const stored = current.chunks.filter((crc32) => crc32 !== null).length;
      // Nothing of the part is worth keeping, and perhaps there is none: its name was not synced either.
      if (rehash && lost.length === stored) await files?.create(key);
      return { type: 'uploadChecked', uploadKey, lost };
    },
  };
}

export function uploadChecked(
  { current }: UploadState,
  { uploadKey, lost }: UploadChecked,
  turn: Turn,
): Outcome<UploadEvent, number> {
  if (current?.uploadKey !== uploadKey || current.phase !== 'open' || lost.length === 0) return { reply: 0 };
  return { events: [{ type: 'chunksLost', chunks: lost, utcMs: turn.nowMs }], reply: lost.length };
}

/** Stored chunks that are not in the part as they were acknowledged; all of them when it cannot be read. */
export async function lostChunks(files: FilePort, key: FileKey, upload: Upload): Promise<number[]> {
  const stored = upload.chunks.flatMap((crc32, chunkNumber) =>
    crc32 === null ? [] : [{ chunkNumber, crc32 }],
  );
  const ranges = stored.map(({ chunkNumber }) => ({
    positionBytes: chunkOffsetBytes(chunkNumber),
    lengthBytes: chunkSizeBytes(chunkNumber, upload.sizeBytes) ?? 0,
  }));
  const hashed = await files.hashRanges(key, ranges);
  const lost = stored.filter(({ crc32 }, at) => !hashed.ok || hashed.value[at] !== crc32);
  return lost.map(({ chunkNumber }) => chunkNumber);
}
