/** Audit records in the database: pages over the batches of all nodes, the newest first, and the bounds of each ring. */

import fc from 'fast-check';
import type { Test } from 'tap';
import { closeAfter } from '../../../kit/close-after.ts';
import { startTcpProxy } from '../../../kit/cluster/tcp-proxy.ts';
import type { AuditRecord } from '../../../src/actors/runtime/actor.ts';
import {
  BATCH_RECORDS_MAX,
  BATCH_SPAN_MS,
  type CallBatch,
  packCall,
} from '../../../src/actors/runtime/audit/batches.ts';
import type { AuditRing } from '../../../src/domain/audit.ts';
import { AuditTable, type CallKey } from '../../../src/io/cluster/audit-table.ts';
import { type PgFixture, pgTest, SECRET } from '../../support/cluster/pg-fixture.ts';
import { depth } from '../../support/depth.ts';

const EVENTS = { calls: 'mcp.tool', admin: 'admin.reload' } as const;
type Ring = keyof typeof EVENTS;

function batchOf(
  times: readonly number[],
  ring: Ring = 'calls',
  textOf = (at: number) => `at ${at}`,
): CallBatch {
  const records = times.map((utcMs, n) =>
    packCall({ utcMs, event: EVENTS[ring], userId: null, fields: { text: textOf(utcMs), n } }),
  );
  return { ring, records };
}

async function openTable(t: Test, fixture: PgFixture) {
  await fixture.connect();
  const connect = (node: number, secrets: readonly Uint8Array[] = [SECRET], url = fixture.url) => {
    return closeAfter(t, new AuditTable({ url, secrets, node: () => node }));
  };
  return { ...fixture, connect };
}

const textOf = ({ record }: { readonly record: unknown }) =>
  String((record as AuditRecord | undefined)?.fields['text']);

async function pagesOf(table: AuditTable, limit: number, rings?: readonly AuditRing[]): Promise<string[]> {
  const texts: string[] = [];
  for (let key: CallKey | undefined; ; ) {
    const records = await table.before(key, limit, rings);
    texts.push(...records.map(textOf));
    key = records.at(-1);
    if (key === undefined || records.length < limit) return texts;
  }
}

pgTest('audit table: pages of any size hold every record once, the newest first', async (t, fixture) => {
  const { connect, database } = await openTable(t, fixture);
  const batches = fc.array(
    fc.record({
      node: fc.integer({ min: 1, max: 3 }),
      ring: fc.constantFrom<Ring>('calls', 'admin'),
      times: fc.array(fc.integer({ min: 0, max: 50 }), { minLength: 1, maxLength: 6 }),
    }),
    { maxLength: 30 },
  );
  await fc.assert(
    fc.asyncProperty(batches, fc.integer({ min: 1, max: 20 }), async (given, limit) => {
      await database.script('truncate gatehouse.audit');
      const nodes = [1, 2, 3].map((node) => connect(node));
      const written: { text: string; ring: Ring }[] = [];
      for (const [index, { node, ring, times }] of given.entries()) {
        const sorted = [...times].sort((a, b) => a - b);
        const texts = (at: number) => `${at} ${index} ${node}`;
        for (const at of sorted) written.push({ text: texts(at), ring });
        await nodes[node - 1]?.store(batchOf(sorted, ring, texts));
      }
      const [reader] = nodes as [AuditTable, ...AuditTable[]];
      const texts = await pagesOf(reader, limit);
      t.same([...texts].sort(), written.map(({ text }) => text).sort());
      const times = texts.map((text) => Number(text.split(' ')[0]));
      t.same(
        times,
        [...times].sort((a, b) => b - a),
      );
      const ofRing = written.filter(({ ring }) => ring === 'admin').map(({ text }) => text);
      t.same((await pagesOf(reader, limit, ['admin'])).sort(), ofRing.sort());
      for (const each of nodes) each.close();
    }),
    depth.runs(20),
  );
});

