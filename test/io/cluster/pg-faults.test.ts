/** The log in PostgreSQL when answers, rows or the server are lost, and what a start refuses. */
import t, { type Test } from 'tap';
import { closeAfter } from '../../../kit/close-after.ts';
import { type Postgres, startPostgres } from '../../../kit/cluster/postgres.ts';
import { startTcpProxy } from '../../../kit/cluster/tcp-proxy.ts';
import {
  Expelled,
  LogLost,
  type LogWrite,
  OutcomeUnknown,
} from '../../../src/actors/runtime/replication/port.ts';
import type { Statements } from '../../../src/io/cluster/database.ts';
import { ClusterMisconfigured, ClusterUnusable } from '../../../src/io/cluster/failures.ts';
import type { PgLog } from '../../../src/io/cluster/pg-log.ts';
import { checkServer } from '../../../src/io/cluster/pg-schema.ts';
import { holds, openPgFixture, type PgFixture, pgTest, SECRET } from '../../support/cluster/pg-fixture.ts';
import { postgresTest } from '../../support/cluster/postgres.ts';

const BODY = Buffer.from('body');
const OTHER_SECRET = Buffer.alloc(32, 8);

interface Joined extends PgFixture {
  readonly log: PgLog;
  write(nodeSeq: number): LogWrite;
}

async function join(fixture: PgFixture, log: PgLog): Promise<Joined> {
  const { node, incarnation } = await log.enter('a');
  const write = (nodeSeq: number) => ({ node, incarnation, nodeSeq, body: BODY });
  await log.join(write(1));
  return { ...fixture, log, write };
}

async function behindProxy(t: Test, fixture: PgFixture) {
  const proxy = closeAfter(t, await startTcpProxy({ path: fixture.postgres.socketFile }));
  const url = new URL(fixture.url);
  const database = url.searchParams.get('db');
  const log = await fixture.connect({
    url: `postgres://${url.searchParams.get('user')}@127.0.0.1:${proxy.port}/${database}`,
  });
  return { ...(await join(fixture, log)), proxy };
}

pgTest('log faults: an append whose answer is lost is found by resolve', async (t, fixture) => {
  const { log, write, proxy } = await behindProxy(t, fixture);
  const lost = proxy.loseNext('answer', 'append');
  await t.rejects(log.append(write(2)), OutcomeUnknown);
  await lost;
  t.equal(await log.resolve(write(2)), 2);
  await t.rejects(log.append(write(3)), Expelled, 'the old incarnation is over');
  t.equal((await log.fetch(0, 10)).length, 2);
});

pgTest(
  'log faults: an append whose question is lost is not found, and cannot land any more',
  async (t, fixture) => {
    const { log, write, proxy } = await behindProxy(t, fixture);
    const lost = proxy.loseNext('question', 'append');
    await t.rejects(log.append(write(2)), OutcomeUnknown);
    await lost;
    t.equal(await log.resolve(write(2)), undefined);
    await t.rejects(log.append(write(2)), Expelled);
    t.equal((await log.fetch(0, 10)).length, 1);
  },
);

pgTest(
  'log faults: a database that is cut off answers OutcomeUnknown, and serves again afterwards',
  async (t, fixture) => {
    const { log, write, proxy } = await behindProxy(t, fixture);
    proxy.cut();
    await t.rejects(log.append(write(2)), OutcomeUnknown);
    await t.rejects(log.renew(write(2).node, write(2).incarnation, 1), OutcomeUnknown);
    await t.rejects(log.fetch(1, 10), OutcomeUnknown);
    await t.rejects(log.resolve(write(2)), OutcomeUnknown);
    proxy.heal();
    t.equal(await log.resolve(write(2)), undefined);
    t.same(await log.fetch(1, 10), []);
  },
);

pgTest('log faults: a connection that hangs is given up within seconds', async (t, fixture) => {
  const { log, write, proxy } = await behindProxy(t, fixture);
  proxy.hold();
  await t.rejects(log.append(write(2)), OutcomeUnknown);
  proxy.heal();
  const next = { ...write(2), incarnation: write(2).incarnation + 1 };
  const found = await log.resolve(write(2));
  t.equal(await log.join({ ...next, nodeSeq: 3 }), (found ?? 1) + 1);
});

