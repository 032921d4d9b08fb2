/** The log in PostgreSQL: the contract of logs. */
import t from 'tap';
import { testLogContract } from '../../support/actors/log-contract.ts';
import { openPgFixture } from '../../support/cluster/pg-fixture.ts';
import { withPostgres } from '../../support/cluster/postgres.ts';

await withPostgres(t, (postgres) => {
  testLogContract(t, 'PostgreSQL', async (t) => {
    const fixture = await openPgFixture(t, postgres);
    return {
      connect: () => fixture.connect(),
      async passLease() {
        fixture.alive = false;
      },
    };
  });
});
