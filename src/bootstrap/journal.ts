/** Opens, checks and copies the journal of a folder. Errors are sentences for the operator. */
import { existsSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { DATA_FILE } from '../actors/runtime/journal/file.ts';
import { type DiskJournal, type DiskJournalOptions, openJournal } from '../actors/runtime/journal/lmdb.ts';
import { fileFault } from '../actors/runtime/journal/pages/commit-fault.ts';
import { badPageOf, useOlderCommit } from '../actors/runtime/journal/pages/older-commit.ts';
import { JournalTooNew } from '../actors/runtime/journal/port.ts';
import { holdFolder, JournalUnusable } from './data-directory.ts';
import { checkJournalRows } from './journal-check.ts';
import {
  holdsJournal,
  isUnfinished,
  readReceipt,
  receiptFault,
  requireJournal,
  UNFINISHED,
} from './journal-copy.ts';

/** `--new-journal` although a journal exists. */
export class JournalPresent extends Error {}
/** `--use-older-commit` although the newest commit can be read. */
export class JournalSound extends Error {}

/** Reads the whole journal, also of a running gateway. `print` gets a line for each finding, and a summary. */
export async function checkData(
  dataPath: string,
  print: (line: string) => void,
): Promise<{ sound: boolean }> {
  requireJournal(dataPath);
  const checked = await checkJournalRows(dataPath, false, print);
  const { tables, rows, unverified } = checked;
  const fault = receiptFault(readReceipt(dataPath), checked);
  if (fault !== undefined) print(fault);
  const findings = checked.findings + (fault === undefined ? 0 : 1);
  const old = unverified > 1 ? `; ${unverified} rows of an earlier version have no checksum` : '';
  print(`${dataPath}: ${rows} rows in ${tables} tables, ${findings} findings${old}`);
  return { sound: findings === 0 };
}

/**
 * Checks the pages of a journal after an end that was not clean: a damaged page may have caused it, and would do so again.
 * Takes about a second for ten million rows. Throws `JournalUnusable`.
 */
export async function checkPages(dataPath: string): Promise<void> {
  if (!holdsJournal(dataPath)) return;
  const faults: string[] = [];
  await checkJournalRows(dataPath, true, (sentence) => faults.push(sentence));
  if (faults[0] !== undefined)
    throw new JournalUnusable(`the journal in ${dataPath} is damaged: ${faults[0]}; restore a backup`);
}

/**
 * Reverts a journal with one bad meta page to the older commit. Returns what was done, in a sentence. Throws
 * `FolderInUse`, `JournalUnusable` where no good commit exists, `JournalSound` where no repair is needed.
 */
export async function goBackACommit(dataPath: string, nowMs: number): Promise<string> {
  requireJournal(dataPath);
  const folder = await holdFolder(dataPath);
  try {
    const file = join(dataPath, DATA_FILE);
    const fault = faultOf(file);
    if (fault === undefined)
      throw new JournalSound(`--use-older-commit: both meta pages of ${file} are good`);
    const pages = badPageOf(file);
    if (pages === undefined)
      throw new JournalUnusable(`the journal ${file} is damaged: ${fault}; restore a backup`);
    const { transaction, gone, kept } = useOlderCommit(file, pages.good, pages.bad, nowMs);
    return `${file} continues from commit ${transaction}: ${gone}; the overwritten page is saved as ${kept}`;
  } finally {
    folder.release();
  }
}

/**
 * Checks the journal of the folder before LMDB opens it. `fresh`: a new journal is wanted. Throws `JournalUnusable`, and
 * `JournalPresent` when a journal exists.
 */
export function checkJournal(dataPath: string, hadJournal: boolean, fresh: boolean): void {
  const file = join(dataPath, DATA_FILE);
  const sizeBytes = statSync(file, { throwIfNoEntry: false })?.size ?? 0;
  if (sizeBytes > 0) {
    if (fresh) throw new JournalPresent(`--new-journal: ${file} exists already`);
    const fault = faultOf(file);
    if (fault !== undefined) {
      const other =
        badPageOf(file) === undefined ? '' : ', or continue from an older commit (check --use-older-commit)';
      throw new JournalUnusable(`the journal ${file} is damaged: ${fault}; restore a backup${other}`);
    }
  } else if (isUnfinished(dataPath))
    throw new JournalUnusable(
      `a restore into ${dataPath} was cut off; run it again, or remove ${dataPath}/${UNFINISHED}`,
    );
  else if (hadJournal && !fresh)
    throw new JournalUnusable(
      `${dataPath} had a journal, and ${DATA_FILE} is ${existsSync(file) ? 'empty' : 'gone'}; restore a backup, or start with an empty journal (--new-journal)`,
    );
}

function faultOf(file: string): string | undefined {
  try {
    return fileFault(file);
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
}

/** Throws `JournalUnusable`, `JournalTooNew`. */
export async function openStorage(options: DiskJournalOptions): Promise<DiskJournal> {
  try {
    return await openJournal(options);
  } catch (error) {
    if (error instanceof JournalTooNew) throw error;
    const reason = error instanceof Error ? error.message : String(error);
    throw new JournalUnusable(`the journal in ${options.directory} cannot be opened: ${reason}`);
  }
}
