/** What PostgreSQL refuses a node: which refusals pass, how they are counted, and how often they are logged. */
import t from 'tap';
import { DatabaseRefusals } from '../../../src/io/cluster/database-refusals.ts';
import { DatabaseFailure } from '../../../src/io/cluster/failures.ts';
import type { Log } from '../../../src/io/observability/log.ts';

const failure = (sqlState?: string) => new DatabaseFailure('text', sqlState);

t.test('database failure: passes without a SQLSTATE, by its class, and on a read-only server', async (t) => {
  const passing = [undefined, '08006', '40001', '53300', '57P03', '57014', '25006'];
  t.same(
    passing.filter((state) => !failure(state).isPassing),
    [],
  );
  const lasting = ['28P01', '28000', '3D000', '42501', '42P01', '25001', '0A000', 'XX000'];
  t.same(
    lasting.filter((state) => failure(state).isPassing),
    [],
  );
});

t.test('database refusals: count by class, with a line a minute for each SQLSTATE', async (t) => {
  const lines: unknown[][] = [];
  const log: Log = { write: (...line) => void lines.push(line) };
  let nowMs = 0;
  const refusals = new DatabaseRefusals({ log, monotonicMs: () => nowMs });
  for (const state of ['28P01', '28P01', '53300', '3D000', undefined]) refusals.add(failure(state));
  const line = (sqlState: string) => ['databaseRefused', { sqlState, detail: 'text' }];
  t.same(lines.splice(0), [line('28P01'), line('53300'), line('3D000')]);
  nowMs = 59_999;
  refusals.add(failure('28P01'));
  t.same(lines.splice(0), []);
  nowMs = 60_000;
  refusals.add(failure('28P01'));
  t.same(lines.splice(0), [line('28P01')]);
  t.same(refusals.counts, { '08': 0, 25: 0, 28: 4, 40: 0, 42: 0, 53: 1, 57: 0, other: 1 });
});
