/**
 * docs/modules.openapi.json: what the sandbox modules serve. Arguments of endpoints that a tool calls are those of the
 * tool's row, all else is the sandbox's interface.
 */
import { BUILT_IN } from '../../src/io/mcp/tools/built-in.ts';
import type { ModuleEndpoint } from '../../src/sandbox/module.ts';
import { createModules, SANDBOX_SCHEMAS } from '../../src/sandbox/modules.ts';
import { CODE, EVENT, ID, ID_GIVEN, type JsonSchema, list, object } from '../../src/sandbox/schemas.ts';
import { jsonLines } from './json-lines.ts';

export const MODULES_FILE = 'docs/modules.openapi.json';
const JSON_TYPE = 'application/json';
const NAMED: ReadonlySet<JsonSchema> = new Set(Object.values(SANDBOX_SCHEMAS));

interface Arguments {
  readonly properties: Readonly<Record<string, JsonSchema>>;
  readonly required: readonly string[];
}

/** Header fields that tell a module for whom it is called. */
const CALLER_FIELDS = {
  crm: {
    name: 'X-Crm',
    in: 'header',
    required: true,
    description: 'Id of the user the call is made for; set by the gateway, never by a client.',
    schema: ID,
  },
  scopes: {
    name: 'X-Scopes',
    in: 'header',
    required: true,
    description: 'Of a call for the holder of a code, which has no X-Crm.',
    schema: { enum: ['Capability:chat', 'Capability:wallet'] },
  },
  device: {
    name: 'X-Device-Guid',
    in: 'header',
    required: true,
    description: 'UUID of the device.',
    schema: { type: 'string', format: 'uuid' },
  },
} as const;

const CALLERS: Readonly<Record<ModuleEndpoint['calledFor'], readonly (keyof typeof CALLER_FIELDS)[]>> = {
  user: ['crm'],
  gateway: [],
  'Capability:wallet': ['scopes'],
  'Capability:chat': ['scopes', 'device'],
};

interface CallingTool {
  readonly name: string;
  readonly inputSchema: JsonSchema;
}

function toolsByEndpoint(): ReadonlyMap<string, CallingTool> {
  return new Map(
    Object.entries(BUILT_IN.tools).map(([name, { method, endpoint, inputSchema }]) => [
      `${method} ${endpoint.replace(/^\w+:/, '')}`,
      { name, inputSchema },
    ]),
  );
}

/** A tool's arguments as the module gets them: ids are numbers too where a caller sends numbers, in a body alone. */
function argumentsOfTool({ inputSchema }: CallingTool, method: string): Arguments {
  const { properties, required = [] } = inputSchema as unknown as Arguments;
  // It becomes a header field.
  const sent = Object.entries(properties).filter(([argument]) => argument !== 'device_guid');
  const shown = sent.map(([argument, schema]) => [
    argument,
    method === 'POST' ? withNumbers(schema) : schema,
  ]);
  return {
    properties: Object.fromEntries(shown),
    required: required.filter((argument) => argument !== 'device_guid'),
  };
}

function withNumbers(schema: JsonSchema): JsonSchema {
  const { items } = schema;
  if (items !== undefined) return { ...schema, items: withNumbers(items as JsonSchema) };
  if (schema['format'] !== 'int64') return schema;
  const { description, examples } = schema;
  return { ...ID_GIVEN, description, examples };
}

const NONE: Arguments = { properties: {}, required: [] };

/**
 * Returns the arguments of the tool, and those that the interface names besides. Tools may leave out a code that the
 * gateway knows.
 */
function argumentsOf({ method, calledFor, takes }: ModuleEndpoint, tool: CallingTool | undefined): Arguments {
  const own = (takes as unknown as Arguments | undefined) ?? NONE;
  const sent = tool === undefined ? NONE : argumentsOfTool(tool, method);
  const properties = { ...sent.properties, ...own.properties };
  const required = [...sent.required, ...own.required];
  if (!calledFor.startsWith('Capability:')) return { properties, required };
  return { properties: { ...properties, code: CODE }, required: [...new Set(['code', ...required])] };
}