const lost = (title: string, loss: string, reason: RegExp) =>
  pgTest(`log faults: ${title} stops a reader`, async (t, fixture) => {
    const { log, write, database } = await join(fixture, await fixture.connect());
    for (const seq of [2, 3, 4]) await log.append(write(seq));
    const applied = (await log.fetch(1, 10)).at(-1);
    t.equal(applied?.position, 4);
    await database.script(loss);
    await database.run({
      name: 'end_sessions',
      text: `select count(pg_terminate_backend(pid)) from pg_stat_activity
          where datname = current_database() and pid <> pg_backend_pid()`,
    });
    const fetch = () => log.fetch(4, 10, applied).then(String, (error: unknown) => error);
    const first = await fetch();
    // The end of the old connection may arrive before the first question or after it.
    t.match(first instanceof OutcomeUnknown ? await fetch() : first, { name: 'LogLost', message: reason });
  });
lost('a promoted standby without the newest row', 'delete from gatehouse.log where pos = 4', /row 4 .* gone/);
lost(
  'another row at the position that was applied',
  'update gatehouse.log set node_seq = 99 where pos = 4',
  /row 4 .* another one/,
);
lost('a restored log', 'update gatehouse.head set log_id = gen_random_uuid()', /restored or replaced/);
lost('a dropped schema', 'drop schema gatehouse cascade', /no log any more/);

pgTest(
  'log faults: every new connection finds the row that was applied, or stops the node',
  async (t, fixture) => {
    const { log, write, database } = await join(fixture, await fixture.connect());
    for (const seq of [2, 3, 4]) await log.append(write(seq));
    const lastRow = { ...write(4), nodeSeq: 4 };
    const asks: readonly ((other: PgLog) => Promise<unknown>)[] = [
      (other: PgLog) => other.enter('b'),
      (other: PgLog) => other.append(write(5)),
      (other: PgLog) => other.renew(write(1).node, write(1).incarnation, 4),
      (other: PgLog) => other.fetch(4, 10),
    ];
    const opened = (position: number) => fixture.connect({ applied: () => ({ position, lastRow }) });
    for (const ask of asks) await t.resolves(ask(await opened(4)));
    await database.script('delete from gatehouse.log where pos > 3; update gatehouse.head set pos = 3');
    for (const ask of asks)
      await t.rejects(ask(await opened(4)), { name: 'LogLost', message: /row 4 .* gone/ });
    const again = (await log.enter('a', write(1).incarnation)).incarnation;
    for (const seq of [4, 5]) await log.append({ ...write(seq), incarnation: again });
    for (const ask of asks)
      await t.rejects(ask(await opened(4)), { name: 'LogLost', message: /row 4 .* another one/ });
  },
);

pgTest('log faults: a reader that is behind the trimmed log is refused', async (t, fixture) => {
  const { log, write, database } = await join(fixture, await fixture.connect());
  for (const seq of [2, 3]) await log.append(write(seq));
  await database.script('delete from gatehouse.log where pos < 3');
  await t.rejects(log.fetch(0, 10), LogLost);
  t.equal((await log.fetch(3, 10)).length, 0);
});

pgTest('log faults: a row that was moved or changed is not opened', async (t, fixture) => {
  const { log, write, database } = await join(fixture, await fixture.connect());
  await log.append(write(2));
  await database.script('update gatehouse.log set node_seq = 7 where pos = 2');
  await t.rejects((await fixture.connect()).fetch(0, 10), { name: 'LogLost', message: /sealed/ });
});

