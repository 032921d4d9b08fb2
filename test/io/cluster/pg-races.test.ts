import type { Test } from 'tap';
import { Expelled, type LogWrite } from '../../../src/actors/runtime/replication/port.ts';
import type { Database } from '../../../src/io/cluster/database.ts';
import * as sql from '../../../src/io/cluster/log-statements.ts';
import type { PgLog } from '../../../src/io/cluster/pg-log.ts';
import { type PgFixture, pgTest } from '../../support/cluster/pg-fixture.ts';

const BODY = Buffer.from('body');

interface Process {
  readonly log: PgLog;
  readonly node: number;
  readonly incarnation: number;
}

interface Race extends PgFixture {
  readonly a: Process;
  readonly b: Process;
  /** Holds a transaction open. */
  readonly first: Database;
}

const writeOf = ({ node, incarnation }: Process, nodeSeq: number): LogWrite => ({
  node,
  incarnation,
  nodeSeq,
  body: BODY,
});
const valuesOf = (process: Process, nodeSeq: number) => [process.node, process.incarnation, nodeSeq, BODY];

async function counterOf(target: Process, by: Process): Promise<number> {
  const { others } = await by.log.renew(by.node, by.incarnation, 0);
  return others.find(({ node }) => node === target.node)?.renewals ?? Number.NaN;
}

async function joined(fixture: PgFixture, name: string): Promise<Process> {
  const log = await fixture.connect();
  const process = { log, ...(await log.enter(name)) };
  await log.join(writeOf(process, 1));
  return process;
}

/** Runs `earlier` in a transaction, then `later` until it waits for a lock, then commits. What `later` came to. */
async function behind<Result>(
  { first, blocked }: Race,
  earlier: () => Promise<unknown>,
  later: () => Promise<Result>,
): Promise<{ value: Result } | { error: unknown }> {
  await first.script('begin');
  await earlier();
  const outcome = later().then(
    (value) => ({ value }),
    (error: unknown) => ({ error }),
  );
  await blocked(1);
  await first.script('commit');
  return outcome;
}

type Tester = (title: string, run: (t: Test, race: Race) => Promise<void>) => void;

function testLeases(race: Tester): void {
  race('a node sees the lease that another one has configured', async (t, { a, connect }) => {
    const log = await connect({ leaseMs: 7_000 });
    await log.join(writeOf({ log, ...(await log.enter('c')) }, 1));
    const { others } = await a.log.renew(a.node, a.incarnation, 0);
    t.equal(others.at(-1)?.leaseMs, 7_000);
  });

  race('a name is taken until the longer of two leases is over', async (t, { connect, first }) => {
    const log = await connect({ leaseMs: 7_000 });
    await log.join(writeOf({ log, ...(await log.enter('c')) }, 1));
    let nowMs = 0;
    const renewing = await connect({
      monotonicMs: () => nowMs,
      async wait(ms) {
        nowMs += ms;
        if (nowMs > 3_000) await first.script('update gatehouse.node set renewals = renewals + 1');
      },
    });
    await t.rejects(renewing.enter('c'), { name: 'NameTaken' });
    t.ok(nowMs > 3_000);
  });
}

