/**
 * Rules for files: sizes and counts of the transport, chunk arithmetic of v1, checksums as they are declared, and the
 * rule for file names (spec 2.7, 4.6, 8.3; design of the file transport, "File names").
 */
import type { ErrorName } from '../errors.ts';
import { BIDIRECTIONAL_CHARACTERS, CONTROL_CHARACTERS, INVISIBLE_CHARACTERS } from '../schema.ts';
import type { SettingsReader } from '../settings/settings.ts';
import { SECOND_MS } from '../time.ts';

/** Bytes per chunk, except the last one. Source: spec 4.6 rule 1. */
export const CHUNK_BYTES = 256 * 1024;
/** Active v1 uploads of the whole server. Source: spec 2.7. */
export const UPLOAD_SESSIONS_MAX = 60;
/** No setting lifts it. Source: spec 8.3. */
export const FILE_HARD_CAP_BYTES = 100 * 1024 * 1024;
/** Bytes of a name in UTF-8: the longest that common file systems take. */
const FILE_NAME_BYTES_MAX = 255;
const CRC32_VALUES = 2 ** 32;

/**
 * Names a file and the place of its bytes. Owner and id are decimal int64, as `parseId` gives them.
 */
export interface FileKey {
  readonly owner: string;
  readonly fileId: string;
  /** Number of the part among several of one file (segments.ts). Absent: its only part, or the finished file. */
  readonly segment?: number;
}

/** The expected size and CRC-32 of a chunk. */
export interface ChunkBytes {
  readonly sizeBytes: number;
  readonly crc32: number;
}

export function fileBytes(chunks: readonly ChunkBytes[]): number {
  return chunks.reduce((sum, { sizeBytes }) => sum + sizeBytes, 0);
}

/** Refusals of the completion that keep their own number. */
const COMPLETION_REFUSALS: ReadonlySet<ErrorName> = new Set([
  'Forbidden',
  'StorageFull',
  'FileStorageFailed',
]);

/**
 * Returns the error for the caller of an upload whose end has failed: 1103 without the right to post, 1013 or 1312 when
 * the bytes did not reach the disk, 1310 for everything else (docs/files.md).
 */
export function completionRefusal(error: ErrorName): ErrorName {
  return COMPLETION_REFUSALS.has(error) ? error : 'ChartApiFileError';
}

/** The work was not done, or is not known to be: it is neither the storage's answer nor the module's. */
const UNDECIDED: ReadonlySet<ErrorName> = new Set([
  'TaskTimedOut',
  'Overloaded',
  'Stopping',
  'InternalError',
  'JournalUnavailable',
  'FolderNotShared',
]);

/** A completion that ends with this is tried again after so long, and the bytes stay. */
export const COMPLETION_RETRY_MS = 10 * SECOND_MS;

/** Says nothing about the upload: its end is tried again. */
export function isUndecided(error: ErrorName): boolean {
  return UNDECIDED.has(error);
}

/** Returns the error of a completion that an earlier run may have ended: without an answer of the module it is undecided. */
export function repeatedCompletionError(error: ErrorName): ErrorName {
  return error === 'ModuleFailed' ? 'TaskTimedOut' : error;
}

/** Refusals of a pending message after which there is none to take back. */
const NOTHING_MADE: ReadonlySet<ErrorName> = new Set(['Forbidden', 'LinkedMessageNotFound']);

/** May a pending message be there, although its creation was refused with this? */
export function mayHaveMessage(error: ErrorName): boolean {
  return !NOTHING_MADE.has(error);
}

/** Largest file that is accepted now, in bytes. */
export function fileSizeMaxBytes(settings: SettingsReader): number {
  return Math.min(settings.get('FileMaxSizeBytes'), FILE_HARD_CAP_BYTES);
}

/** Chunks of a file of `sizeBytes`, which is at least 1. */
export function chunkCount(sizeBytes: number): number {
  return Math.ceil(sizeBytes / CHUNK_BYTES);
}

export function chunkOffsetBytes(chunkNumber: number): number {
  return chunkNumber * CHUNK_BYTES;
}

/** Bytes of one chunk; undefined when the file has no such chunk (1306). */
export function chunkSizeBytes(chunkNumber: number, sizeBytes: number): number | undefined {
  if (!Number.isSafeInteger(chunkNumber) || chunkNumber < 0 || chunkNumber >= chunkCount(sizeBytes))
    return undefined;
  return Math.min(CHUNK_BYTES, sizeBytes - chunkOffsetBytes(chunkNumber));
}

/**
 * A declared CRC-32 as an unsigned 32-bit integer. Clients that compute in signed integers declare negative ones.
 * Undefined when it is no 32-bit integer at all.
 */
export function toUnsignedCrc32(declared: number): number | undefined {
  if (!Number.isSafeInteger(declared) || declared < -CRC32_VALUES / 2 || declared >= CRC32_VALUES)
    return undefined;
  return declared >>> 0;
}

const LONE_SURROGATE = /\p{Cs}/u;
const CONTROL = new RegExp(`[${CONTROL_CHARACTERS}]`, 'u');
const BIDIRECTIONAL = new RegExp(`[${BIDIRECTIONAL_CHARACTERS}]`, 'u');
const INVISIBLE = new RegExp(`[${INVISIBLE_CHARACTERS}]`, 'gu');

/**
 * Says in words for the caller why a name is refused with 1309; undefined when it is fine. `blockedExtensions` is the
 * setting FileBlockedExtensions: separated by semicolons, the dot optional, case ignored.
 */
export function fileNameFault(name: string, blockedExtensions: string): string | undefined {
  if (name === '') return 'the name is empty';
  if (LONE_SURROGATE.test(name)) return 'the name is not well-formed Unicode';
  if (Buffer.byteLength(name) > FILE_NAME_BYTES_MAX)
    return `the name is longer than ${FILE_NAME_BYTES_MAX} bytes`;
  if (CONTROL.test(name)) return 'the name holds control characters';
  if (BIDIRECTIONAL.test(name)) return 'the name holds characters that change the direction of text';
  if (/[/\\]/.test(name)) return 'the name holds a path separator';
  if (name === '.' || name === '..') return 'the name is a folder';
  // Emoji need joiners, so they are no fault; but a name is what people see of it.
  const seen = name.replace(INVISIBLE, '');
  if (seen.trim() === '') return 'the name shows nothing';
  if (/[.\s]$/.test(seen)) return 'the name ends with a dot or a space';
  const blocked = blockedExtension(seen, blockedExtensions);
  return blocked === undefined ? undefined : `files that end with .${blocked} are not accepted`;
}

/** Compared in compatibility form, so that full-width letters are no way around the list. */
function blockedExtension(name: string, blockedExtensions: string): string | undefined {
  const folded = fold(name);
  return blockedExtensions
    .split(';')
    .map((entry) => fold(entry.trim()).replace(/^\./, ''))
    .find((extension) => extension !== '' && folded.endsWith(`.${extension}`));
}

function fold(text: string): string {
  return text.normalize('NFKC').toLowerCase();
}
