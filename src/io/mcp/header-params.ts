/**
 * Arguments that clients repeat in headers: `x-mcp-header` in an `inputSchema` (MCP 2026-07-28, "Custom Headers from Tool
 * Parameters"). The constraints are checked at load, the headers at each call of that revision.
 */
import { GatewayError } from '../../domain/errors.ts';
import type { Fault } from '../../domain/schema.ts';
import type { RouteContext } from '../http/table/route.ts';
import { isObject, type JsonObject, pointer } from './input-schema.ts';

const KEYWORD = 'x-mcp-header';
/** RFC 9110 5.1: a token. */
const TOKEN = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/;
const TYPES: ReadonlySet<unknown> = new Set(['string', 'integer', 'boolean']);
/** Values that are no plain ASCII come in this form. */
const ENCODED = /^=\?base64\?(.*)\?=$/s;
const BASE64 = /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/;

export interface HeaderParam {
  /** `Mcp-Param-…`. */
  readonly header: string;
  /** Keys that lead to the argument. */
  readonly path: readonly string[];
}

/** The annotated arguments, all reached through `properties` alone. */
export function headerParamsOf(schema: JsonObject, path: readonly string[] = []): HeaderParam[] {
  const { properties } = schema;
  if (!isObject(properties)) return [];
  return Object.entries(properties).flatMap(([name, property]) => {
    if (!isObject(property)) return [];
    const at = [...path, name];
    const suffix = property[KEYWORD];
    const own = typeof suffix === 'string' ? [{ header: `Mcp-Param-${suffix}`, path: at }] : [];
    return [...own, ...headerParamsOf(property, at)];
  });
}

/** Faults of the annotations, with paths inside the schema. Clients leave out tools with such a fault. */
export function headerParamFaults(schema: JsonObject): Fault[] {
  const faults: Fault[] = [];
  const seen = new Set<string>();
  findAnnotations(schema, '', true, (path, annotated, isReached) => {
    const suffix = annotated[KEYWORD];
    const fault = annotationFault(annotated, suffix, isReached);
    const key = String(suffix).toLowerCase();
    if (fault !== undefined) faults.push({ path: `${path}/${KEYWORD}`, message: fault });
    else if (seen.has(key)) faults.push({ path: `${path}/${KEYWORD}`, message: 'names a header twice' });
    seen.add(key);
  });
  return faults;
}

function annotationFault({ type }: JsonObject, suffix: unknown, isReached: boolean): string | undefined {
  if (typeof suffix !== 'string' || !TOKEN.test(suffix)) return 'must be a token of RFC 9110';
  if (!TYPES.has(type)) return 'needs the type string, integer or boolean';
  return isReached ? undefined : 'is only for arguments that "properties" alone lead to';
}

type OnAnnotation = (path: string, annotated: JsonObject, isReached: boolean) => void;

/** Calls `found` for each annotated schema. `isReached`: only keys of `properties` lead to it. */
function findAnnotations(value: unknown, path: string, isReached: boolean, found: OnAnnotation): void {
  if (Array.isArray(value)) {
    for (const [at, item] of value.entries()) findAnnotations(item, `${path}/${at}`, false, found);
    return;
  }
  if (!isObject(value)) return;
  if (path !== '' && KEYWORD in value) found(path, value, isReached);
  for (const [key, child] of Object.entries(value)) {
    const below = `${path}/${pointer(key)}`;
    if (key !== 'properties' || !isObject(child)) findAnnotations(child, below, false, found);
    else
      for (const [name, property] of Object.entries(child))
        findAnnotations(property, `${below}/${pointer(name)}`, isReached, found);
  }
}

/** Throws `HeaderMismatch` where a header is missing, or differs from its argument. */
export function requireHeaderParams(
  params: readonly HeaderParam[],
  values: unknown,
  context: RouteContext,
): void {
  for (const { header, path } of params) {
    const value = path.reduce<unknown>((at, key) => (isObject(at) ? at[key] : undefined), values);
    if (value !== undefined && value !== null) requireHeader(context, header, value, true);
    else if (context.header(header.toLowerCase()) !== undefined)
      throw new GatewayError('HeaderMismatch', `${header} has no argument`);
  }
}

/** Throws `HeaderMismatch` unless the header has this value. */
export function requireHeader(
  context: RouteContext,
  name: string,
  expected: unknown,
  mayBeEncoded: boolean,
): void {
  const field = name.toLowerCase();
  const sent = context.header(field);
  if (sent === undefined) {
    const fault = context.repeatedHeaders.has(field) ? 'was sent twice' : 'is missing';
    throw new GatewayError('HeaderMismatch', `${name} ${fault}`);
  }
  const value = mayBeEncoded ? decoded(sent) : sent;
  const isSame = typeof expected === 'number' ? Number(value) === expected : value === String(expected);
  if (value === undefined || !isSame)
    throw new GatewayError('HeaderMismatch', `${name} does not match the body`);
}

/** Undefined for malformed Base64. */
function decoded(value: string): string | undefined {
  const [, base64] = value.startsWith('=?') ? (ENCODED.exec(value) ?? []) : [];
  if (base64 === undefined) return value;
  return BASE64.test(base64) ? Buffer.from(base64, 'base64').toString('utf8') : undefined;
}
