/**
 * The form of a row on disk: the byte 0xC1, which no msgpack value begins with, a CRC-32 of row and key, and the packed
 * value. Rows of version 0.1.0 are the value alone: they are read, and cannot be verified.
 */
import { crc32 } from 'node:zlib';
import { Packr, RESERVE_START_SPACE } from 'msgpackr';
import { DamagedRow } from './port.ts';
import type { Part } from './reader.ts';

const MARK = 0xc1;
const HEADER_BYTES = 5;
/** Flag of msgpackr: that many bytes before the value are left free. */
const WITH_HEADER = RESERVE_START_SPACE + HEADER_BYTES;

/** Packs and unpacks the values of a journal. */
export function createPackr(): Packr {
  return new Packr({ useRecords: true, moreTypes: true, copyBuffers: true });
}

/** The value with room for the header, which `seal` fills in once the key is known. */
export function packRow(packr: Packr, value: unknown): Uint8Array {
  return packr.pack(value, WITH_HEADER);
}

/** The value of what `packRow` has made. */
export function unpackRow(packr: Packr, row: Uint8Array): unknown {
  return packr.unpack(row as Buffer, { start: HEADER_BYTES, end: row.length } as never);
}

/** Writes the header of a row of `packRow`. The row belongs to this key from now on. */
export function seal(row: Uint8Array, table: string, key: Part[] | Part): void {
  const sum = checksum(row.subarray(HEADER_BYTES), table, key);
  row[0] = MARK;
  row[1] = sum & 0xff;
  row[2] = (sum >>> 8) & 0xff;
  row[3] = (sum >>> 16) & 0xff;
  row[4] = sum >>> 24;
}

export function isSealed(row: Uint8Array): boolean {
  return row[0] === MARK;
}

/** The value of a row; `sizeBytes` of the buffer are the row. Throws `DamagedRow`. */
export function openRow(
  packr: Packr,
  row: Uint8Array,
  sizeBytes: number,
  table: string,
  key: Part[] | Part,
): unknown {
  const sealed = isSealed(row);
  if (sealed && (sizeBytes < HEADER_BYTES || storedSum(row) !== sumOf(row, sizeBytes, table, key)))
    throw new DamagedRow(table, key, copyOf(row, sizeBytes), 'its checksum does not fit');
  try {
    return packr.unpack(row as Buffer, { start: sealed ? HEADER_BYTES : 0, end: sizeBytes } as never);
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    throw new DamagedRow(table, key, copyOf(row, sizeBytes), `it cannot be decoded (${reason})`);
  }
}

function sumOf(row: Uint8Array, sizeBytes: number, table: string, key: Part[] | Part): number {
  return checksum(row.subarray(HEADER_BYTES, sizeBytes), table, key);
}

function checksum(value: Uint8Array, table: string, key: Part[] | Part): number {
  return crc32(`${table}\0${Array.isArray(key) ? key.join('\0') : key}`, crc32(value));
}

function storedSum(row: Uint8Array): number {
  return ((row[1] ?? 0) | ((row[2] ?? 0) << 8) | ((row[3] ?? 0) << 16) | ((row[4] ?? 0) << 24)) >>> 0;
}

/** The engine reads rows into one buffer. */
function copyOf(row: Uint8Array, sizeBytes: number): Uint8Array {
  return Buffer.from(row.subarray(0, sizeBytes));
}
