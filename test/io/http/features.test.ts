/** Routes of features that a gateway does not offer, over real sockets; and which routes have a feature. */
import t, { type Test } from 'tap';
import { type Feature, featuresOf } from '../../../src/domain/features.ts';
import { object, text } from '../../../src/domain/schema.ts';
import type { FileRemovals } from '../../../src/io/files/storage/removals.ts';
import type { AnyRoute } from '../../../src/io/http/table/route.ts';
import type { EventPush } from '../../../src/io/modules/event-push.ts';
import { createMetrics } from '../../../src/io/observability/metrics.ts';
import { createEventStreamRoute } from '../../../src/io/routes/event-stream.ts';
import { createInternalRoutes } from '../../../src/io/routes/internal.ts';
import type { StreamHub } from '../../../src/io/sse/hub.ts';
import { plainRoute, route, startHttp } from '../../support/http.ts';
import { routeTable } from '../../support/route-table.ts';

const MISSING = new Set<Feature>(['files', 'webhooks', 'streams']);

function routesTo(called: string[]): AnyRoute[] {
  const handle = ({ rawPath }: { rawPath: string }) => {
    called.push(rawPath);
    return null;
  };
  return [
    plainRoute('GET /offered', handle),
    route('GET /file', { feature: 'files' }, handle),
    route('GET /own', { feature: 'files', auth: 'session' }, handle),
    route('POST /put', { feature: 'webhooks', body: object({ name: text() }) }, handle),
  ];
}

function start(t: Test, missing: ReadonlySet<Feature>, more: readonly AnyRoute[] = []) {
  const called: string[] = [];
  const fixture = startHttp({
    routes: [...routesTo(called), ...more],
    pipeline: { missingFeatures: () => missing },
  });
  t.teardown(() => fixture.close());
  const send = (method: string, path: string, body?: string) =>
    fixture.ask(method, path, { 'Content-Type': 'application/json' }, body);
  return { send, called, fixture };
}

t.test('features: a route of a missing feature answers 503 with its error and is not called', async (t) => {
  const { send, called, fixture } = start(t, MISSING);
  const answer = await send('GET', '/file');
  t.equal(answer.status, 503);
  t.same(JSON.parse(answer.body), {
    error: { code: 1036, message: 'Folder not shared', detail: 'files' },
  });
  t.equal(answer.headers['retry-after'], '5', 'the folder may be mounted by then');
  t.equal((await send('HEAD', '/file')).status, 503);
  t.same(called, []);
  t.equal(fixture.finished[0]?.error, 'FolderNotShared', 'the log names the error');
});

t.test('features: a body that the schema would refuse is answered 503 too', async (t) => {
  const { send, called } = start(t, MISSING);
  for (const body of ['{}', 'no JSON', '{"name":"x"}'])
    t.equal((await send('POST', '/put', body)).status, 503, body);
  t.same(called, []);
});

t.test('features: a caller without a session still gets 401 of a route of a missing feature', async (t) => {
  const { send } = start(t, MISSING);
  t.equal((await send('GET', '/own')).status, 401);
});

t.test('features: other routes, and all routes of a gateway without Cluster, are called', async (t) => {
  const cluster = start(t, MISSING);
  t.equal((await cluster.send('GET', '/offered')).status, 200);
  const alone = start(t, featuresOf().missing);
  t.equal((await alone.send('GET', '/file')).status, 200);
  t.same([...cluster.called, ...alone.called], ['/offered', '/file']);
});

t.test('features: the event stream of a missing feature is 503, no retry time', async (t) => {
  const stream = createEventStreamRoute({} as StreamHub);
  const { send } = start(t, MISSING, [{ ...stream, auth: 'none' }]);
  const answer = await send('GET', '/auth/v1/events');
  t.equal(answer.status, 503);
  t.match(answer.body, /"code":1018/);
});

t.test('features: the routes of each feature are those of files, events, streams and webhooks', async (t) => {
  const health = () => {
    throw new Error('not called');
  };
  const events = {} as EventPush;
  const removals = {} as FileRemovals;
  const internal = createInternalRoutes({ metrics: createMetrics(), health, events, removals });
  const found: Partial<Record<Feature, string[]>> = {};
  for (const { feature, method, path } of [...routeTable(), ...internal])
    if (feature !== undefined) found[feature] = [...(found[feature] ?? []), `${method} ${path}`].sort();
  t.same(found, {
    files: [
      'DELETE /auth/v2/file/stream_upload/:fileId',
      'GET /auth/v1/file/:fileId',
      'GET /auth/v1/file/upload_status',
      'GET /auth/v2/file/:idOrCode',
      'HEAD /auth/v2/file/stream_upload/:fileId',
      'PATCH /auth/v2/file/stream_upload/:fileId',
      'POST /auth/v1/file/cancel_upload',
      'POST /auth/v1/file/init_upload',
      'POST /auth/v1/file/upload_part',
      'POST /auth/v2/file/create_draft',
      'POST /auth/v2/file/stream_upload/:fileId',
      'POST /internal/v1/files/remove',
    ],
    events: ['POST /internal/v1/events'],
    streams: ['GET /auth/v1/events'],
    webhooks: [
      'GET /ProxyAdmin/api/deliveries',
      'GET /ProxyAdmin/api/delivery',
      'GET /auth/v1/app/deliveries',
      'POST /ProxyAdmin/api/resend',
      'POST /auth/v1/app/enable',
      'POST /auth/v1/app/ping',
      'POST /auth/v1/app/resend',
    ],
  });
});
