/** Opens, checks and copies the journal of a folder. Errors are sentences for the operator. */
import { existsSync, rmSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { fileFault } from '../actors/runtime/journal/commit-fault.ts';
import { DATA_FILE } from '../actors/runtime/journal/file.ts';
import { type DiskJournal, type DiskJournalOptions, openJournal } from '../actors/runtime/journal/lmdb.ts';
import { badPageOf, useOlderCommit } from '../actors/runtime/journal/older-commit.ts';
import { JournalTooNew } from '../actors/runtime/journal/port.ts';
import { holdFolder, JournalUnusable, makeFolder } from './data-directory.ts';
import { checkJournalRows, copyJournalAside } from './journal-check.ts';

/** `--new-journal` although a journal exists. */
export class JournalPresent extends Error {}
/** `--use-older-commit` although the newest commit can be read. */
export class JournalSound extends Error {}

/**
 * Makes a consistent copy of the journal and verifies it by reading all of it. The gateway keeps running.
 * Throws `FolderUnusable`, `JournalUnusable`.
 */
export async function backUp(dataPath: string, target: string): Promise<void> {
  requireJournal(dataPath);
  makeFolder(target);
  if (existsSync(join(target, DATA_FILE))) throw new JournalUnusable(`${target} holds a journal already`);
  await copyAndRead(dataPath, target);
}

/**
 * Copies the journal of a backup into a data folder that has none, and reads all of it. A start then serves it.
 * Throws `FolderInUse`, `FolderUnusable`, `JournalUnusable`.
 */
export async function restore(from: string, dataPath: string): Promise<void> {
  requireJournal(from);
  const folder = await holdFolder(dataPath);
  const hadFile = existsSync(join(dataPath, DATA_FILE));
  try {
    if (hadFile)
      throw new JournalUnusable(
        `${dataPath} holds a journal already; move it away, or restore into another folder with --data`,
      );
    await copyAndRead(from, dataPath);
    folder.markJournal();
  } catch (error) {
    if (!hadFile) rmSync(join(dataPath, DATA_FILE), { force: true });
    throw error;
  } finally {
    folder.release();
  }
}

async function copyAndRead(from: string, target: string): Promise<void> {
  try {
    await copyJournalAside(from, target);
  } catch (error) {
    throw new JournalUnusable(`the journal in ${from} cannot be copied: ${(error as Error).message}`);
  }
  const faults: string[] = [];
  const { findings } = await checkJournalRows(target, false, (sentence) => faults.push(sentence));
  if (findings > 0)
    throw new JournalUnusable(
      `the copy in ${target} is damaged, as the journal is: ${faults[0]}${findings > 1 ? ` (and ${findings - 1} more)` : ''}; inspect ${from} with the command check`,
    );
}

/** Reads the whole journal, also of a running gateway. `print` gets a line for each finding, and a summary. */
export async function checkData(
  dataPath: string,
  print: (line: string) => void,
): Promise<{ sound: boolean }> {
  requireJournal(dataPath);
  const { findings, tables, rows, unverified } = await checkJournalRows(dataPath, false, print);
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

function requireJournal(dataPath: string): void {
  if (!holdsJournal(dataPath)) throw new JournalUnusable(`${dataPath} holds no journal`);
}

function holdsJournal(dataPath: string): boolean {
  return (statSync(join(dataPath, DATA_FILE), { throwIfNoEntry: false })?.size ?? 0) > 0;
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
  } else if (hadJournal && !fresh)
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