function testExpulsions(race: Tester): void {
  race('a renewal behind an expulsion is refused', async (t, race) => {
    const { a, b, first } = race;
    const seen = await counterOf(b, a);
    const outcome = await behind(
      race,
      () => first.run(sql.EXPEL, [...valuesOf(a, 2), b.node, seen]),
      () => b.log.renew(b.node, b.incarnation, 2),
    );
    t.match(outcome, { error: Expelled });
  });

  race('an expulsion behind a renewal writes nothing', async (t, race) => {
    const { a, b, first } = race;
    const seen = await counterOf(b, a);
    const outcome = await behind(
      race,
      () => first.run(sql.RENEW, [b.node, b.incarnation, 2, Buffer.alloc(32), '{}', null, null]),
      () => a.log.expel(writeOf(a, 2), b.node, seen),
    );
    t.same(outcome, { value: undefined });
    t.equal(await b.log.append(writeOf(b, 2)), 3);
  });

  race('an append behind an expulsion is refused', async (t, race) => {
    const { a, b, first } = race;
    const seen = await counterOf(b, a);
    const outcome = await behind(
      race,
      () => first.run(sql.EXPEL, [...valuesOf(a, 2), b.node, seen]),
      () => b.log.append(writeOf(b, 2)),
    );
    t.match(outcome, { error: Expelled });
    t.equal(await a.log.append(writeOf(a, 3)), 4);
  });

  race('an expulsion behind an append has the next position', async (t, race) => {
    const { a, b, first } = race;
    const seen = await counterOf(b, a);
    const outcome = await behind(
      race,
      () => first.run(sql.APPEND, valuesOf(b, 2)),
      () => a.log.expel(writeOf(a, 2), b.node, seen),
    );
    t.same(outcome, { value: 4 });
  });

  race(
    'of two nodes that expel each other one stays, and nothing of the other is written',
    async (t, race) => {
      const { a, b, first } = race;
      const [ofA, ofB] = [await counterOf(a, b), await counterOf(b, a)];
      const outcome = await behind(
        race,
        () => first.run(sql.EXPEL, [...valuesOf(a, 2), b.node, ofB]),
        () => b.log.expel(writeOf(b, 2), a.node, ofA + 1),
      );
      t.match(outcome, { error: Expelled });
      t.equal(await a.log.append(writeOf(a, 3)), 4);
      t.equal((await a.log.renew(a.node, a.incarnation, 0)).others.length, 0);
    },
  );
}

function testIncarnations(race: Tester): void {
  race('a resolve behind the append that it asks about finds the row', async (t, race) => {
    const { a, first } = race;
    const outcome = await behind(
      race,
      () => first.run(sql.APPEND, valuesOf(a, 2)),
      () => a.log.resolve(writeOf(a, 2)),
    );
    t.same(outcome, { value: 3 });
  });

  race('an append behind a resolve is refused', async (t, race) => {
    const { a, first } = race;
    const outcome = await behind(
      race,
      () => first.run(sql.RAISE, [a.node, a.incarnation]),
      () => a.log.append(writeOf(a, 2)),
    );
    t.match(outcome, { error: Expelled });
  });

  race('a join behind an expulsion is refused, and the node stays out', async (t, race) => {
    const { a, b, first } = race;
    const seen = await counterOf(b, a);
    const outcome = await behind(
      race,
      () => first.run(sql.EXPEL, [...valuesOf(a, 2), b.node, seen]),
      () => b.log.join(writeOf(b, 2)),
    );
    t.match(outcome, { error: Expelled });
    t.equal((await a.log.renew(a.node, a.incarnation, 0)).others.length, 0);
  });
}

pgTest('log races: many new names at once get numbers of their own', async (t, fixture) => {
  const logs = await Promise.all(Array.from({ length: 8 }, () => fixture.connect()));
  const entered = await Promise.all(logs.map((log, index) => log.enter(`node-${index}`)));
  t.equal(new Set(entered.map(({ node }) => node)).size, 8);
  t.same(
    (await logs[0]?.nodes())?.map(({ joined }) => joined),
    Array(8).fill(false),
  );
});

pgTest('log races: processes that start at once over an empty database make one log', async (t, fixture) => {
  const logs = await Promise.all(Array.from({ length: 4 }, () => fixture.connect()));
  t.equal(new Set(logs.map(({ logId }) => logId)).size, 1);
});

const race: Tester = (title, run) =>
  pgTest(`log races: ${title}`, async (t, fixture) => {
    const [a, b] = [await joined(fixture, 'a'), await joined(fixture, 'b')];
    await run(t, { ...fixture, a, b, first: fixture.session() });
  });
testLeases(race);
testExpulsions(race);
testIncarnations(race);