pgTest('log start: a secret of the list opens the log, and the first one takes over', async (t, fixture) => {
  const { log, write } = await join(fixture, await fixture.connect());
  await log.append(write(2));
  await t.rejects(fixture.connect({ secrets: [OTHER_SECRET] }), ClusterMisconfigured);
  const both = await fixture.connect({ secrets: [OTHER_SECRET, SECRET] });
  t.equal((await both.fetch(0, 10)).length, 2);
  await t.resolves(fixture.connect({ secrets: [OTHER_SECRET] }));
  await t.rejects(fixture.connect(), ClusterMisconfigured);
});

pgTest('log start: a newer layout is refused', async (t, fixture) => {
  await fixture.connect();
  await fixture.database.script('update gatehouse.head set layout = layout + 1');
  await t.rejects(fixture.connect(), { name: 'ClusterUnusable', message: /layout 2/ });
});

postgresTest(
  'log start: a database that is away for 30 s is refused with the reason',
  async (t, postgres) => {
    const fixture = await openPgFixture(t, postgres);
    fixture.alive = false;
    const proxy = closeAfter(t, await startTcpProxy({ path: postgres.socketFile }));
    proxy.cut();
    await t.rejects(fixture.connect({ url: `postgres://x@127.0.0.1:${proxy.port}/x` }), {
      name: 'ClusterUnusable',
      message: /cannot be used for 30 s: ./,
    });
  },
);

t.test('log start: PostgreSQL 14 is too old, and a standby is not yet usable', async (t) => {
  const session = (row: object): Statements => ({
    run: async () => ({
      rows: [{ standbys: '', synchronous: 'on', read_only: 'off', ...row }],
      noticed: false,
    }),
    script: async () => undefined,
  });
  await t.rejects(checkServer(session({ version: 14 })), ClusterUnusable);
  await t.rejects(checkServer(session({ version: 15, standby: true })), /read-only/);
  t.same(await checkServer(session({ version: 15, standby: false, has_tables: true })), {
    hasTables: true,
  });
});

pgTest(
  'log start: all 63 numbers taken is a refusal, a node that is out for 30 days gives its number',
  async (t, fixture) => {
    const log = await fixture.connect();
    for (let node = 1; node <= 63; node += 1) await log.enter(`node-${node}`);
    await t.rejects(log.enter('one-more'), { name: 'ClusterUnusable', message: /forget/ });
    await fixture.database.script(
      "update gatehouse.node set renewed = renewed - interval '31 days' where name = 'node-7'",
    );
    const { node, incarnation } = await log.enter('one-more');
    t.equal(node, 7);
    t.ok(incarnation >= 4, 'what the former node had asked cannot land');
  },
);

pgTest(
  'log start: a refusal that does not pass ends it at once, with the words of PostgreSQL',
  async (t, fixture) => {
    const url = new URL(fixture.url);
    url.searchParams.set('user', 'missing');
    const refused: (string | undefined)[] = [];
    const start = fixture.connect({
      url: url.href,
      wait: () => Promise.reject(new Error('nothing is waited for')),
      onRefused: ({ sqlState }) => refused.push(sqlState),
    });
    await t.rejects(start, {
      name: 'ClusterUnusable',
      message:
        'the database of Cluster.url refuses this node: role "missing" does not exist (SQLSTATE 28000)',
    });
    t.same(refused, ['28000']);
  },
);

pgTest('log start: a read-only database is waited for, and is each time a refusal', async (t, fixture) => {
  const set = (value: string) =>
    fixture.database.script(
      `do $$ begin execute format('alter database %I set default_transaction_read_only = ${value}', current_database()); end $$`,
    );
  await set('on');
  const refused: (string | undefined)[] = [];
  let waits = 0;
  const started = fixture.connect({
    async wait() {
      waits += 1;
      if (waits === 3) await set('off');
    },
    onRefused: ({ sqlState }) => refused.push(sqlState),
  });
  await t.resolves(started);
  t.same(refused, ['25006', '25006', '25006']);
});

