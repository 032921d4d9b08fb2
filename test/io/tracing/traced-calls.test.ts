/** Traces of tool calls on the real pipeline: what modules get, what spans say, and that nothing exists unsampled. */
import t from 'tap';
import { defineRoute, type RouteContext } from '../../../src/io/http/route.ts';
import { type SpanSink, TraceSpan } from '../../../src/io/tracing/span.ts';
import { TracedActors } from '../../../src/io/tracing/traced-actors.ts';
import { Tracing } from '../../../src/io/tracing/tracing.ts';
import { type McpFixtureOptions, startMcp, TOKENS } from '../../support/mcp.ts';

const TRACE_ID = '4bf92f3577b34da6a3ce929d0e0e4736';
const RECEIVED = { traceparent: `00-${TRACE_ID}-00f067aa0ba902b7-00`, tracestate: 'vendor=1' };

/** /mcp with a route that shows its context, and the spans that ended. */
async function startTraced(sampleRatio: number | undefined, more: McpFixtureOptions = {}) {
  const ended: TraceSpan[] = [];
  const contexts: RouteContext[] = [];
  const sink: SpanSink = { add: (span) => void ended.push(span), dropped: () => undefined };
  const elapsed = () => performance.now();
  const tracing =
    sampleRatio === undefined
      ? undefined
      : new Tracing({ sink, sampleRatio, random: () => 0.5, elapsed, clock: Date.now });
  const fixture = await startMcp({
    ...more,
    pipeline: { tracing },
    routes: [
      defineRoute({
        method: 'GET',
        path: '/shown',
        summary: 'Shows its context',
        group: 'test',
        auth: 'none',
        limits: [],
        errors: [],
        handle(context) {
          contexts.push(context);
          return null;
        },
      }),
    ],
  });
  const call = (headers: Record<string, string> = {}) =>
    fixture.rpc('tools/call', { name: 'wallet_get_balance', arguments: {} }, TOKENS.McpVerified, headers);
  return { fixture, ended, contexts, call };
}

t.test(
  'traces: a module gets its own parent in a sampled request, and the tracestate as it came',
  async (t) => {
    const { fixture, ended, call } = await startTraced(1, { backend: () => ({ body: '{"result":1}' }) });
    t.teardown(() => fixture.close());
    await call(RECEIVED);
    const client = ended.find(({ kind }) => kind === 'client');
    t.match(fixture.asked[0]?.headers, {
      traceparent: `00-${TRACE_ID}-${client?.id}-01`,
      tracestate: 'vendor=1',
    });
  },
);

t.test('traces: without sampling a module gets traceparent and tracestate as they came', async (t) => {
  const { fixture, ended, call } = await startTraced(undefined, {
    backend: () => ({ body: '{"result":1}' }),
  });
  t.teardown(() => fixture.close());
  await call(RECEIVED);
  t.match(fixture.asked[0]?.headers, RECEIVED);
  await call({ tracestate: 'vendor=1' });
  t.equal(fixture.asked[1]?.headers['tracestate'], undefined, 'not without traceparent');
  await call({ ...RECEIVED, tracestate: 'v'.repeat(600) });
  t.equal(fixture.asked[2]?.headers['tracestate'], undefined, 'not one that is too long');
  t.equal(ended.length, 0);
});

t.test('traces: errors of tools and modules are those of the conventions', async (t) => {
  const { fixture, ended, call } = await startTraced(1, {
    backend: () => ({ status: 503, body: '{"error":{"code":1,"message":"down"}}' }),
  });
  t.teardown(() => fixture.close());
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
    const { fixture, ended, contexts } = await startTraced(ratio);
    t.teardown(() => fixture.close());
    await fetch(`${fixture.http.url}/shown`);
    const [context] = contexts;
    t.equal(context?.span, undefined);
    t.notOk(context?.actors instanceof TracedActors);
    t.equal(context?.actors, context?.actors, 'no object is made for it');
    t.equal(ended.length, 0);
  }
  const sampled = await startTraced(0.6);
  t.teardown(() => sampled.fixture.close());
  await fetch(`${sampled.fixture.http.url}/shown`);
  t.ok(sampled.contexts[0]?.span instanceof TraceSpan);
  t.ok(sampled.contexts[0]?.actors instanceof TracedActors);
  t.match(sampled.fixture.http.finished[0], { traceparent: /^00-[0-9a-f]{32}-[0-9a-f]{16}-01$/ });
});
