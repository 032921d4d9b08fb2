/**
 * Compares the replicas of nodes, row by row, as their data folders hold them: at the same position of the log all of
 * them must have the same rows. Records of calls and the rows of a node alone are left out.
 */
import { createHash } from 'node:crypto';
import { setTimeout as wait } from 'node:timers/promises';
import { open } from 'lmdb';
import { parseKeyOwner } from '../../../src/actors/accounts/owners.ts';
import { ENGINE } from '../../../src/actors/runtime/journal/file.ts';
import { REPLICA_KEY } from '../../../src/actors/runtime/journal/port.ts';
import { createPackr } from '../../../src/actors/runtime/journal/row-checksum.ts';
import { openTables } from '../../../src/actors/runtime/journal/tables.ts';

/** Rows of the last changes may be on their way to a node. */
const SETTLE_MS = 10_000;
const POLL_MS = 100;

interface ReplicaContent {
  readonly position: number;
  /** Digest of each table, by its name. */
  readonly digests: Readonly<Record<string, string>>;
  /** Account of each key. */
  readonly owners: ReadonlyMap<string, string>;
}

/** In one turn of the event loop, so as one state. */
async function readReplica(directory: string): Promise<ReplicaContent> {
  const root = open({ ...ENGINE, path: directory, readOnly: true });
  try {
    const { tables, indexes } = openTables(root, createPackr(), {
      onDamage(row) {
        throw row;
      },
    });
    const { journal, snapshot, mailbox, timer, dead, meta } = tables;
    const [position, digest, members] = meta.get(REPLICA_KEY) as [number, Uint8Array, unknown];
    const compared = Object.entries({
      journal,
      snapshot,
      mailbox,
      timer,
      dead,
      ...Object.fromEntries(indexes),
    });
    const digests = compared.map(([name, table]) => {
      const hash = createHash('sha256');
      for (const { key, value } of table.getRange({})) hash.update(JSON.stringify([key, value]));
      return [name, hash.digest('hex')];
    });
    const owners = new Map<string, string>();
    for (const { key, value } of indexes.get('publicKey')?.getRange({}) ?? [])
      owners.set(String(key), parseKeyOwner(String(value)).userId);
    return {
      position,
      digests: {
        verdicts: Buffer.from(digest).toString('hex'),
        members: JSON.stringify(members),
        ...Object.fromEntries(digests),
      },
      owners,
    };
  } finally {
    await root.close();
  }
}

/**
 * Returns the differences between the folders, once their nodes have applied the same rows; and accounts of keys that
 * are others than expected. Empty when all is well.
 */
export async function compareReplicas(
  directories: readonly string[],
  keys: ReadonlyMap<string, string>,
): Promise<readonly string[]> {
  const endMs = performance.now() + SETTLE_MS;
  for (;;) {
    const replicas = await Promise.all(directories.map(readReplica));
    const positions = replicas.map(({ position }) => position);
    if (new Set(positions).size === 1) return faultsOf(replicas, keys);
    if (performance.now() > endMs) return [`the replicas stay at ${positions.join(', ')}`];
    await wait(POLL_MS);
  }
}

function faultsOf(replicas: readonly ReplicaContent[], keys: ReadonlyMap<string, string>): readonly string[] {
  const faults: string[] = [];
  const [first] = replicas;
  for (const name of Object.keys(first?.digests ?? {})) {
    const values = replicas.map(({ digests }) => digests[name]?.slice(0, 12));
    if (new Set(values).size > 1) faults.push(`the replicas differ in ${name}: ${values.join(', ')}`);
  }
  for (const [key, userId] of keys) {
    const found = replicas.map(({ owners }) => owners.get(key));
    if (found.some((each) => each !== userId))
      faults.push(`the key ${key} of the account ${userId} is of ${found.join(', ')}`);
  }
  return faults;
}
