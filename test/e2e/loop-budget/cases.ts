/** Requests that carry adversarial inputs: to every route, in every field of a head, and as arguments of every kind of tool. */
import { randomBytes } from 'node:crypto';
import type { AnyRoute } from '../../../src/io/http/table/route.ts';
import { jsonTexts, TEXTS } from './inputs.ts';
import type { Sent } from './meter.ts';

/** Bytes of each place, below its bound: an argument of a tool, a JSON body, pushed events, a query, a field of a head. */
const MCP_BYTES = 255 * 1024;
const JSON_BYTES = 63 * 1024;
const EVENTS_BYTES = 4 * 1024 * 1024 - 100;
const QUERY_BYTES = 7 * 1024;
const FIELD_BYTES = 7 * 1024;
const ROUTE_INPUTS = 76;

/** Fields that the pipeline or some route reads. */
const FIELDS = [
  'accept',
  'accept-encoding',
  'accept-language',
  'authorization',
  'baggage',
  'cache-control',
  'content-digest',
  'content-type',
  'cookie',
  'forwarded',
  'idempotency-key',
  'if-match',
  'if-modified-since',
  'if-none-match',
  'if-range',
  'last-event-id',
  'mcp-method',
  'mcp-name',
  'mcp-param-a',
  'mcp-protocol-version',
  'mcp-session-id',
  'origin',
  'pkey',
  'prefer',
  'range',
  'referer',
  'repr-digest',
  'sec-fetch-site',
  'te',
  'traceparent',
  'tracestate',
  'upload-complete',
  'upload-offset',
  'user-agent',
  'via',
  'want-repr-digest',
  'x-app-id',
  'x-device-guid',
  'x-forwarded-for',
  'x-mcp-code',
  'x-publickey',
  'x-request-id',
  'x-signature',
  'x-timestamp',
] as const;

/** Routes whose readers differ: a cookie, a bearer, files, pages, modules, OAuth. */
const FIELD_PATHS = [
  'GET /auth/v1/sessions',
  'POST /mcp',
  'GET /auth/v2/file/1',
  'HEAD /auth/v2/file/stream_upload/1',
  'GET /core/v1/answer',
  'POST /auth/v1/mcp_login',
  'POST /connect/token',
  'GET /auth/v1/events',
  'GET /',
] as const;

const JSON_TYPE = { 'content-type': 'application/json' };
const LIST = '{"jsonrpc":"2.0","id":1,"method":"tools/list"}';
const ANY = { type: 'object' };
const item = (schema: object) => ({ ...ANY, properties: { a: { type: 'array', items: schema } } });
const member = (schema: object) => ({ ...ANY, properties: { a: schema } });
const BIG = 300_000;

/** Tools of every kind of endpoint, argument and schema; `a` is the argument that is attacked. */
const TOOL_ROWS: Readonly<Record<string, object>> = {
  get: { method: 'GET', inputSchema: ANY },
  delete: { method: 'DELETE', inputSchema: ANY },
  post: { inputSchema: ANY },
  put: { method: 'PUT', inputSchema: ANY },
  query: { inputSchema: member({}), queryParams: ['a'] },
  root: { inputSchema: member({}), bodyRootProperty: 'a' },
  path: { method: 'GET', endpoint: 'core:/core/v1/{a}/answer', inputSchema: member({}) },
  pattern: { inputSchema: member({ type: 'string', pattern: '^(a+)+$' }) },
  'pattern.names': { inputSchema: { ...ANY, patternProperties: { '^(a+)+$': { type: 'number' } } } },
  'pattern.items': { inputSchema: item({ type: 'string', pattern: '^(?:.|\\s)*x$' }) },
  unique: { inputSchema: member({ type: 'array', uniqueItems: true }) },
  length: { inputSchema: member({ type: 'string', minLength: 1, maxLength: BIG }) },
  ids: { inputSchema: item({ type: 'string', format: 'int64' }) },
  times: { inputSchema: member({ type: 'string', format: 'date-time' }) },
  mail: { inputSchema: member({ type: 'string', format: 'email' }) },
  links: { inputSchema: member({ type: 'string', format: 'uri' }) },
  hosts: { inputSchema: member({ type: 'string', format: 'hostname' }) },
  names: {
    inputSchema: { ...ANY, propertyNames: { maxLength: 3 }, additionalProperties: { type: 'integer' } },
  },
  closed: { inputSchema: { ...ANY, properties: { b: ANY }, additionalProperties: false } },
  either: {
    inputSchema: item({ anyOf: [{ type: 'integer' }, { ...ANY, required: ['x'] }, { maxLength: 1 }] }),
  },
  multiples: { inputSchema: item({ type: 'number', multipleOf: 0.01 }) },
  contains: { inputSchema: member({ type: 'array', contains: { const: 7 }, minContains: 2 }) },
  constant: { inputSchema: member({ const: { a: [1, 2, 3] } }) },
  structured: { inputSchema: ANY, outputSchema: ANY },
};

