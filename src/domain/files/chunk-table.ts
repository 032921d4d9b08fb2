/**
 * Table of written chunks behind the bytes of a v1 upload, within its part (decision 0045). An entry has 8 bytes, little
 * endian: the CRC-32 of the chunk, and its complement xor the chunk's number, so that a hole is no entry.
 */
import { type ChunkEntry, chunkEntryCheck, ENTRY_BYTES } from './chunk-entry.ts';
import { chunkCount } from './files.ts';

/** The table begins at a page of its own, so that writing an entry never reads a page of the file. */
const PAGE_BYTES = 4096;

/** Returns the position in the part at which the table of a file of `sizeBytes` begins. */
export function chunkTableOffsetBytes(sizeBytes: number): number {
  return Math.ceil(sizeBytes / PAGE_BYTES) * PAGE_BYTES;
}

export function chunkTableBytes(sizeBytes: number): number {
  return chunkCount(sizeBytes) * ENTRY_BYTES;
}

/** Size of the part of a file of `sizeBytes` with a full table: the longest that publishing cuts. */
export function chunkedPartBytesMax(sizeBytes: number): number {
  return chunkTableOffsetBytes(sizeBytes) + chunkTableBytes(sizeBytes);
}

export function chunkEntry(chunkNumber: number, sizeBytes: number): ChunkEntry {
  return { chunkNumber, position: chunkTableOffsetBytes(sizeBytes) + chunkNumber * ENTRY_BYTES };
}

/** CRC-32 by chunk number, null where there is no entry. `table` may end anywhere, also within an entry. */
export function readChunkTable(table: Uint8Array, sizeBytes: number): (number | null)[] {
  const view = new DataView(table.buffer, table.byteOffset, table.byteLength);
  return Array.from({ length: chunkCount(sizeBytes) }, (_, chunkNumber) => {
    const at = chunkNumber * ENTRY_BYTES;
    if (at + ENTRY_BYTES > table.byteLength) return null;
    const crc32 = view.getUint32(at, true);
    return view.getUint32(at + 4, true) === chunkEntryCheck(chunkNumber, crc32) ? crc32 : null;
  });
}
