/** The OpenAPI document: the result of one definition, and that every route is described and served. */
import { isDeepStrictEqual } from 'node:util';
import t from 'tap';
import { closeAfter } from '../../../../kit/close-after.ts';
import {
  boolean,
  compileJsonSchema,
  integer,
  named,
  object,
  optional,
  text,
} from '../../../../src/domain/schema.ts';
import { describeApi, GROUPS } from '../../../../src/io/http/openapi/document.ts';
import {
  examplesOf,
  jsonBodyOf,
  jsonResultOf,
  pathParameters,
  queryOf,
} from '../../../../src/io/http/openapi/examples.ts';
import { SchemaRegistry } from '../../../../src/io/http/openapi/schemas.ts';
import { BUILT_IN } from '../../../../src/io/mcp/tools/built-in.ts';
import { route, startHttp } from '../../../support/http.ts';
import { routeTable } from '../../../support/route-table.ts';

interface Operation {
  operationId: string;
  description?: string;
  security: object[];
  parameters?: { name: string; in: string; required: boolean }[];
  requestBody?: { required: boolean; content: Record<string, { schema: object; example?: unknown }> };
  responses: Record<string, { description: string; content?: object; headers: object }>;
}
interface Document {
  openapi: string;
  paths: Record<string, Record<string, Operation>>;
  components: { schemas: Record<string, object>; headers: object; examples: object };
}

const FACTS = { title: 'test gateway', version: '0.0.1', baseUrl: 'http://localhost' };
const TABLE = routeTable();

t.test('openapi: a definition becomes parameters, schemas, security and the errors it implies', async (t) => {
  const described = route(
    'POST /auth/v1/thing/:thingId',
    {
      summary: 'Change a thing',
      group: 'things',
      auth: 'session',
      limits: ['CheckPubKey'],
      query: object({ dry: boolean(), page: optional(integer({ minimum: 0 })) }),
      body: object({ name: text({ maxLength: 9 }) }),
      result: object({ id: text() }),
      errors: ['KeyNotFound', 'AccessDenied'],
      idempotent: true,
    },
    () => null,
  );
  const document = describeApi([described], FACTS) as Document;
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
        'application/json': { schema: { $ref: '#/components/schemas/PostAuthV1ThingThingIdRequest' } },
      },
    },
    responses: {
      200: {
        content: {
          'application/json': { schema: { $ref: '#/components/schemas/PostAuthV1ThingThingIdAnswer' } },
        },
      },
      400: { description: '1001 Invalid input format' },
      401: { description: '1101 Session not found; 1103 Access denied' },
      403: { description: '1103 Access denied' },
      404: { description: '1108 Key not found' },
      413: { description: '1006 Body too large' },
      415: { description: '1007 Unsupported media type' },
      429: { description: '1002 Access rate limit' },
      500: { description: '1000 Internal error' },
      503: {
        description: '1003 Overloaded; 1014 Stopping; 1012 Temporarily unavailable; 1011 Storage unavailable',
      },
    },
  });
  t.match(document.components.schemas, {
    PostAuthV1ThingThingIdRequest: {
      type: 'object',
      required: ['name'],
      properties: { name: { type: 'string', maxLength: 9 } },
    },
    PostAuthV1ThingThingIdAnswer: {
      required: ['result'],
      properties: { result: { $ref: '#/components/schemas/PostAuthV1ThingThingIdResult' } },
    },
    PostAuthV1ThingThingIdResult: { type: 'object', properties: { id: { type: 'string' } } },
  });
});

t.test('openapi: every route of the table is described once, with every parameter of its path', async (t) => {
  const document = describeApi(TABLE, FACTS) as Document;
  const ids = new Set<string>();
  const undescribed: string[] = [];
  const offered = TABLE.filter(({ notOffered }) => notOffered !== true);
  t.notOk(document.paths['/mcp']?.['get'], 'what is not offered is left out');
  for (const route of offered) {
    const path = route.path.replace(/:([^/]+)/g, '{$1}');
    const operation = document.paths[path]?.[route.method.toLowerCase()];
    ids.add(operation?.operationId ?? '');
    const names = [...path.matchAll(/\{([^}]+)\}/g)].map(([, name = '']) => name);
    const inPath = operation?.parameters?.filter((parameter) => parameter.in === 'path') ?? [];
    if (
      !isDeepStrictEqual(
        inPath.map(({ name, required }) => [name, required]),
        names.map((name) => [name, true]),
      )
    )
      undescribed.push(`${route.method} ${route.path}`);
  }
  t.same(undescribed, []);
  t.equal(ids.size, offered.length, 'operation ids are unique');
});

t.test('routes: every schema of the table compiles, though a start compiles none of them', async (t) => {
  const schemas = TABLE.flatMap(({ method, path, body, query }) =>
    [body, query].flatMap((schema) =>
      typeof schema === 'object' ? [{ at: `${method} ${path}`, schema }] : [],
    ),
  );
  t.ok(schemas.length > 40, `${schemas.length} schemas`);
  for (const { schema } of schemas) compileJsonSchema(schema);
});

