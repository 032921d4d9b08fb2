/**
 * Which process owns the journal. Each process raises the version of the row `owner` when it opens the journal, and
 * every group is conditional on that version. File locks fail on some file systems.
 */
import type { Database, RootDatabase } from 'lmdb';

const KEY = 'owner';

export class JournalOwner {
  readonly #root: RootDatabase;
  readonly #table: Database;
  /** The version of the row while this process owns the journal. */
  #epoch = 0;

  constructor(root: RootDatabase) {
    this.#root = root;
    this.#table = root.openDB('owner', { useVersions: true });
  }

  /** Ends the ownership of every process that opened the journal before. To be called before anything is read. */
  async takeOver(): Promise<void> {
    for (let isMine = false; !isMine; this.#root.resetReadTxn()) {
      const before = this.#table.getEntry(KEY)?.version ?? 0;
      this.#epoch = before + 1;
      const put = (ifVersion?: number) => this.#table.put(KEY, process.pid, this.#epoch, ifVersion);
      isMine = await (before === 0 ? this.#table.ifNoExists(KEY, () => put()) : put(before));
    }
  }

  /**
   * Commits what `write` does; false, with nothing of it written, when another process owns the journal. The engine judges
   * the condition within the write transaction.
   */
  write(write: () => void): Promise<boolean> {
    return this.#table.ifVersion(KEY, this.#epoch, write);
  }
}
