/** The log in PostgreSQL: the contract of logs. */
import t, { type Test } from 'tap';
import { Database } from '../../../src/io/cluster/database.ts';
import { openPgLog, type PgLog, type PgLogOptions } from '../../../src/io/cluster/pg-log.ts';
import { type LogFixture, testLogContract } from '../../support/actors/log-contract.ts';
import { type Postgres, withPostgres } from '../../support/cluster/postgres.ts';

const LEASE_MS = 1_000;
const SECRET = Buffer.alloc(32, 7);

/** Processes whose clock stands still but in waits, during which the processes that live renew. */
async function openFixture(t: Test, postgres: Postgres): Promise<LogFixture> {
  const url = await postgres.createDatabase();
  const database = new Database({ url, applicationName: 'test' });
  const logs: PgLog[] = [];
  t.teardown(() => {
    for (const log of logs) log.close();
    database.close();
  });
  let nowMs = 0;
  let alive = true;
  const options: PgLogOptions = {
    url,
    secrets: [SECRET],
    leaseMs: LEASE_MS,
    process: { address: '127.0.0.1:1', version: '0', configHash: Buffer.alloc(32) },
    monotonicMs: () => nowMs,
    // Processes that live renew meanwhile.
    async wait(ms) {
      nowMs += ms;
      if (alive) await database.script('update gatehouse.node set renewals = renewals + 1 where joined');
    },
  };
  return {
    async connect() {
      const log = await openPgLog(options);
      logs.push(log);
      return log;
    },
    async passLease() {
      alive = false;
    },
  };
}

await withPostgres(t, (postgres) => {
  testLogContract(t, 'PostgreSQL', (t) => openFixture(t, postgres));
});
