/** Builds the backend request of a tool call (spec 2.5: method, queryParams, bodyRootProperty). */
import { endpointUrl, type Target } from '../http-client/endpoint.ts';
import { factsOf, gatewayLines, withTrace } from '../http-client/headers.ts';
import type { RequestLine } from '../http-client/request-head.ts';
import { LINES_TYPE } from '../modules/streamed-answer.ts';
import type { RemoteParent } from '../tracing/span.ts';
import { NAME_MAX, type RequestContext } from './audit.ts';
import type { ToolEntry } from './catalog.ts';
import { type JsonObject, NAMED_MAX } from './input-schema.ts';
import { hasBody, type ToolMethod } from './tool.ts';

export type Outgoing =
  | {
      readonly ok: true;
      readonly method: ToolMethod;
      /** Undefined when the module of the row is not configured. */
      readonly url: Target | undefined;
      readonly body: string | undefined;
    }
  /** The arguments that cannot be sent, and the reason. */
  | { readonly ok: false; readonly fault: string };

/** GET and DELETE send all arguments in the query. The others send a JSON body, except for arguments that the row places elsewhere. */
export function backendRequest(entry: ToolEntry, values: JsonObject): Outgoing {
  const { endpoint, row, url } = entry;
  if (endpoint === null || endpoint === undefined)
    return { ok: true, method: row.method, url: undefined, body: undefined };
  const { method, queryParams = NONE, bodyRootProperty } = row;
  const inPath = endpoint.pathArguments;
  if (!hasBody(method)) {
    if (url !== undefined && isEmpty(values)) return { ok: true, method, url, body: undefined };
    const made = endpointUrl(endpoint, values, without(values, inPath));
    return made.ok ? { ...made, method, body: undefined } : noAddress(made.argument);
  }
  const elsewhere = queryParams.length === 0 && inPath.length === 0 ? NONE : [...queryParams, ...inPath];
  const inBody = elsewhere.length === 0 ? values : without(values, elsewhere);
  const fault = unplaced(entry, values);
  if (fault !== undefined) return { ok: false, fault };
  const body = bodyOf(inBody, bodyRootProperty);
  if (url !== undefined && queryParams.length === 0) return { ok: true, method, url, body };
  const query = Object.fromEntries(
    queryParams.filter((name) => Object.hasOwn(values, name)).map((name) => [name, values[name]]),
  );
  const made = endpointUrl(endpoint, values, query);
  return made.ok ? { ...made, method, body } : noAddress(made.argument);
}

interface BackendCall extends RequestContext {
  readonly progress?: object;
  /** Parent of the message, where the head names none. */
  readonly remoteParent?: RemoteParent;
}

/** Headers of the gateway. Headers of the client are not forwarded. */
export function backendHeaders(
  { context, caller, capability, progress, remoteParent }: BackendCall,
  hasBody: boolean,
): Required<Pick<RequestLine, 'headers' | 'lines'>> {
  const facts = factsOf(context);
  const lines = gatewayLines(caller, facts);
  const headers = withTrace(remoteParent ?? facts, {});
  if (capability?.deviceGuid !== undefined) headers['x-device-guid'] = capability.deviceGuid;
  headers['accept'] = progress !== undefined ? `application/json, ${LINES_TYPE}` : 'application/json';
  if (hasBody) headers['content-type'] = 'application/json';
  return { headers, lines };
}

const NONE: readonly string[] = [];

function noAddress(argument: string): Extract<Outgoing, { ok: false }> {
  return { ok: false, fault: `${argument} cannot stand in the address` };
}

/**
 * Names the arguments that cannot be sent: without a value for `bodyRootProperty` the body is `{}`, and they belong neither to
 * the path nor to the query. With a value, it replaces the whole body (spec 2.5).
 */
export function unplaced({ endpoint, row }: ToolEntry, values: JsonObject): string | undefined {
  const { queryParams = NONE, bodyRootProperty: root } = row;
  if (root === undefined || Object.hasOwn(values, root)) return undefined;
  const elsewhere = [...queryParams, ...(endpoint?.pathArguments ?? NONE)];
  const names = Object.keys(values).filter((name) => !elsewhere.includes(name));
  if (names.length === 0) return undefined;
  const shown = names.slice(0, NAMED_MAX).map((name) => name.slice(0, NAME_MAX));
  return `${shown.join(', ')} cannot be sent: the body is the value of ${root}, which is left out`;
}

function bodyOf(values: JsonObject, root: string | undefined): string {
  if (root === undefined) return JSON.stringify(values);
  return Object.hasOwn(values, root) ? JSON.stringify(values[root]) : '{}';
}

function without(values: JsonObject, names: readonly string[]): JsonObject {
  if (names.length === 0) return values;
  return Object.fromEntries(Object.entries(values).filter(([name]) => !names.includes(name)));
}

function isEmpty(values: JsonObject): boolean {
  for (const _ in values) return false;
  return true;
}
