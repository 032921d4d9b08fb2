/** Rows of OpenAPI documents: what each part of an operation becomes, what is left out, and what is read for it. */
import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import http from 'node:http';
import { join } from 'node:path';
import { parse } from 'jsonc-parser';
import t, { type Test } from 'tap';
import { listenFor } from '../../kit/http.ts';
import { checkCatalog } from '../../src/bootstrap/served-catalog.ts';
import { importedText } from '../../src/cli/openapi/import.ts';
import type { ToolRow } from '../../src/io/mcp/tool.ts';
import { temporaryFolder } from '../support/files/file-storage.ts';

interface Imported {
  readonly text: string;
  readonly modules: Readonly<Record<string, { readonly url: string }>>;
  readonly rows: Readonly<Record<string, ToolRow>>;
}

async function importOf(source: string, ...more: string[]): Promise<Imported> {
  const text = await importedText([source, '--module', 'shop', ...more]);
  const file = parse(text) as { Modules: Imported['modules']; McpTools: Imported['rows'] };
  t.same(checkCatalog(file, false), [], 'the catalog takes every row');
  return { text, modules: file.Modules, rows: file.McpTools };
}

/** Files by name; the first one is the document. */
function written(t: Test, files: Readonly<Record<string, unknown>>): string {
  const folder = temporaryFolder(t);
  for (const [name, content] of Object.entries(files)) {
    mkdirSync(join(folder, name, '..'), { recursive: true });
    writeFileSync(join(folder, name), typeof content === 'string' ? content : JSON.stringify(content));
  }
  return join(folder, Object.keys(files)[0] ?? '');
}

const three = (paths: object, more: object = {}) => ({
  openapi: '3.0.3',
  info: { title: 'Shop', version: '1' },
  servers: [{ url: 'https://{at}.shop.example/v1/', variables: { at: { default: 'eu' } } }],
  paths,
  ...more,
});
const json = (schema: object) => ({ content: { 'application/json': { schema } } });

t.test(
  'import-openapi: path, query and body become arguments, each sent where the operation has it',
  async (t) => {
    const parameters = [
      {
        name: 'pet-id',
        in: 'path',
        required: true,
        schema: { type: 'integer', format: 'int64', default: 5 },
      },
      { name: 'dry', in: 'query', schema: { type: 'boolean' }, description: 'Only\ntry.' },
      { name: 'ids', in: 'query', schema: { type: 'array', items: { type: 'integer' } } },
      { name: 'csv', in: 'query', explode: false, schema: { type: 'array', items: { type: 'string' } } },
      { name: 'X-Trace', in: 'header', schema: { type: 'string' } },
      { name: 'Accept', in: 'header', required: true, schema: { type: 'string' } },
      { name: 'filter', in: 'query', style: 'deepObject', schema: { type: 'object' } },
      { name: 'a[b]', in: 'query', schema: { type: 'string' } },
    ];
    const body = {
      type: 'object',
      required: ['name', 'id'],
      properties: {
        id: { type: 'integer', format: 'int64', readOnly: true },
        name: { type: 'string', nullable: true, example: 'Rex' },
        age: { type: 'integer', minimum: 0, exclusiveMinimum: true, format: 'int64' },
      },
    };
    const source = written(t, {
      'shop.json': three({
        '/pets/{pet-id}': {
          parameters: [{ name: 'dry', in: 'query', required: true, schema: { type: 'string' } }],
          put: {
            operationId: 'updatePet',
            summary: 'Updates.',
            tags: ['pets'],
            parameters,
            requestBody: json(body),
          },
        },
      }),
    });
    const { rows, modules, text } = await importOf(source);
    t.same(modules, { shop: { url: 'https://eu.shop.example/v1' } });
    t.same(rows, {
      shop_updatePet: {
        endpoint: 'shop:/pets/{pet_id}',
        method: 'PUT',
        title: 'Updates.',
        description: 'Updates.',
        inputSchema: {
          type: 'object',
          properties: {
            dry: { type: 'boolean', description: 'Only try.' },
            ids: { type: 'array', items: { type: 'integer' } },
            csv: { type: 'string', description: 'Values separated by ",".' },
            name: { type: ['string', 'null'] },
            age: { type: 'integer', exclusiveMinimum: 0 },
            pet_id: { type: 'string', format: 'int64', default: '5' },
          },
          required: ['name', 'pet_id'],
        },
        queryParams: ['dry', 'ids', 'csv'],
        restricted: ['McpBasic'],
        annotations: { readOnlyHint: false, destructiveHint: false, idempotentHint: true },
      },
    });
    t.match(text, /^\/\/ 1 of 1 operations of Shop 1 \(.*shop\.json\), imported by gatehouse /);
    for (const note of [
      'header X-Trace is not sent',
      'query filter is an object',
      'query a[b] has a name that clients refuse',
    ])
      t.ok(text.includes(`    // Without: ${note}.\n`), note);
    t.notMatch(text, /Accept/);
  },
);

