/**
 * Copies of the journal on disk. A copy is readable by its owner alone and on disk when it is done. It does not
 * continue the log of events, because the original gives the next sequence numbers to other events.
 */
import { chmodSync } from 'node:fs';
import { join } from 'node:path';
import { open, type RootDatabase } from 'lmdb';
import { NODE_RINGS } from '../../../domain/audit.ts';
import { auditTableName } from './audit.ts';
import { DATA_FILE, ENGINE, LOCK_FILE, syncToDisk } from './file.ts';
import { changeCopy } from './owner.ts';
import { EVENT_EPOCH_KEY, MESSAGES_OF_ROW_MAX, REPLICA_KEY } from './port.ts';
import {
  BEGINNING_ROW,
  DIGEST_BYTES,
  SAMPLE_ROWS,
  SAMPLES_MAX,
  type StoredReplica,
  type StoredSample,
  sampleKey,
  slotOf,
} from './replica-rows.ts';
import { createPackr, packRow } from './row-checksum.ts';
import { openTables } from './tables.ts';

/** Copies the journal of `directory`, which a running gateway may be writing, as one consistent state. */
export async function copyJournal(directory: string, target: string): Promise<void> {
  await copyFile(directory, target);
  await finishCopy(target);
}

/**
 * Copies the journal as the state with which the log of a cluster begins, and returns that position: at least `from`, and
 * above the numbers of messages and events that wait. The log of events continues, as the original is given up.
 */
export async function copyAsReplica(
  directory: string,
  target: string,
  { from, logId }: { readonly from: number; readonly logId: string },
): Promise<number> {
  await copyFile(directory, target);
  let position = from;
  await finish(target, (root) => {
    const { tables, events } = openTables(root, createPackr());
    const beginAfter = (number: number) => {
      position = Math.max(position, Math.floor(number / MESSAGES_OF_ROW_MAX) + 1);
    };
    for (const key of tables.mailbox.getKeys({})) beginAfter(Number((key as readonly unknown[])[2]));
    for (const key of events.eventInbox.getKeys({ reverse: true, limit: 1 })) beginAfter(Number(key));
    forgetReplica(root);
    putReplica(root, [position, new Uint8Array(DIGEST_BYTES), [], logId, BEGINNING_ROW]);
  });
  return position;
}

/** The part of a cluster's log that a journal has applied. */
interface ReplicaState {
  /** 0 for an empty journal. */
  readonly position: number;
  /** Life of the log; undefined for an empty journal. */
  readonly logId: string | undefined;
  /** Digest as of the position that was asked for, or the newest one that nodes compare; undefined where it is not kept. */
  readonly sample: StoredSample | undefined;
}

/** Undefined where the journal is not of a node. */
export async function replicaState(
  directory: string,
  samplePosition?: number,
): Promise<ReplicaState | undefined> {
  const root = open({ ...ENGINE, path: directory, readOnly: true });
  try {
    const [applied, , , logId] = replicaOf(root) ?? [];
    const position = applied ?? (isEmpty(root) ? 0 : undefined);
    if (position === undefined) return undefined;
    const wanted = samplePosition ?? position - (position % SAMPLE_ROWS);
    const { meta } = openTables(root, createPackr()).tables;
    const sample = meta.get(sampleKey(slotOf(wanted, SAMPLE_ROWS))) as StoredSample | undefined;
    return {
      position,
      logId: logId === '' ? undefined : logId,
      sample: sample?.[0] === wanted ? sample : undefined,
    };
  } finally {
    await root.close();
  }
}

/** Makes a replica that was fetched follow the log under its present id, which a restore of the database changes. */
export async function adoptReplica(directory: string, logId: string): Promise<number | undefined> {
  let position: number | undefined;
  await finish(directory, (root) => {
    const stored = replicaOf(root);
    if (stored === undefined) return;
    position = stored[0];
    const [, digest, members, , ...rest] = stored;
    putReplica(root, [position, digest, members, logId, ...rest]);
  });
  return position;
}

/** No actor has a row. */
function isEmpty(root: RootDatabase): boolean {
  const { journal, snapshot } = openTables(root, createPackr()).tables;
  return journal.count() + snapshot.count() === 0;
}

function replicaOf(root: RootDatabase): StoredReplica | undefined {
  return openTables(root, createPackr()).tables.meta.get(REPLICA_KEY) as StoredReplica | undefined;
}

function putReplica(root: RootDatabase, replica: StoredReplica): void {
  const packr = createPackr();
  openTables(root, packr).tables.meta.put(REPLICA_KEY, packRow(packr, replica));
}

async function copyFile(directory: string, target: string): Promise<void> {
  const root = open({ ...ENGINE, path: directory, readOnly: true });
  try {
    await root.backup(target, true);
  } finally {
    await root.close();
  }
}

/** Must be called once on a fresh copy, before it is opened as a journal. */
export async function finishCopy(target: string): Promise<void> {
  await finish(target, (root) => {
    void root.openDB('meta', {}).remove(EVENT_EPOCH_KEY);
    forgetReplica(root);
  });
}

/** Removes the record of the applied log, so that it counts no more. */
function forgetReplica(root: RootDatabase): void {
  const meta = root.openDB('meta', {});
  void meta.remove(REPLICA_KEY);
  for (let slot = 0; slot < SAMPLES_MAX; slot += 1) void meta.remove(sampleKey(slot));
}

/** The same for a copy that continues as a replica of the same log, with its log of events and at another node. */
export async function finishReplica(target: string): Promise<void> {
  await finish(target, (root) => {
    for (const ring of NODE_RINGS) root.openDB(auditTableName(ring), {}).clearSync();
  });
}

async function finish(target: string, change: (root: RootDatabase) => void): Promise<void> {
  chmodSync(join(target, DATA_FILE), 0o600);
  const root = open({ ...ENGINE, path: target });
  try {
    changeCopy(root, () => change(root));
  } finally {
    await root.close();
  }
  chmodSync(join(target, LOCK_FILE), 0o600);
  // The engine syncs what it commits, and no file that it copies.
  for (const path of [join(target, DATA_FILE), target]) syncToDisk(path);
}
