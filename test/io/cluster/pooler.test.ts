import { SESSION_MARK } from '../../../src/io/cluster/database.ts';
import { pgTest } from '../../support/cluster/pg-fixture.ts';
import { startPgbouncer } from '../../support/programs/pgbouncer.ts';
import { lacking } from '../../support/programs/tools.ts';

const POOLED = {
  name: 'ClusterUnusable',
  message: /^Cluster\.url leads to a pooler of transactions, .* or pool sessions$/,
};

const options = { skip: lacking('pgbouncer') };
for (const mode of ['transaction', 'statement'] as const)
  for (const sessions of [1, 5])
    pgTest(
      `pooler: pgbouncer with pool_mode ${mode} and ${sessions} sessions ends a start`,
      async (t, fixture) => {
        const url = await startPgbouncer(t, fixture.url, mode, sessions);
        await t.rejects(fixture.connect({ url }), POOLED);
      },
      options,
    );

pgTest(
  'pooler: pgbouncer with pool_mode session serves a node',
  async (t, fixture) => {
    const log = await fixture.connect({ url: await startPgbouncer(t, fixture.url, 'session', 20) });
    const { node, incarnation } = await log.enter('a');
    const write = (nodeSeq: number) => ({ node, incarnation, nodeSeq, body: Buffer.from('body') });
    t.equal(await log.join(write(1)), 1);
    t.equal(await log.append(write(2)), 2);
    for (let renewal = 0; renewal < 3; renewal += 1)
      t.equal((await log.renew(node, incarnation, 2)).position, 2);
    t.equal((await log.fetch(0, 10)).length, 2);
  },
  options,
);

pgTest(
  'pooler: a session without a statement of its connection is one of a pooler',
  async (t, { database }) => {
    const one = { name: 'one', text: 'select 1 as one' };
    await database.run(one);
    await database.script('deallocate all');
    await t.rejects(database.run(one), POOLED);
  },
);

pgTest(
  'pooler: a session with a statement of another connection is one of a pooler',
  async (t, { database }) => {
    await database.script('prepare one as select 1');
    await t.rejects(database.run({ name: 'one', text: 'select 1 as one' }), POOLED);
  },
);

pgTest('pooler: a session with another mark, or without one, is one of a pooler', async (t, { database }) => {
  const mark = { name: 'mark', text: `select ${SESSION_MARK}` };
  await t.resolves(database.run(mark));
  await database.script("set gatehouse.session = 'another'");
  await t.rejects(database.run(mark), POOLED);
  await database.script('reset gatehouse.session');
  await t.rejects(database.run(mark), POOLED);
});

pgTest('pooler: a renewal finds that its session has become another one', async (t, fixture) => {
  // A function of this name is found before that of the server.
  await fixture.database.script(
    `create schema former; create table former.flag (moved boolean); insert into former.flag values (false);
       create function former.current_setting(name text, missing boolean) returns text language sql volatile as
         $$ select case when (select moved from former.flag) then '' else pg_catalog.current_setting(name, missing) end $$;
       do $$ begin execute format('alter database %I set search_path = former, pg_catalog', current_database()); end $$`,
  );
  const log = await fixture.connect();
  const { node, incarnation } = await log.enter('a');
  await log.join({ node, incarnation, nodeSeq: 1, body: Buffer.from('body') });
  await t.resolves(log.renew(node, incarnation, 1));
  await fixture.database.script('update former.flag set moved = true');
  await t.rejects(log.renew(node, incarnation, 1), POOLED);
});
