/**
 * Capability mode: takes the code and the device id out of the arguments, and injects the code where the row says (spec 2.5
 * `capabilityCodeBodyProperty`, 5.2). With a session the arguments stay unchanged.
 */
import type { Target } from '../http-client/endpoint.ts';
import type { RequestContext } from './audit.ts';
import type { ToolEntry } from './catalog.ts';
import { isObject, type JsonObject } from './input-schema.ts';
import { unplaced } from './outgoing.ts';

interface CallArguments {
  /** Arguments for the check against the schema: code and device id only where the schema has them. */
  readonly checked: JsonObject;
  /** Arguments for the backend. */
  readonly sent: JsonObject;
  /** The reason why the code cannot be injected, or the arguments that could not be sent beside it. */
  readonly fault?: string;
}

export function argumentsOf(
  entry: ToolEntry,
  given: JsonObject,
  { capability }: RequestContext,
): CallArguments {
  if (capability === undefined) return { checked: given, sent: given };
  const { code: _code, device_guid: _device, ...own } = given;
  const { bodyRootProperty: root, capabilityCodeBodyProperty: property, inputSchema } = entry.row;
  const named = isObject(inputSchema['properties']) ? inputSchema['properties'] : {};
  const credentials: JsonObject = {
    code: capability.code,
    ...(capability.deviceGuid === undefined ? {} : { device_guid: capability.deviceGuid }),
    ...(property === undefined ? {} : { [property]: capability.code }),
  };
  const declared = Object.entries(credentials).filter(([name]) => Object.hasOwn(named, name));
  const checked = { ...own, ...Object.fromEntries(declared) };
  if (property === undefined) return { checked, sent: own };
  if (root === undefined) return { checked, sent: { ...own, [property]: capability.code } };
  const fault = unplaced(entry, own);
  if (fault !== undefined) return { checked, sent: own, fault };
  const body = own[root] ?? {};
  if (!isObject(body)) return { checked, sent: own, fault: `/${root} must be an object` };
  return { checked, sent: { ...own, [root]: { ...body, [property]: capability.code } } };
}

/** Resources have no arguments; their code is sent in the query, as for tools with GET. */
export function withCodeInQuery(url: Target | undefined, { capability }: RequestContext): Target | undefined {
  if (url === undefined || capability === undefined) return url;
  const { origin, pathname, search } = url;
  const joint = search === '' ? '?' : '&';
  return { origin, pathname, search: `${search}${joint}code=${encodeURIComponent(capability.code)}` };
}
