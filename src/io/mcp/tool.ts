/**
 * Rows of the catalog: built-in and configured tools and resources in the same form (spec 2.5), and their check at load, which
 * reports all faults.
 */
import { CAPABILITY_FAMILIES, type ResourceAccess, type ToolAccess } from '../../domain/access.ts';
import type { FormerNames } from '../../domain/former-names.ts';
import {
  array,
  boolean,
  compileSchema,
  type Fault,
  integer,
  object,
  oneOf,
  optional,
  text,
  unknown,
} from '../../domain/schema.ts';
import { LOGIN_TYPES } from '../../domain/sessions.ts';
import { headerParamFaults } from './header-params.ts';
import { compileInputSchema, isObject, type JsonObject, pointer } from './input-schema.ts';

/** Time-out of a call unless the row says otherwise. The official client libraries give up after 60 s. */
export const TIMEOUT_MS = 30_000;
const TIMEOUT_MAX_MS = 300_000;
const TOOL_NAME = /^[A-Za-z0-9_./-]{1,64}$/;

/** Methods of a tool. GET and DELETE have no body: their arguments are sent in the query. */
const TOOL_METHODS = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE'] as const;
export type ToolMethod = (typeof TOOL_METHODS)[number];

/** True if arguments are sent in a body. */
export function hasBody(method: ToolMethod): boolean {
  return method !== 'GET' && method !== 'DELETE';
}

/** Hints for people and models (MCP tool annotations). */
export interface ToolAnnotations {
  readonly readOnlyHint?: boolean;
  readonly destructiveHint?: boolean;
  readonly idempotentHint?: boolean;
  readonly openWorldHint?: boolean;
}

/** Spec 2.5, with optional extensions. */
export interface ToolRow extends ToolAccess {
  /** `module:/path` of a configured module, or an http(s) URL. */
  readonly endpoint: string;
  /** GET and POST of spec 2.5; the others are an extension. */
  readonly method: ToolMethod;
  readonly description: string;
  readonly inputSchema: JsonObject;
  /** The form of the module's answer. Results then carry it as `structuredContent`, with long integers as strings. */
  readonly outputSchema?: JsonObject;
  /** Arguments sent in the query beside a body. */
  readonly queryParams?: readonly string[];
  /** The argument whose value is the whole body. */
  readonly bodyRootProperty?: string;
  /** Capability mode: the field with the code in the request to the backend. */
  readonly capabilityCodeBodyProperty?: string;
  /** Built-in rows: former names of arguments, which are accepted but not in the schema. */
  readonly formerNames?: FormerNames;
  readonly title?: string;
  readonly annotations?: ToolAnnotations;
  readonly timeoutMs?: number;
  /** Calls per second of one user, counted after authorization over the window of all limits. */
  readonly rateLimit?: { readonly rps: number };
}

/** Spec 2.5. */
export interface ResourceRow extends ResourceAccess {
  readonly endpoint: string;
  readonly name: string;
  readonly description?: string;
  /** `application/json` unless given. */
  readonly mimeType?: string;
  /** Fixed query of the backend call, without `?`. */
  readonly queryString?: string;
}

const access = {
  restricted: optional(array(oneOf(LOGIN_TYPES))),
  appScope: optional(boolean()),
  capabilityModule: optional(oneOf(CAPABILITY_FAMILIES)),
};
const closed = { additionalProperties: false };
const line = () =>
  text({
    minLength: 1,
    maxLength: 256,
    pattern: '^[^\\p{Cc}]*$',
    form: 'one line without control characters',
  });
const prose = () => text({ maxLength: 8192, pattern: '\\S', form: 'a text that is not blank' });

