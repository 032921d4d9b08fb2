/**
 * A walk over all pages and rows of a journal on disk, for `check`, for the look at a copy, and after an end that was not
 * clean. Reads only, as one consistent state, also beside a running gateway.
 */
import { join } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import { open } from 'lmdb';
import type { Packr } from 'msgpackr';
import { DATA_FILE, ENGINE, SCHEMA, SCHEMA_KEY } from '../file.ts';
import { keyBytes, keyOf, tableName } from '../keys.ts';
import { OWNER_TABLE, readCommit } from '../owner.ts';
import { DamagedRow, keyText } from '../port.ts';
import type { Part } from '../reader.ts';
import { createPackr, isSealed, openRow } from '../row-checksum.ts';
import { commitFault } from './commit-fault.ts';
import { headFault, readHead, taken } from './meta-pages.ts';
import { PageFile } from './page-file.ts';
import { DamagedPage, findRow, type Snapshot, type Tree, TreeWalk, treeOf } from './pages.ts';

interface WalkOptions {
  readonly directory: string;
  /** Pages alone: rows are counted and not read. */
  readonly quick: boolean;
  readonly onFinding: (sentence: string) => void;
  /** Called after some pages. */
  readonly onProgress?: () => void;
}

export interface Walked {
  readonly tables: number;
  readonly rows: number;
  /** Rows of earlier versions without a checksum. */
  readonly unverified: number;
  /** Number of the newest group; null in a journal of an earlier version. */
  readonly group: number | null;
}

/** Attempts to read the two meta pages, because a running gateway may be writing one. */
const HEAD_LOOKS = 3;
const PROGRESS_PAGES = 4_096;
const MAIN = 'the list of tables';
const FREE = 'the list of free pages';

export async function walkJournal(options: WalkOptions): Promise<Walked | undefined> {
  const path = join(options.directory, DATA_FILE);
  const head = soundHead(path);
  if (typeof head === 'string') {
    options.onFinding(head);
    return undefined;
  }
  const root = open({ ...ENGINE, path: options.directory, readOnly: true });
  // While it lasts, a running gateway overwrites no page of a commit that was the newest since.
  const pin = root.useReadTransaction();
  const file = new PageFile(path);
  try {
    const { pinned, fault } = readCommits(path, file);
    if (fault !== undefined) options.onFinding(fault);
    return new JournalWalk(options, file, taken(pinned)[0].snapshot).run();
  } finally {
    file.close();
    pin.done();
    await root.close();
  }
}

/** The meta pages, and what is wrong with their numbers: a running gateway may overwrite the older commit meanwhile. */
function readCommits(path: string, file: PageFile) {
  for (let looks = 1; ; looks += 1) {
    const pinned = soundHead(path);
    if (typeof pinned === 'string') throw new Error(pinned);
    const fault = file.run(commitFault(pinned));
    const isStill = isDeepStrictEqual(readHead(path), pinned);
    if (fault === undefined || isStill || looks === HEAD_LOOKS)
      return { pinned, fault: isStill ? fault : undefined };
  }
}

function soundHead(path: string) {
  for (let looks = 1; ; looks += 1) {
    const head = readHead(path);
    const fault = headFault(head);
    if (fault === undefined) return head;
    if (looks === HEAD_LOOKS) return fault;
  }
}

class JournalWalk {
  readonly #options: WalkOptions;
  readonly #file: PageFile;
  readonly #snapshot: Snapshot;
  readonly #packr = createPackr();
  /** Names, at the number of each page, what has it; 0: none so far. */
  readonly #owners: Uint8Array;
  readonly #trees = new Map<string, Tree>();
  #unverified = 0;
  #pages = 0;

  constructor(options: WalkOptions, file: PageFile, snapshot: Snapshot) {
    this.#options = options;
    this.#file = file;
    this.#snapshot = snapshot;
    this.#owners = new Uint8Array(snapshot.lastPage + 1).fill(USED, 0, 2);
  }

