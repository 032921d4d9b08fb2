/** Damages of a journal's file by name: what bad disks, cut copies and wrong writes leave. */
import { truncateSync } from 'node:fs';
import { keyBytes, tableKey } from '../../src/actors/runtime/journal/keys.ts';
import { META_AT, readHead, taken } from '../../src/actors/runtime/journal/pages/meta-pages.ts';
import { PAGE_BYTES } from '../../src/actors/runtime/journal/pages/pages.ts';
import { changePage, newestSnapshot, treeAt, zeroPage } from './journal-pages.ts';

export interface JournalDamage {
  readonly name: string;
  readonly damage: (file: string) => void;
  /** Part that the start after a crash names: it ends with 70 for all but rows. */
  readonly concerns: 'head' | 'page' | 'row';
}

/** Keys of rows of metadata that tests add: one that is larger than a page, and one of a byte. */
export const BIG_KEY = 'damages-big';
export const SMALL_KEY = 'damages-small';

const noise = (length: number) => Uint8Array.from({ length }, (_, at) => (at * 151 + 7) % 256);

/** Fields of a page header, and of the place of its first row. */
const PAGE_CHANGES: readonly (readonly [name: string, change: (bytes: Buffer, file: string) => void])[] = [
  ['zeros', (bytes) => bytes.fill(0)],
  ['noise', (bytes) => bytes.set(noise(PAGE_BYTES))],
  ['half of it zeros', (bytes) => bytes.fill(0, PAGE_BYTES / 2)],
  ['the number of another page', (bytes) => bytes.writeUInt32LE(bytes.readUInt32LE(0) + 1, 0)],
  ['a later commit', (bytes, file) => bytes.writeUInt32LE(newestSnapshot(file).transaction + 1, 8)],
  ['another kind', (bytes) => bytes.writeUInt16LE(bytes.readUInt16LE(18) ^ 3, 18)],
  ['an odd lower bound', (bytes) => bytes.writeUInt16LE(bytes.readUInt16LE(20) + 1, 20)],
  ['an upper bound outside of it', (bytes) => bytes.writeUInt16LE(PAGE_BYTES, 22)],
  ['a row outside of it', (bytes) => bytes.writeUInt16LE(PAGE_BYTES - 2, 24)],
  ['a key that is too long', (bytes) => bytes.writeUInt16LE(0xffff, 24 + bytes.readUInt16LE(24) + 6)],
];
const TREES = ['main', 'free', 'journal', 'index/sidHash'] as const;

const pageDamages: readonly JournalDamage[] = TREES.flatMap((tree) =>
  PAGE_CHANGES.map(([name, change]) => ({
    name: `a page of ${tree}: ${name}`,
    concerns: 'page' as const,
    damage(file: string) {
      const { root } = treeAt(file, tree);
      changePage(file, root, 0, PAGE_BYTES, (bytes) => change(bytes, file));
    },
  })),
);

/** Changes the record of a table in the list of tables; offsets are those of `MDB_db`. */
function changeTable(file: string, table: string, change: (record: Buffer) => void): void {
  for (const page of treeAt(file, 'main').leaves)
    changePage(file, page, 0, PAGE_BYTES, (bytes) => {
      const at = bytes.indexOf(tableKey(table));
      if (at >= 0) change(bytes.subarray(at + tableKey(table).length));
    });
}

const addTo = (at: number, more: bigint) => (record: Buffer) =>
  void record.writeBigInt64LE(record.readBigInt64LE(at) + more, at);

const tableDamages: readonly JournalDamage[] = (
  [
    ['one more row than it has', addTo(32, 1n)],
    ['one leaf less than it has', addTo(16, -1n)],
    ['a deeper tree', (record) => record.writeUInt16LE(record.readUInt16LE(6) + 1, 6)],
    ['a root outside of the file', (record) => record.writeBigUInt64LE(2n ** 40n, 40)],
    ['no root', (record) => record.writeBigUInt64LE(2n ** 64n - 1n, 40)],
  ] as readonly (readonly [string, (record: Buffer) => void])[]
).map(([name, change]) => ({
  name: `the record of index/sidHash: ${name}`,
  concerns: 'page' as const,
  damage: (file: string) => changeTable(file, 'index/sidHash', change),
}));

/** Changes the first record of free pages that names pages: `[count, numbers…]`. */
function changeFree(file: string, change: (words: Buffer) => void): void {
  const [leaf = 0] = treeAt(file, 'free').leaves;
  changePage(file, leaf, 0, PAGE_BYTES, (bytes) => {
    const rows = bytes.readUInt16LE(20) >> 1;
    for (let row = 0; row < rows; row += 1) {
      const at = 24 + bytes.readUInt16LE(24 + 2 * row) + 8 + 8;
      if (bytes.readBigInt64LE(at) < 1n || bytes.readBigInt64LE(at + 8) < 1n) continue;
      change(bytes.subarray(at));
      return;
    }
    throw new Error('no record names free pages');
  });
}

