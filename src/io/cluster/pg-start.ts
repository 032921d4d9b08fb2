/** What a start does before it reads the log: connects, makes the tables when there are none, and checks both. */
import { randomUUID } from 'node:crypto';
import { SECOND_MS } from '../../domain/time.ts';
import { Database, type Statements } from './database.ts';
import { ClusterUnusable, DatabaseFailure } from './failures.ts';
import { checkServer, createTables, type Head, proveSecret, readHead } from './pg-schema.ts';
import { Sealer } from './seal.ts';

export interface HeadOptions {
  readonly url: string;
  /** Of `Cluster.secret`: the first seals, all open. */
  readonly secrets: readonly Uint8Array[];
  readonly monotonicMs: () => number;
  readonly wait: (ms: number) => Promise<unknown>;
}

/** A start waits so long for the database. */
const TIMEOUT_MS = 30 * SECOND_MS;
const RETRY_MS = 250;

/** The head of the log. Rejects with `ClusterUnusable` and `ClusterMisconfigured`. */
export async function openHead({ url, secrets, monotonicMs, wait }: HeadOptions): Promise<Head> {
  const database = new Database({ url, applicationName: 'gatehouse start' });
  const sealer = new Sealer(secrets, 'head');
  const endMs = monotonicMs() + TIMEOUT_MS;
  try {
    for (;;) {
      try {
        return await makeAndCheck(database, sealer);
      } catch (error) {
        if (!(error instanceof DatabaseFailure)) throw error;
        if (monotonicMs() + RETRY_MS >= endMs)
          throw new ClusterUnusable(
            `the database of Cluster.url cannot be used for ${TIMEOUT_MS / SECOND_MS} s: ${error.message}`,
          );
      }
      await wait(RETRY_MS);
    }
  } finally {
    database.close();
  }
}

async function makeAndCheck(session: Statements, sealer: Sealer): Promise<Head> {
  const { hasTables } = await checkServer(session);
  if (!hasTables) await createTables(session, randomUUID(), sealer);
  const head = await readHead(session);
  if (head === undefined) throw new ClusterUnusable('the table gatehouse.head is empty');
  await proveSecret(session, head, sealer);
  return head;
}
