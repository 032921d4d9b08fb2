/**
 * `unsynced-writer.js FOLDER GROUPS synced|unsynced`: opens a journal, commits groups of one row, prints `written` before
 * the first and after the last one, and `closed` when it is closed. The tests trace its system calls.
 */
import { writeSync } from 'node:fs';
import { openJournal } from '../../../src/actors/runtime/journal/lmdb.ts';
import { commitRows } from '../actors/commit-rows.ts';

const [directory = '', groups, mode] = process.argv.slice(2);
const journal = await openJournal({ directory, unsynced: mode === 'unsynced' });
writeSync(1, 'written\n');
for (let seq = 1; seq <= Number(groups); seq += 1)
  await commitRows(journal, [
    { op: 'append', kind: 'user', id: '1', seq, row: journal.pack([1, [], [], []]) },
  ]);
writeSync(1, 'written\n');
await journal.close();
writeSync(1, 'closed\n');
