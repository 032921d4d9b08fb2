/** The journal in its folder, opened and copied with failures that an operator can read. */
import { existsSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { type DiskJournal, type DiskJournalOptions, openJournal } from './actors/runtime/journal.ts';
import { copyJournal } from './actors/runtime/journal-copy.ts';
import { DATA_FILE } from './actors/runtime/journal-file.ts';
import { JournalTooNew } from './actors/runtime/journal-port.ts';
import { headFault, readHead } from './actors/runtime/meta-pages.ts';
import { JournalUnusable, makeFolder } from './data-folder.ts';

/** A journal is there, and a new one was asked for. */
export class JournalPresent extends Error {}

/** A consistent copy of the journal; the gateway that serves it goes on. Throws `FolderUnusable`, `JournalUnusable`. */
export async function backUp(dataPath: string, target: string): Promise<void> {
  if (!existsSync(join(dataPath, DATA_FILE))) throw new JournalUnusable(`${dataPath} holds no journal`);
  makeFolder(target);
  if (existsSync(join(target, DATA_FILE))) throw new JournalUnusable(`${target} holds a journal already`);
  await copyJournal(dataPath, target);
}

/**
 * Judges the journal of the folder before the engine opens it. `fresh`: a new one was asked for. Throws `JournalUnusable`,
 * and `JournalPresent` where one would be hidden by a new one.
 */
export function checkJournal(dataPath: string, hadJournal: boolean, fresh: boolean): void {
  const file = join(dataPath, DATA_FILE);
  const sizeBytes = statSync(file, { throwIfNoEntry: false })?.size ?? 0;
  if (sizeBytes > 0) {
    if (fresh) throw new JournalPresent(`--new-journal: ${file} is there already`);
    const fault = faultOf(file);
    if (fault !== undefined)
      throw new JournalUnusable(`the journal ${file} is damaged: ${fault}; restore a backup`);
  } else if (hadJournal && !fresh)
    throw new JournalUnusable(
      `${dataPath} has had a journal, and ${DATA_FILE} is ${existsSync(file) ? 'empty' : 'gone'}; restore a backup, or begin anew with --new-journal`,
    );
}

function faultOf(file: string): string | undefined {
  try {
    return headFault(readHead(file));
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
