/** One embedded PostgreSQL for the tests of a suite. */
import type { Test } from 'tap';
import { type Postgres, startPostgres } from '../../../kit/cluster/postgres.ts';
import { shared } from '../shared.ts';

/** One server for the files of a suite. */
export const sharedPostgres = shared(
  () => startPostgres(),
  (postgres) => (typeof postgres === 'string' ? undefined : postgres.stop()),
);

/** Runs `tests` with the server, or reports one skipped test with the reason why there is none. */
export async function withPostgres(t: Test, tests: (postgres: Postgres) => void): Promise<void> {
  const postgres = await sharedPostgres(t);
  if (typeof postgres === 'string') t.test('PostgreSQL', { skip: postgres }, async () => undefined);
  else tests(postgres);
}
