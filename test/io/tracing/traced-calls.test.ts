/** Traces of tool calls on the real pipeline: what modules get, what spans say, and that nothing exists unsampled. */
import t, { type Test } from 'tap';
import { closeAfter } from '../../../kit/close-after.ts';
import type { RouteContext } from '../../../src/io/http/table/route.ts';
import { REQUEST_SPANS_MAX, type SpanSink, TraceSpan } from '../../../src/io/tracing/span.ts';
import { TracedActors } from '../../../src/io/tracing/traced-actors.ts';
import { Tracing } from '../../../src/io/tracing/tracing.ts';
import { plainRoute } from '../../support/http.ts';
import { type McpFixtureOptions, startMcp, TOKENS } from '../../support/mcp.ts';

const TRACE_ID = '4bf92f3577b34da6a3ce929d0e0e4736';
const PARENT_ID = '00f067aa0ba902b7';
const RECEIVED = { traceparent: `00-${TRACE_ID}-${PARENT_ID}-00`, tracestate: 'vendor=1' };
const OTHER_TRACE = 'a'.repeat(32);

/** /mcp with a route that shows its context, and the spans that ended. */
async function startTraced(t: Test, sampleRatio: number | undefined, more: McpFixtureOptions = {}) {
  const ended: TraceSpan[] = [];
  const contexts: RouteContext[] = [];
  const sink: SpanSink = { add: (span) => void ended.push(span), dropped: () => undefined };
  const elapsed = () => performance.now();
  const tracing =
    sampleRatio === undefined
      ? undefined
      : new Tracing({ sink, sampleRatio, random: () => 0.5, elapsed, clock: Date.now });
  const fixture = closeAfter(
    t,
    await startMcp({
      ...more,
      pipeline: { tracing },
      routes: [
        plainRoute('GET /shown', (context) => {
          contexts.push(context);
          return null;
        }),
      ],
    }),
  );
  const call = (headers: Record<string, string> = {}, meta?: object) =>
    fixture.rpc(
      'tools/call',
      { name: 'wallet_get_balance', arguments: {}, _meta: meta },
      TOKENS.McpVerified,
      headers,
    );
  return { fixture, ended, contexts, call };
}

t.test(
  'traces: a module gets its own parent in a sampled request, and the tracestate as it came',
  async (t) => {
    const { fixture, ended, call } = await startTraced(t, 1, { backend: () => ({ body: '{"result":1}' }) });
    await call(RECEIVED);
    const client = ended.find(({ kind }) => kind === 'client');
    t.equal(client?.name, 'GET /wallet/v1/balance/get');
    t.match(fixture.asked[0]?.headers, {
      traceparent: `00-${TRACE_ID}-${client?.id}-01`,
      tracestate: 'vendor=1',
    });
  },
);

t.test('traces: without sampling a module gets traceparent and tracestate as they came', async (t) => {
  const { fixture, ended, call } = await startTraced(t, undefined, {
    backend: () => ({ body: '{"result":1}' }),
  });
  await call(RECEIVED);
  t.match(fixture.asked[0]?.headers, RECEIVED);
  await call({ tracestate: 'vendor=1' });
  t.equal(fixture.asked[1]?.headers['tracestate'], undefined, 'not without traceparent');
  await call({ ...RECEIVED, tracestate: 'v'.repeat(600) });
  t.equal(fixture.asked[2]?.headers['tracestate'], undefined, 'not one that is too long');
  t.equal(ended.length, 0);
});

t.test('traces: _meta names the parent of a call where the head names none', async (t) => {
  const { fixture, ended, call } = await startTraced(t, 1, { backend: () => ({ body: '{"result":1}' }) });
  await call({}, RECEIVED);
  const named = (start: string) => ended.find(({ name }) => name.startsWith(start));
  const own = named('tools/call');
  t.match(own, { traceId: TRACE_ID, parentId: PARENT_ID, tracestate: 'vendor=1' });
  const route = named('route ');
  t.match(own?.link, { id: route?.id, traceId: route?.traceId }, 'a link leads to the span of the request');
  t.not(route?.traceId, TRACE_ID);
  const client = ended.find(({ kind }) => kind === 'client');
  t.equal(client?.parentId, own?.id);
  const expected = { traceparent: `00-${TRACE_ID}-${client?.id}-01`, tracestate: 'vendor=1' };
  t.match(fixture.asked[0]?.headers, expected);

  ended.length = 0;
  const head = { traceparent: `00-${OTHER_TRACE}-${PARENT_ID}-00` };
  await call(head, RECEIVED);
  t.match(named('tools/call'), { traceId: OTHER_TRACE, link: undefined }, 'the head wins');
  t.equal(fixture.asked[1]?.headers['tracestate'], undefined);
  t.match(fixture.asked[1]?.headers['traceparent'], new RegExp(`^00-${OTHER_TRACE}-`));
});

