/**
 * The data folder of a node: how its last run ended, and journals that are set aside because the log has the truth. Commits
 * of a node are not synced, so that what a machine that stopped has left is not used.
 */
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { DATA_FILE, LOCK_FILE, makeFolders, syncToDisk } from '../../actors/runtime/journal/file.ts';
import { Diverged } from '../../actors/runtime/replication/port.ts';
import { ClusterUnusable } from './failures.ts';

export type AsideReason = 'behind' | 'unsynced' | 'diverged';

interface LastRun {
  /** outvoted: the state is to be fetched anew. undecided: the operator is to choose. */
  readonly end: 'open' | 'closed' | 'outvoted' | 'undecided';
  /** Names the run of the machine; null where it has no name. */
  readonly boot: string | null;
  readonly reason: string;
}

const RUN_FILE = 'node.run';
const ASIDE_FOLDER = 'set-aside';
/** Journals that are kept; the oldest is removed for a new one. */
const ASIDE_MAX = 3;
/** Linux gives every start of the machine a name. */
const BOOT_FILE = '/proc/sys/kernel/random/boot_id';
const UNREADABLE: LastRun = { end: 'open', boot: null, reason: '' };

export function bootId(): string | null {
  try {
    return readFileSync(BOOT_FILE, 'utf8').trim();
  } catch {
    return null;
  }
}

/** A gateway without `Cluster` would continue a state that other nodes change. Throws `ClusterUnusable`. */
export function requireNoNode(dataPath: string): void {
  if (existsSync(join(dataPath, RUN_FILE)) && existsSync(join(dataPath, DATA_FILE)))
    throw new ClusterUnusable(
      `${dataPath} holds the state of a node of a cluster: copy it (cluster export), or name another folder`,
    );
}

/** The machine has stopped while a node used the folder: its journal may lack rows, or be damaged. */
export function isUnsynced(dataPath: string, boot: string | null): boolean {
  const last = lastRun(dataPath);
  return last?.end === 'open' && (boot === null || last.boot !== boot);
}

/** Must be called before the journal is opened. Throws the error of the system. */
export function markOpen(dataPath: string, boot: string | null): void {
  mark(dataPath, { end: 'open', boot, reason: '' });
}

/** The journal is closed, and on disk. Throws the error of the system. */
export function markClosed(dataPath: string): void {
  mark(dataPath, { end: 'closed', boot: null, reason: '' });
}

/** The node ends with this error; a difference decides what its next start does. */
export function markEnd(dataPath: string, error: Error): void {
  if (!(error instanceof Diverged)) return;
  mark(dataPath, { end: error.isOutvoted ? 'outvoted' : 'undecided', boot: null, reason: error.message });
}

/**
 * Sets the journal aside when the last run has left none that can be used: where it is now, and why. Throws
 * `ClusterUnusable` while the operator has not decided.
 */
export function settleLastRun(
  dataPath: string,
  boot: string | null,
  nowMs: number,
): { readonly folder: string; readonly cause: AsideReason } | undefined {
  const last = lastRun(dataPath);
  if (last?.end === 'undecided') throw new ClusterUnusable(last.reason);
  let cause: AsideReason;
  if (last?.end === 'outvoted') cause = 'diverged';
  else if (isUnsynced(dataPath, boot)) cause = 'unsynced';
  else return undefined;
  const folder = setAside(dataPath, cause, nowMs);
  markClosed(dataPath);
  return folder === undefined ? undefined : { folder, cause };
}

/** Moves the journal into a folder of its own, where commands find it; that folder, undefined when there is no journal. */
export function setAside(dataPath: string, cause: AsideReason, nowMs: number): string | undefined {
  const file = join(dataPath, DATA_FILE);
  if (!existsSync(file)) return undefined;
  const all = join(dataPath, ASIDE_FOLDER);
  makeFolders(all);
  for (const oldest of readdirSync(all)
    .sort()
    .slice(0, -(ASIDE_MAX - 1)))
    rmSync(join(all, oldest), { recursive: true, force: true });
  const folder = join(all, `${new Date(nowMs).toISOString().replaceAll(/[:.]/g, '-')}-${cause}`);
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  renameSync(file, join(folder, DATA_FILE));
  rmSync(join(dataPath, LOCK_FILE), { force: true });
  for (const path of [folder, all, dataPath]) syncToDisk(path);
  return folder;
}

function lastRun(dataPath: string): LastRun | undefined {
  const file = join(dataPath, RUN_FILE);
  if (!existsSync(file)) return undefined;
  try {
    return JSON.parse(readFileSync(file, 'utf8')) as LastRun;
  } catch {
    // Half of a text: the machine stopped meanwhile.
    return UNREADABLE;
  }
}

function mark(dataPath: string, run: LastRun): void {
  const file = join(dataPath, RUN_FILE);
  writeFileSync(`${file}.new`, JSON.stringify(run), { mode: 0o600 });
  syncToDisk(`${file}.new`);
  renameSync(`${file}.new`, file);
  syncToDisk(dataPath);
}
