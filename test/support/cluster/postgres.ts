/** One embedded PostgreSQL for the tests of a suite. */
import report, { type Test } from 'tap';
import { type Postgres, startPostgres } from '../../../kit/cluster/postgres.ts';
import { shared } from '../shared.ts';

/** One server for the files of a suite. */
export const sharedPostgres = shared(
  () => startPostgres(),
  (postgres) => (typeof postgres === 'string' ? undefined : postgres.stop()),
);

/** A test with the server; it is skipped, with the reason why, where there is none. */
export function postgresTest(
  name: string,
  run: (t: Test, postgres: Postgres) => unknown,
  options: { readonly skip?: string | false } = {},
): void {
  report.test(name, options, async (t) => {
    const postgres = await sharedPostgres(report);
    if (typeof postgres === 'string') t.pass(name, { skip: postgres });
    else await run(t, postgres);
  });
}
