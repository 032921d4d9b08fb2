/** The program with a collector: the tree of tool calls, its conventions, context in and out, bounds and secrets. */
import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { join } from 'node:path';
import t from 'tap';
import {
  bearerOf,
  callTool,
  expectOk,
  logIn,
  request,
  rpc,
  signUp,
  signUpAgent,
} from '../../../kit/agent.ts';
import { closeAfter } from '../../../kit/close-after.ts';
import { listenFor } from '../../../kit/http.ts';
import { launch, launchFor, type RunningGateway } from '../../../kit/launch.ts';
import { metricValue } from '../../../kit/metric-value.ts';
import { uploadAll } from '../../../kit/upload-client.ts';
import { type ReceivedSpan, startCollector, treeOf } from '../../support/collector.ts';

t.setTimeout(120_000);

const TRACE_ID = '4bf92f3577b34da6a3ce929d0e0e4736';
const PARENT_ID = '00f067aa0ba902b7';

const newBearer = async ({ url }: RunningGateway) => bearerOf(url, (await signUpAgent(url)).key);

async function metricsOf({ internal }: RunningGateway): Promise<string> {
  return (await request(`${internal}/metrics`)).text;
}

async function startTraced(more: object = {}, statusOf?: () => number) {
  const collector = closeAfter(t, await startCollector(statusOf));
  const Telemetry = {
    url: collector.url,
    headers: { 'X-Token': 'of-the-collector' },
    sampleRatio: 1,
    ...more,
  };
  const configuration = { Project: 'traced', Telemetry };
  const gateway = await launchFor(t, { configuration, args: ['--sandbox'] });
  return { collector, gateway };
}

/** Serves the tests of which each looks for spans of its own. */
const traced = await startTraced();

const call = (id: number, name: string, given: object = {}) => ({
  jsonrpc: '2.0',
  id,
  method: 'tools/call',
  params: { name, arguments: given },
});

t.test('traces: a batch of two tool calls is one tree down to turn, commit and module call', async (t) => {
  const { collector, gateway } = traced;
  const bearer = await newBearer(gateway);
  const batch = [call(1, 'wallet_get_balance'), call(2, 'close_sessions', { others: true })];
  expectOk('batch', await rpc(gateway.url, bearer, batch));
  const spans = await collector.trace(({ name }) => name === 'tools/call close_sessions');
  t.strictSame(treeOf(spans), [
    'POST /mcp',
    '  route /mcp',
    '    session check',
    '    tools/call wallet_get_balance',
    '      GET /at/wallet/wallet/v1/balance/get',
    '    tools/call close_sessions',
    '      commit',
    '      ask user.closeSessions',
    '        turn',
    '        commit',
    '          write',
  ]);
  const named = (name: string) => spans.find((span) => span.name === name);
  t.match(named('POST /mcp'), {
    kind: 2,
    parentSpanId: undefined,
    attributes: {
      'http.request.method': 'POST',
      'http.route': '/mcp',
      'http.response.status_code': '200',
      'client.address': '127.0.0.1',
    },
    status: {},
  });
  t.match(named('tools/call wallet_get_balance'), {
    kind: 2,
    attributes: {
      'mcp.method.name': 'tools/call',
      'gen_ai.operation.name': 'execute_tool',
      'gen_ai.tool.name': 'wallet_get_balance',
      'jsonrpc.request.id': '1',
      'gatehouse.call.outcome': 'ok',
    },
  });
  t.match(named('GET /at/wallet/wallet/v1/balance/get'), {
    kind: 3,
    attributes: {
      'http.request.method': 'GET',
      'url.template': '/at/wallet/wallet/v1/balance/get',
      'http.response.status_code': '200',
      'server.address': '127.0.0.1',
    },
  });
  t.match(named('session check'), {
    attributes: { 'gatehouse.session.kind': 'mcp', 'gatehouse.session.outcome': 'valid' },
  });
  t.match(
    spans.findLast(({ name }) => name === 'commit'),
    {
      attributes: {
        'db.system.name': 'lmdb',
        'db.operation.name': 'commit',
        'db.operation.batch.size': /^[1-9]/,
      },
    },
  );
  const [first] = collector.batches;
  t.match(first, { path: '/v1/traces', headers: { 'x-token': 'of-the-collector' } });
  t.match(first?.resource, { 'service.name': 'gatehouse', 'service.namespace': 'traced' });
  for (const span of spans)
    t.ok(BigInt(span.startTimeUnixNano) <= BigInt(span.endTimeUnixNano), `${span.name} ends after its start`);
  t.notMatch(JSON.stringify(collector.batches), new RegExp(bearer), 'no span holds the bearer');
});