pgTest(
  'log faults: before its join a node ends for a right that it lacks, later it waits',
  async (t, fixture) => {
    await fixture.connect();
    const url = new URL(fixture.url);
    url.searchParams.set('user', `role_of_${url.searchParams.get('db')}`);
    const role = url.searchParams.get('user');
    await fixture.database.script(
      `create role ${role} login; grant usage on schema gatehouse to ${role};
       grant all on gatehouse.head, gatehouse.log, gatehouse.node to ${role}; revoke update on gatehouse.node from ${role}`,
    );
    const refused: (string | undefined)[] = [];
    const onRefused = ({ sqlState }: { readonly sqlState: string | undefined }) => refused.push(sqlState);
    const log = await fixture.connect({ url: url.href, onRefused });
    const { node, incarnation } = await log.enter('a');
    const write = (nodeSeq: number) => ({ node, incarnation, nodeSeq, body: BODY });
    await t.rejects(log.join(write(1)), { name: 'ClusterUnusable', message: /node \(SQLSTATE 42501\)$/ });
    await fixture.database.script(`grant update on gatehouse.node to ${role}`);
    t.equal(await log.join(write(2)), 1);
    await fixture.database.script(`revoke update on gatehouse.node from ${role}`);
    await t.rejects(log.renew(node, incarnation, 1), OutcomeUnknown);
    await fixture.database.script(`grant update on gatehouse.node to ${role}`);
    await t.resolves(log.renew(node, incarnation, 1));
    t.same(refused, ['42501', '42501']);
  },
);

async function serverOf(t: Test, settings: readonly string[] = []): Promise<Postgres> {
  const postgres = await startPostgres(settings);
  if (typeof postgres === 'string') throw new Error(postgres);
  t.teardown(() => postgres.stop());
  return postgres;
}

// Servers of their own, as the settings are those of a server.
t.test('log faults: a crash of PostgreSQL in the middle of an append is resolved', async (t) => {
  const postgres = await serverOf(t);
  const fixture = await openPgFixture(t, postgres);
  const { log, write, session, blocked } = await join(fixture, await fixture.connect());
  const holder = session();
  await holder.script('begin; update gatehouse.head set layout = layout');
  const append = log.append(write(2)).catch((error: unknown) => error);
  await blocked(1);
  await postgres.crash();
  t.match(await append, OutcomeUnknown);
  t.equal(await log.resolve(write(2)), undefined);
  t.same((await log.fetch(0, 10)).length, 1);
});

t.test('log faults: a commit that no standby confirmed is not taken for durable', async (t) => {
  const postgres = await serverOf(t);
  const fixture = await openPgFixture(t, postgres);
  const { log, write, database } = await join(fixture, await fixture.connect());
  await database.script("alter system set synchronous_standby_names = 'none'");
  await database.script('select pg_reload_conf()');
  // The servers' processes read the setting one after the other.
  const waits = holds(database, "wait_event = 'SyncRep'", 1).then(() => true);
  let seq = 1;
  let append: Promise<unknown> = Promise.resolve();
  for (let isWaiting = false; !isWaiting; ) {
    seq += 1;
    append = log.append(write(seq)).catch((error: unknown) => error);
    isWaiting = await Promise.race([append.then(() => false), waits]);
  }
  await database.run({
    name: 'cancel',
    text: "select count(pg_cancel_backend(pid)) from pg_stat_activity where wait_event = 'SyncRep'",
  });
  t.match(await append, OutcomeUnknown);
  await database.script('alter system reset synchronous_standby_names');
  await database.script('select pg_reload_conf()');
  t.equal(await log.resolve(write(seq)), seq);
});

for (const value of ['off', 'local'])
  t.test(
    `log start: synchronous_commit ${value} is refused with standbys, and overruled without`,
    async (t) => {
      const postgres = await serverOf(t, [`synchronous_commit=${value}`]);
      const fixture = await openPgFixture(t, postgres);
      await t.resolves(fixture.connect());
      await fixture.database.script("alter system set synchronous_standby_names = 'none'");
      await fixture.database.script('select pg_reload_conf()');
      await holds(fixture.database, "current_setting('synchronous_standby_names') = 'none'", 1);
      await t.rejects(fixture.connect(), { name: 'ClusterMisconfigured', message: /synchronous_commit/ });
    },
  );
