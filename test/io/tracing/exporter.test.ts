/** Export of spans: batches, bounds, attempts, and that each span ends in one counter. */
import t from 'tap';
import {
  ATTEMPTS_MAX,
  BATCH_ITEMS_MAX,
  BatchExporter,
  type ExportResult,
  QUEUE_ITEMS_MAX,
} from '../../../src/io/tracing/exporter.ts';
import { rejectedIn, tracesBody } from '../../../src/io/tracing/otlp.ts';
import { openTrace, REQUEST_SPANS_MAX, type TraceSpan } from '../../../src/io/tracing/span.ts';

const ACCEPTED: ExportResult = { kind: 'accepted', body: '{}' };
const NOTHING = { exported: 0, refused: 0, unreachable: 0, overflowed: 0, oversized: 0 };

/** An exporter whose answers and timers the test gives. */
function startExporter() {
  const sent: { body: string; answer: (result: ExportResult) => Promise<void> }[] = [];
  const timers: { delayMs: number; run: () => void }[] = [];
  const lost: number[] = [];
  const exporter = new BatchExporter<TraceSpan>({
    encode: (spans) => tracesBody(spans, { version: '0.0.1', project: 'test', instanceId: 'i' }),
    rejected: (answer) => rejectedIn(answer, 'rejectedSpans'),
    send: (body) =>
      new Promise((resolve) => {
        const answer = async (result: ExportResult) => {
          resolve(result);
          await new Promise((settled) => setImmediate(settled));
        };
        sent.push({ body, answer });
      }),
    timer(delayMs, run) {
      const timer = { delayMs, run };
      timers.push(timer);
      return () => void (timers.includes(timer) && timers.splice(timers.indexOf(timer), 1));
    },
    onLost: (spans) => void lost.push(spans),
  });
  const options = { traceparent: undefined, tracestate: undefined, sink: exporter, originMs: 0 };
  const add = (count: number) => {
    for (let index = 0; index < count; index += 1) openTrace({ ...options, elapsed: () => 1 }, 0).end();
  };
  return { exporter, sent, timers, lost, add, options };
}

function spansIn(body: string | undefined): number {
  return (body?.match(/"spanId"/g) ?? []).length;
}

t.test('exporter: a few spans wait for the timer, a full batch does not', async (t) => {
  const { exporter, sent, timers, add } = startExporter();
  add(3);
  t.equal(sent.length, 0);
  timers[0]?.run();
  t.equal(spansIn(sent[0]?.body), 3);
  await sent[0]?.answer(ACCEPTED);
  add(BATCH_ITEMS_MAX);
  t.equal(spansIn(sent[1]?.body), BATCH_ITEMS_MAX);
  await sent[1]?.answer(ACCEPTED);
  t.strictSame(exporter.counters, { ...NOTHING, exported: 3 + BATCH_ITEMS_MAX });
  t.equal(exporter.waiting, 0);
});

t.test('exporter: one batch is under way; spans beyond the queue are dropped and counted', async (t) => {
  const { exporter, sent, add } = startExporter();
  add(BATCH_ITEMS_MAX + QUEUE_ITEMS_MAX + 7);
  t.equal(sent.length, 1);
  t.equal(exporter.waiting, BATCH_ITEMS_MAX + QUEUE_ITEMS_MAX);
  t.strictSame(exporter.counters, { ...NOTHING, overflowed: 7 });
});

t.test(
  'exporter: an unreachable collector is tried again with longer waits, then the batch is lost',
  async (t) => {
    const { exporter, sent, timers, lost, add } = startExporter();
    add(2);
    timers.shift()?.run();
    const delays: number[] = [];
    for (let attempt = 1; attempt < ATTEMPTS_MAX; attempt += 1) {
      await sent.at(-1)?.answer({ kind: 'retry' });
      delays.push(timers[0]?.delayMs ?? 0);
      timers[0]?.run();
    }
    await sent.at(-1)?.answer({ kind: 'retry' });
    t.strictSame(delays, [1_000, 2_000, 4_000]);
    t.equal(new Set(sent.map(({ body }) => body)).size, 1, 'the same batch');
    t.strictSame(exporter.counters, { ...NOTHING, unreachable: 2 });
    t.strictSame(lost, [2]);
  },
);

t.test(
  'exporter: a refused batch is not sent again; rejected spans of an accepted one are counted',
  async (t) => {
    const { exporter, sent, timers, lost, add } = startExporter();
    add(2);
    timers[0]?.run();
    await sent[0]?.answer({ kind: 'refused' });
    add(3);
    timers[0]?.run();
    await sent[1]?.answer({ kind: 'accepted', body: '{"partialSuccess":{"rejectedSpans":"1"}}' });
    add(1);
    timers[0]?.run();
    await sent[2]?.answer({ kind: 'accepted', body: 'thanks' });
    t.strictSame(exporter.counters, { ...NOTHING, exported: 3, refused: 3 });
    t.strictSame(lost, [2, 1]);
  },
);

t.test('exporter: close sends what waits; after a failure the rest counts as unreachable', async (t) => {
  for (const [result, expected] of [
    [ACCEPTED, { ...NOTHING, exported: 5 }],
    [{ kind: 'retry' }, { ...NOTHING, unreachable: 5 }],
  ] as const) {
    const { exporter, sent, add } = startExporter();
    add(5);
    const closed = exporter.close();
    await new Promise((resolve) => setImmediate(resolve));
    await sent[0]?.answer(result);
    await closed;
    t.strictSame(exporter.counters, expected);
    add(1);
    t.equal(exporter.counters.overflowed, 1, 'a span that comes later is counted');
  }
});

t.test('spans: those beyond the bound of a request are counted, and the rest is exported', async (t) => {
  const { exporter, options } = startExporter();
  const root = openTrace({ ...options, elapsed: () => 1 }, 0);
  for (let index = 0; index < REQUEST_SPANS_MAX; index += 1) root.child('step').end();
  root.end();
  root.end('twice');
  t.equal(exporter.counters.oversized, 1);
  t.equal(exporter.waiting, REQUEST_SPANS_MAX);
});
