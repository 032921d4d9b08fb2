/**
 * Copies of the journal: backup and restore. A copy is made beside its place and read as a whole, and gets its name then: a
 * copy that was cut off is never taken for one. The receipt of a backup says what it holds.
 */
import {
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { DATA_FILE, syncToDisk } from '../actors/runtime/journal/file.ts';
import { holdFolder, JournalUnusable, makeFolder } from './data-directory.ts';
import { type Checked, checkJournalRows, copyJournalAside } from './journal-check.ts';

/** A copy in the making is in this folder of its place. */
export const UNFINISHED = 'unfinished';
const COPY = 'copy-';
const RECEIPT_FILE = 'receipt.json';

/** Content of a copy, as it was read after it was made. */
interface Receipt {
  readonly rows: number;
  /** Number of the newest group; null in a journal that only earlier builds have served. */
  readonly lastGroup: number | null;
  /** ISO 8601, UTC. */
  readonly time: string;
}

/**
 * Makes a consistent copy of the journal and verifies it by reading all of it. The gateway keeps running. Returns a sentence.
 * Throws `FolderInUse`, `FolderUnusable`, `JournalUnusable`.
 */
export async function backUp(dataPath: string, target: string, nowMs: number): Promise<string> {
  requireJournal(dataPath);
  makeFolder(target);
  if (existsSync(join(target, DATA_FILE))) throw new JournalUnusable(`${target} holds a journal already`);
  const { rows, group } = await copyBeside(dataPath, target, (copy, { rows, group }) => {
    const receipt: Receipt = { rows, lastGroup: group, time: new Date(nowMs).toISOString() };
    const path = join(copy, RECEIPT_FILE);
    writeFileSync(path, `${JSON.stringify(receipt)}\n`, { mode: 0o600, flush: true });
    renameSync(path, join(target, RECEIPT_FILE));
  });
  return `backup written to ${target}: ${contentOf(rows, group)}`;
}

/**
 * Copies the journal of a backup into a data folder that has none, and reads all of it. A start then serves it. Returns a
 * sentence. Throws `FolderInUse`, `FolderUnusable`, `JournalUnusable`.
 */
export async function restore(from: string, dataPath: string): Promise<string> {
  requireJournal(from);
  const folder = await holdFolder(dataPath);
  try {
    if (existsSync(join(dataPath, DATA_FILE)))
      throw new JournalUnusable(
        `${dataPath} holds a journal already; move it away, or restore into another folder with --data`,
      );
    let receipt: Receipt | undefined;
    const { rows, group } = await copyBeside(from, dataPath, (_copy, checked) => {
      receipt = readReceipt(from);
      const fault = receiptFault(receipt, checked);
      if (fault !== undefined)
        throw new JournalUnusable(`the journal in ${from} is not the one that was backed up: ${fault}`);
    });
    folder.markJournal();
    const made = receipt === undefined ? 'the backup has no receipt' : `the backup of ${receipt.time}`;
    return `${dataPath} holds the journal of ${from}: ${contentOf(rows, group)}; ${made}`;
  } finally {
    folder.release();
  }
}

function contentOf(rows: number, group: number | null): string {
  return `${rows} rows${group === null ? '' : `, newest group ${group}`}`;
}

/** The copy gets its name after `judge`, which may refuse it. */
async function copyBeside(
  from: string,
  target: string,
  judge: (copy: string, checked: Checked) => void,
): Promise<Checked> {
  const unfinished = join(target, UNFINISHED);
  // Two copies into one folder would remove each other's files.
  const held = await holdFolder(unfinished);
  try {
    removeCopies(unfinished);
    // This run alone uses the folder: the process of a killed run may still write to its own.
    const copy = mkdtempSync(join(unfinished, COPY));
    const checked = await copyAndRead(from, copy, target);
    judge(copy, checked);
    renameSync(join(copy, DATA_FILE), join(target, DATA_FILE));
    syncToDisk(target);
    return checked;
  } finally {
    rmSync(unfinished, { recursive: true, force: true });
    held.release();
  }
}

function removeCopies(unfinished: string): void {
  for (const name of readdirSync(unfinished))
    if (name.startsWith(COPY)) rmSync(join(unfinished, name), { recursive: true, force: true });
}

async function copyAndRead(from: string, copy: string, target: string): Promise<Checked> {
  try {
    await copyJournalAside(from, copy);
  } catch (error) {
    throw new JournalUnusable(`the journal in ${from} cannot be copied: ${(error as Error).message}`);
  }
  const faults: string[] = [];
  const checked = await checkJournalRows(copy, false, (sentence) => faults.push(sentence));
  const { findings } = checked;
  if (findings > 0)
    throw new JournalUnusable(
      `the copy for ${target} is damaged, as the journal is: ${faults[0]}${findings > 1 ? ` (and ${findings - 1} more)` : ''}; inspect ${from} with the command check`,
    );
  return checked;
}

/** A backup or restore into the folder was cut off, and there is no journal. */
export function isUnfinished(folder: string): boolean {
  return existsSync(join(folder, UNFINISHED)) && !existsSync(join(folder, DATA_FILE));
}

/** Undefined where there is none, as earlier versions wrote none. Throws `JournalUnusable`. */
export function readReceipt(folder: string): Receipt | undefined {
  const path = join(folder, RECEIPT_FILE);
  if (!existsSync(path)) return undefined;
  try {
    const { rows, lastGroup, time } = JSON.parse(readFileSync(path, 'utf8')) as Partial<Receipt>;
    if (
      typeof rows === 'number' &&
      typeof time === 'string' &&
      (lastGroup === null || typeof lastGroup === 'number')
    )
      return { rows, lastGroup, time };
    throw new Error('it has other fields');
  } catch (error) {
    throw new JournalUnusable(`the receipt ${path} cannot be read: ${(error as Error).message}`);
  }
}

/** Says how a journal that was read differs from its receipt. */
export function receiptFault(receipt: Receipt | undefined, { rows, group }: Checked): string | undefined {
  if (receipt === undefined || (receipt.rows === rows && receipt.lastGroup === group)) return undefined;
  const { time, lastGroup } = receipt;
  return `it has ${contentOf(rows, group)}, and its receipt of ${time} names ${contentOf(receipt.rows, lastGroup)}`;
}

/** A folder that is served changes: the receipt of a copy counts no more. */
export function dropReceipt(folder: string): void {
  rmSync(join(folder, RECEIPT_FILE), { force: true });
}

/** Throws `JournalUnusable`. */
export function requireJournal(folder: string): void {
  if (holdsJournal(folder)) return;
  const cut = isUnfinished(folder) ? ': a backup or restore into it was cut off' : '';
  throw new JournalUnusable(`${folder} holds no journal${cut}`);
}

export function holdsJournal(folder: string): boolean {
  return (statSync(join(folder, DATA_FILE), { throwIfNoEntry: false })?.size ?? 0) > 0;
}