const toolShape = compileSchema(
  object(
    {
      ...access,
      endpoint: text({ minLength: 1, maxLength: 2048 }),
      method: oneOf(TOOL_METHODS),
      description: prose(),
      inputSchema: unknown(),
      outputSchema: optional(unknown()),
      queryParams: optional(array(line())),
      bodyRootProperty: optional(line()),
      capabilityCodeBodyProperty: optional(line()),
      title: optional(line()),
      annotations: optional(
        object(
          {
            readOnlyHint: optional(boolean()),
            destructiveHint: optional(boolean()),
            idempotentHint: optional(boolean()),
            openWorldHint: optional(boolean()),
          },
          closed,
        ),
      ),
      timeoutMs: optional(integer({ minimum: 1, maximum: TIMEOUT_MAX_MS })),
      rateLimit: optional(object({ rps: integer({ minimum: 1, maximum: 1_000_000 }) }, closed)),
    },
    closed,
  ),
);

const resourceShape = compileSchema(
  object(
    {
      ...access,
      endpoint: text({ minLength: 1, maxLength: 2048 }),
      name: line(),
      description: optional(prose()),
      mimeType: optional(
        text({
          pattern: '^[\\w.+-]+/[\\w.+-]+(;[\\x20-\\x7e]*)?$',
          form: 'a media type, as application/json',
          maxLength: 256,
        }),
      ),
      sessionScope: optional(boolean()),
      queryString: optional(
        text({ pattern: '^[\\x21-\\x7e]*$', form: 'ASCII text without blanks', maxLength: 2048 }),
      ),
    },
    closed,
  ),
);

/** Faults of one tool, with paths inside the row; empty for a valid tool. */
export function toolFaults(name: string, row: unknown): Fault[] {
  const faults = toolShape.faults(row);
  if (!TOOL_NAME.test(name))
    faults.push({ path: '', message: 'the name must be 1 to 64 letters, digits, "_", ".", "/" or "-"' });
  if (!isObject(row)) return faults;
  for (const name of ['inputSchema', 'outputSchema'] as const) {
    if (!(name in row)) continue;
    const schema = compileInputSchema(row[name], 'outside');
    if (!schema.ok) faults.push(...schema.faults.map((fault) => within(`/${name}`, fault)));
  }
  const { inputSchema } = row;
  if (isObject(inputSchema))
    faults.push(...headerParamFaults(inputSchema).map((fault) => within('/inputSchema', fault)));
  if ('bodyRootProperty' in row && (row['method'] === 'GET' || row['method'] === 'DELETE'))
    faults.push({ path: '/bodyRootProperty', message: 'needs the method POST, PUT or PATCH' });
  const { queryParams, bodyRootProperty } = row;
  if (Array.isArray(queryParams) && queryParams.includes(bodyRootProperty))
    faults.push({ path: '/bodyRootProperty', message: 'is in queryParams too' });
  if (Array.isArray(queryParams))
    for (const [index, name] of queryParams.entries())
      faults.push(...argumentFaults(row, `/queryParams/${index}`, name));
  return [...faults, ...argumentFaults(row, '/bodyRootProperty', bodyRootProperty)];
}

/** A name in a row that is none of its arguments: most likely misspelled, and the argument that was meant goes elsewhere. */
export function argumentFaults(
  { inputSchema }: { readonly inputSchema?: unknown },
  path: string,
  name: unknown,
): Fault[] {
  // Their types are the schema's business.
  if (typeof name !== 'string' || !isObject(inputSchema)) return [];
  const { properties } = inputSchema;
  if (isObject(properties) && Object.hasOwn(properties, name)) return [];
  return [{ path, message: `"${name}" is no property of inputSchema` }];
}

/** The same for one resource. */
export function resourceFaults(uri: string, row: unknown): Fault[] {
  const faults = resourceShape.faults(row);
  if (!URL.canParse(uri) || /[^\x21-\x7e]/.test(uri))
    faults.push({ path: '', message: 'the key must be an absolute URI' });
  return faults;
}

/** Prefixes the path of a fault. */
export function within(path: string, fault: Fault): Fault {
  return { path: `${path}${fault.path}`, message: fault.message };
}

/** `/McpTools/<name>`: the path of a row in the configuration. */
export function rowPath(section: 'McpTools' | 'McpResources', key: string): string {
  return `/${section}/${pointer(key)}`;
}
