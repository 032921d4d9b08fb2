/** Keeps the checkpoints of a node's copy of the state: it begins with one, and stores new ones while it is in. */
import { existsSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { adoptReplica, replicaState } from '../../actors/runtime/journal/backup.ts';
import { DATA_FILE } from '../../actors/runtime/journal/file.ts';
import type { DiskJournal } from '../../actors/runtime/journal/lmdb.ts';
import type { ClusterNode } from '../../actors/runtime/replication/cluster-node.ts';
import { compareCheckpoint } from '../../actors/runtime/replication/digests.ts';
import { checkLog } from '../../actors/runtime/replication/port.ts';
import type { UnjudgedTurn } from '../../actors/runtime/replication/replica.ts';
import { nodeSchedule } from '../../actors/runtime/runtime-context.ts';
import type { ClusterConfiguration } from '../../domain/config/configuration.ts';
import { Checkpoints, type ReplicaCheckpoint } from '../../io/cluster/checkpoints.ts';
import { ClusterUnusable } from '../../io/cluster/failures.ts';
import { LogPartitions } from '../../io/cluster/log-partitions.ts';
import { type AsideReason, markEnd, setAside } from '../../io/cluster/node-folder.ts';
import type { DatabaseRefusals } from '../../io/cluster/node-watch.ts';
import type { Head } from '../../io/cluster/pg-schema.ts';
import { openHead, untilAnswered } from '../../io/cluster/pg-start.ts';
import { ClusterUpkeep } from '../../io/cluster/upkeep.ts';
import type { Log } from '../../io/observability/log.ts';
import { readAppliedState } from '../journal-check.ts';
import { secretsOf } from './commands.ts';

/** Begins the names of folders with a copy for a checkpoint. */
const COPY = 'checkpoint-';

/**
 * Fetches the newest checkpoint when the folder has no journal, or one that the log does not reach back to, or that
 * differs from the checkpoint. Resolves with the head of the log. Rejects with `ClusterUnusable`, `ClusterMisconfigured`,
 * and with `LogLost` for the journal of another log, which stays.
 */
export async function prepareReplica(
  cluster: ClusterConfiguration,
  dataPath: string,
  { log, refusals }: { readonly log: Log; readonly refusals: DatabaseRefusals },
): Promise<Head> {
  const options = { url: cluster.url, secrets: secretsOf(cluster) };
  const waits = { monotonicMs: () => performance.now(), wait, onRefused: refusals.add };
  removeCopies(dataPath);
  const head = await openHead({ ...options, ...waits });
  const checkpoints = new Checkpoints(options);
  try {
    await untilAnswered(waits, async () => {
      const cause = await unusable(checkpoints, dataPath, head.logId);
      const folder = cause === undefined ? undefined : setAside(dataPath, cause, Date.now());
      if (cause !== undefined && folder !== undefined) log.write('journalSetAside', { folder, cause });
      const position = await fetchState(checkpoints, dataPath, head.logId);
      if (position !== undefined) log.write('checkpointFetched', { position });
    });
    return head;
  } finally {
    checkpoints.close();
  }
}

/** Copies for checkpoints that a run left which was killed. */
function removeCopies(dataPath: string): void {
  for (const name of readdirSync(dataPath))
    if (name.startsWith(COPY)) rmSync(join(dataPath, name), { recursive: true, force: true });
}

/** Says why the journal of the folder cannot continue; undefined where it can, or where there is none. */
async function unusable(
  checkpoints: Checkpoints,
  dataPath: string,
  logId: string,
): Promise<AsideReason | undefined> {
  if (!existsSync(join(dataPath, DATA_FILE))) return undefined;
  const newest = await checkpoints.newest();
  const applied = await readAppliedState(dataPath, newest?.sample?.position);
  if (applied === undefined)
    throw new ClusterUnusable(
      `${dataPath} holds the journal of a gateway without Cluster: import it (cluster import), or name an empty folder`,
    );
  checkLog(logId, applied.logId);
  if (newest === undefined) return undefined;
  const { position, digest } = applied;
  const expected = newest.sample && Buffer.from(newest.sample.digest).toString('hex');
  if (digest !== undefined && expected !== undefined && digest !== expected) return 'diverged';
  return newest.position <= position || (await checkpoints.reachesBackTo(position)) ? undefined : 'behind';
}

interface UpkeepDeps {
  readonly journal: DiskJournal;
  readonly dataPath: string;
  readonly log: Log;
  readonly onFatal: (error: Error) => void;
  readonly trimAudit: () => Promise<void>;
}

/** Keeps up log, checkpoints and audit records while this node has the lowest number. Returns what ends it. */
export function startUpkeep(
  cluster: ClusterConfiguration,
  { node, replica }: ClusterNode,
  { journal, dataPath, log, onFatal, trimAudit }: UpkeepDeps,
): () => Promise<void> {
  const options = { url: cluster.url, secrets: secretsOf(cluster) };
  const checkpoints = new Checkpoints(options);
  const partitions = new LogPartitions({ url: cluster.url, keepHours: cluster.logHours });
  const isInCharge = () => node.admits && node.node === Math.min(...replica.members.nodes());
  const store = async () => {
    const position = await storeState(checkpoints, journal, dataPath);
    if (position !== undefined) log.write('checkpointStored', { position });
  };
  const compare = async ({ position, sample }: ReplicaCheckpoint) => {
    const verdict = sample === undefined ? 'agrees' : compareCheckpoint(replica, sample);
    if (verdict === 'agrees') return;
    if (verdict !== 'wrong') {
      onFatal(verdict);
      return;
    }
    log.write('checkpointWrong', { position });
    if (!isInCharge()) return;
    await checkpoints.remove(position);
    await store();
  };
  const upkeep = new ClusterUpkeep({
    partitions,
    checkpoints,
    compare,
    storeState: store,
    trimAudit,
    isInCharge,
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
  const copy = mkdtempSync(join(dataPath, COPY));
  try {
    await journal.copyReplica(copy);
    const { position = 0, sample } = (await replicaState(copy)) ?? {};
    if (position === 0) return undefined;
    await checkpoints.upload(
      position,
      join(copy, DATA_FILE),
      sample && { position: sample[0], digest: sample[1] },
    );
    await checkpoints.trim();
    return position;
  } finally {
    rmSync(copy, { recursive: true, force: true });
  }
}

/** Returns what a node does when its copy of the state cannot go on, and when a turn cannot be judged. */
export function replicaFailures(
  dataPath: string,
  { onFatal, log }: { readonly onFatal: (error: Error) => void; readonly log: Log },
) {
  return {
    onFatal(error: Error) {
      markEnd(dataPath, error);
      onFatal(error);
    },
    onBug: ({ error, ...turn }: UnjudgedTurn) => log.write('turnNotJudged', { ...turn, err: error }),
  };
}
