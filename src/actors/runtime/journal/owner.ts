/**
 * Owner of the journal and transaction of its newest group: one row. A process raises the row's version when it opens
 * the journal, and every group is conditional on it, because file locks fail on some file systems. The row also repeats
 * the transaction number of the meta page.
 */
import type { Database, RootDatabase } from 'lmdb';
import type { Packr } from 'msgpackr';
import { keyBytes, tableKey } from './keys.ts';
import { findRow, type PageReading, type Snapshot, treeOf } from './pages/pages.ts';
import { createPackr, isSealed, openRow, packRow, seal } from './row-checksum.ts';

/** The table, and its only key. */
export const OWNER_TABLE = 'owner';
const KEY = 'owner';
/** Bytes of the version before the value. */
const VERSION_BYTES = 8;

/** Content of the row. Earlier builds wrote the id of their process in its place. */
interface CommitRow {
  /** The transaction that wrote it: it counts on from the one before, and continues in a copy. */
  readonly transaction: number;
  /** Groups of this journal so far, those before a copy included. */
  readonly group: number;
}

/** The part of the engine's environment that its types leave out. `info` reads the newest meta page, without a transaction. */
interface Environment {
  readonly env: { info(): EngineInfo };
}
interface EngineInfo {
  readonly lastPageNumber: number;
  readonly lastTxnId: number;
}

export class JournalOwner {
  readonly #root: RootDatabase;
  readonly #packr: Packr;
  #table: Database | undefined;
  /** The version of the row while this process owns the journal. */
  #epoch = 0;
  #last: CommitRow = { transaction: 0, group: 0 };

  constructor(root: RootDatabase, packr: Packr) {
    this.#root = root;
    this.#packr = packr;
  }

  /**
   * Ends the ownership of every process that opened the journal before, in one transaction with what `open` reads and
   * writes. Whatever another owner acknowledged is on disk by then, and it writes nothing more.
   */
  takeOver<Result>(open: () => Result): Result {
    return this.#root.transactionSync(() => {
      const table: Database = this.#root.openDB(OWNER_TABLE, { useVersions: true });
      const result = open();
      const before = table.getEntry(KEY);
      this.#table = table;
      this.#epoch = (before?.version ?? 0) + 1;
      const group = commitRow(this.#packr, before?.value)?.group ?? 0;
      this.#put({ transaction: this.#root.getWriteTxnId(), group });
      return result;
    });
  }

  /**
   * Commits what `write` does, and returns the figures of the commit; undefined when another process owns the journal. Then
   * nothing of it is written, or that process came right after it: the group is there and stays unacknowledged. The engine judges
   * the condition within the write transaction. One group at a time.
   */
  async write(write: () => void): Promise<EngineInfo | undefined> {
    const { transaction, group } = this.#last;
    const isOwner = await this.#owned().ifVersion(KEY, this.#epoch, () => {
      write();
      this.#put({ transaction: transaction + 1, group: group + 1 });
    });
    if (!isOwner) return undefined;
    const info = engineInfo(this.#root);
    // The figures are those of the newest transaction, perhaps of another process.
    if (info.lastTxnId > transaction + 1) return undefined;
    if (info.lastTxnId !== transaction + 1)
      throw new Error(`transaction ${info.lastTxnId} wrote the row of transaction ${transaction + 1}`);
    return info;
  }

  #owned(): Database {
    if (this.#table === undefined) throw new Error('the journal was not taken over');
    return this.#table;
  }

  #put(row: CommitRow): void {
    this.#last = row;
    void this.#owned().put(KEY, packedCommit(this.#packr, row), this.#epoch);
  }
}

export function engineInfo(root: RootDatabase): EngineInfo {
  return (root as unknown as Environment).env.info();
}

/**
 * Changes a copy that no process serves. The transaction numbers of a copy differ, so its row is written anew, and twice:
 * each meta page is then one whose number the row confirms.
 */
export function changeCopy(root: RootDatabase, change: () => void): CommitRow | undefined {
  const packr = createPackr();
  let row: CommitRow | undefined;
  for (const step of [change, () => undefined]) {
    root.transactionSync(() => {
      step();
      const table: Database = root.openDB(OWNER_TABLE, { useVersions: true });
      const entry = table.getEntry(KEY);
      const before = commitRow(packr, entry?.value);
      // A copy of an earlier version has none until it is served.
      if (before === undefined || entry === undefined) return;
      row = { ...before, transaction: root.getWriteTxnId() };
      void table.put(KEY, packedCommit(packr, row), entry.version ?? 0);
    });
  }
  return row;
}

/** Packs the row so that earlier versions read it without an error, as they read the version alone. */
function packedCommit(packr: Packr, { transaction, group }: CommitRow): Uint8Array {
  const row = packRow(packr, [transaction, group]);
  seal(row, OWNER_TABLE, KEY);
  return row;
}

function commitRow(packr: Packr, value: unknown): CommitRow | undefined {
  if (!(value instanceof Uint8Array) || !isSealed(value)) return undefined;
  const [transaction, group] = openRow(packr, value, value.length, OWNER_TABLE, KEY) as [number, number];
  return { transaction, group };
}

/** The row as of a commit, read without the engine. Throws `DamagedPage`, `DamagedRow`. */
export function* readCommit(snapshot: Snapshot): PageReading<CommitRow | undefined> {
  const named = yield* findRow(snapshot, snapshot.main, tableKey(OWNER_TABLE));
  const tree = named === undefined ? undefined : treeOf(named);
  if (tree === undefined) return undefined;
  const value = yield* findRow(snapshot, tree, keyBytes(KEY));
  if (value === undefined) return undefined;
  const packr = createPackr();
  return commitRow(packr, packr.unpack(value.subarray(VERSION_BYTES)));
}