t.test('traces: a login and a chunk of a file name their worker tasks', async (t) => {
  const { collector, gateway } = traced;
  const person = await signUp(gateway.url);
  expectOk('login', await logIn(gateway.url, person.key));
  const uploader = { url: gateway.url, cookie: person.cookie };
  t.type((await uploadAll(uploader, Buffer.from('one chunk'))).fileId, 'string');
  const treeUpTo = async (root: string) => treeOf(await collector.trace(({ name }) => name === root));
  t.strictSame(await treeUpTo('POST /auth/v1/login'), [
    'POST /auth/v1/login',
    '  route /auth/v1/login',
    '    ask user.login',
    '      turn',
    '        worker verifyEd25519',
    '      commit',
    '        write',
  ]);
  t.strictSame(await treeUpTo('POST /auth/v1/file/upload_part'), [
    'POST /auth/v1/file/upload_part',
    '  session check',
    '  route /auth/v1/file/upload_part',
    '    now upload.findPosition',
    '    now upload.findPosition',
    '    worker writeBuffer',
    '    ask upload.storeChunk',
    '      turn',
    '      commit',
    '        write',
  ]);
});

t.test(
  'traces: the check of an unknown session is a span, and the request has no route below it',
  async (t) => {
    const { collector, gateway } = traced;
    const headers = { Cookie: `sid=${'A'.repeat(46)}` };
    t.equal((await request(`${gateway.url}/auth/v1/sessions`, { headers })).status, 401);
    const spans = await collector.trace(({ name }) => name === 'GET /auth/v1/sessions');
    t.strictSame(treeOf(spans), ['GET /auth/v1/sessions', '  session check']);
    t.strictSame(spans.find(({ name }) => name === 'session check')?.attributes, {
      'gatehouse.session.kind': 'browser',
      'gatehouse.session.outcome': 'unknown',
    });
  },
);

t.test('traces: webhook attempts are trees of their own that name the host, never the path', async (t) => {
  const { collector, gateway } = traced;
  const statuses = [410, 200];
  const receiver = createServer((incoming, answer) => {
    incoming.resume();
    answer.writeHead(statuses.shift() ?? 200).end();
  });
  const { port } = await listenFor(t, receiver);
  const { cookie, userId } = await signUp(gateway.url);
  const post = async (path: string, body: object) =>
    expectOk(
      path,
      await request(`${gateway.url}/auth/v1/app/${path}`, { headers: { Cookie: cookie }, body }),
    );
  const webhookUrl = `http://127.0.0.1:${port}/let-me-in`;
  const shop = await post('upsert_usr_app', { name: 'Shop', url: 'https://shop.example', webhookUrl });
  const id = String(shop.json['result']?.['id']);
  await post('ping', { id });
  const pinged = await collector.trace(({ name }) => name === 'POST /auth/v1/app/ping');
  t.match(
    pinged.find(({ name }) => name === 'POST'),
    {
      kind: 3,
      attributes: { 'server.port': String(port), 'http.response.status_code': '410' },
      status: { code: 2 },
    },
    'the ping is below its request',
  );
  const key = readFileSync(join(gateway.dataPath, 'sandbox/module-key'), 'utf8').trim();
  const event = { module: 'core', tick: '1', type: 'Tried', crmId: userId, data: {} };
  const headers = { 'X-Module-Key': key };
  expectOk(
    'event',
    await request(`${gateway.internal}/internal/v1/events`, { headers, body: { events: [event] } }),
  );
  const spans = await collector.trace(({ name }) => name === 'webhook attempt');
  t.strictSame(treeOf(spans), [
    'webhook attempt',
    '  POST',
    '  ask app.settleDelivery',
    '    turn',
    '    commit',
    '      write',
  ]);
  t.match(
    spans.find(({ name }) => name === 'webhook attempt'),
    {
      kind: 1,
      parentSpanId: undefined,
      attributes: {
        'gatehouse.webhook.id': /^msg_/,
        'gatehouse.webhook.source': 'live',
        'gatehouse.webhook.attempt': '1',
        'gatehouse.webhook.events': '1',
      },
      status: {},
    },
  );
  t.match(
    spans.find(({ name }) => name === 'POST'),
    {
      kind: 3,
      attributes: {
        'http.request.method': 'POST',
        'server.address': '127.0.0.1',
        'server.port': String(port),
        'http.response.status_code': '200',
      },
    },
  );
  t.notMatch(JSON.stringify(collector.batches), /let-me-in/);
});

t.test(
  'traces: an untrusted caller is sampled by the ratio alone, a trusted one by its own flag',
  async (t) => {
    const asked = async (gateway: RunningGateway, flags: string) =>
      expectOk(
        'info',
        await request(`${gateway.url}/auth/v1/info`, {
          headers: { traceparent: `00-${TRACE_ID}-${PARENT_ID}-${flags}`, tracestate: 'vendor=1' },
        }),
      );
    const isContinued = ({ traceId, name }: ReceivedSpan) => traceId === TRACE_ID && name.startsWith('GET ');
    await asked(traced.gateway, '00');
    const continued = (await traced.collector.trace(isContinued)).filter(isContinued);
    t.match(continued, [{ parentSpanId: PARENT_ID, traceState: 'vendor=1' }], 'the ratio decided');

    const collector = closeAfter(t, await startCollector());
    const Telemetry = { url: collector.url, sampleRatio: 1 };
    const trusted = await launch({ configuration: { Telemetry, TrustedProxies: ['127.0.0.0/8'] } });
    await asked(trusted, '00');
    await asked(trusted, '01');
    await trusted.stop();
    const all = (await collector.trace(isContinued)).filter(isContinued);
    t.equal(all.length, 1, 'the flag decided');
  },
);

