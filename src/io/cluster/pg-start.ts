/** Steps of a start before it reads the log: connects, makes the tables when there are none, and checks both. */
import { randomUUID } from 'node:crypto';
import { SECOND_MS } from '../../domain/time.ts';
import { Database, type Statements } from './database.ts';
import { ClusterUnusable, DatabaseFailure } from './failures.ts';
import { checkServer, createTables, type Head, proveSecret, readHead } from './pg-schema.ts';
import { Sealer } from './seal.ts';

export interface HeadOptions {
  readonly url: string;
  /** Secrets of `Cluster.secret`: the first seals, all open. */
  readonly secrets: readonly Uint8Array[];
  readonly monotonicMs: () => number;
  readonly wait: (ms: number) => Promise<unknown>;
  /** Hears what PostgreSQL refuses; a command ends with a sentence of its own. */
  readonly onRefused?: (failure: DatabaseFailure) => void;
}

/** A start waits so long for the database. */
const TIMEOUT_MS = 30 * SECOND_MS;
const RETRY_MS = 250;

/** The head of the log. Rejects with `ClusterUnusable` and `ClusterMisconfigured`. */
export async function openHead({ url, secrets, ...waits }: HeadOptions): Promise<Head> {
  const database = new Database({ url, applicationName: 'gatehouse start' });
  const other = new Database({ url, applicationName: 'gatehouse start' });
  const sealer = new Sealer(secrets, 'head');
  try {
    return await untilAnswered(waits, async () => {
      // A refusal may hold for this session alone, such as a default of the database.
      database.reconnect();
      const head = await makeAndCheck(database, sealer);
      // Through a pooler of transactions the second connection marks the session of the first one.
      for (const each of [other, database]) await checkServer(each);
      return head;
    });
  } finally {
    database.close();
    other.close();
  }
}

/**
 * Repeats a step of a start while the database is away, or refuses it for a reason that passes. Rejects as the step does,
 * and with `ClusterUnusable`.
 */
export async function untilAnswered<Result>(
  { monotonicMs, wait, onRefused }: Pick<HeadOptions, 'monotonicMs' | 'wait' | 'onRefused'>,
  step: () => Promise<Result>,
): Promise<Result> {
  const endMs = monotonicMs() + TIMEOUT_MS;
  for (;;) {
    try {
      return await step();
    } catch (error) {
      if (!(error instanceof DatabaseFailure)) throw error;
      if (error.sqlState !== undefined) onRefused?.(error);
      if (!error.isPassing) throw refusalOf(error);
      if (monotonicMs() + RETRY_MS >= endMs)
        throw new ClusterUnusable(
          `the database of Cluster.url cannot be used for ${TIMEOUT_MS / SECOND_MS} s: ${error.message}`,
        );
    }
    await wait(RETRY_MS);
  }
}

/** Returns the error that a start ends with when waiting does not help. */
export function refusalOf({ message, sqlState }: DatabaseFailure): ClusterUnusable {
  return new ClusterUnusable(
    `the database of Cluster.url refuses this node: ${message} (SQLSTATE ${sqlState})`,
  );
}

async function makeAndCheck(session: Statements, sealer: Sealer): Promise<Head> {
  const { hasTables } = await checkServer(session);
  if (!hasTables) await createTables(session, randomUUID(), sealer);
  const head = await readHead(session);
  if (head === undefined) throw new ClusterUnusable('the table gatehouse.head is empty');
  await proveSecret(session, head, sealer);
  return head;
}
