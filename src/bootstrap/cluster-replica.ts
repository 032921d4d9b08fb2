/** What a node does for its copy of the state around the time it is in: begins with a checkpoint, and stores new ones. */
import { existsSync, mkdtempSync, renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { adoptReplica, replicaPosition } from '../actors/runtime/journal/backup.ts';
import { DATA_FILE, LOCK_FILE } from '../actors/runtime/journal/file.ts';
import type { DiskJournal } from '../actors/runtime/journal/lmdb.ts';
import type { ClusterNode } from '../actors/runtime/log/cluster-node.ts';
import { nodeSchedule } from '../actors/runtime/runtime-context.ts';
import type { ClusterConfiguration } from '../domain/config/configuration.ts';
import { Checkpoints } from '../io/cluster/checkpoints.ts';
import { ClusterUnusable } from '../io/cluster/failures.ts';
import { LogPartitions } from '../io/cluster/log-partitions.ts';
import { openHead } from '../io/cluster/pg-start.ts';
import { ClusterUpkeep } from '../io/cluster/upkeep.ts';
import type { Log } from '../io/observability/log.ts';
import { secretsOf } from './cluster-commands.ts';
import { readReplicaPosition } from './journal-check.ts';

/** A journal that is too far behind keeps its content under this name: audit records of calls are in no other place. */
const BEHIND = '.behind';

/**
 * Fetches the newest checkpoint when the folder has no journal, or one that the log does not reach back to. Rejects with
 * `ClusterUnusable`, `ClusterMisconfigured`.
 */
export async function prepareReplica(
  cluster: ClusterConfiguration,
  dataPath: string,
  log: Log,
): Promise<void> {
  const options = { url: cluster.url, secrets: secretsOf(cluster) };
  const { logId } = await openHead({ ...options, monotonicMs: () => performance.now(), wait });
  const checkpoints = new Checkpoints(options);
  try {
    await setAsideWhenBehind(checkpoints, dataPath);
    const position = await fetchState(checkpoints, dataPath, logId);
    if (position !== undefined) log.write('checkpointFetched', { position });
  } finally {
    checkpoints.close();
  }
}

async function setAsideWhenBehind(checkpoints: Checkpoints, dataPath: string): Promise<void> {
  const file = join(dataPath, DATA_FILE);
  if (!existsSync(file)) return;
  const applied = await readReplicaPosition(dataPath);
  if (applied === undefined)
    throw new ClusterUnusable(
      `${dataPath} holds the journal of a gateway without Cluster: import it (cluster import), or name an empty folder`,
    );
  const newest = await checkpoints.newest();
  if (newest === undefined || newest.position <= applied || (await checkpoints.reachesBackTo(applied)))
    return;
  for (const name of [DATA_FILE, LOCK_FILE])
    if (existsSync(join(dataPath, name))) renameSync(join(dataPath, name), join(dataPath, name + BEHIND));
}

interface UpkeepDeps {
  readonly journal: DiskJournal;
  readonly dataPath: string;
  readonly log: Log;
  readonly trimAudit: () => Promise<void>;
}

/** Keeps up log, checkpoints and audit records while this node has the lowest number. Returns what ends it. */
export function startUpkeep(
  cluster: ClusterConfiguration,
  { node, replica }: ClusterNode,
  { journal, dataPath, log, trimAudit }: UpkeepDeps,
): () => Promise<void> {
  const options = { url: cluster.url, secrets: secretsOf(cluster) };
  const checkpoints = new Checkpoints(options);
  const partitions = new LogPartitions({ url: cluster.url, keepHours: cluster.logHours });
  const upkeep = new ClusterUpkeep({
    partitions,
    checkpoints,
    storeState: async () => {
      const position = await storeState(checkpoints, journal, dataPath);
      if (position !== undefined) log.write('checkpointStored', { position });
    },
    trimAudit,
    isInCharge: () => node.admits && node.node === Math.min(...replica.members.nodes()),
    schedule: nodeSchedule,
    onError: (error) => log.write('upkeepFailed', { err: error }),
  });
  return async () => {
    await upkeep.stop();
    checkpoints.close();
    partitions.close();
  };
}

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