/** The collector refuses all that it sends. */
const refused = await startTraced({ metricsSeconds: 1, logs: true }, () => 401);

t.test(
  'traces: a collector that refuses costs no answer; what is lost is counted and logged once',
  async (t) => {
    const { gateway } = refused;
    const bearer = await newBearer(gateway);
    expectOk('call', await callTool(gateway.url, bearer, 'wallet_get_balance'));
    await gateway.said(/HTTP status 401[^\n]*spans lost/);
    const text = await metricsOf(gateway);
    t.ok(metricValue(text, 'gatehouse_trace_spans_total', { outcome: 'refused' }) > 0);
    t.equal(metricValue(text, 'gatehouse_trace_spans_total', { outcome: 'exported' }), 0);
  },
);

t.test('telemetry: a stop has sent all metrics and the lines of the log, without any trace', async (t) => {
  const collector = closeAfter(t, await startCollector());
  const gateway = await launch({
    configuration: {
      Telemetry: { url: `${collector.url}/base`, metricsSeconds: 3600, logs: true },
      Log: { sample: { '/auth/v1/info': 0, '/no/such/route': 1 } },
    },
  });
  await gateway.said(/sampled route unknown/);
  expectOk('info', await request(`${gateway.url}/auth/v1/info`));
  await signUp(gateway.url);
  await gateway.stop();
  t.same(collector.batches, []);
  const bodiesAt = (path: string) =>
    collector.others.filter((each) => each.path === path).map(({ body }) => body);
  const paths = new Set(collector.others.map(({ path }) => path));
  t.same([...paths].sort(), ['/base/v1/logs', '/base/v1/metrics']);

  const logs = JSON.stringify(bodiesAt('/base/v1/logs'));
  t.match(logs, /"severityText":"info","body":\{"stringValue":"request"\}/);
  t.match(logs, /\{"key":"route","value":\{"stringValue":"\/auth\/v1\/register_options"\}\}/);
  t.match(logs, /"severityText":"warn","body":\{"stringValue":"sampled route unknown"\}/);
  t.notMatch(logs, /"stringValue":"\/auth\/v1\/info"/, 'no line of the sampled route');

  const [body] = bodiesAt('/base/v1/metrics') as [MetricsBody];
  const metrics = new Map(
    body.resourceMetrics.flatMap(({ scopeMetrics }) =>
      scopeMetrics.flatMap((scope) => scope.metrics.map((metric) => [metric.name, metric] as const)),
    ),
  );
  t.match(metrics.get('gatehouse_http_requests_total'), {
    sum: { aggregationTemporality: 2, isMonotonic: true },
  });
  const requests = metrics.get('gatehouse_http_requests_total')?.sum?.dataPoints ?? [];
  t.match(
    requests.find(({ attributes }) => JSON.stringify(attributes).includes('/auth/v1/info')),
    { asDouble: 1 },
  );
  const [point] = metrics.get('gatehouse_http_request_duration_seconds')?.histogram?.dataPoints ?? [];
  const counted = point?.bucketCounts.reduce((sum, count) => sum + Number(count), 0);
  t.equal(String(counted), point?.count, 'buckets hold each value once');
  t.equal(point?.bucketCounts.length, (point?.explicitBounds.length ?? 0) + 1);
  t.ok(metrics.get('gatehouse_trace_spans_waiting')?.gauge, 'a gauge');
});

interface MetricsBody {
  readonly resourceMetrics: readonly {
    readonly scopeMetrics: readonly { readonly metrics: readonly SentMetric[] }[];
  }[];
}

interface SentMetric {
  readonly name: string;
  readonly sum?: { readonly dataPoints: readonly { attributes: unknown; asDouble: number }[] };
  readonly gauge?: object;
  readonly histogram?: {
    readonly dataPoints: readonly {
      readonly count: string;
      readonly bucketCounts: readonly string[];
      readonly explicitBounds: readonly number[];
    }[];
  };
}

t.test('telemetry: a collector that refuses metrics and lines is logged once each and counted', async (t) => {
  const { gateway } = refused;
  await gateway.said(/"kind":"metrics"[^\n]*HTTP status 401/);
  await gateway.said(/"kind":"logs"[^\n]*HTTP status 401/);
  const text = await metricsOf(gateway);
  t.ok(metricValue(text, 'gatehouse_telemetry_metrics_total', { outcome: 'failed' }) > 0);
  t.ok(metricValue(text, 'gatehouse_telemetry_lines_total', { outcome: 'refused' }) > 0);
});
