/** The state that a node of a cluster begins with, and stores for others: copies of its journal as checkpoints. */
import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { adoptReplica, replicaPosition } from '../actors/runtime/journal/backup.ts';
import { DATA_FILE } from '../actors/runtime/journal/file.ts';
import type { DiskJournal } from '../actors/runtime/journal/lmdb.ts';
import type { Checkpoints } from '../io/cluster/checkpoints.ts';

/**
 * Fetches the newest checkpoint into a folder that holds no journal; its position. Undefined when there is none: the log
 * is read from its first row. Rejects with `ClusterUnusable`, `DatabaseFailure`.
 */
export async function fetchState(
  checkpoints: Checkpoints,
  dataPath: string,
  logId: string,
): Promise<number | undefined> {
  const file = join(dataPath, DATA_FILE);
  const newest = existsSync(file) ? undefined : await checkpoints.newest();
  if (newest === undefined) return undefined;
  await checkpoints.download(newest, file);
  return adoptReplica(dataPath, logId);
}

/** Stores the present state of the journal as a checkpoint, and removes those that it replaces; its position. */
export async function storeState(
  checkpoints: Checkpoints,
  journal: Pick<DiskJournal, 'copyReplica'>,
  dataPath: string,
): Promise<number | undefined> {
  const copy = mkdtempSync(join(dataPath, 'checkpoint-'));
  try {
    await journal.copyReplica(copy);
    const position = await replicaPosition(copy);
    if (position === undefined || position === 0) return undefined;
    await checkpoints.upload(position, join(copy, DATA_FILE));
    await checkpoints.trim();
    return position;
  } finally {
    rmSync(copy, { recursive: true, force: true });
  }
}
