/** Example calls of a route: those that it defines, completed from the examples of its schemas. */
import type { TSchema } from '../../../domain/schema.ts';
import type { AnyRoute } from '../table/route.ts';
import { REQUEST_FIELDS, type RequestFieldName } from './header-fields.ts';
import type { RouteExample } from './route-docs.ts';
import { exampleOf } from './schemas.ts';

/** A complete call and its answer. */
interface WholeExample {
  readonly name: string;
  readonly params: Readonly<Record<string, string>>;
  readonly query: Readonly<Record<string, unknown>>;
  readonly headers: Readonly<Record<string, string>>;
  /** Undefined: no body, or one of bytes. */
  readonly body: unknown;
  /** Undefined: no answer in JSON. */
  readonly result: unknown;
}

const TEXT = { type: 'string' };
/** Name of the only call of a route without examples. */
const USUAL = 'usual';

export function pathParameters(route: AnyRoute): { name: string; schema: object }[] {
  return [...route.path.matchAll(/:([^/]+)/g)].map(([, name = '']) => ({
    name,
    schema: route.docs?.params?.[name] ?? TEXT,
  }));
}

/** Fields of the query that the pipeline checks and that the handler reads, as one schema. */
export function queryOf(route: AnyRoute): {
  properties: Record<string, TSchema>;
  required: readonly string[];
} {
  type ObjectSchema = { properties?: Record<string, TSchema>; required?: readonly string[] };
  const parts = [route.query, route.docs?.query].map((schema) => (schema ?? {}) as ObjectSchema);
  return {
    properties: Object.assign({}, ...parts.map(({ properties }) => properties)),
    required: parts.flatMap(({ required = [] }) => required),
  };
}

/** Schema of a JSON body; undefined for bytes and for none. */
export function jsonBodyOf(route: AnyRoute): TSchema | undefined {
  const { body, docs } = route;
  return typeof body === 'object' ? body : (docs?.body?.schema ?? undefined);
}

/** Schema of `result` in an example: the JSON answer without its envelope. */
export function jsonResultOf(route: AnyRoute): TSchema | undefined {
  const shown = route.docs?.answers?.[200];
  return shown === undefined ? route.result : shown.schema;
}

/** Adds to `missing` the path of every text without an example. */
export function examplesOf(route: AnyRoute, missing: string[] = []): WholeExample[] {
  const given: Readonly<Record<string, RouteExample>> = route.docs?.examples ?? { [USUAL]: {} };
  return Object.entries(given).map(([name, example]) => wholeOf(route, name, example, missing));
}

/** `example` of the only call, `examples` of several, beside a schema of the document. */
export function shownCalls(calls: readonly { readonly name: string; readonly value: unknown }[]): object {
  const [first, ...more] = calls;
  if (first === undefined) return {};
  if (more.length === 0) return { example: first.value };
  return { examples: Object.fromEntries(calls.map(({ name, value }) => [name, { value }])) };
}

function wholeOf(route: AnyRoute, name: string, example: RouteExample, missing: string[]): WholeExample {
  const { properties, required } = queryOf(route);
  const made = (schema: TSchema | undefined, location: string) =>
    schema === undefined ? undefined : exampleOf(schema, location, missing);
  const params = pathParameters(route).map(({ name: param, schema }) => [
    param,
    example.params?.[param] ?? exampleOf(schema, `path/${param}`, missing),
  ]);
  const query = required.map((field) => [
    field,
    exampleOf(properties[field] ?? {}, `query/${field}`, missing),
  ]);
  const fields = Object.entries(route.docs?.reads ?? {}).filter(([, rule]) => rule === 'required');
  const headers = fields.map(([field]) => [
    field,
    exampleOf(REQUEST_FIELDS[field as RequestFieldName].schema, `head/${field}`, missing),
  ]);
  return {
    name,
    params: Object.fromEntries(params),
    query: { ...Object.fromEntries(query), ...example.query },
    headers: { ...Object.fromEntries(headers), ...example.headers },
    body: example.body ?? made(jsonBodyOf(route), 'body'),
    result: 'result' in example ? example.result : made(jsonResultOf(route), 'result'),
  };
}
