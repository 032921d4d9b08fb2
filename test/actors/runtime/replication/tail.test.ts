/** The tail of the log: rows reach the sink in order, however few an answer holds. */
import t from 'tap';
import type { LogRow } from '../../../../src/actors/runtime/replication/port.ts';
import { Tail } from '../../../../src/actors/runtime/replication/tail.ts';

const rowAt = (position: number): LogRow => ({
  position,
  node: 1,
  incarnation: 1,
  nodeSeq: position,
  body: new Uint8Array(),
});

t.test('tail: rows are fetched until an answer is empty, without a wait for the next poll', async (t) => {
  const applied: number[] = [];
  const tail = new Tail({
    log: { fetch: async (after: number) => (after < 5 ? [rowAt(after + 1)] : []) } as never,
    sink: {
      get position() {
        return applied.at(-1) ?? 0;
      },
      async apply(rows: readonly LogRow[]) {
        applied.push(...rows.map(({ position }) => position));
      },
    } as never,
    schedule: {
      immediate: (run) => void setImmediate(run),
      timer: () => () => undefined,
    },
    onRows: () => undefined,
    onApplied: () => undefined,
    onKnown: () => undefined,
    isFed: () => false,
    onFatal: (error) => t.fail(String(error)),
  });
  tail.start();
  await tail.reach(5);
  t.same(applied, [1, 2, 3, 4, 5]);
  tail.stop();
});