t.test('import-openapi: a body that is more than its members is one argument', async (t) => {
  const bodies = {
    list: { type: 'array', items: { type: 'string' } },
    choice: {
      oneOf: [
        { type: 'object', properties: { a: {} } },
        { type: 'object', properties: { b: {} } },
      ],
    },
    map: { type: 'object', additionalProperties: { type: 'string' } },
    same: { type: 'object', properties: { id: { type: 'string' } } },
  };
  const paths = Object.entries(bodies).map(([name, schema]) => [
    `/${name}/{id}`,
    {
      post: {
        operationId: name,
        parameters: [{ name: 'id', in: 'query', schema: { type: 'string' } }],
        requestBody: { ...json(schema), required: name === 'list' },
      },
    },
  ]);
  const { rows } = await importOf(written(t, { 'a.json': three(Object.fromEntries(paths)) }));
  for (const name of Object.keys(bodies)) {
    const row = rows[`shop_${name}`];
    t.match(row, { bodyRootProperty: 'body', queryParams: ['id'], endpoint: `shop:/${name}/{path_id}` });
    t.same(row?.inputSchema['required'], name === 'list' ? ['body', 'path_id'] : ['path_id']);
  }
  t.match(rows['shop_choice']?.inputSchema, { properties: { body: { anyOf: [{ type: 'object' }, {}] } } });
});

