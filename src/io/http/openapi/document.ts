/** Generates OpenAPI 3.1 from the route table, so that the description cannot differ from what is served. */
import { nameOf } from '../../../domain/schema.ts';
import type { AnyRoute } from '../table/route.ts';
import { type Answers, answersOf, errorExamples, errorSchema } from './answers.ts';
import { examplesOf, jsonBodyOf, pathParameters, queryOf, shownCalls } from './examples.ts';
import { REQUEST_FIELDS, RESPONSE_FIELDS, type RequestFieldName } from './header-fields.ts';
import { SchemaRegistry } from './schemas.ts';

interface ApiInfo {
  readonly title: string;
  readonly version: string;
  readonly baseUrl: string;
}

interface Parameter {
  readonly name: string;
  readonly in: 'path' | 'query' | 'header';
  readonly required: boolean;
  readonly description?: string;
  readonly schema: object;
  readonly example?: unknown;
}

const SID = { sid: [] };
const BEARER = { bearer: [] };
/** Requirements of each rule; `{}` means none. */
const SECURITY: Record<AnyRoute['auth'], object[]> = {
  session: [SID],
  admin: [SID],
  either: [SID, BEARER],
  optional: [{}, SID],
  eitherOptional: [{}, SID, BEARER],
  none: [],
};
const SECURITY_SCHEMES = {
  sid: {
    type: 'apiKey',
    in: 'cookie',
    name: 'sid',
    description: 'Cookie of a browser session, set by `register_key` and `login`',
  },
  bearer: { type: 'http', scheme: 'bearer', description: 'The `sessionId` that `mcp_login` answers with' },
};
const ABOUT = `Answers are \`{"result": …}\`, errors are \`{"error": {"code", "message"}}\`. Routes without this envelope say so. Ids are 64-bit integers as decimal text. Times are ISO 8601 in UTC.`;
/** The groups of routes, in display order. */
export const GROUPS: Readonly<Record<string, string>> = {
  info: 'Version, ways to log in, health',
  auth: 'Browser logins, agent logins, sessions',
  keys: 'Public keys of an account',
  apps: 'Applications, their API keys and webhooks',
  events: 'Events of the account as they happen',
  files: 'Uploads and downloads, v1 and v2',
  mcp: 'The Model Context Protocol: tools and resources for agents',
  connect: 'OAuth 2.1 for hosts that connect by URL: metadata, authorization, tokens',
  modules: 'REST calls to the modules behind the gateway',
  admin: 'API of the admin panel, for accounts with a role',
  docs: 'The OpenAPI description',
};

/** The document as plain JSON. Throws if two schemas have the same name. */
export function describeApi(table: readonly AnyRoute[], info: ApiInfo): object {
  const routes = table.filter(({ notOffered, isFile, asksFor }) => !(notOffered || isFile || asksFor));
  const registry = new SchemaRegistry();
  registry.register('Error', errorSchema());
  const paths: Record<string, Record<string, object>> = {};
  for (const route of routes) {
    const path = route.path.replace(/:([^/]+)/g, '{$1}');
    paths[path] ??= {};
    paths[path][route.method.toLowerCase()] = operation(route, registry);
    if (route.bytes !== undefined && route.method === 'GET')
      paths[path]['head'] = withoutBodies(operation({ ...route, method: 'HEAD' }, registry));
  }
  const groups = new Set(routes.map(({ group }) => group));
  const document = {
    openapi: '3.1.0',
    info: {
      title: info.title,
      version: info.version,
      description: ABOUT,
      license: { name: 'MIT', identifier: 'MIT' },
    },
    servers: [{ url: info.baseUrl }],
    tags: Object.entries(GROUPS).flatMap(([name, description]) =>
      groups.has(name) ? [{ name, description }] : [],
    ),
    paths,
    components: {
      securitySchemes: SECURITY_SCHEMES,
      headers: RESPONSE_FIELDS,
      examples: errorExamples(routes),
      schemas: registry.components,
    },
  };
  // Removes the symbols that the schema library adds.
  return JSON.parse(JSON.stringify(document)) as object;
}

interface Operation {
  readonly operationId: string;
  readonly tags: readonly string[];
  readonly summary: string;
  readonly description?: string;
  readonly security: readonly object[];
  readonly parameters?: readonly Parameter[];
  readonly requestBody?: object;
  readonly responses: Answers;
}

