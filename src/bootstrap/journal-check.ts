/** Reads a whole journal in a separate process, because a damaged page of LMDB can end the process that reads it. */
import { spawn } from 'node:child_process';
import { existsSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { DATA_FILE, LOCK_FILE } from '../actors/runtime/journal/file.ts';
import type { Walked } from '../actors/runtime/journal/pages/walk.ts';
import { MINUTE_MS } from '../domain/time.ts';
import type { JournalSaying, JournalTask } from './journal-process.ts';

/** A walk that says nothing for so long has met a page in which the engine, or the disk, is stuck. */
const SILENT_MS = MINUTE_MS;
const PROGRAM = fileURLToPath(new URL('./journal-process.js', import.meta.url));

export interface Checked extends Walked {
  readonly findings: number;
}

/**
 * Reads the whole journal; `quick` reads only its pages. `onFinding` gets a sentence for each fault, also when the walk
 * makes no progress for `silentMs`.
 */
export async function checkJournalRows(
  directory: string,
  quick: boolean,
  onFinding: (sentence: string) => void,
  silentMs = SILENT_MS,
): Promise<Checked> {
  const lock = join(directory, LOCK_FILE);
  const hadLock = existsSync(lock);
  let findings = 0;
  let walked: Walked = { tables: 0, rows: 0, unverified: 0, group: null };
  const find = (sentence: string) => {
    findings += 1;
    onFinding(sentence);
  };
  const onSaying = (saying: JournalSaying) => {
    if ('finding' in saying) find(saying.finding);
    else if ('walked' in saying) walked = saying.walked;
  };
  const ended = await runTask({ task: 'walk', directory, quick }, onSaying, silentMs);
  if (ended !== undefined) find(`${DATA_FILE}: ${ended}`);
  if (!hadLock) rmSync(lock, { force: true });
  return { findings, ...walked };
}

/** Copies the journal of a folder, also of a running gateway. Throws an `Error` that says what failed. */
export async function copyJournalAside(directory: string, target: string): Promise<void> {
  const ended = await runTask({ task: 'copy', directory, target }, () => undefined);
  if (ended !== undefined) throw new Error(ended);
}

/** Copies the journal as the state with which a log begins, at position `from` or later: which one. */
export async function copyJournalAsReplica(
  directory: string,
  target: string,
  begin: { readonly from: number; readonly logId: string },
): Promise<number> {
  return (await stateOf({ task: 'replica', directory, target, ...begin }))?.position ?? begin.from;
}

interface AppliedState {
  /** Position in the log of a cluster. */
  readonly position: number;
  /** Life of that log; undefined where the journal has applied no row. */
  readonly logId: string | undefined;
  /** Digest at the position that was asked for, in hexadecimal; undefined where it is not kept. */
  readonly digest: string | undefined;
}

/** Reads which part of a cluster's log the journal has applied; undefined where it is not of a node. */
export function readAppliedState(
  directory: string,
  samplePosition?: number,
): Promise<AppliedState | undefined> {
  return stateOf({ task: 'state', directory, ...(samplePosition !== undefined && { samplePosition }) });
}

async function stateOf(task: JournalTask): Promise<AppliedState | undefined> {
  let found: AppliedState | undefined;
  const ended = await runTask(task, (saying) => {
    if ('position' in saying && saying.position !== null)
      found = { position: saying.position, logId: saying.logId, digest: saying.digest };
  });
  if (ended !== undefined) throw new Error(ended);
  return found;
}

/** Says how the process failed; undefined when it succeeded. */
async function runTask(
  task: JournalTask,
  onSaying: (saying: JournalSaying) => void,
  silentMs?: number,
): Promise<string | undefined> {
  const child = spawn(process.execPath, [PROGRAM, JSON.stringify(task)], {
    stdio: ['pipe', 'pipe', 'pipe'],
  });
  const failure: Buffer[] = [];
  child.stderr.on('data', (bytes: Buffer) => failure.push(bytes));
  const ended = new Promise<{ code: number | null; signal: string | null }>((resolve, reject) => {
    child.once('error', reject);
    child.once('close', (code, signal) => resolve({ code, signal }));
  });
  let isStuck = false;
  const stop = () => {
    isStuck = true;
    child.kill('SIGKILL');
  };
  const limit = silentMs === undefined ? undefined : setTimeout(stop, silentMs);
  for await (const line of createInterface({ input: child.stdout })) {
    limit?.refresh();
    onSaying(JSON.parse(line) as JournalSaying);
  }
  const { code, signal } = await ended;
  clearTimeout(limit);
  if (isStuck) return 'reading it made no progress, and was ended';
  if (signal !== null) return `reading ended the process by ${signal}: pages of the engine are damaged`;
  return code === 0
    ? undefined
    : `it cannot be read: ${Buffer.concat(failure).toString().trim().replaceAll(/\s+/g, ' ')}`;
}