export function attackedTools(): Readonly<Record<string, object>> {
  const rows = Object.entries(TOOL_ROWS).map(([name, row]) => [
    name,
    { endpoint: 'core:/core/v1/answer', method: 'POST', description: 'A tool.', ...row },
  ]);
  return Object.fromEntries(rows);
}

export interface Credentials {
  readonly cookie: string;
  readonly bearer: string;
}

/** A request that is made when it is sent, so that thousands of them take no memory. */
export interface Case {
  readonly name: string;
  sent(credentials: Credentials): Sent;
}

const all = <V>(values: Readonly<Record<string, V>>): (readonly [name: string, value: V])[] =>
  Object.entries(values);
/** The values come round again: every list is used in full, whatever the length of the others. */
function at<V>(values: readonly V[], index: number): V {
  const value = values[index % values.length];
  if (value === undefined) throw new RangeError('an empty list');
  return value;
}

const TEXT_ROWS = all(TEXTS);
const JSON_ROWS = all(jsonTexts());

/** Every route with inputs in its body, its query and one field of its head at once. */
export function routeCases(routes: readonly AnyRoute[]): Case[] {
  return routes.flatMap((route, offset) =>
    Array.from({ length: ROUTE_INPUTS }, (_, index) => {
      const [jsonName, json] = at(JSON_ROWS, index + offset);
      const [textName, text] = at(TEXT_ROWS, index + offset);
      const field = at(FIELDS, index + offset);
      return {
        name: `${route.method} ${route.path}, body: ${jsonName}, query and ${field}: ${textName}`,
        sent: (credentials: Credentials): Sent => {
          const path = `${pathOf(route, text)}?${queryOf(route, index, text(QUERY_BYTES))}`;
          const body = bodyOf(route, index, json);
          const headers = headersFor(route, credentials, index, body !== undefined);
          const own = headers[field];
          const attacked = `${own === undefined ? '' : `${own}; `}${text(FIELD_BYTES)}`;
          // Without its own type a body would not be read.
          const isRead = field !== 'content-type' || body === undefined;
          return {
            method: route.method,
            path,
            headers: isRead ? { ...headers, [field]: attacked } : headers,
            ...body,
          };
        },
      };
    }),
  );
}

export function fieldCases(): Case[] {
  return FIELD_PATHS.flatMap((target) =>
    FIELDS.flatMap((field) =>
      TEXT_ROWS.map(([textName, text]) => ({
        name: `${target}, ${field}: ${textName}`,
        sent: ({ cookie, bearer }: Credentials): Sent => {
          const [method = '', path = ''] = target.split(' ');
          const headers = {
            cookie,
            ...(path.startsWith('/mcp') ? { authorization: `Bearer ${bearer}` } : {}),
          };
          return { method, path, headers: { ...headers, [field]: text(FIELD_BYTES) } };
        },
      })),
    ),
  );
}

export function toolCases(): Case[] {
  return Object.keys(TOOL_ROWS).flatMap((tool) =>
    JSON_ROWS.flatMap(([jsonName, json]) =>
      (['one', 'all'] as const).map((place) => ({
        name: `tool ${tool}, ${place === 'one' ? 'argument' : 'arguments'}: ${jsonName}`,
        sent: (credentials: Credentials): Sent => {
          const value = json(MCP_BYTES - 200);
          return call(credentials, tool, place === 'one' ? `{"a":${value}}` : value);
        },
      })),
    ),
  );
}

/**
 * Cases in which the gateway reads an answer of a module: as text, as structured content, as facts of a file, and as
 * bytes.
 */
