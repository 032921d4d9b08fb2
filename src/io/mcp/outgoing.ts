/** From the arguments of a tool to the request that its backend gets (spec 2.5: method, queryParams, bodyRootProperty). */
import { type Endpoint, endpointUrl, type Target } from '../modules/endpoint.ts';
import { gatewayHeaders } from '../modules/headers.ts';
import type { Asking } from './audit.ts';
import type { ToolEntry } from './catalogue.ts';
import type { JsonObject } from './input-schema.ts';

export type Outgoing =
  | {
      readonly ok: true;
      readonly method: 'GET' | 'POST';
      /** Undefined: the module of the row is not configured. */
      readonly url: Target | undefined;
      readonly body: string | undefined;
    }
  /** The argument that can stand neither in the path nor in the query. */
  | { readonly ok: false; readonly argument: string };

/** The address of an endpoint without arguments: made once, it serves every call. */
export function plainUrl(endpoint: Endpoint | null | undefined, queryString = ''): Target | undefined {
  if (endpoint === null || endpoint === undefined || endpoint.pathArguments.length > 0) return undefined;
  const made = endpointUrl(endpoint);
  if (!made.ok || queryString === '') return made.ok ? made.url : undefined;
  const own = made.url.search === '' ? '?' : `${made.url.search}&`;
  return { ...made.url, search: `${own}${queryString}` };
}

/** GET: all arguments in the query. POST: a JSON body, but for the arguments that the row puts elsewhere. */
export function backendRequest(entry: ToolEntry, values: JsonObject): Outgoing {
  const { endpoint, row, url } = entry;
  if (endpoint === null || endpoint === undefined)
    return { ok: true, method: row.method, url: undefined, body: undefined };
  const { method, queryParams = NONE, bodyRootProperty } = row;
  const inPath = endpoint.pathArguments;
  if (method === 'GET') {
    if (url !== undefined && isEmpty(values)) return { ok: true, method, url, body: undefined };
    const made = endpointUrl(endpoint, values, without(values, inPath));
    return made.ok ? { ...made, method, body: undefined } : made;
  }
  const elsewhere = queryParams.length === 0 && inPath.length === 0 ? NONE : [...queryParams, ...inPath];
  const body = bodyOf(elsewhere.length === 0 ? values : without(values, elsewhere), bodyRootProperty);
  if (url !== undefined && queryParams.length === 0) return { ok: true, method, url, body };
  const query = Object.fromEntries(
    queryParams.filter((name) => Object.hasOwn(values, name)).map((name) => [name, values[name]]),
  );
  const made = endpointUrl(endpoint, values, query);
  return made.ok ? { ...made, method, body } : made;
}

/** The gateway's headers; nothing of the client's own travels on. */
export function backendHeaders(
  { context, caller, capability }: Asking,
  hasBody: boolean,
): Record<string, string> {
  const { traceparent } = context;
  const facts = { project: context.site.project, requestId: context.requestId, traceparent };
  const headers = gatewayHeaders(caller, facts);
  if (capability?.deviceGuid !== undefined) headers['x-device-guid'] = capability.deviceGuid;
  headers['accept'] = 'application/json';
  if (hasBody) headers['content-type'] = 'application/json';
  return headers;
}

const NONE: readonly string[] = [];

function bodyOf(values: JsonObject, root: string | undefined): string | undefined {
  if (root === undefined) return JSON.stringify(values);
  return Object.hasOwn(values, root) ? JSON.stringify(values[root]) : undefined;
}

function without(values: JsonObject, names: readonly string[]): JsonObject {
  if (names.length === 0) return values;
  return Object.fromEntries(Object.entries(values).filter(([name]) => !names.includes(name)));
}

function isEmpty(values: JsonObject): boolean {
  for (const _ in values) return false;
  return true;
}
