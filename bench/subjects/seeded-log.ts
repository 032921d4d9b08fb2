/** Accounts that a node in this process signs up through the log of a cluster, and leaves: rows after the checkpoint. */
import { mkdirSync } from 'node:fs';
import { setTimeout as wait } from 'node:timers/promises';
import { createClusterNode } from '../../src/actors/runtime/replication/cluster-node.ts';
import { nodeSchedule } from '../../src/actors/runtime/runtime-context.ts';
import { fetchState } from '../../src/bootstrap/cluster/replica.ts';
import { openStorage } from '../../src/bootstrap/journal.ts';
import { LiveSettings } from '../../src/domain/settings/settings.ts';
import { Checkpoints } from '../../src/io/cluster/checkpoints.ts';
import { PgLog } from '../../src/io/cluster/pg-log.ts';
import { openHead } from '../../src/io/cluster/pg-start.ts';
import { seedActors } from './seeded-journal.ts';

interface SeededLogOptions {
  readonly url: string;
  readonly secrets: readonly Uint8Array[];
  /** Data folder of the node; holds nothing. */
  readonly dataPath: string;
  readonly accounts: number;
}

const LEASE_MS = 10_000;

/** Its name is free again afterwards. No other node may be in: none would receive the rows at once. */
export async function seedLog({ url, secrets, dataPath, accounts }: SeededLogOptions): Promise<void> {
  mkdirSync(dataPath, { recursive: true, mode: 0o700 });
  const monotonicMs = () => performance.now();
  const options = {
    ...{ url, secrets, monotonicMs, wait, leaseMs: LEASE_MS },
    process: { address: '127.0.0.1:1', version: 'bench', configHash: Buffer.alloc(32) },
    figures: () => ({ links: 0, turnsRefused: 0, turnsThrown: 0 }),
  };
  const log = new PgLog(options, await openHead(options));
  const checkpoints = new Checkpoints({ url, secrets });
  await fetchState(checkpoints, dataPath, log.logId);
  checkpoints.close();
  const store = await openStorage({ directory: dataPath });
  const { node, journal, view } = createClusterNode({
    ...{ store, log, monotonicMs, leaseMs: LEASE_MS },
    peers: () => ({ push: () => undefined, applied: () => undefined, isFedBy: () => false }),
    schedule: nodeSchedule,
    clock: Date.now,
    name: 'seed',
    onFatal(error) {
      throw error;
    },
    onBug({ error }) {
      throw error;
    },
  });
  await node.start();
  const isIn = () => view.admits;
  while (!isIn()) await wait(LEASE_MS / 100);
  const place = { journal, cluster: view, node: node.node, settings: new LiveSettings() };
  const leave = async () => {
    await node.leave();
    node.stop();
  };
  await seedActors({ ...place, leave }, accounts);
  log.close();
}