// covers R2
t.test('openapi: every route has a description and complete examples, which match its schemas', async (t) => {
  const faults: unknown[] = [];
  for (const route of TABLE) {
    const at = `${route.method} ${route.path}`;
    const expect = (holds: boolean, fault: string) => {
      if (!holds) faults.push(`${at}: ${fault}`);
    };
    expect(route.group in GROUPS, `the group ${route.group} is not described`);
    expect(/\S.*[.]$/.test(route.description ?? ''), 'no description in sentences');
    const missing: string[] = [];
    const examples = examplesOf(route, missing);
    expect(missing.length === 0, `texts of the examples are missing: ${missing}`);
    expect(examples.length > 0, 'no example');
    const { properties } = queryOf(route);
    const params = Object.fromEntries(pathParameters(route).map(({ name, schema }) => [name, schema]));
    for (const { name, body, result, query, params: given } of examples) {
      const check = (place: string, schema: object | undefined, value: unknown) => {
        if (schema === undefined || value === undefined) return;
        const misfits = compileJsonSchema(schema).faults(value);
        expect(misfits.length === 0, `${place} of ${name}: ${JSON.stringify(misfits)}`);
      };
      check('body', jsonBodyOf(route), body);
      check('result', jsonResultOf(route), result);
      for (const [field, value] of Object.entries(query)) check(`query ${field}`, properties[field], value);
      for (const [field, value] of Object.entries(given)) check(`path ${field}`, params[field], value);
      expect(
        Object.keys(query).every((field) => field in properties),
        `fields of the query of ${name}`,
      );
    }
  }
  t.same(faults, []);
});

// covers R2
t.test('openapi: header fields, bearers and bodies of bytes are those of the specification', async (t) => {
  const { paths } = describeApi(TABLE, FACTS) as Document;
  const at = (method: string, path: string) => paths[path]?.[method];
  const fieldsOf = (operation: Operation | undefined) =>
    (operation?.parameters ?? []).flatMap((each) =>
      each.in === 'header' ? [`${each.name}${each.required ? '!' : ''}`] : [],
    );
  const login = at('post', '/auth/v1/mcp_login');
  t.same(fieldsOf(login), ['X-PublicKey!', 'X-Timestamp', 'X-Signature', 'X-App-Id']);
  const mcp = at('post', '/mcp');
  t.same(fieldsOf(mcp), [
    ...['MCP-Protocol-Version', 'Mcp-Method', 'Mcp-Name'],
    ...['X-MCP-Code', 'X-Device-Guid', 'Mcp-Session-Id'],
  ]);
  const inQuery = mcp?.parameters?.filter((each) => each.in === 'query').map(({ name }) => name);
  t.same(inQuery, ['code', 'tools', 'device_guid']);
  t.same(mcp?.security, [{}, { bearer: [] }]);
  t.ok('Mcp-Session-Id' in (mcp?.responses[200]?.headers ?? {}));
  t.same(at('get', '/auth/v2/file/{idOrCode}')?.security, [{}, { sid: [] }, { bearer: [] }]);
  for (const method of ['post', 'patch', 'head', 'delete'])
    t.same(at(method, '/auth/v2/file/stream_upload/{fileId}')?.security, [{ sid: [] }, { bearer: [] }]);
  const bytes = { schema: { type: 'string', format: 'binary' } };
  const part = at('post', '/auth/v1/file/upload_part');
  const stream = at('post', '/auth/v2/file/stream_upload/{fileId}');
  for (const operation of [part, stream]) {
    t.equal(operation?.requestBody?.required, true);
    t.same(operation?.requestBody?.content, { 'application/octet-stream': bytes });
  }
  t.ok(fieldsOf(stream).includes('Range'));
  const proxied = paths['/{module}/{version}/{path}'];
  t.notOk(proxied?.['get']?.requestBody, 'GET has no body');
  for (const method of ['post', 'put', 'patch', 'delete']) {
    t.same(proxied?.[method]?.requestBody?.content, { '*/*': bytes });
    t.equal(proxied?.[method]?.requestBody?.required, false);
  }
  t.ok('Set-Cookie' in (at('post', '/auth/v1/login')?.responses[200]?.headers ?? {}));
  t.ok('Retry-After' in (at('get', '/auth/v1/get_info')?.responses[429]?.headers ?? {}));
});

