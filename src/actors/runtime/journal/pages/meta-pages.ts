/**
 * The two meta pages of an LMDB file, judged before the engine opens it: the engine reads a damaged file through a
 * memory map, where a wrong page number ends the process by a signal. Layout: `MDB_meta` of data version 2.
 */
import { closeSync, fstatSync, openSync, readSync } from 'node:fs';
import { PAGE_BYTES, readTree, type Snapshot } from './pages.ts';

/** `MDB_MAGIC`, little-endian. */
const MAGIC = 0xbeefc0de;
const DATA_VERSION = 2;
/** Page flag: P_META. */
const META_FLAG = 0x08;
/** "No page": the root of an empty tree. */
const NO_PAGE = 2n ** 64n - 1n;
/** A tree of 2^64 rows is not as deep. */
const DEPTH_MAX = 32;

/** Offsets in a meta page, in bytes. */
export const META_AT = {
  pageNumber: 0,
  flags: 18,
  magic: 24,
  version: 28,
  pageSize: 48,
  free: 48,
  freeDepth: 54,
  freeRoot: 88,
  main: 96,
  mainDepth: 102,
  mainRoot: 136,
  lastPage: 144,
  transaction: 152,
} as const;
const READ_BYTES = 160;

export interface MetaPage {
  /** 0 or 1. */
  readonly page: number;
  readonly transaction: bigint;
  readonly lastPage: bigint;
  /** Fault of the page; undefined: none. */
  readonly fault: string | undefined;
  readonly snapshot: Snapshot;
}

export interface JournalHead {
  readonly sizeBytes: number;
  /** Meta pages in the order of the file. */
  readonly pages: readonly [MetaPage, MetaPage];
}

/** Throws the error of the system when the file cannot be read. */
export function readHead(path: string): JournalHead {
  const file = openSync(path, 'r');
  try {
    const bytes = Buffer.alloc(2 * PAGE_BYTES);
    const read = readSync(file, bytes, 0, bytes.length, 0);
    return headOf(bytes.subarray(0, read), fstatSync(file).size);
  } finally {
    closeSync(file);
  }
}

/** Reads the first two pages. */
export function headOf(bytes: Buffer, sizeBytes: number): JournalHead {
  return { sizeBytes, pages: [readMeta(bytes, 0, sizeBytes), readMeta(bytes, 1, sizeBytes)] };
}

/** The page that the engine takes, and the other one. */
export function taken({ pages: [first, second] }: JournalHead): readonly [taken: MetaPage, other: MetaPage] {
  return first.transaction >= second.transaction ? [first, second] : [second, first];
}

/** Says why the engine must not open the file; undefined: it may. */
export function headFault({ sizeBytes, pages }: JournalHead): string | undefined {
  if (sizeBytes < 2 * PAGE_BYTES) return `it is cut off at ${sizeBytes} bytes`;
  const [first, second] = pages;
  if (first.fault !== undefined && second.fault !== undefined)
    return `both meta pages are bad (page 0: ${first.fault}; page 1: ${second.fault})`;
  for (const { page, fault } of pages) if (fault !== undefined) return `meta page ${page} is bad: ${fault}`;
  return undefined;
}

function readMeta(head: Buffer, page: number, sizeBytes: number): MetaPage {
  const bytes = Buffer.alloc(READ_BYTES);
  const read = head.subarray(page * PAGE_BYTES).copy(bytes);
  const transaction = bytes.readBigUInt64LE(META_AT.transaction);
  const lastPage = bytes.readBigUInt64LE(META_AT.lastPage);
  const fault = read < READ_BYTES ? 'it is cut off' : metaFault(bytes, page, sizeBytes);
  const trees = { free: readTree(bytes, META_AT.free), main: readTree(bytes, META_AT.main) };
  const snapshot = { transaction: Number(transaction), lastPage: Number(lastPage), ...trees };
  return { page, transaction, lastPage, fault, snapshot };
}

function metaFault(bytes: Buffer, page: number, sizeBytes: number): string | undefined {
  if (bytes.every((byte) => byte === 0)) return 'it is all zeros';
  if (bytes.readUInt32LE(META_AT.magic) !== MAGIC || (bytes.readUInt16LE(META_AT.flags) & META_FLAG) === 0)
    return 'it is no meta page of a journal';
  const version = bytes.readUInt16LE(META_AT.version);
  if (version !== DATA_VERSION) return `it has data version ${version}, not ${DATA_VERSION}`;
  const pageSize = bytes.readUInt32LE(META_AT.pageSize);
  if (pageSize !== PAGE_BYTES) return `it has pages of ${pageSize} bytes, not ${PAGE_BYTES}`;
  if (bytes.readBigUInt64LE(META_AT.pageNumber) !== BigInt(page)) return 'it names another page';
  const lastPage = bytes.readBigUInt64LE(META_AT.lastPage);
  if (lastPage < 1n) return 'it has no pages';
  if ((lastPage + 1n) * BigInt(PAGE_BYTES) > BigInt(sizeBytes))
    return `it needs ${(lastPage + 1n) * BigInt(PAGE_BYTES)} bytes, and the file has ${sizeBytes}`;
  for (const [root, depth] of [
    [META_AT.freeRoot, META_AT.freeDepth],
    [META_AT.mainRoot, META_AT.mainDepth],
  ] as const) {
    const number = bytes.readBigUInt64LE(root);
    if (number !== NO_PAGE && (number < 2n || number > lastPage)) return 'a root lies outside of the file';
    if (bytes.readUInt16LE(depth) > DEPTH_MAX) return 'a tree is too deep';
  }
  // Transaction n writes page n mod 2; a file without any has zero in both.
  const transaction = bytes.readBigUInt64LE(META_AT.transaction);
  return transaction > 0n && transaction % 2n !== BigInt(page)
    ? 'it has the commit of the other page'
    : undefined;
}
