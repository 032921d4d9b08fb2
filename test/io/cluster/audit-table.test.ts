/** Audit records in the database: pages over the batches of all nodes, the newest first. */
import fc from 'fast-check';
import t, { type Test } from 'tap';
import { AuditTable, type AuditTableKey, BATCH_RECORDS_MAX } from '../../../src/io/cluster/audit-table.ts';
import type { Postgres } from '../../../tools/cluster/postgres.ts';
import { openPgFixture, SECRET } from '../../support/cluster/pg-fixture.ts';
import { withPostgres } from '../../support/cluster/postgres.ts';
import { depth } from '../../support/depth.ts';

const recordAt = (timeMs: number, text = `at ${timeMs}`) => ({ timeMs, row: Buffer.from(text) });

async function openTable(t: Test, postgres: Postgres) {
  const fixture = await openPgFixture(t, postgres);
  await fixture.connect();
  const connect = (secrets: readonly Uint8Array[] = [SECRET]) => {
    const table = new AuditTable({ url: fixture.url, secrets });
    t.teardown(() => table.close());
    return table;
  };
  return { ...fixture, connect };
}

async function pagesOf(table: AuditTable, limit: number): Promise<string[]> {
  const texts: string[] = [];
  for (let key: AuditTableKey | undefined; ; ) {
    const { records } = await table.before(key, limit);
    texts.push(...records.map(({ row }) => Buffer.from(row).toString()));
    key = records.at(-1);
    if (key === undefined || records.length < limit) return texts;
  }
}

function testPages(postgres: Postgres): void {
  t.test('audit table: pages of any size hold every record once, the newest first', async (t) => {
    const { connect, database } = await openTable(t, postgres);
    const table = connect();
    const batches = fc.array(
      fc.record({
        node: fc.integer({ min: 1, max: 3 }),
        times: fc.array(fc.integer({ min: 0, max: 50 }), { minLength: 1, maxLength: 6 }),
      }),
      { maxLength: 30 },
    );
    await fc.assert(
      fc.asyncProperty(batches, fc.integer({ min: 1, max: 20 }), async (given, limit) => {
        await database.script('truncate gatehouse.audit');
        const fresh = connect();
        const written: { text: string; timeMs: number }[] = [];
        for (const { node, times } of given) {
          const records = times.map((timeMs) => recordAt(timeMs, `${timeMs} ${written.length} ${node}`));
          for (const { timeMs, row } of records) written.push({ text: row.toString(), timeMs });
          await fresh.append(node, records);
        }
        const texts = await pagesOf(table, limit);
        t.same([...texts].sort(), written.map(({ text }) => text).sort());
        const times = texts.map((text) => Number(text.split(' ')[0]));
        t.same(
          times,
          [...times].sort((a, b) => b - a),
        );
        fresh.close();
      }),
      depth.runs(20),
    );
  });

  t.test(
    'audit table: a node continues its numbers after a restart, beside a process that has not ended',
    async (t) => {
      const { connect } = await openTable(t, postgres);
      const [former, next] = [connect(), connect()];
      await former.append(1, [recordAt(1)]);
      await next.append(1, [recordAt(2)]);
      await former.append(1, [recordAt(3)]);
      await next.append(1, [recordAt(4)]);
      t.same(await pagesOf(next, 10), ['at 4', 'at 3', 'at 2', 'at 1']);
    },
  );
}

function testBatches(postgres: Postgres): void {
  t.test('audit table: a batch has a bound, an empty one writes nothing', async (t) => {
    const { connect } = await openTable(t, postgres);
    const table = connect();
    const many = Array.from({ length: BATCH_RECORDS_MAX }, (_, index) => recordAt(index));
    await table.append(1, many);
    await table.append(1, []);
    t.equal((await table.before(undefined, 10_000)).records.length, BATCH_RECORDS_MAX);
    await t.rejects(table.append(1, [...many, recordAt(1)]), RangeError);
  });

  t.test(
    'audit table: a batch that was moved or is of another secret is counted, the others are shown',
    async (t) => {
      const { connect, database } = await openTable(t, postgres);
      const table = connect();
      await table.append(1, [recordAt(1)]);
      await table.append(1, [recordAt(2)]);
      await connect([Buffer.alloc(32, 9)]).append(2, [recordAt(3)]);
      await database.script('update gatehouse.audit set node = 3 where seq = 2');
      const { records, damaged } = await table.before(undefined, 10);
      t.same(
        records.map(({ timeMs }) => timeMs),
        [1],
      );
      t.equal(damaged, 2);
    },
  );

  t.test('audit table: trimming removes batches that ended before', async (t) => {
    const { connect } = await openTable(t, postgres);
    const table = connect();
    await table.append(1, [recordAt(1), recordAt(10)]);
    await table.append(1, [recordAt(2)]);
    await table.trim(10);
    t.same(await pagesOf(table, 10), ['at 10', 'at 1']);
  });
}

await withPostgres(t, (postgres) => {
  testPages(postgres);
  testBatches(postgres);
});