t.test('traces: each call of a batch has its own parent, and they share the bound of spans', async (t) => {
  const { fixture, ended } = await startTraced(t, 1, { backend: () => ({ body: '{"result":1}' }) });
  const calls = Array.from({ length: 100 }, (_, id) => ({
    jsonrpc: '2.0',
    id,
    method: 'resources/read',
    params: {
      uri: 'gatehouse://wallet/balance',
      _meta: { traceparent: `00-${TRACE_ID}-${String(id).padStart(15, '0')}1-01` },
    },
  }));
  const headers = { Authorization: `Bearer ${TOKENS.McpVerified}` };
  t.equal((await fixture.post(JSON.stringify(calls), headers)).status, 200);
  const reads = ended.filter(({ name }) => name === 'resources/read');
  t.strictSame(
    reads.map(({ traceId, parentId }) => [traceId, parentId]).slice(0, 2),
    ['0000000000000001', '0000000000000011'].map((parentId) => [TRACE_ID, parentId]),
  );
  t.ok(ended.length <= REQUEST_SPANS_MAX, `${ended.length} spans`);
});

t.test(
  'traces: without sampling a module gets the context of _meta, of which only what is well formed',
  async (t) => {
    const { fixture, call } = await startTraced(t, undefined, { backend: () => ({ body: '{"result":1}' }) });
    const passed = async (meta: object) => {
      await call({}, meta);
      const { traceparent, tracestate } = fixture.asked.at(-1)?.headers ?? {};
      return { traceparent, tracestate };
    };
    t.strictSame(await passed(RECEIVED), RECEIVED);
    const { traceparent } = RECEIVED;
    for (const tracestate of ['v'.repeat(600), 'a=1\r\nX-Crm: 1', 'ü=1', 7, null])
      t.strictSame(await passed({ traceparent, tracestate }), { traceparent, tracestate: undefined });
    const none = { traceparent: undefined, tracestate: undefined };
    for (const unfit of [
      `00-${'0'.repeat(32)}-${PARENT_ID}-01`,
      `${traceparent}\r\nX-Crm: 1`,
      `ff-${TRACE_ID}-${PARENT_ID}-01`,
      7,
      [traceparent],
      null,
    ])
      t.strictSame(await passed({ traceparent: unfit, tracestate: 'vendor=1' }), none, String(unfit));
  },
);

t.test('traces: errors of tools and modules are those of the conventions', async (t) => {
  const { fixture, ended, call } = await startTraced(t, 1, {
    backend: () => ({ status: 503, body: '{"error":{"code":1,"message":"down"}}' }),
  });
  await call();
  await fixture.rpc('tools/call', { name: 'made_up_by_a_caller' }, TOKENS.McpVerified);
  const errors = ended.map(({ name, errorType }) => [name.split(' ').at(0), errorType]);
  t.strictSame(
    errors.filter(([, error]) => error !== undefined),
    [
      ['GET', '503'],
      ['tools/call', 'tool_error'],
      ['tools/call', 'unknown'],
    ],
  );
  t.notMatch(JSON.stringify(ended.map(({ name, attributes }) => [name, attributes])), /made_up/);
});

t.test('traces: an unsampled request has no span, and its route the actor system itself', async (t) => {
  for (const ratio of [undefined, 0.4]) {
    const { fixture, ended, contexts } = await startTraced(t, ratio);
    await fetch(`${fixture.http.url}/shown`);
    const [context] = contexts;
    t.equal(context?.span, undefined);
    t.notOk(context?.actors instanceof TracedActors);
    t.equal(context?.actors, context?.actors, 'no object is made for it');
    t.equal(ended.length, 0);
  }
  const sampled = await startTraced(t, 0.6);
  for (const path of ['/shown', '/none']) await fetch(`${sampled.fixture.http.url}${path}`);
  const ends = sampled.ended
    .filter(({ kind }) => kind === 'server')
    .map(({ name, attributes, errorType }) => [
      name,
      attributes['http.route'],
      attributes['http.response.status_code'],
      Object.values(attributes).includes(undefined as never),
      errorType,
    ]);
  t.strictSame(ends, [
    ['GET /shown', '/shown', 200, false, undefined],
    ['GET', undefined, 404, false, undefined],
  ]);
  t.ok(sampled.contexts[0]?.span instanceof TraceSpan);
  t.ok(sampled.contexts[0]?.actors instanceof TracedActors);
  t.match(sampled.fixture.http.finished[0], { traceparent: /^00-[0-9a-f]{32}-[0-9a-f]{16}-01$/ });
});
