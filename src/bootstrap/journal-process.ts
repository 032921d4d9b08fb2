/**
 * The program of the process that reads or copies a journal that may be damaged. When LMDB ends it by a signal, that is a
 * finding (journal-check.ts). Writes its progress as lines of JSON to standard output.
 */
import { writeSync } from 'node:fs';
import { copyAsReplica, copyJournal, replicaState } from '../actors/runtime/journal/backup.ts';
import { type Walked, walkJournal } from '../actors/runtime/journal/pages/walk.ts';

/** The only argument, as JSON. */
export type JournalTask =
  | { readonly task: 'walk'; readonly directory: string; readonly quick: boolean }
  | { readonly task: 'copy'; readonly directory: string; readonly target: string }
  | { readonly task: 'state'; readonly directory: string; readonly samplePosition?: number }
  | {
      readonly task: 'replica';
      readonly directory: string;
      readonly target: string;
      readonly from: number;
      readonly logId: string;
    };

/** One line of its output. */
export type JournalSaying =
  | { readonly finding: string }
  /** The walk makes progress. */
  | { readonly walking: true }
  | { readonly walked: Walked }
  /** In the log of a cluster; null: the journal is not of one. The digest is in hexadecimal. */
  | {
      readonly position: number | null;
      readonly logId?: string | undefined;
      readonly digest?: string | undefined;
    };

/** Written synchronously, because the next operation may end the process. */
function say(saying: JournalSaying): void {
  writeSync(1, `${JSON.stringify(saying)}\n`);
}

async function run(task: JournalTask): Promise<void> {
  if (task.task === 'copy') await copyJournal(task.directory, task.target);
  else if (task.task === 'state') {
    const state = await replicaState(task.directory, task.samplePosition);
    const digest = state?.sample && Buffer.from(state.sample[1]).toString('hex');
    say({ position: state?.position ?? null, logId: state?.logId, digest });
  } else if (task.task === 'replica')
    say({ position: await copyAsReplica(task.directory, task.target, task) });
  else {
    const onProgress = () => say({ walking: true });
    const walked = await walkJournal({ ...task, onFinding: (finding) => say({ finding }), onProgress });
    if (walked !== undefined) say({ walked });
  }
}

// It ends with the process that started it: a copy that another run makes is not to meet this one.
process.stdin.once('end', () => process.exit(1)).resume();
run(JSON.parse(process.argv[2] ?? '') as JournalTask).then(
  () => process.stdin.destroy(),
  (error: unknown) => {
    process.stderr.write(error instanceof Error ? error.message : String(error));
    process.exit(1);
  },
);
