/** The commands `cluster` over a configuration: what they read and change, in sentences. Loads the client of PostgreSQL. */
import { randomUUID } from 'node:crypto';
import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { DATA_FILE } from '../../actors/runtime/journal/file.ts';
import type { ClusterConfiguration } from '../../domain/config/configuration.ts';
import { decodeSealKey } from '../../domain/seal-key.ts';
import { ClusterAdministration, type ClusterState } from '../../io/cluster/administration.ts';
import { bootId, isUnsynced } from '../../io/cluster/node-folder.ts';
import { holdFolder, JournalUnusable } from '../data-directory.ts';
import { copyJournalAsReplica, readAppliedState } from '../journal-check.ts';

/** Secrets as bytes; a configuration that was loaded has no other ones. */
export function secretsOf({ secret }: ClusterConfiguration): readonly Uint8Array[] {
  return secret.map((text) => decodeSealKey(text) ?? new Uint8Array());
}

async function administer<Result>(
  cluster: ClusterConfiguration,
  work: (administration: ClusterAdministration) => Promise<Result>,
): Promise<Result> {
  const administration = new ClusterAdministration({
    url: cluster.url,
    secrets: secretsOf(cluster),
    leaseMs: cluster.leaseMilliseconds,
    monotonicMs: () => performance.now(),
    wait,
  });
  try {
    return await work(administration);
  } finally {
    administration.close();
  }
}

export function clusterState(cluster: ClusterConfiguration): Promise<ClusterState> {
  return administer(cluster, (administration) => administration.state());
}

export function forgetNode(
  cluster: ClusterConfiguration,
  name: string,
): Promise<'forgotten' | 'joined' | 'unknown'> {
  return administer(cluster, (administration) => administration.forget(name));
}

/** The journal of a folder that nothing serves becomes the state of an empty log. Returns its position. */
export function importJournal(cluster: ClusterConfiguration, dataPath: string): Promise<number> {
  return withJournal(dataPath, () =>
    administer(cluster, async (administration) => {
      const head = await administration.requireUnused(true);
      return replaceBy(administration, dataPath, head.position + 1);
    }),
  );
}

/** The replica in a folder becomes the state of the log, whatever the log holds. Returns its position. */
export function recoverFromJournal(cluster: ClusterConfiguration, dataPath: string): Promise<number> {
  return withJournal(dataPath, async () => {
    if (isUnsynced(dataPath, bootId()))
      throw new JournalUnusable(
        `the machine stopped while a node used ${dataPath}: its newest rows may be missing, choose another node`,
      );
    const applied = (await readAppliedState(dataPath))?.position;
    if (applied === undefined || applied === 0)
      throw new JournalUnusable(`the journal in ${dataPath} is not that of a node of a cluster`);
    return administer(cluster, async (administration) => {
      const head = await administration.requireUnused(false);
      return replaceBy(administration, dataPath, Math.max(head.position, applied) + 1);
    });
  });
}

/** The log in the database counts, and every node fetches it anew. Returns its position. */
export function recoverFromDatabase(cluster: ClusterConfiguration): Promise<number> {
  return administer(cluster, async (administration) => {
    const head = await administration.requireUnused(false);
    await administration.renameLog();
    return head.position;
  });
}

/** Holds the folder meanwhile. */
async function withJournal<Result>(dataPath: string, work: () => Promise<Result>): Promise<Result> {
  if (!existsSync(join(dataPath, DATA_FILE))) throw new JournalUnusable(`${dataPath} holds no journal`);
  const folder = await holdFolder(dataPath);
  try {
    return await work();
  } finally {
    folder.release();
  }
}

async function replaceBy(
  administration: ClusterAdministration,
  dataPath: string,
  from: number,
): Promise<number> {
  const copy = mkdtempSync(join(dataPath, 'cluster-'));
  try {
    const logId = randomUUID();
    const position = await copyOf(dataPath, copy, { from, logId });
    await administration.replaceLog(logId, position, join(copy, DATA_FILE));
    return position;
  } finally {
    rmSync(copy, { recursive: true, force: true });
  }
}

async function copyOf(
  dataPath: string,
  copy: string,
  begin: { readonly from: number; readonly logId: string },
): Promise<number> {
  try {
    return await copyJournalAsReplica(dataPath, copy, begin);
  } catch (error) {
    throw new JournalUnusable(`the journal in ${dataPath} cannot be copied: ${(error as Error).message}`);
  }
}