t.test(
  'import-openapi: members of allOf are merged, what they refer to is copied once, cycles included',
  async (t) => {
    const schemas = {
      Named: { type: 'object', required: ['name'], properties: { name: { type: 'string' } } },
      Node: {
        type: 'object',
        properties: {
          next: { $ref: '#/components/schemas/Node' },
          tags: { $ref: '#/components/schemas/Tags' },
        },
      },
      Tags: { type: 'array', items: { type: 'string', pattern: '(a)\\1' } },
      Whole: {
        allOf: [{ $ref: '#/components/schemas/Named' }, { $ref: '#/components/schemas/Node' }],
        required: ['next'],
      },
      Endless: { $ref: '#/components/schemas/Endless' },
    };
    const post = (name: string) => ({
      operationId: name,
      requestBody: { $ref: `#/components/requestBodies/${name}` },
    });
    const bodyOf = (name: string) => json({ $ref: `#/components/schemas/${name}` });
    const requestBodies = { Whole: bodyOf('Whole'), Endless: bodyOf('Endless'), Missing: bodyOf('No') };
    const { rows, text } = await importOf(
      written(t, {
        'a.json': three(
          { '/a': { post: post('Whole') }, '/b': { post: post('Endless') }, '/c': { post: post('Missing') } },
          { components: { schemas, requestBodies } },
        ),
      }),
    );
    const node = { $ref: '#/$defs/Node' };
    const tags = { $ref: '#/$defs/Tags' };
    t.same(rows['shop_Whole']?.inputSchema, {
      type: 'object',
      properties: { name: { type: 'string' }, next: node, tags },
      required: ['name', 'next'],
      $defs: {
        Node: { type: 'object', properties: { next: node, tags } },
        Tags: { type: 'array', items: { type: 'string' } },
      },
    });
    t.match(text, /\/\/ Without: the pattern \(a\)\\1 has a back-reference/);
    t.same(Object.keys(rows), ['shop_Whole']);
    t.match(text, /\/\/ POST \/b \(Endless\): #\/components\/schemas\/Endless is a reference without end\n/);
    t.match(text, /\/\/ POST \/c \(Missing\): #\/components\/schemas\/No is not in the document\n/);
  },
);

t.test(
  'import-openapi: OpenAPI 2.0: lists are texts, a body is its members, forms are left out',
  async (t) => {
    const source = written(t, {
      'two.yaml': `
swagger: "2.0"
info: { title: Old, version: "2" }
host: old.example
basePath: /api
schemes: [http]
paths:
  /things/{id}:
    get:
      operationId: get thing
      parameters:
        - { name: id, in: path, required: true, type: integer, format: int64 }
        - { name: by, in: query, type: array, items: { type: string } }
        - { name: many, in: query, type: array, collectionFormat: multi, items: { type: string } }
    post:
      operationId: get.thing
      parameters:
        - { name: id, in: path, required: true, type: string }
        - { name: body, in: body, required: true, schema: { $ref: "#/definitions/Thing" } }
    patch:
      operationId: upload
      consumes: [multipart/form-data]
      parameters: [{ name: file, in: formData, type: file, required: true }]
definitions:
  Thing: { type: object, required: [id], properties: { id: { type: string }, at: { type: string, format: date-time } } }
`,
    });
    const { rows, modules, text } = await importOf(source);
    t.same(modules, { shop: { url: 'http://old.example/api' } });
    const [first = '', second = ''] = Object.keys(rows);
    t.match(first, /^shop_get_thing_[0-9a-f]{8}$/, 'two names that are alike differ by their operation');
    t.match(second, /^shop_get_thing_[0-9a-f]{8}$/);
    t.same(rows[first]?.inputSchema, {
      type: 'object',
      properties: {
        by: { type: 'string', description: 'Values separated by ",".' },
        many: { type: 'array', items: { type: 'string' } },
        id: { type: 'string', format: 'int64' },
      },
      required: ['id'],
    });
    t.match(rows[second], {
      endpoint: 'shop:/things/{path_id}',
      inputSchema: { required: ['id', 'path_id'] },
    });
    t.match(
      text,
      /\/\/ Left out, 1:\n\/\/ PATCH \/things\/\{id\} \(upload\): its body is a form, and rows send JSON\n$/,
    );
  },
);

t.test('import-openapi: what a row cannot send leaves its operation out, with the reason', async (t) => {
  const needs = (where: string) => ({
    parameters: [{ name: 'x', in: where, required: true, schema: { type: 'object' } }],
  });
  const large = { type: 'string', enum: Array.from({ length: 5_000 }, (_, at) => `value number ${at}`) };
  const operations: Record<string, [method: string, operation: object, reason: string]> = {
    header: ['get', needs('header'), 'header x is not sent, and the operation needs it'],
    cookie: ['get', needs('cookie'), 'cookie x is not sent, and the operation needs it'],
    deep: ['get', needs('query'), 'query x is an object, and the operation needs it'],
    head: ['head', {}, 'HEAD is no method of a tool'],
    binary: [
      'post',
      { requestBody: { required: true, content: { 'application/pdf': {} } } },
      'its body is application/pdf, and rows send JSON',
    ],
    erase: ['delete', { requestBody: { required: true, ...json({}) } }, 'a body of DELETE is not sent'],
    large: [
      'post',
      { requestBody: json({ type: 'object', properties: { large } }) },
      'its schema has more than 64 KiB',
    ],
    old: ['get', { deprecated: true }, 'it is deprecated; --only takes it nevertheless'],
    'sp ace': ['get', {}, 'its path has a path that is not plain'],
  };
  const paths = Object.entries(operations).map(([name, [method, operation]]) => [
    `/${name}`,
    { [method]: { operationId: name, ...operation } },
  ]);
  const source = written(t, { 'a.json': three({ ...Object.fromEntries(paths), '/ok': { get: {} } }) });
  const { rows, text } = await importOf(source);
  t.same(Object.keys(rows), ['shop_get_ok']);
  for (const [name, [method, , reason]] of Object.entries(operations))
    t.ok(text.includes(`// ${method.toUpperCase()} /${name} (${name}): ${reason}\n`), `${name}: ${reason}`);
  t.same(Object.keys((await importOf(source, '--only', 'old,shop_get_ok')).rows), [
    'shop_old',
    'shop_get_ok',
  ]);
});

t.test('import-openapi: texts of a document end no comment, hide nothing and have bounds', async (t) => {
  const source = written(t, {
    'a.json': three({
      '/a': {
        get: {
          operationId: `${'long'.repeat(30)}`,
          tags: ['one\n"McpTools": {}'],
          summary: 'Reads\u202e a\u200b \u2028list.',
          description: 'word '.repeat(1_000),
        },
      },
    }),
  });
  const { rows, text } = await importOf(source);
  const [name = ''] = Object.keys(rows);
  t.match(name, /^shop_(?:long)+\w*_[0-9a-f]{8}$/);
  t.equal(name.length, 64);
  t.equal(rows[name]?.title, 'Reads a list.');
  const { length } = rows[name]?.description ?? '';
  t.ok(length > 990 && length <= 1_000, String(length));
  t.ok(text.includes('#one "McpTools": {})\n'));
});

t.test('import-openapi: a file reaches files of its folder, and nothing else', async (t) => {
  const outside = written(t, { 'outside.json': { type: 'object', properties: { secret: {} } } });
  const refs = {
    beside: 'schemas/beside.yaml#/Pet',
    climbing: '../outside.json',
    absolute: `file://${outside}`,
    link: 'schemas/link.json',
    web: 'http://127.0.0.1:1/x.json',
  };
  const paths = Object.entries(refs).map(([name, $ref]) => [
    `/${name}`,
    { post: { operationId: name, requestBody: { required: true, ...json({ $ref }) } } },
  ]);
  const source = written(t, {
    'in/a.json': three(Object.fromEntries(paths)),
    'in/schemas/beside.yaml': 'Pet: { type: object, properties: { owner: { $ref: "owner.json" } } }',
    'in/schemas/owner.json': { type: 'object', properties: { name: { type: 'string' } } },
  });
  symlinkSync(outside, join(source, '../schemas/link.json'));
  const { rows, text } = await importOf(source);
  t.same(Object.keys(rows), ['shop_beside']);
  t.match(rows['shop_beside']?.inputSchema, {
    properties: { owner: { $ref: '#/$defs/owner.json' } },
    $defs: { 'owner.json': { properties: { name: { type: 'string' } } } },
  });
  t.notMatch(text, /secret/);
  for (const name of ['absolute', 'link'])
    t.match(text, new RegExp(`\\(${name}\\): .*outside\\.json is outside the folder of the document`));
  t.match(text, /\(climbing\): (?:ENOENT|.* is outside the folder of the document)/);
  t.match(text, /\(web\): http:\/\/127\.0\.0\.1:1\/x\.json is of another origin/);
});

t.test('import-openapi: a document of the web reaches its own origin, and nothing else', async (t) => {
  const asked: string[] = [];
  const answers: Record<string, (response: http.ServerResponse) => void> = {};
  const start = async () => {
    const server = http.createServer(({ url = '' }, response) => {
      asked.push(url);
      if (answers[url] === undefined) response.writeHead(404).end();
      else answers[url](response);
    });
    return (await listenFor(t, server)).url;
  };
  const [own, other] = [await start(), await start()];
  const refs = {
    beside: 'beside.json',
    other: `${other}/other.json`,
    moved: 'moved.json',
    missing: 'missing.json',
    file: 'file:///etc/hostname',
  };
  const paths = Object.entries(refs).map(([name, $ref]) => [
    `/${name}`,
    { post: { operationId: name, requestBody: { required: true, ...json({ $ref }) } } },
  ]);
  const document = { ...three(Object.fromEntries(paths)), servers: [{ url: '/v2' }] };
  answers['/first.json'] = (response) => response.writeHead(302, { location: '/docs/api.json' }).end();
  answers['/docs/api.json'] = (response) => response.end(JSON.stringify(document));
  answers['/docs/beside.json'] = (response) => response.end('{"type":"object","properties":{"a":{}}}');
  answers['/docs/moved.json'] = (response) =>
    response.writeHead(302, { location: `${other}/moved.json` }).end();
  const { rows, modules, text } = await importOf(`${own}/first.json`);
  t.same(modules, { shop: { url: `${own}/v2` } });
  t.same(Object.keys(rows), ['shop_beside']);
  t.ok(text.includes(`(other): ${other}/other.json is of another origin\n`));
  t.ok(text.includes(`(moved): redirects to ${other}\n`));
  t.ok(text.includes(`(missing): ${own}/docs/missing.json answers with 404\n`));
  t.ok(text.includes('(file): file:///etc/hostname is of another origin\n'));
  t.same(asked.sort(), [
    '/docs/api.json',
    '/docs/beside.json',
    '/docs/missing.json',
    '/docs/moved.json',
    '/first.json',
  ]);
  await t.rejects(importedText([`${own}/none.json`, '--module', 'shop']), {
    name: 'UsageError',
    message: `cannot read ${own}/none.json: ${own}/none.json answers with 404`,
  });
});

t.test('import-openapi: unusable arguments and documents are refused in one sentence', async (t) => {
  const source = written(t, { 'a.json': three({ '/a': { get: { operationId: 'a', tags: ['x'] } } }) });
  const bomb = written(t, {
    'bomb.yaml': `a: &a [1,1,1,1,1,1,1,1,1]\n${'bcdefghi'
      .split('')
      .map((name, at) => `${name}: &${name} [${`*${'abcdefgh'[at]},`.repeat(9).slice(0, -1)}]`)
      .join('\n')}`,
  });
  for (const [args, message] of [
    [[source], /needs one document and a module/],
    [[source, 'b.json', '--module', 'shop'], /needs one document and a module/],
    [[source, '--module', 'Shop'], /--module needs a lower-case letter/],
    [[source, '--module', 'shop', '--tags', 'x'], /Unknown option '--tags'/],
    [[source, '--module', 'shop', '--tag', 'y'], /has no operation that is wanted/],
    [[source, '--module', 'shop', '--only', 'b'], /has no operation "b"/],
    [['/no/such.json', '--module', 'shop'], /cannot read \/no\/such\.json: ENOENT/],
    [[written(t, { 'bad.yaml': 'a: [' }), '--module', 'shop'], /is neither JSON nor YAML/],
    [[written(t, { 'empty.json': '{}' }), '--module', 'shop'], /has no operation that is wanted/],
    [[bomb, '--module', 'shop'], /Excessive alias count/],
  ] as const)
    await t.rejects(importedText(args), { name: 'UsageError', message });
  t.match(await importedText([source, '--module', 'shop', '--tag', 'x']), /"shop_a"/);
});
