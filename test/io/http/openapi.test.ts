/** The description of the API: what one definition becomes, and that the whole table is described and served. */
import t from 'tap';
import { boolean, compileJsonSchema, integer, object, optional, text } from '../../../src/domain/schema.ts';
import { LiveSettings } from '../../../src/domain/settings.ts';
import { describeApi } from '../../../src/io/http/openapi.ts';
import { defineRoute } from '../../../src/io/http/route.ts';
import { createRoutes, type RouteParts } from '../../../src/io/routes/index.ts';
import { requestText, sendRaw, startHttp } from '../../support/http.ts';

interface Operation {
  operationId: string;
  parameters?: { name: string; in: string; required: boolean }[];
  responses: Record<string, { description: string; content?: object }>;
}
interface Document {
  openapi: string;
  paths: Record<string, Record<string, Operation>>;
}

const FACTS = { title: 'test gateway', version: '0.0.1', baseUrl: 'http://localhost' };
/** The parts are only closed over: no route is called but the description's. */
const TABLE = createRoutes({ settings: new LiveSettings() } as unknown as RouteParts);

t.test('openapi: a definition becomes parameters, schemas, security and the errors it implies', async (t) => {
  const route = defineRoute({
    method: 'POST',
    path: '/auth/v1/thing/:thingId',
    summary: 'Change a thing',
    group: 'things',
    auth: 'session',
    limits: ['CheckPubKey'],
    query: object({ dry: boolean(), page: optional(integer({ minimum: 0 })) }),
    body: object({ name: text({ maxLength: 9 }) }),
    result: object({ id: text() }),
    errors: ['KeyNotFound', 'AccessDenied'],
    idempotent: true,
    handle: () => null,
  });
  const document = describeApi([route], FACTS) as Document;
  t.match(document, {
    openapi: '3.1.0',
    info: { title: 'test gateway', version: '0.0.1' },
    servers: [{ url: 'http://localhost' }],
  });
  t.match(document.paths['/auth/v1/thing/{thingId}']?.['post'], {
    operationId: 'post_auth_v1_thing_thingId',
    tags: ['things'],
    summary: 'Change a thing',
    security: [{ sid: [] }],
    parameters: [
      { name: 'thingId', in: 'path', required: true },
      { name: 'dry', in: 'query', required: true, schema: { type: 'boolean' } },
      { name: 'page', in: 'query', required: false, schema: { type: 'integer', minimum: 0 } },
      { name: 'pkey', in: 'header', required: false },
      { name: 'Idempotency-Key', in: 'header', required: false },
    ],
    requestBody: {
      required: true,
      content: {
        'application/json': {
          schema: {
            type: 'object',
            required: ['name'],
            properties: { name: { type: 'string', maxLength: 9 } },
          },
        },
      },
    },
    responses: {
      200: { content: { 'application/json': { schema: { properties: { result: { type: 'object' } } } } } },
      400: { description: '1001 Invalid input format' },
      401: { description: '1101 Session not found; 1103 Access denied' },
      403: { description: '1103 Access denied' },
      404: { description: '1108 Key not found' },
      413: { description: '1006 Body too large' },
      415: { description: '1007 Unsupported media type' },
      429: { description: '1002 Access rate limit' },
      500: { description: '1000 Internal error' },
      503: { description: '1003 Overloaded' },
    },
  });
});

t.test('openapi: every route of the table is described once, with every parameter of its path', async (t) => {
  const document = describeApi(TABLE, FACTS) as Document;
  const ids = new Set<string>();
  for (const route of TABLE) {
    const path = route.path.replace(/:([^/]+)/g, '{$1}');
    const operation = document.paths[path]?.[route.method.toLowerCase()];
    t.ok(operation, `${route.method} ${route.path}`);
    ids.add(operation?.operationId ?? '');
    for (const [, name = ''] of path.matchAll(/\{([^}]+)\}/g)) {
      const named = operation?.parameters?.filter((parameter) => parameter.name === name);
      t.match(named, [{ name, in: 'path', required: true }]);
    }
  }
  t.equal(ids.size, TABLE.length, 'operation ids are unique');
});

t.test('routes: every schema of the table compiles, though a start compiles none of them', async (t) => {
  const schemas = TABLE.flatMap(({ method, path, body, query }) =>
    [body, query].flatMap((schema) =>
      typeof schema === 'object' ? [{ at: `${method} ${path}`, schema }] : [],
    ),
  );
  t.ok(schemas.length > 40, `${schemas.length} schemas`);
  for (const { at, schema } of schemas) t.doesNotThrow(() => compileJsonSchema(schema), at);
});

t.test('openapi: downloads answer bytes, by GET and by HEAD, whose answers have no body', async (t) => {
  const { paths } = describeApi(TABLE, FACTS) as Document;
  const binary = { '*/*': { schema: { type: 'string', format: 'binary' } } };
  const ids = Object.values(paths).flatMap((path) => Object.values(path).map((each) => each.operationId));
  t.equal(new Set(ids).size, ids.length, 'operation ids are unique');
  for (const path of ['/auth/v1/file/{fileId}', '/auth/v2/file/{idOrCode}']) {
    const { get, head } = paths[path] ?? {};
    for (const status of [200, 206]) t.same(get?.responses[status]?.content, binary);
    t.same(Object.keys(get?.responses[304] ?? {}), ['description']);
    t.same(Object.keys(head?.responses ?? {}), Object.keys(get?.responses ?? {}));
    for (const response of Object.values(head?.responses ?? {}))
      t.same(Object.keys(response), ['description']);
  }
});

t.test(
  'routes: four key endpoints, none for authenticators alone, every path under /auth with its version',
  async (t) => {
    const keys = TABLE.map(({ path }) => path).filter((path) => path.includes('/keys/'));
    t.same(
      keys.sort(),
      ['register_key', 'remove_key', 'update_key', 'user_keys'].map((name) => `/auth/v1/keys/${name}`),
    );
    for (const { path } of TABLE) {
      t.notMatch(path, /fido|passkey|webauthn/i);
      if (path.startsWith('/auth/')) t.match(path, /^\/auth\/v[12]\//, path);
    }
  },
);

t.test('openapi: the gateway serves its own description', async (t) => {
  const fixture = startHttp({ routes: TABLE });
  t.teardown(() => fixture.close());
  const answer = await sendRaw(fixture.port, requestText('GET', '/docs/openapi.json'));
  t.equal(answer.status, 200);
  t.equal(answer.headers['content-type'], 'application/json');
  const document = JSON.parse(answer.body) as Document;
  t.ok(document.paths['/docs/openapi.json']?.['get']);
  t.ok(document.paths['/mcp']?.['post']);
  const address = `http://127.0.0.1:${fixture.port}/docs/openapi.json`;
  for (const coding of ['br', 'gzip']) {
    const ask = () => fetch(address, { headers: { 'accept-encoding': coding } });
    let packed = await ask();
    // It is compressed in the background.
    while (packed.headers.get('content-encoding') === null) {
      await packed.arrayBuffer();
      packed = await ask();
    }
    t.equal(packed.headers.get('content-encoding'), coding);
    t.ok(Number(packed.headers.get('content-length')) < answer.body.length / 4);
    t.ok(Buffer.from(await packed.arrayBuffer()).equals(Buffer.from(answer.body, 'latin1')));
  }
  const again = await fetch(address, { headers: { 'if-none-match': answer.headers['etag'] ?? '' } });
  t.equal(again.status, 304);
});
