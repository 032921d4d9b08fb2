/**
 * One entry of the table of chunks (chunk-table.ts). Imports nothing: worker threads load it, and each would hold what it
 * imports.
 */

export const ENTRY_BYTES = 8;

export interface ChunkEntry {
  readonly chunkNumber: number;
  /** Position of the entry in the part, in bytes. */
  readonly position: number;
}

export function packChunkEntry({ chunkNumber }: ChunkEntry, crc32: number): Uint8Array {
  const bytes = new Uint8Array(ENTRY_BYTES);
  const view = new DataView(bytes.buffer);
  view.setUint32(0, crc32, true);
  view.setUint32(4, chunkEntryCheck(chunkNumber, crc32), true);
  return bytes;
}

/** Complement of the checksum, xor the chunk's number. */
export function chunkEntryCheck(chunkNumber: number, crc32: number): number {
  return (~crc32 ^ chunkNumber) >>> 0;
}
