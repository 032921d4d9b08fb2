/** The journal in its folder, opened and copied with failures that an operator can read. */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { type DiskJournal, type DiskJournalOptions, openJournal } from './actors/runtime/journal.ts';
import { copyJournal } from './actors/runtime/journal-copy.ts';
import { DATA_FILE } from './actors/runtime/journal-file.ts';
import { JournalTooNew } from './actors/runtime/journal-port.ts';
import { JournalUnusable, makeFolder } from './data-folder.ts';

/** A consistent copy of the journal; the gateway that serves it goes on. Throws `FolderUnusable`, `JournalUnusable`. */
export async function backUp(dataPath: string, target: string): Promise<void> {
  if (!existsSync(join(dataPath, DATA_FILE))) throw new JournalUnusable(`${dataPath} holds no journal`);
  makeFolder(target);
  if (existsSync(join(target, DATA_FILE))) throw new JournalUnusable(`${target} holds a journal already`);
  await copyJournal(dataPath, target);
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