const freeDamages: readonly JournalDamage[] = [
  {
    name: 'the free pages: one that is in use',
    concerns: 'page',
    damage: (file) =>
      changeFree(file, (words) => words.writeBigInt64LE(BigInt(treeAt(file, 'journal').root), 8)),
  },
  {
    name: 'the free pages: one outside of the file',
    concerns: 'page',
    damage: (file) => changeFree(file, (words) => words.writeBigInt64LE(2n ** 40n, 8)),
  },
  {
    name: 'the free pages: a meta page',
    concerns: 'page',
    damage: (file) => changeFree(file, (words) => words.writeBigInt64LE(1n, 8)),
  },
  {
    name: 'a page that is in use twice: the tree of one table in another',
    concerns: 'page',
    damage: (file) =>
      changeTable(file, 'index/sidHash', (record) =>
        record.writeBigUInt64LE(BigInt(treeAt(file, 'index/publicKey').root), 40),
      ),
  },
];

function renumber(file: string, which: 'newest' | 'older', by: bigint): void {
  const [newest, older] = taken(readHead(file));
  changePage(file, (which === 'newest' ? newest : older).page, META_AT.transaction, 8, (bytes) =>
    bytes.writeBigUInt64LE(newest.transaction + by),
  );
}

/** Offset in a meta page, and how many bytes are overwritten. */
const META_FIELDS = [
  ['number', META_AT.pageNumber],
  ['flags', META_AT.flags],
  ['magic', META_AT.magic],
  ['version', META_AT.version],
  ['page size', META_AT.pageSize],
  ['depth of the free pages', META_AT.freeDepth],
  ['root of the free pages', META_AT.freeRoot],
  ['depth of the tables', META_AT.mainDepth],
  ['root of the tables', META_AT.mainRoot],
  ['last page', META_AT.lastPage],
] as const;

const headDamages: readonly JournalDamage[] = [
  ...[0, 1].flatMap((page) =>
    META_FIELDS.map(([name, at]) => ({
      name: `meta page ${page}: another ${name}`,
      concerns: 'head' as const,
      damage: (file: string) => changePage(file, page, at, 2, (bytes) => bytes.fill(0xa5)),
    })),
  ),
  ...[0, 1].map((page) => ({
    name: `meta page ${page}: zeros`,
    concerns: 'head' as const,
    damage: (file: string) => zeroPage(file, page),
  })),
  ...(
    [
      ['the older meta page: the commit of the newest', 'older', 0n],
      ['the older meta page: a commit behind the newest', 'older', 1n],
      ['the newest meta page: a later commit', 'newest', 2n],
      ['the newest meta page: a commit before the older', 'newest', -2n],
    ] as const
  ).map(([name, which, by]) => ({
    name,
    concerns: 'head' as const,
    damage: (file: string) => renumber(file, which, by),
  })),
  ...[100, PAGE_BYTES, 2 * PAGE_BYTES, 6 * PAGE_BYTES].map((size) => ({
    name: `the file: cut at ${size} bytes`,
    concerns: 'head' as const,
    damage: (file: string) => truncateSync(file, size),
  })),
];

/** Changes a byte behind the end of the first key of a table that has these bytes. */
function changeRow(file: string, table: string, key: Buffer, byte: number): void {
  for (const page of treeAt(file, table).leaves)
    changePage(file, page, 0, PAGE_BYTES, (bytes) => {
      const at = bytes.indexOf(key);
      if (at < 0) return;
      bytes[at + key.length + byte] = (bytes[at + key.length + byte] ?? 0) ^ 2;
    });
}

const rowDamages: readonly JournalDamage[] = [
  {
    name: 'a row: a bit of its value',
    concerns: 'row',
    damage: (file) => changeRow(file, 'meta', keyBytes(SMALL_KEY), 5),
  },
  {
    name: 'a row: a bit of its checksum',
    concerns: 'row',
    damage: (file) => changeRow(file, 'meta', keyBytes(SMALL_KEY), 2),
  },
  {
    name: 'a row: a bit of its key',
    concerns: 'row',
    damage: (file) => changeRow(file, 'meta', keyBytes(BIG_KEY), -1),
  },
  {
    name: 'a row larger than a page: a bit of its value',
    concerns: 'row',
    damage(file) {
      const [page = 0] = treeAt(file, 'meta').overflow;
      changePage(file, page + 1, 1_000, 1, (bytes) => bytes.fill((bytes[0] ?? 0) ^ 1));
    },
  },
  {
    name: 'a row larger than a page: zeros in its first page',
    concerns: 'page',
    damage: (file) => zeroPage(file, treeAt(file, 'meta').overflow[0] ?? 0),
  },
  {
    name: 'a row larger than a page: another length',
    concerns: 'page',
    damage: (file) =>
      changePage(file, treeAt(file, 'meta').overflow[0] ?? 0, 20, 4, (bytes) => bytes.writeUInt32LE(7)),
  },
];

export const JOURNAL_DAMAGES: readonly JournalDamage[] = [
  ...headDamages,
  ...pageDamages,
  ...tableDamages,
  ...freeDamages,
  ...rowDamages,
];