  run(): Walked {
    this.#readTables();
    let rows = 0;
    for (const [name, tree] of this.#trees) rows += this.#readTable(name, tree);
    this.#readFree();
    return { tables: this.#trees.size, rows, unverified: this.#unverified, group: this.#group() };
  }

  #readTables(): void {
    this.#walk(MAIN, this.#snapshot.main, (key, value, isTree) => {
      const tree = isTree ? treeOf(value) : undefined;
      if (tree === undefined) this.#find(MAIN, `${tableName(key)} is no table`);
      else this.#trees.set(tableName(key), tree);
    });
  }

  #readTable(name: string, tree: Tree): number {
    const turns =
      name === 'journal' && !this.#options.quick ? new TurnOrder(this.#find, this.#covered) : undefined;
    return this.#walk(name, tree, (bytes, value) => {
      if (this.#options.quick) return;
      const key = keyOf(bytes);
      turns?.next(key);
      try {
        if (!judgeRow(this.#packr, name, key, value)) this.#unverified += 1;
      } catch (error) {
        if (!(error instanceof DamagedRow)) throw error;
        this.#options.onFinding(error.message);
      }
    });
  }

  #readFree(): void {
    this.#walk(FREE, this.#snapshot.free, (_key, value) => {
      for (const [page, pages] of freePages(value)) {
        const taken = this.#take(page, pages, FREED);
        if (taken !== undefined) this.#find(FREE, `page ${page}: ${taken}`);
      }
    });
  }

  #walk(name: string, tree: Tree, row: (key: Buffer, value: Buffer, isTree: boolean) => void): number {
    const isFree = name === FREE;
    const walk = new TreeWalk(this.#snapshot, tree, {
      withValues: isFree || !this.#options.quick,
      integerKeys: isFree,
      row,
      fault: (damage) => this.#find(name, damage.message),
      use: (page, pages) => this.#take(page, pages, USED),
    });
    this.#file.run(walk.run());
    for (const difference of walk.differences()) this.#find(name, difference);
    return walk.rows;
  }

  /** Marks pages as used; says why they cannot be what they are taken for. */
  #take(page: number, pages: number, use: number): string | undefined {
    this.#pages += 1;
    if (this.#pages % PROGRESS_PAGES === 0) this.#options.onProgress?.();
    if (page < 2 || page + pages > this.#owners.length) return 'it lies outside of the file';
    for (let at = page; at < page + pages; at += 1) {
      const before = this.#owners[at];
      if (before !== 0) return before === use ? TWICE[use] : 'it is both free and in use';
      this.#owners[at] = use;
    }
    return undefined;
  }

  readonly #find = (name: string, sentence: string): void => {
    this.#options.onFinding(`${name}: ${sentence}`);
  };

  /** The row that a snapshot of an actor covers; 0 without one. A damaged one is found where it stands. */
  readonly #covered = (kind: string, id: string): number => {
    const tree = this.#trees.get('snapshot');
    if (tree === undefined) return 0;
    const key = [kind, id];
    try {
      const row = this.#file.run(findRow(this.#snapshot, tree, keyBytes(key)));
      if (row === undefined) return 0;
      return (openRow(this.#packr, row, row.length, 'snapshot', key) as [number, number])[1];
    } catch (error) {
      if (error instanceof DamagedPage || error instanceof DamagedRow) return Number.MAX_SAFE_INTEGER;
      throw error;
    }
  };

  /** A fault of the row was found before. */
  #group(): number | null {
    try {
      return this.#file.run(readCommit(this.#snapshot))?.group ?? null;
    } catch (error) {
      if (error instanceof DamagedPage || error instanceof DamagedRow) return null;
      throw error;
    }
  }
}

/** Uses of a page. */
const USED = 1;
const FREED = 2;
const TWICE: Readonly<Record<number, string>> = { [USED]: 'it is in use twice', [FREED]: 'it is free twice' };

/** Blocks of a record of free pages: a number, or minus a length and the number of the first. Zeros are unused room. */
function* freePages(value: Buffer): Iterable<readonly [page: number, pages: number]> {
  const words = Math.min(value.length / 8 - 1, Number(value.readBigUInt64LE(0)));
  for (let word = 1; word <= words; word += 1) {
    const entry = Number(value.readBigInt64LE(8 * word));
    if (entry > 0) yield [entry, 1];
    else if (entry < 0 && word < words) {
      word += 1;
      yield [Number(value.readBigInt64LE(8 * word)), -entry];
    }
  }
}

/** Verifies a row as it is on disk; false: it has no checksum. Throws `DamagedRow`. */
export function judgeRow(packr: Packr, table: string, key: Part[] | Part, row: Buffer): boolean {
  // Its value is judged with the number of the commit.
  if (table === OWNER_TABLE) return true;
  const value = openRow(packr, row, row.length, table, key);
  if (table === 'meta' && key === SCHEMA_KEY && !(Number(value) >= 1 && Number(value) <= SCHEMA))
    throw new DamagedRow(
      table,
      key,
      row,
      `the layout is ${String(value)}, this version knows up to ${SCHEMA}`,
    );
  return isSealed(row);
}

/** Turns of an actor follow its snapshot, or begin with 1, without a gap. */
class TurnOrder {
  readonly #find: (name: string, sentence: string) => void;
  readonly #covered: (kind: string, id: string) => number;
  #actor = '';
  #seq = 0;

  constructor(find: (name: string, sentence: string) => void, covered: (kind: string, id: string) => number) {
    this.#find = find;
    this.#covered = covered;
  }

  next(key: Part[] | Part): void {
    const [kind, id, seq] = key as [string, string, number];
    const actor = keyText([kind, id]);
    if (actor !== this.#actor) {
      this.#actor = actor;
      // Rows that the snapshot covers leave with it, so the first one left is its next.
      this.#seq = seq === 1 ? 0 : this.#covered(kind, id);
    }
    if (seq > this.#seq + 1) this.#find('journal', `the row ${actor}/${this.#seq + 1} is missing`);
    this.#seq = seq;
  }
}
