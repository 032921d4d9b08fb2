/** Does the file hold what its two meta pages say? Each names a commit, whose newest group has the same number in a row. */

import { readCommit } from '../owner.ts';
import { DamagedRow } from '../port.ts';
import { headFault, type JournalHead, type MetaPage, readHead, taken } from './meta-pages.ts';
import { PageFile } from './page-file.ts';
import { DamagedPage, type PageReading } from './pages.ts';

/** Says why the engine must not open the file; undefined: it may. Throws the error of the system. */
export function fileFault(path: string): string | undefined {
  const head = readHead(path);
  const fault = headFault(head);
  if (fault !== undefined) return fault;
  const file = new PageFile(path);
  try {
    return file.run(commitFault(head));
  } finally {
    file.close();
  }
}

/**
 * A sentence about the page that the engine takes. The other page counts where its commit can be read: with a number that
 * is too low the newest commit stands behind it.
 */
export function* commitFault(head: JournalHead): PageReading<string | undefined> {
  const [newest, other] = taken(head);
  const { fault } = yield* faultOfCommit(newest);
  // `useOlderCommit` leaves two pages with the same tree.
  if (fault !== undefined || other.snapshot.main.root === newest.snapshot.main.root) return fault;
  const older = yield* faultOfCommit(other);
  return older.transaction === undefined ? undefined : older.fault;
}

interface JudgedCommit {
  /** The reason why the meta page cannot be believed. */
  readonly fault?: string;
  /** Transaction that its rows name; undefined where they cannot be read, or are of an earlier version. */
  readonly transaction?: number;
}

export function* faultOfCommit({ page, snapshot }: MetaPage): PageReading<JudgedCommit> {
  // Pages of a later commit than it names say that it is wrong.
  const anyCommit = { ...snapshot, transaction: Number.POSITIVE_INFINITY };
  try {
    const row = yield* readCommit(anyCommit);
    if (row === undefined) return {};
    const { transaction } = row;
    if (transaction === snapshot.transaction) return { transaction };
    const numbers = `it has commit ${snapshot.transaction}, and its rows are of commit ${transaction}`;
    return { transaction, fault: `meta page ${page} is bad: ${numbers}` };
  } catch (error) {
    if (error instanceof DamagedPage || error instanceof DamagedRow) return { fault: error.message };
    throw error;
  }
}