function operationOf(endpoint: ModuleEndpoint, tool: CallingTool | undefined): object {
  const { method, calledFor, summary, name, gives } = endpoint;
  const { properties, required } = argumentsOf(endpoint, tool);
  const query = Object.entries(properties).map(([argument, schema]) => ({
    name: argument,
    in: 'query',
    required: required.includes(argument) || undefined,
    ...(NAMED.has(schema) ? { schema } : describedOnce(schema)),
  }));
  const fields = CALLERS[calledFor].map((field) => ({ $ref: `#/components/parameters/${field}` }));
  const body = { type: 'object', properties, required };
  return {
    operationId: tool?.name ?? name,
    summary,
    parameters: [...fields, ...(method === 'GET' ? query : [])],
    requestBody:
      method === 'GET' ? undefined : { required: true, content: { [JSON_TYPE]: { schema: body } } },
    responses: answersOf(gives),
  };
}

/** The description of an argument of its own stands at the parameter, where generators of clients look for it. */
function describedOnce({ description, ...schema }: JsonSchema): object {
  return { description, schema };
}

function answersOf(result: JsonSchema): object {
  const content = { [JSON_TYPE]: { schema: object({ result }) } };
  return { 200: { description: 'Success', content }, default: { $ref: '#/components/responses/Error' } };
}

/** `GET /events`, at the address of each module. */
const EVENTS = {
  get: {
    operationId: 'events',
    summary: 'Events of this module after a tick, in order, at least 1; a page never ends inside a tick',
    parameters: [
      { name: 'after', in: 'query', description: 'Exclusive.', schema: ID },
      { name: 'limit', in: 'query', schema: { type: 'integer', minimum: 1, maximum: 1000, default: 100 } },
    ],
    responses: answersOf(object({ events: list(EVENT) })),
  },
};

/** Schemas with a name are referred to, wherever they stand. */
function withReferences(value: unknown, names: ReadonlyMap<unknown, string>): unknown {
  const name = names.get(value);
  if (name !== undefined) return { $ref: `#/components/schemas/${name}` };
  if (Array.isArray(value)) return value.map((item) => withReferences(item, names));
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, withReferences(item, names)]));
}

export function modulesText(): string {
  const names = new Map<unknown, string>(
    Object.entries(SANDBOX_SCHEMAS).map(([name, schema]) => [schema, name]),
  );
  const schemas = Object.entries(SANDBOX_SCHEMAS).map(([name, schema]) => [
    name,
    // Its own content, not a reference to itself.
    withReferences({ ...schema }, names),
  ]);
  const tools = toolsByEndpoint();
  const paths: Record<string, object> = {};
  for (const { endpoints } of createModules().byName.values())
    for (const endpoint of endpoints) {
      const { method, path } = endpoint;
      const operation = operationOf(endpoint, tools.get(`${method} ${path}`));
      paths[path] = { ...paths[path], [method.toLowerCase()]: operation };
    }
  const error = { content: { [JSON_TYPE]: { schema: SANDBOX_SCHEMAS['Error'] } } };
  const document = {
    openapi: '3.1.0',
    info: {
      title: 'What a backend module serves behind Gatehouse',
      version: '1.0.0',
      description:
        'The endpoints of the wallet, markets, payments, chat and core modules, as the sandbox serves them. docs/modules.md says the rest: headers, time-outs, errors, events.',
    },
    servers: [{ url: 'http://127.0.0.1:9000', description: 'Modules.<name>.url' }],
    paths: withReferences({ ...paths, '/events': EVENTS }, names),
    components: {
      schemas: Object.fromEntries(schemas),
      parameters: withReferences(CALLER_FIELDS, names),
      responses: withReferences(
        { Error: { description: 'A refusal; the codes are in docs/modules.md', ...error } },
        names,
      ),
    },
  };
  return jsonLines(document, ['paths', 'components', 'schemas', 'parameters', 'responses']);
}
