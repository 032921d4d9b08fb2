/** Audit records of a node in the database of its cluster: batches, bounds, and what happens while it is away. */
import { setImmediate } from 'node:timers/promises';
import fc from 'fast-check';
import t from 'tap';
import {
  BATCH_RECORDS_MAX,
  batchesOf,
  type CallBatch,
  packCall,
  unpackCall,
} from '../../../src/actors/runtime/audit/batches.ts';
import { TableCallAudit } from '../../../src/actors/runtime/audit/table.ts';
import { ManualClock, START_MS } from '../../support/actors/actors.ts';
import { depth } from '../../support/depth.ts';
import { rejectsWith } from '../../support/rejections.ts';

/** A database that answers when the test says so, and calls of a node over it. */
function tableUnderTest() {
  const clock = new ManualClock();
  const stored: CallBatch[] = [];
  const shortages: unknown[] = [];
  const trims: unknown[] = [];
  let answer: (error?: Error) => void = () => undefined;
  const calls = new TableCallAudit({
    node: 'a',
    table: {
      store: (batch) =>
        new Promise<void>((resolve, reject) => {
          stored.push(batch);
          answer = (error) => (error === undefined ? resolve() : reject(error));
        }),
    },
    local: { trim: async (...which) => void trims.push(which), finish: async () => undefined, dropped: 0 },
    schedule: { timer: clock.timer },
    onShortage: (error) => shortages.push(error),
  });
  return {
    ...{ calls, clock, stored, shortages, trims },
    /** Answers the batch that is under way; resolves when the next one is. */
    async answer(error?: Error) {
      answer(error);
      await setImmediate();
    },
    recordsOf: () => stored.map(({ records }) => records.map(({ row }) => unpackCall(row))),
  };
}

const mcpTool = (number: number) =>
  ({ utcMs: START_MS, event: 'mcp.tool', userId: null, fields: { number } }) as const;
const stamped = (number: number) => ({ ...mcpTool(number), node: 'a' });

t.test('audit in the database: records wait 50 ms for more, one that is awaited does not wait', async (t) => {
  const { calls, clock, stored, trims, answer, recordsOf } = tableUnderTest();
  calls.write(mcpTool(1));
  calls.write(mcpTool(2));
  clock.fireNext(clock.nowMs + 49);
  t.same(stored, [], 'they wait for more');
  clock.fireNext(clock.nowMs + 50);
  t.same(recordsOf(), [[stamped(1), stamped(2)]]);
  calls.write(mcpTool(3));
  const first = calls.writeFirst(mcpTool(4));
  let isDurable = false;
  void first.then(() => {
    isDurable = true;
  });
  await answer();
  t.same(recordsOf().slice(1), [[stamped(3), stamped(4)]]);
  t.notOk(isDurable, 'its batch is not stored yet');
  await answer();
  await first;
  t.throws(() => calls.write({ ...mcpTool(5), fields: { when: (() => 0) as never } }), TypeError);
  await calls.trim('node/calls', 7);
  t.same(trims, [['node/calls', 7]], 'what the journal holds is trimmed there');
  await calls.finish();
  t.equal(calls.dropped, 0);
});

t.test(
  'audit in the database: while it is away records wait within a bound, awaited ones are refused',
  async (t) => {
    const { calls, clock, stored, shortages, answer } = tableUnderTest();
    const failure = new Error('away');
    const first = calls.writeFirst(mcpTool(0));
    calls.write(mcpTool(1));
    await Promise.all([rejectsWith(t, first, 'JournalUnavailable'), answer(failure)]);
    await rejectsWith(t, calls.writeFirst(mcpTool(2)), 'JournalUnavailable');
    for (let count = 2; count < 20_000; count += 1) calls.write(mcpTool(count));
    t.equal(calls.dropped, 0);
    calls.write(mcpTool(20_000));
    t.equal(calls.dropped, 1, 'beyond the bound they are dropped and counted');
    clock.fireNext(clock.nowMs + 1_000);
    t.equal(stored[1], stored[0], 'the same batch is tried again');
    await answer(failure);
    t.same(shortages, [failure], 'reported once');
    clock.fireNext(clock.nowMs + 1_000);
    for (let count = 0; count < 6; count += 1) await answer();
    t.same(shortages, [failure, undefined]);
    const batches = new Set(stored);
    const sizes = [...batches].map(({ records }) => records.length);
    t.same(
      sizes,
      [1, 4_000, 4_000, 4_000, 4_000, 3_999],
      'every record but the dropped one, in bounded batches',
    );
    const last = calls.writeFirst(mcpTool(20_001));
    await answer();
    await last;
    t.equal(calls.dropped, 1);
  },
);

t.test(
  'audit in the database: a stop tries once more, and counts what the database does not take',
  async (t) => {
    const { calls, answer, stored } = tableUnderTest();
    calls.write(mcpTool(1));
    const taken = calls.finish();
    await setImmediate();
    await answer();
    await taken;
    t.equal(calls.dropped, 0);
    calls.write(mcpTool(2));
    calls.write(mcpTool(3));
    const ended = calls.finish();
    await setImmediate();
    await answer(new Error('away'));
    await ended;
    t.same([calls.dropped, stored.length], [2, 2]);
  },
);

t.test(
  'audit in the database: a batch holds one ring and a minute at most, each record is in one',
  async (t) => {
    const given = fc.array(
      fc.record({
        utcMs: fc.integer({ min: 0, max: 200_000 }),
        event: fc.constantFrom('mcp.tool', 'login_refused', 'admin.reload'),
      }),
      { maxLength: 40 },
    );
    fc.assert(
      fc.property(given, (events) => {
        const records = events.map(({ utcMs, event }, n) =>
          packCall({ utcMs, event: event as 'mcp.tool', userId: null, fields: { n } }),
        );
        const batches = batchesOf(records);
        t.same(new Set(batches.flatMap((batch) => batch.records)), new Set(records));
        for (const { ring, records: held } of batches) {
          const times = held.map(({ timeMs }) => timeMs);
          t.ok(held.every((record) => record.ring === ring));
          t.ok(Math.max(...times) - Math.min(...times) <= 60_000);
          t.same(
            times,
            times.toSorted((a, b) => a - b),
          );
        }
      }),
      depth.runs(50),
    );
    const many = Array.from({ length: BATCH_RECORDS_MAX + 1 }, (_, n) => packCall(mcpTool(n)));
    t.same(
      batchesOf(many).map(({ records }) => records.length),
      [BATCH_RECORDS_MAX, 1],
    );
  },
);
