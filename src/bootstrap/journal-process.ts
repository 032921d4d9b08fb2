/**
 * The program of the process that reads a journal which may be damaged, and copies one: when the engine ends it by a
 * signal, that is the finding (journal-check.ts). Says what it does as lines of JSON on standard output.
 */
import { writeSync } from 'node:fs';
import { copyJournal } from '../actors/runtime/journal/backup.ts';
import { walkJournal } from '../actors/runtime/journal/walk.ts';

/** What it is asked for: the only argument, as JSON. */
export type JournalTask =
  | {
      readonly task: 'walk';
      readonly directory: string;
      readonly quick: boolean;
      readonly skip: readonly string[];
    }
  | { readonly task: 'copy'; readonly directory: string; readonly target: string };

/** One line of what it says. */
export type JournalSaying =
  /** What is read from here on. */
  | { readonly table: string }
  | { readonly finding: string }
  | { readonly rows: number; readonly unverified: number };

/** At once, and not through a stream: what it does next may end it. */
function say(saying: JournalSaying): void {
  writeSync(1, `${JSON.stringify(saying)}\n`);
}

async function run(task: JournalTask): Promise<void> {
  if (task.task === 'copy') await copyJournal(task.directory, task.target);
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
