/**
 * OpenAPI 3.1 from the route table, so that the description cannot differ from what is served: paths, schemas,
 * authentication, limits and the rows of the error table that each route names.
 */
import { ERRORS, type ErrorName, errorRow } from '../../domain/errors.ts';
import type { AnyRoute } from './route.ts';

export interface ApiFacts {
  readonly title: string;
  readonly version: string;
  readonly baseUrl: string;
}

interface Parameter {
  readonly name: string;
  readonly in: 'path' | 'query' | 'header';
  readonly required: boolean;
  readonly schema: object;
  readonly description?: string;
}

interface ObjectSchema {
  readonly properties?: Readonly<Record<string, object>>;
  readonly required?: readonly string[];
}

const SID = { sid: [] };
const BEARER = { bearer: [] };
/** Requirements per rule; `{}` means that none is needed. */
const SECURITY: Record<AnyRoute['auth'], object[]> = {
  session: [SID],
  admin: [SID],
  either: [SID, BEARER],
  optional: [{}, SID],
  eitherOptional: [{}, SID, BEARER],
  none: [],
};
const TEXT = { type: 'string' };

/** The whole document, as an object of plain JSON. */
export function describeApi(routes: readonly AnyRoute[], facts: ApiFacts): object {
  const paths: Record<string, Record<string, object>> = {};
  for (const route of routes) {
    const path = route.path.replace(/:([^/]+)/g, '{$1}');
    paths[path] ??= {};
    paths[path][route.method.toLowerCase()] = operation(route);
    if (route.bytes !== undefined && route.method === 'GET')
      paths[path]['head'] = withoutBodies(operation({ ...route, method: 'HEAD' }));
  }
  const document = {
    openapi: '3.1.0',
    info: { title: facts.title, version: facts.version },
    servers: [{ url: facts.baseUrl }],
    paths,
    components: {
      securitySchemes: {
        sid: { type: 'apiKey', in: 'cookie', name: 'sid' },
        bearer: { type: 'http', scheme: 'bearer' },
      },
      schemas: { Error: errorSchema() },
    },
  };
  // Schemas carry symbols of their library; on the wire they are JSON.
  return JSON.parse(JSON.stringify(document)) as object;
}

interface Operation {
  readonly operationId: string;
  readonly tags: readonly string[];
  readonly summary: string;
  readonly security: readonly object[];
  readonly parameters?: readonly Parameter[];
  readonly requestBody?: object;
  readonly responses: Responses;
}

/** HEAD has the statuses and fields of GET, and no bodies. */
function withoutBodies(described: Operation): Operation {
  const bare = Object.entries(described.responses).map(([status, { description }]) => [
    status,
    { description },
  ]);
  return { ...described, responses: Object.fromEntries(bare) };
}

function operation(route: AnyRoute): Operation {
  const parameters = parametersOf(route);
  const body = bodyOf(route);
  return {
    operationId: operationId(route),
    tags: [route.group],
    summary: route.summary,
    security: SECURITY[route.auth],
    ...(parameters.length === 0 ? {} : { parameters }),
    ...(body === undefined ? {} : { requestBody: body }),
    responses: { ...successesOf(route), ...failuresOf(route) },
  };
}

function operationId(route: AnyRoute): string {
  const words = route.path.split(/[^A-Za-z0-9]+/).filter((word) => word !== '');
  return [route.method.toLowerCase(), ...words].join('_');
}

function parametersOf(route: AnyRoute): Parameter[] {
  const parameters: Parameter[] = [...route.path.matchAll(/:([^/]+)/g)].map(([, name = '']) => ({
    name,
    in: 'path',
    required: true,
    schema: TEXT,
  }));
  const query = route.query as ObjectSchema | undefined;
  for (const [name, schema] of Object.entries(query?.properties ?? {})) {
    parameters.push({ name, in: 'query', required: query?.required?.includes(name) === true, schema });
  }
  if (route.limits.includes('CheckPubKey')) {
    const description = 'Public key in base64url; adds the public-key scope of the rate limit.';
    parameters.push({ name: 'pkey', in: 'header', required: false, schema: TEXT, description });
  }
  if (route.idempotent === true) {
    const description = 'A repeated request with the same key gets the first answer again.';
    parameters.push({ name: 'Idempotency-Key', in: 'header', required: false, schema: TEXT, description });
  }
  return parameters;
}

function bodyOf(route: AnyRoute): object | undefined {
  if (route.body === undefined) return undefined;
  if (typeof route.body === 'string') return { content: { '*/*': {} } };
  return { required: route.bodyOptional !== true, content: { 'application/json': { schema: route.body } } };
}

type Responses = Record<number, { readonly description: string; readonly content?: object }>;

function successesOf(route: AnyRoute): Responses {
  if (route.bytes !== undefined) return bytesOf(route.bytes);
  if (route.result === undefined) return { 200: { description: 'Success' } };
  const envelope = { type: 'object', properties: { result: route.result }, required: ['result'] };
  return { 200: { description: 'Success', content: { 'application/json': { schema: envelope } } } };
}

function bytesOf(statuses: Readonly<Record<number, string>>): Responses {
  const responses: Responses = {};
  for (const [status, description] of Object.entries(statuses)) {
    const bodiless = Number(status) === 304;
    const content = { '*/*': { schema: { type: 'string', format: 'binary' } } };
    responses[Number(status)] = bodiless ? { description } : { description, content };
  }
  return responses;
}

/** The rows that the route names and those that its definition implies, by HTTP status. */
function failuresOf(route: AnyRoute): Responses {
  const names = new Set<ErrorName>([...impliedErrors(route), ...route.errors]);
  const byStatus = new Map<number, string[]>();
  for (const name of names) {
    const { status, code, message } = errorRow(name);
    if (status >= 400) byStatus.set(status, [...(byStatus.get(status) ?? []), `${code} ${message}`]);
  }
  const schema = { $ref: '#/components/schemas/Error' };
  const failures: Responses = {};
  for (const status of [...byStatus.keys()].sort((a, b) => a - b)) {
    const description = [...new Set(byStatus.get(status))].join('; ');
    failures[status] = { description, content: { 'application/json': { schema } } };
  }
  return failures;
}

function impliedErrors(route: AnyRoute): ErrorName[] {
  const names: ErrorName[] = ['InternalError', 'Overloaded'];
  if (route.query !== undefined || route.body !== undefined) names.push('InvalidInput');
  if (route.body !== undefined) names.push('BodyTooLarge');
  if (route.body !== undefined && route.ownFloor !== true) names.push('BodyTooSlow');
  if (typeof route.body === 'object') names.push('UnsupportedMediaType');
  if (!route.limits.includes('NoRateLimit') || route.auth === 'session') names.push('AccessRateLimit');
  if (route.auth === 'session' || route.auth === 'either' || route.auth === 'admin')
    names.push('SessionNotFound');
  if (route.idempotent === true) names.push('IdempotencyKeyReused');
  if (route.auth === 'admin' || (route.method !== 'GET' && route.method !== 'HEAD')) names.push('Forbidden');
  return names;
}

function errorSchema(): object {
  const codes = [...new Set(Object.values(ERRORS).map(({ code }) => code))].sort((a, b) => a - b);
  return {
    type: 'object',
    required: ['error'],
    properties: {
      error: {
        type: 'object',
        required: ['code', 'message'],
        properties: { code: { type: 'integer', enum: codes }, message: TEXT, detail: TEXT },
      },
    },
  };
}
