/** Logs of several processes over one new database, with a clock that only waits move. */
import type { Test } from 'tap';
import type { Postgres } from '../../../kit/cluster/postgres.ts';
import { Database } from '../../../src/io/cluster/database.ts';
import { PgLog, type PgLogOptions } from '../../../src/io/cluster/pg-log.ts';
import { openHead } from '../../../src/io/cluster/pg-start.ts';
import { postgresTest } from './postgres.ts';

export const LEASE_MS = 1_000;
export const SECRET = Buffer.alloc(32, 7);
/** A check of the database may take so many rounds until it holds. */
const CHECKS_MAX = 2_000;

export interface PgFixture {
  readonly postgres: Postgres;
  readonly url: string;
  /** A session of the test. */
  readonly database: Database;
  /** Processes that have joined renew during waits; false: all have ended. */
  alive: boolean;
  connect(given?: Partial<PgLogOptions>): Promise<PgLog>;
  /** A further session, for transactions. */
  session(): Database;
  /** Resolves when so many sessions of this database wait for a lock. */
  blocked(sessions: number): Promise<void>;
}

export async function openPgFixture(t: Test, postgres: Postgres): Promise<PgFixture> {
  const url = await postgres.createDatabase();
  const opened: { close(): void }[] = [];
  t.teardown(() => {
    for (const each of opened) each.close();
  });
  const session = () => {
    const database = new Database({ url, applicationName: 'test' });
    opened.push(database);
    return database;
  };
  const database = session();
  let nowMs = 0;
  const fixture: PgFixture = {
    postgres,
    url,
    database,
    alive: true,
    session,
    async connect(given = {}) {
      const options: PgLogOptions = {
        url,
        secrets: [SECRET],
        leaseMs: LEASE_MS,
        figures: () => ({ links: 0, turnsRefused: 0, turnsThrown: 0 }),
        process: { address: '127.0.0.1:1', version: '0', configHash: Buffer.alloc(32) },
        monotonicMs: () => nowMs,
        async wait(ms) {
          nowMs += ms;
          if (fixture.alive)
            await database.script('update gatehouse.node set renewals = renewals + 1 where joined');
        },
        ...given,
      };
      const log = new PgLog(options, await openHead(options));
      opened.push(log);
      return log;
    },
    blocked: (sessions) => holds(database, "wait_event_type = 'Lock'", sessions),
  };
  return fixture;
}

/** A test with a database of its own. */
export const pgTest = (
  name: string,
  run: (t: Test, fixture: PgFixture) => unknown,
  options?: Parameters<typeof postgresTest>[2],
) => postgresTest(name, async (t, postgres) => run(t, await openPgFixture(t, postgres)), options);

/** Resolves when so many sessions of the database are in this state of pg_stat_activity. */
export async function holds(database: Database, condition: string, sessions: number): Promise<void> {
  const text = `select count(*) as n from pg_stat_activity where datname = current_database() and ${condition}`;
  for (let check = 0; check < CHECKS_MAX; check += 1) {
    const { rows } = await database.run({ name: condition, text });
    if (Number(rows[0]?.['n']) >= sessions) return;
  }
  throw new Error(`no ${sessions} sessions with ${condition}`);
}