pgTest(
  'audit table: a page reads on where more batches lie than one question answers',
  async (t, fixture) => {
    const { connect } = await openTable(t, fixture);
    const table = connect(1);
    const times = Array.from({ length: 600 }, (_, index) => index);
    await Promise.all(times.slice(0, 60).map((at) => table.store(batchOf([at]))));
    for (const at of times.slice(60)) await table.store(batchOf([at]));
    t.same(
      (await table.before(undefined, 550)).map(({ timeMs }) => timeMs),
      times.slice(50).reverse(),
    );
  },
);

pgTest(
  'audit table: a record at the beginning of a long batch is found behind many short ones',
  async (t, fixture) => {
    const { connect } = await openTable(t, fixture);
    const table = connect(1);
    await table.store(batchOf([0, BATCH_SPAN_MS]));
    for (let at = 1; at < 20; at += 1) await table.store(batchOf([at]));
    t.same(
      (await table.before({ timeMs: 3, node: 1, seq: 0 }, 10)).map(({ timeMs }) => timeMs),
      [2, 1, 0],
    );
  },
);

pgTest(
  'audit table: a node continues its numbers after a restart, beside a process that has not ended',
  async (t, fixture) => {
    const { connect } = await openTable(t, fixture);
    const [former, next] = [connect(1), connect(1)];
    await former.store(batchOf([1]));
    await next.store(batchOf([2]));
    await former.store(batchOf([3]));
    await next.store(batchOf([4]));
    t.same(await pagesOf(next, 10), ['at 4', 'at 3', 'at 2', 'at 1']);
  },
);

pgTest(
  'audit table: a batch whose answer was lost is stored once when it is tried again',
  async (t, fixture) => {
    const { connect, url } = await openTable(t, fixture);
    const proxy = closeAfter(t, await startTcpProxy({ path: fixture.postgres.socketFile }));
    const parts = new URL(url).searchParams;
    const table = connect(
      1,
      [SECRET],
      `postgres://${parts.get('user')}@127.0.0.1:${proxy.port}/${parts.get('db')}`,
    );
    await table.store(batchOf([1]));
    const batch = batchOf([2]);
    const lost = proxy.loseNext('answer', 'audit_insert');
    await Promise.all([lost, t.rejects(table.store(batch), { name: 'DatabaseFailure' })]);
    await table.store(batch);
    t.same(await pagesOf(table, 10), ['at 2', 'at 1']);
  },
);

pgTest('audit table: the largest batch is read as it was stored', async (t, fixture) => {
  const { connect } = await openTable(t, fixture);
  const table = connect(1);
  await table.store(batchOf(Array.from({ length: BATCH_RECORDS_MAX }, (_, index) => index)));
  t.equal((await pagesOf(table, 900)).length, BATCH_RECORDS_MAX);
});

pgTest(
  'audit table: a batch that was moved or is of another secret is one unreadable record, the others are shown',
  async (t, fixture) => {
    const { connect, database } = await openTable(t, fixture);
    const table = connect(1);
    await table.store(batchOf([1]));
    await table.store(batchOf([2, 3]));
    await connect(2, [Buffer.alloc(32, 9)]).store(batchOf([4]));
    await database.script('update gatehouse.audit set node = 3 where node = 1 and seq = 2');
    const seen = (await table.before(undefined, 10)).map(({ timeMs, record }) => [
      timeMs,
      record === undefined,
    ]);
    t.same(seen, [
      [4, true],
      [3, true],
      [1, false],
    ]);
  },
);

pgTest(
  'audit table: trimming removes batches that are older or beyond the bound of their ring',
  async (t, fixture) => {
    const { connect } = await openTable(t, fixture);
    const [table, other] = [connect(1), connect(2)];
    await table.store(batchOf([1, 10]));
    await table.store(batchOf([2]));
    await table.store(batchOf([3], 'admin'));
    await table.trim('calls', 10, 1_000);
    t.same(await pagesOf(table, 10), ['at 10', 'at 3', 'at 1'], 'its last record decides');
    await other.store(batchOf([11, 12]));
    await other.store(batchOf([13]));
    await table.trim('calls', 0, 3);
    t.same(await pagesOf(table, 10), ['at 13', 'at 12', 'at 11', 'at 3'], 'other rings keep theirs');
    await table.trim('calls', 0, 1);
    t.same(await pagesOf(table, 10), ['at 13', 'at 3']);
  },
);
