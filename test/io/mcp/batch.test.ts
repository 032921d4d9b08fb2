/** A batch of /mcp: what it may answer with in all, and that the event loop is given back within it. */
import fc from 'fast-check';
import t from 'tap';
import { closeAfter } from '../../../kit/close-after.ts';
import { BATCH_BYTES_MAX, BatchAnswers, RESERVED_BYTES, SLICE_MESSAGES } from '../../../src/io/mcp/batch.ts';
import { runs } from '../../support/depth.ts';
import { connectRaw, requestText } from '../../support/http.ts';
import { startMcp, TOKENS } from '../../support/mcp.ts';

const VERIFIED = { authorization: `Bearer ${TOKENS.McpVerified}` };

const batchOf = (count: number, method: string, params?: object) =>
  JSON.stringify(Array.from({ length: count }, (_, id) => ({ jsonrpc: '2.0', id, method, params })));

interface Answer {
  readonly id: number;
  readonly result?: { readonly content?: readonly { readonly text: string }[] };
  readonly error?: { readonly code: number; readonly message: string };
}

async function until(ready: () => boolean): Promise<void> {
  do await new Promise((resolve) => setImmediate(resolve));
  while (!ready());
}

const TOO_LARGE = { code: -32000, message: 'Tool execution error: answer too large, ask alone' };

// covers R31 S71
t.test(
  'batch: 100 lists answer with 4 MiB at most, later entries ask alone, others are served',
  async (t) => {
    const mcp = closeAfter(t, await startMcp());
    const { status, text } = await mcp.post(batchOf(100, 'tools/list'));
    t.equal(status, 200);
    t.ok(Buffer.byteLength(text) <= BATCH_BYTES_MAX, `${Buffer.byteLength(text)} bytes`);
    const answers = JSON.parse(text) as Answer[];
    t.same(
      answers.map(({ id }) => id),
      Array.from({ length: 100 }, (_, id) => id),
    );
    const first = answers.findIndex(({ error }) => error !== undefined);
    t.ok(first > 40, `${first} are whole`);
    t.same(
      answers.slice(first).map(({ error }) => error),
      new Array(100 - first).fill(TOO_LARGE),
    );
    t.match(JSON.parse((await mcp.post(batchOf(1, 'tools/list'))).text), [{ result: { tools: Array } }]);
  },
);

// covers S71
t.test('batch: calls behind an answer that was too large are not carried out', async (t) => {
  const body = JSON.stringify({ result: 'x'.repeat(1_500_000) });
  const mcp = await startMcp({
    backend: () => ({ body }),
    nextTurn: () => until(() => mcp.audit.length === SLICE_MESSAGES),
  });
  t.teardown(() => mcp.close());
  const { text } = await mcp.post(batchOf(100, 'tools/call', { name: 'wallet_get_balance' }), VERIFIED);
  t.ok(Buffer.byteLength(text) <= BATCH_BYTES_MAX);
  const answers = JSON.parse(text) as Answer[];
  t.equal(answers.filter(({ result }) => result !== undefined).length, 2, 'two fit');
  t.same(
    answers.slice(SLICE_MESSAGES).map(({ error }) => error),
    new Array(100 - SLICE_MESSAGES).fill(TOO_LARGE),
  );
  t.equal(mcp.asked.length, SLICE_MESSAGES, 'those of the first slice alone');
});

// covers R31
t.test('batch: a short answer is never dropped, whatever came before it', async (t) => {
  const size = fc.oneof(
    fc.integer({ min: 2, max: RESERVED_BYTES }),
    fc.integer({ min: 2, max: BATCH_BYTES_MAX }),
  );
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.record({ size, later: fc.boolean() }), { minLength: 1, maxLength: 100 }),
      async (entries) => {
        const ids = entries.map((_, index) => `"${'i'.repeat(index * 7)}"`);
        const answers = new BatchAnswers(ids);
        const settles: (() => void)[] = [];
        for (const [index, { size, later }] of entries.entries()) {
          const text = JSON.stringify('a'.repeat(size - 2));
          const wait = () => new Promise<string>((resolve) => settles.push(() => resolve(text)));
          answers.add(ids[index], later ? wait() : text);
        }
        for (const settle of settles.reverse()) settle();
        const bytes = await answers.whole();
        if (bytes === undefined || bytes.length > BATCH_BYTES_MAX) throw new Error('too many bytes');
        const values = JSON.parse(bytes.toString()) as (string | Answer)[];
        for (const [index, { size }] of entries.entries()) {
          const value = values[index];
          const isWhole = typeof value === 'string' && value.length === size - 2;
          if (!isWhole && size <= RESERVED_BYTES) throw new Error('a short answer is gone');
          if (!isWhole && typeof value === 'string') throw new Error('cut');
        }
      },
    ),
    runs(20),
  );
  t.pass('20 runs');
});

t.test('batch: an answer that is a bug rejects the whole, once all are in', async (t) => {
  const answers = new BatchAnswers(['1', '2']);
  answers.add('1', Promise.reject(new Error('a bug')));
  answers.add('2', 'x');
  await t.rejects(answers.whole(), { message: 'a bug' });
  t.equal(await new BatchAnswers([]).whole(), undefined);
});

// covers S71
t.test(
  'batch: the event loop is given back after every eighth message, and others are served then',
  async (t) => {
    const waits: { begun: number; go: () => void }[] = [];
    const mcp = await startMcp({
      nextTurn: () =>
        new Promise((resolve) => waits.push({ begun: mcp.audit.length, go: () => resolve(null) })),
    });
    t.teardown(() => mcp.close());
    // Unknown tools leave a record each, at once: it shows how many messages a slice began.
    const posted = mcp.post(batchOf(100, 'tools/call', { name: 'no_such_tool' }), VERIFIED);
    for (let slice = 1; slice <= 12; slice += 1) {
      await until(() => waits.length >= slice);
      t.equal(waits[slice - 1]?.begun, slice * SLICE_MESSAGES);
      if (slice === 6)
        t.equal((await mcp.post(batchOf(1, 'ping'))).text, '[{"jsonrpc":"2.0","id":0,"result":{}}]');
      waits[slice - 1]?.go();
    }
    t.equal((JSON.parse((await posted).text) as Answer[]).length, 100);
    t.equal(waits.length, 12);
  },
);

t.test('batch: what was not begun when the client went away is not begun', async (t) => {
  const waits: (() => void)[] = [];
  const mcp = await startMcp({ nextTurn: () => new Promise((resolve) => waits.push(() => resolve(null))) });
  t.teardown(() => mcp.close());
  const connection = connectRaw(mcp.http.port);
  const headers = { 'Content-Type': 'application/json', ...VERIFIED };
  connection.send(requestText('POST', '/mcp', headers, batchOf(20, 'tools/call', { name: 'no_such_tool' })));
  await until(() => waits.length > 0);
  connection.close();
  await until(() => mcp.http.server.counters().open === 0);
  waits[0]?.();
  await new Promise((resolve) => setImmediate(resolve));
  t.equal(mcp.audit.length, SLICE_MESSAGES);
  t.equal(waits.length, 1);
});
