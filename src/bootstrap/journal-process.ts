/**
 * The program of the process that reads or copies a journal that may be damaged. When LMDB ends it by a signal, that is a
 * finding (journal-check.ts). Writes its progress as lines of JSON to standard output.
 */
import { writeSync } from 'node:fs';
import { copyAsReplica, copyJournal, replicaPosition } from '../actors/runtime/journal/backup.ts';
import { walkJournal } from '../actors/runtime/journal/walk.ts';

/** The only argument, as JSON. */
export type JournalTask =
  | {
      readonly task: 'walk';
      readonly directory: string;
      readonly quick: boolean;
      readonly skip: readonly string[];
    }
  | { readonly task: 'copy'; readonly directory: string; readonly target: string }
  | { readonly task: 'position'; readonly directory: string }
  | {
      readonly task: 'replica';
      readonly directory: string;
      readonly target: string;
      readonly from: number;
      readonly logId: string;
    };

/** One line of its output. */
export type JournalSaying =
  /** The table that is read from here on. */
  | { readonly table: string }
  | { readonly finding: string }
  | { readonly rows: number; readonly unverified: number }
  /** In the log of a cluster; null: the journal is not of one. */
  | { readonly position: number | null };

/** Written synchronously, because the next operation may end the process. */
function say(saying: JournalSaying): void {
  writeSync(1, `${JSON.stringify(saying)}\n`);
}

async function run(task: JournalTask): Promise<void> {
  if (task.task === 'copy') await copyJournal(task.directory, task.target);
  else if (task.task === 'position') say({ position: (await replicaPosition(task.directory)) ?? null });
  else if (task.task === 'replica') say({ position: await copyAsReplica(task.directory, task.target, task) });
  else
    await walkJournal({
      ...task,
      onTable: (table) => say({ table }),
      onFinding: (finding) => say({ finding }),
      onRows: say,
    });
}

run(JSON.parse(process.argv[2] ?? '') as JournalTask).catch((error: unknown) => {
  process.stderr.write(error instanceof Error ? error.message : String(error));
  process.exit(1);
});