// covers R2
t.test('openapi: named schemas are listed once, and every reference resolves', async (t) => {
  const document = describeApi(TABLE, FACTS) as Document;
  const { schemas, headers, examples } = document.components;
  for (const name of [
    'Error',
    'UserKey',
    'Session',
    'App',
    'Delivery',
    'McpMessage',
    'ToolCall',
    'PostMcpAnswer',
  ])
    t.ok(schemas[name], name);
  const whole = JSON.stringify(document);
  const references = new Set(
    [...whole.matchAll(/"\$ref":"#\/components\/([^"]+)"/g)].map(([, name = '']) => name),
  );
  t.ok(references.size > 100, `${references.size} references`);
  const known = new Set([
    ...Object.keys(schemas).map((name) => `schemas/${name}`),
    ...Object.keys(headers).map((name) => `headers/${name}`),
    ...Object.keys(examples).map((name) => `examples/${name}`),
  ]);
  t.same(
    [...references].filter((name) => !known.has(name)),
    [],
  );
  const unused = Object.keys(schemas).filter((name) => !references.has(`schemas/${name}`));
  t.same(unused, []);
  const book = new SchemaRegistry();
  const thing = named('Thing', object({ id: text() }));
  t.same(book.reference(object({ one: thing, more: optional(thing) })), {
    type: 'object',
    required: ['one'],
    properties: { one: { $ref: '#/components/schemas/Thing' }, more: { $ref: '#/components/schemas/Thing' } },
  });
  t.throws(() => book.reference(named('Thing', object({ id: integer() }))), /two schemas named Thing/);
});

// covers R2
t.test('openapi: tools/call takes the arguments of the table of tools', async (t) => {
  const { components } = describeApi(TABLE, FACTS) as Document;
  const calls = components.schemas['ToolCall'] as {
    anyOf: { properties: { name: { const?: string }; arguments: object }; required: string[] }[];
  };
  const names = calls.anyOf.map(({ properties }) => properties.name.const);
  t.same(names, [...Object.keys(BUILT_IN.tools), undefined], 'and tools of the configuration');
  const described = calls.anyOf.slice(0, -1).map(({ properties, required }) => ({
    schema: properties.arguments,
    isRequired: required.includes('arguments'),
  }));
  t.same(
    described,
    Object.values(BUILT_IN.tools).map(({ inputSchema }) => ({
      schema: inputSchema,
      isRequired: inputSchema['required'] !== undefined,
    })),
  );
});

t.test('openapi: a call of /mcp is answered as JSON, or as events of which each is a message', async (t) => {
  const { paths, components } = describeApi(TABLE, FACTS) as Document;
  for (const path of ['/mcp', '/mcp/p/{profile}', '/connect/mcp', '/connect/p/{profile}/mcp']) {
    const { content = {} } = paths[path]?.['post']?.responses[200] ?? {};
    t.same(Object.keys(content), ['application/json', 'text/event-stream'], path);
    const { schema } =
      (content as Record<string, { schema: { examples: string[] } }>)['text/event-stream'] ?? {};
    const events = schema?.examples[0]?.split('\n\n').filter((event) => event !== '') ?? [];
    const messages = events.map((event) => JSON.parse(event.split('\ndata: ')[1] ?? ''));
    t.match(messages, [
      { method: 'notifications/progress', params: { progressToken: 'p1' } },
      { id: 1, result: {} },
    ]);
  }
  const { properties } = components.schemas['McpRequestMeta'] as { properties: object };
  t.ok('progressToken' in properties);
});

t.test('openapi: downloads answer bytes by GET, and no body by HEAD', async (t) => {
  const { paths } = describeApi(TABLE, FACTS) as Document;
  const binary = { '*/*': { schema: { type: 'string', format: 'binary' } } };
  const ids = Object.values(paths).flatMap((path) => Object.values(path).map((each) => each.operationId));
  t.equal(new Set(ids).size, ids.length, 'operation ids are unique');
  for (const path of ['/auth/v1/file/{fileId}', '/auth/v2/file/{idOrCode}']) {
    const { get, head } = paths[path] ?? {};
    for (const status of [200, 206]) t.same(get?.responses[status]?.content, binary);
    t.same(Object.keys(get?.responses[304] ?? {}), ['description', 'headers']);
    t.same(Object.keys(head?.responses ?? {}), Object.keys(get?.responses ?? {}));
    const answers = Object.values(head?.responses ?? {});
    t.same(
      answers.map((response) => Object.keys(response).sort()),
      answers.map(() => ['description', 'headers']),
    );
    const fields = Object.keys(get?.responses[206]?.headers ?? {});
    for (const name of ['Content-Range', 'ETag', 'Accept-Ranges', 'X-RateLimit'])
      t.ok(fields.includes(name), `206 ${name}`);
    t.notOk(Object.keys(get?.responses[200]?.headers ?? {}).includes('Content-Range'), 'of ranges alone');
    const sent = get?.parameters?.filter((each) => each.in === 'header').map(({ name }) => name);
    t.same(
      sent,
      [
        'Range',
        'If-Match',
        'If-None-Match',
        'If-Modified-Since',
        'If-Unmodified-Since',
        'If-Range',
        'Want-Repr-Digest',
      ],
      path,
    );
  }
});

// covers R2
t.test('openapi: the gateway serves its own description', async (t) => {
  const fixture = closeAfter(t, startHttp({ routes: TABLE }));
  const answer = await fixture.ask('GET', '/docs/openapi.json');
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
