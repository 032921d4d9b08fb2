/**
 * CRC-32 (IEEE 802.3, reflected polynomial 0xEDB88320) of file bytes, and the write of these bytes on the same thread
 * (docs/optimizations.md). The only importer of crc-32 and @node-rs/crc32.
 */
import { writeSync } from 'node:fs';
import { createRequire } from 'node:module';
import * as zlib from 'node:zlib';
import CRC32 from 'crc-32';
import { type ChunkEntry, packChunkEntry } from '../domain/files/chunk-entry.ts';
import { type FileRangeTask, readRange } from './file-range.ts';

export interface WriteBufferTask {
  /** Shared with the thread, never copied. Must not be modified until the task has settled. */
  readonly sharedBuffer: SharedArrayBuffer;
  /** Number of bytes, from the beginning of the buffer. */
  readonly length: number;
  /** Null: the bytes are hashed alone. */
  readonly fd: number | null;
  /** Offset in the file, in bytes. */
  readonly position: number;
  /** When the bytes have another CRC-32, they are not written and that CRC-32 is the result. */
  readonly expectedCrc32?: number;
  /** Written behind the bytes once they are written: a restart then finds the chunk without the journal. */
  readonly entry?: ChunkEntry;
}

/** Another file gets the bytes of the range, at the same offset. */
export interface CopyRangeTask extends FileRangeTask {
  readonly toFd: number;
}

/** A system error of a write: a full disk is no bug of the task. */
export interface SystemFault {
  /** Code, for example `ENOSPC`. */
  readonly code: string;
  readonly message: string;
}

/** Unsigned CRC-32 of the buffer's bytes, or why they could not be written. */
export type WriteBufferResult = number | SystemFault;

type Crc32 = (bytes: Uint8Array, previous?: number) => number;

let fastest: Crc32 | undefined;

/** Unsigned CRC-32 of `bytes`, continued from `previous`, by the fastest implementation available. */
export function crc32(bytes: Uint8Array, previous = 0): number {
  fastest ??= crc32ByProcessor() ?? zlib.crc32 ?? crc32InScript;
  return fastest(bytes, previous);
}

/**
 * Uses carry-less multiplication: 7 GB/s, zlib 2.5 (docs/optimizations.md). Loaded by the thread that hashes first.
 * Undefined where the package has no build for this machine.
 */
function crc32ByProcessor(): Crc32 | undefined {
  try {
    return (createRequire(import.meta.url)('@node-rs/crc32') as typeof import('@node-rs/crc32')).crc32;
  } catch (error) {
    if (error instanceof Error) return undefined;
    throw error;
  }
}

/** Computes without native code: where this Node has no `zlib.crc32` either. The oracle of the tests. */
export function crc32InScript(bytes: Uint8Array, previous = 0): number {
  return CRC32.buf(bytes, previous) >>> 0;
}

/** A number is the CRC-32 of the bytes. They are written unless another one was expected, or there is no file. */
export function writeBuffer({
  sharedBuffer,
  length,
  fd,
  position,
  expectedCrc32,
  entry,
}: WriteBufferTask): WriteBufferResult {
  const bytes = new Uint8Array(sharedBuffer, 0, length);
  const crc = crc32(bytes);
  if (fd === null || (expectedCrc32 !== undefined && expectedCrc32 !== crc)) return crc;
  try {
    writeFully(fd, bytes, position);
    if (entry !== undefined) writeFully(fd, packChunkEntry(entry, crc), entry.position);
    return crc;
  } catch (error) {
    return systemFault(error);
  }
}

/** CRC-32 of a range of a file; undefined when the file ends before it does. */
export function hashRange(task: FileRangeTask): number | undefined {
  let crc = 0;
  const isWhole = readRange(task, (bytes) => {
    crc = crc32(bytes, crc);
  });
  return isWhole ? crc : undefined;
}

/** CRC-32 of the bytes as they were copied; undefined when the file ends before the range does. */
export function copyRange(task: CopyRangeTask): number | undefined | SystemFault {
  let crc = 0;
  let position = task.position;
  try {
    const isWhole = readRange(task, (bytes) => {
      crc = crc32(bytes, crc);
      writeFully(task.toFd, bytes, position);
      position += bytes.length;
    });
    return isWhole ? crc : undefined;
  } catch (error) {
    return systemFault(error);
  }
}

/** Anything else is a bug. */
function systemFault(error: unknown): SystemFault {
  if (!(error instanceof Error) || !('code' in error)) throw error;
  return { code: String(error.code), message: error.message };
}

function writeFully(fd: number, bytes: Uint8Array, position: number): void {
  for (let done = 0; done < bytes.length; ) {
    done += writeSync(fd, bytes, done, bytes.length - done, position + done);
  }
}
