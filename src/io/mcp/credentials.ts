/**
 * The capability code and the device id of a request (spec 4.1). Header and query come first and hold for a whole batch. A
 * value that is no text counts as an invalid one, not as absent.
 */
import type { RouteContext } from '../http/table/route.ts';
import { isObject, type JsonObject } from './input-schema.ts';

/** Visible ASCII; codes of modules consist of letters and digits. */
const CODE = /^[\x21-\x7e]{1,256}$/;
const UUID = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;

type Credential =
  | { readonly kind: 'none' }
  | { readonly kind: 'unfit' }
  | { readonly kind: 'value'; readonly value: string };

const NONE: Credential = { kind: 'none' };
const UNFIT: Credential = { kind: 'unfit' };

/** Query `code`, header `X-MCP-Code`, `params.arguments.code` or `params.code`. */
export function codeCredential(params: JsonObject, context: RouteContext): Credential {
  return credential(
    [
      fromQuery(context, 'code'),
      fromHeader(context, 'x-mcp-code'),
      fromArguments(params, 'code'),
      params['code'],
    ],
    CODE,
  );
}

/** Header `X-Device-Guid`, query `device_guid` or `params.arguments.device_guid`; in lower case. */
export function deviceCredential(params: JsonObject, context: RouteContext): Credential {
  const candidates = [
    fromHeader(context, 'x-device-guid'),
    fromQuery(context, 'device_guid'),
    fromArguments(params, 'device_guid'),
  ];
  const found = credential(candidates, UUID);
  return found.kind === 'value' ? { kind: 'value', value: found.value.toLowerCase() } : found;
}

function credential(candidates: readonly unknown[], pattern: RegExp): Credential {
  const first = candidates.find((value) => value !== undefined);
  if (first === undefined) return NONE;
  return typeof first === 'string' && pattern.test(first) ? { kind: 'value', value: first } : UNFIT;
}

/** Null, which is no text, for a repeated field, because it is ambiguous. */
function fromHeader(context: RouteContext, name: string): string | null | undefined {
  return context.repeatedHeaders.has(name) ? null : context.header(name);
}

function fromQuery({ search }: RouteContext, name: string): string | null | undefined {
  if (search === '') return undefined;
  const [value, ...more] = new URLSearchParams(search).getAll(name);
  return more.length > 0 ? null : value;
}

function fromArguments(params: JsonObject, name: string): unknown {
  const given = params['arguments'];
  return isObject(given) && Object.hasOwn(given, name) ? given[name] : undefined;
}