/** HEAD has the statuses and fields of GET without bodies. */
function withoutBodies(described: Operation): Operation {
  const bare = Object.entries(described.responses).map(([status, { content: _, ...head }]) => [status, head]);
  return { ...described, responses: Object.fromEntries(bare) };
}

function operation(route: AnyRoute, registry: SchemaRegistry): Operation {
  const parameters = parametersOf(route, registry);
  const id = operationId(route);
  const name = schemaName(id);
  const body = bodyOf(route, name, registry);
  const { description, docs, auth } = route;
  return {
    operationId: id,
    tags: [route.group],
    summary: route.summary,
    ...(description === undefined ? {} : { description }),
    security: docs?.bearer === true ? [{}, BEARER] : SECURITY[auth],
    ...(parameters.length === 0 ? {} : { parameters }),
    ...(body === undefined ? {} : { requestBody: body }),
    responses: answersOf(route, name, registry),
  };
}

export function operationId(route: Pick<AnyRoute, 'method' | 'path'>): string {
  const words = route.path.split(/[^A-Za-z0-9]+/).filter((word) => word !== '');
  return [route.method.toLowerCase(), ...words].join('_');
}

/** `post_auth_v1_keys_update_key` gives `PostAuthV1KeysUpdateKey`. */
function schemaName(id: string): string {
  return id
    .split('_')
    .map((word) => `${word.charAt(0).toUpperCase()}${word.slice(1)}`)
    .join('');
}

function parametersOf(route: AnyRoute, registry: SchemaRegistry): Parameter[] {
  const [example] = examplesOf(route);
  const { properties, required } = queryOf(route);
  const describe = (
    location: Parameter['in'],
    name: string,
    isRequired: boolean,
    schema: object,
    value: unknown,
  ): Parameter => {
    const { description, ...rest } = schema as { description?: string };
    // An example prefills the form; an optional parameter has it only in its schema.
    return {
      name,
      in: location,
      required: isRequired,
      ...(description === undefined ? {} : { description }),
      schema: nameOf(schema) === undefined ? registry.reference(rest) : registry.reference(schema),
      ...(isRequired && value !== undefined ? { example: value } : {}),
    };
  };
  return [
    ...pathParameters(route).map(({ name, schema }) =>
      describe('path', name, true, schema, example?.params[name]),
    ),
    ...Object.entries(properties).map(([name, schema]) =>
      describe('query', name, required.includes(name), schema, example?.query[name]),
    ),
    ...headerParameters(route).map(([name, isRequired]) => {
      const { description, schema } = REQUEST_FIELDS[name];
      return describe('header', name, isRequired, { ...schema, description }, example?.headers[name]);
    }),
  ];
}

function headerParameters(route: AnyRoute): [RequestFieldName, boolean][] {
  const reads = Object.entries(route.docs?.reads ?? {}) as [RequestFieldName, string][];
  return [
    ...reads.map(([name, rule]): [RequestFieldName, boolean] => [name, rule === 'required']),
    ...(route.limits?.includes('CheckPubKey') === true
      ? ([['pkey', false]] as [RequestFieldName, boolean][])
      : []),
    ...(route.idempotent === true ? ([['Idempotency-Key', false]] as [RequestFieldName, boolean][]) : []),
  ];
}

function bodyOf(route: AnyRoute, name: string, registry: SchemaRegistry): object | undefined {
  const { docs, body, bodyOptional } = route;
  if (body === undefined || docs?.body === null) return undefined;
  const required = bodyOptional !== true && docs?.body?.optional !== true;
  const type = docs?.body?.type ?? (typeof body === 'object' ? 'application/json' : '*/*');
  const description = docs?.body?.description;
  const schema = jsonBodyOf(route);
  const shown = schema === undefined ? undefined : registry.register(`${name}Request`, schema);
  const content =
    shown === undefined
      ? { schema: { type: 'string', format: 'binary' } }
      : { schema: shown, ...shownCalls(examplesOf(route).map(({ name, body }) => ({ name, value: body }))) };
  return { ...(description === undefined ? {} : { description }), required, content: { [type]: content } };
}