export function callCases(): Case[] {
  const get = (path: string): Case => ({
    name: `GET ${path}`,
    sent: ({ cookie }) => ({ method: 'GET', path, headers: { cookie } }),
  });
  const tool = (name: string): Case => ({
    name: `tool ${name}`,
    sent: (credentials) => call(credentials, name, '{}'),
  });
  const code: Case = {
    name: 'a code',
    sent: () => ({
      method: 'POST',
      path: `/mcp?code=${randomBytes(12).toString('hex')}`,
      headers: JSON_TYPE,
      body: LIST,
    }),
  };
  return [tool('post'), tool('structured'), get('/core/v1/answer'), get('/auth/v1/file/1'), code];
}

export function eventCases(moduleKey: string): Case[] {
  const places: readonly ((json: (size: number) => string) => string)[] = [
    (json) => json(EVENTS_BYTES),
    (json) => `{"events":${json(EVENTS_BYTES - 100)}}`,
    (json) => `{"events":[{"module":"core","tick":"1","type":"X","data":${json(EVENTS_BYTES - 200)}}]}`,
    (json) => {
      const event = `{"module":"core","tick":"1","type":"X","data":{"a":${json(3_000)}}}`;
      return `{"events":[${Array(1_000).fill(event).join(',')}]}`;
    },
  ];
  return JSON_ROWS.flatMap(([name, json]) =>
    places.map((bodyOf, place) => ({
      name: `events, place ${place}: ${name}`,
      sent: () => ({
        method: 'POST',
        path: '/internal/v1/events',
        headers: { ...JSON_TYPE, 'x-module-key': moduleKey },
        body: bodyOf(json),
      }),
    })),
  );
}

function call({ bearer }: Credentials, tool: string, args: string): Sent {
  return {
    method: 'POST',
    path: '/mcp',
    headers: { authorization: `Bearer ${bearer}`, ...JSON_TYPE },
    body: `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"${tool}","arguments":${args}}}`,
  };
}

function pathOf({ path, serves }: AnyRoute, text: (size: number) => string): string {
  if (serves !== undefined) return '/core/v1/answer';
  return path.replace(/:\w+/g, () => encodeURIComponent(text(600)).slice(0, 600).replace(/%.?$/, ''));
}

function queryOf({ query }: AnyRoute, index: number, text: string): string {
  const names = Object.keys((query as { properties?: object } | undefined)?.properties ?? {});
  const value =
    /^[!-~]*$/.test(text) && !text.includes('#') ? text : encodeURIComponent(text).slice(0, QUERY_BYTES);
  const whole = names.length === 0 || index % 3 === 0 ? value : `${at(names, index)}=${value}`;
  return whole.replace(/%.?$/, '');
}

/** In turn the whole body, and the value of one of its members beside good values of the others. */
function bodyOf({ body, bodyMaxBytes }: AnyRoute, index: number, json: (size: number) => string) {
  if (body === undefined) return undefined;
  if (typeof body === 'string')
    return { body: json(Math.min(bodyMaxBytes ?? JSON_BYTES, MCP_BYTES) - 1_000) };
  const properties = Object.entries(
    (body as { properties?: Record<string, { examples?: unknown[] }> }).properties ?? {},
  );
  if (properties.length === 0 || index % 3 === 0) return { body: json(JSON_BYTES) };
  const [attacked] = at(properties, index);
  const members = properties.map(([name, { examples }]) =>
    name === attacked
      ? `"${name}":${json(JSON_BYTES - 4_000)}`
      : `"${name}":${JSON.stringify(examples?.[0] ?? null).slice(0, 500)}`,
  );
  return { body: `{${members.join(',')}}` };
}

function headersFor(
  { body, auth, path }: AnyRoute,
  { cookie, bearer }: Credentials,
  index: number,
  hasBody: boolean,
): Record<string, string> {
  // The first of them ends the session.
  if (path.endsWith('/logout') && index > 0) return {};
  const takesBearer = path.startsWith('/mcp') || (auth === 'either' && index % 2 === 0);
  const type =
    path.startsWith('/connect/') && body === 'raw' && !path.endsWith('/register')
      ? 'application/x-www-form-urlencoded'
      : 'application/json';
  return {
    ...(takesBearer ? { authorization: `Bearer ${bearer}` } : { cookie }),
    ...(hasBody ? { 'content-type': type } : {}),
  };
}
