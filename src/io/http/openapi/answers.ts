/** The answers of an operation: its success, and every error of the table that it may return. */
import { ERRORS, type ErrorName, errorRow } from '../../../domain/errors.ts';
import { MISSING_FEATURE } from '../../../domain/features.ts';
import { object, type TSchema, text } from '../../../domain/schema.ts';
import { errorBody } from '../exchange/reply.ts';
import type { AnyRoute } from '../table/route.ts';
import { examplesOf, shownCalls } from './examples.ts';
import type { ResponseFieldName } from './header-fields.ts';
import type { AnswerDocs } from './route-docs.ts';
import type { SchemaRegistry } from './schemas.ts';

interface OperationAnswer {
  readonly description: string;
  readonly headers?: object;
  readonly content?: object;
}

export type Answers = Record<number, OperationAnswer>;

const JSON_TYPE = 'application/json';
const STREAM_TYPE = 'text/event-stream';
const LIMIT_FIELDS = ['X-RateLimit', 'RateLimit', 'RateLimit-Policy'] as const;
/** Statuses with `Content-Range` (RFC 9110 14.4). */
const REDIRECTS: ReadonlySet<number> = new Set([301, 303, 307]);
const OF_RANGES: ReadonlySet<number> = new Set([206, 416]);

/** The error envelope (spec 7.1); JSON-RPC errors of /mcp fit it too. */
export function errorSchema(): object {
  const codes = [...new Set(Object.values(ERRORS).map(({ code }) => code))].sort((a, b) => a - b);
  return {
    type: 'object',
    required: ['error'],
    properties: {
      error: {
        type: 'object',
        required: ['code', 'message'],
        properties: {
          code: { type: 'integer', enum: codes },
          message: text(),
          detail: text({ description: 'Names the field or the reason' }),
        },
      },
    },
  };
}

/** One example of each error that these routes may return; their answers refer to it. */
export function errorExamples(routes: readonly AnyRoute[]): Record<string, object> {
  const enveloped = routes.filter(({ docs }) => docs?.failure === undefined);
  const named = new Set(enveloped.flatMap((route) => [...errorNamesOf(route).values()].flat()));
  const names = (Object.keys(ERRORS) as ErrorName[]).filter((name) => named.has(name));
  return Object.fromEntries(names.map((name) => [name, { value: { error: errorBody(name) } }]));
}

/** Answers by status. `name`: of the operation, for schemas without a name. */
export function answersOf(route: AnyRoute, name: string, registry: SchemaRegistry): Answers {
  const failures = failuresOf(route, registry);
  const shown = Object.entries(route.docs?.answers ?? {}).map(([status, answer]) => [
    status,
    shownAnswer(route, Number(status), answer, name, registry),
  ]);
  return { ...successesOf(route, name, registry), ...failures, ...Object.fromEntries(shown) };
}

function successesOf(route: AnyRoute, name: string, registry: SchemaRegistry): Answers {
  if (route.docs?.answers !== undefined) return {};
  if (route.bytes !== undefined) return bytesOf(route, route.bytes);
  const headers = headersOf(route, 200);
  if (route.result === undefined) return { 200: { description: 'Success', headers } };
  const schema = registry.register(
    `${name}Answer`,
    object({ result: named(route.result, `${name}Result`, registry) }),
  );
  const examples = jsonExamples(route, (result) => ({ result }));
  return { 200: { description: 'Success', headers, content: { [JSON_TYPE]: { schema, ...examples } } } };
}

/** Registers objects under a name; other schemas stay inline. */
function named(schema: TSchema, name: string, registry: SchemaRegistry): TSchema {
  const isObject = (schema as { type?: unknown }).type === 'object';
  return (isObject ? registry.register(name, schema) : schema) as TSchema;
}

function shownAnswer(
  route: AnyRoute,
  status: number,
  answer: AnswerDocs,
  name: string,
  registry: SchemaRegistry,
): OperationAnswer {
  const { description, type, schema, stream } = answer;
  const headers = headersOf(route, status);
  if (type === undefined) return { description, headers };
  const described =
    schema === undefined
      ? { schema: { type: 'string', format: 'binary' } }
      : {
          schema: registry.register(`${name}Answer${status === 200 ? '' : status}`, schema),
          ...(status === 200 ? jsonExamples(route, (result) => result) : {}),
        };
  const streamed = stream === undefined ? {} : { [STREAM_TYPE]: { schema: stream } };
  return { description, headers, content: { [type]: described, ...streamed } };
}

/** Omits calls without an answer in JSON. */
function jsonExamples(route: AnyRoute, envelope: (result: unknown) => unknown): object {
  const shown = examplesOf(route).filter(({ result }) => result !== undefined);
  return shownCalls(shown.map(({ name, result }) => ({ name, value: envelope(result) })));
}

function bytesOf(route: AnyRoute, statuses: Readonly<Record<number, string>>): Answers {
  const answers: Answers = {};
  for (const [status, description] of Object.entries(statuses)) {
    const headers = headersOf(route, Number(status));
    const content = { '*/*': { schema: { type: 'string', format: 'binary' } } };
    answers[Number(status)] =
      status === '304' || REDIRECTS.has(Number(status))
        ? { description, headers }
        : { description, headers, content };
  }
  return answers;
}

function headersOf(route: AnyRoute, status: number): Record<string, object> {
  const names: ResponseFieldName[] = ['X-Request-Id'];
  if (isCounted(route)) names.push(...LIMIT_FIELDS);
  const own = route.docs?.sends ?? [];
  names.push(...own.filter((name) => isSentWith(name, status)));
  return references(names);
}

function isSentWith(name: ResponseFieldName, status: number): boolean {
  if (REDIRECTS.has(status)) return name === 'Location' || name === 'Cache-Control';
  return name !== 'Location' && (name !== 'Content-Range' || OF_RANGES.has(status));
}

function isCounted({ limits = [], auth }: AnyRoute): boolean {
  return !limits.includes('NoRateLimit') || auth === 'session';
}

function references(names: readonly ResponseFieldName[]): Record<string, object> {
  return Object.fromEntries(names.map((name) => [name, { $ref: `#/components/headers/${name}` }]));
}

/** Errors by HTTP status: those of the route and those that its definition implies, without statuses it describes itself. */
function errorNamesOf(route: AnyRoute): Map<number, ErrorName[]> {
  const byStatus = new Map<number, ErrorName[]>();
  for (const name of [...impliedErrors(route), ...(route.errors ?? [])]) {
    const { status } = errorRow(name);
    const isOwn = route.docs?.answers?.[status] !== undefined;
    if (status >= 400 && !isOwn) byStatus.set(status, [...(byStatus.get(status) ?? []), name]);
  }
  return byStatus;
}

function failuresOf(route: AnyRoute, registry: SchemaRegistry): Answers {
  const byStatus = errorNamesOf(route);
  const failures: Answers = {};
  for (const status of [...byStatus.keys()].sort((a, b) => a - b))
    failures[status] = failureOf(route, status, byStatus.get(status) ?? [], registry);
  return failures;
}

function failureOf(
  route: AnyRoute,
  status: number,
  names: readonly ErrorName[],
  registry: SchemaRegistry,
): OperationAnswer {
  const lines = names.map((name) => `${errorRow(name).code} ${errorRow(name).message}`);
  const examples = names.map((name) => [name, { $ref: `#/components/examples/${name}` }]);
  const waits = status === 429 || names.some((name) => errorRow(name).retryAfterSeconds !== undefined);
  const headers = references([
    'X-Request-Id',
    ...(isCounted(route) ? LIMIT_FIELDS : []),
    ...(waits ? (['Retry-After'] as const) : []),
    ...(names.includes('TokenRequired') || names.includes('InsufficientScope')
      ? (['WWW-Authenticate'] as const)
      : []),
    ...(status === 405 ? (['Allow'] as const) : []),
    ...(names.includes('UnsupportedContentCoding') ? (['Accept-Encoding'] as const) : []),
    ...(status === 416 ? (['Content-Range', 'ETag', 'Last-Modified'] as const) : []),
  ]);
  const description = [...new Set(lines)].join('; ');
  const own = route.docs?.failure;
  if (own !== undefined) {
    const content = { [JSON_TYPE]: { schema: registry.register('OAuthError', own) } };
    return { description, headers, content };
  }
  const schema = { $ref: '#/components/schemas/Error' };
  const content = { [JSON_TYPE]: { schema, examples: Object.fromEntries(examples) } };
  return { description, headers, content };
}

/** Returns the errors that the definition of a route implies without naming them; `errors` has the others. */
export function impliedErrors(route: AnyRoute): ErrorName[] {
  const names: ErrorName[] = ['InternalError', 'Overloaded', 'Stopping'];
  // The Host check refuses on every route.
  names.push('Forbidden');
  if (route.query !== undefined || route.body !== undefined || route.limits?.includes('CheckPubKey') === true)
    names.push('InvalidInput');
  if (route.body !== undefined) names.push('BodyTooLarge');
  if (route.body !== undefined && route.ownMinimumRate !== true) names.push('BodyTooSlow');
  if (route.body !== undefined && route.body !== 'stream') names.push('UnsupportedContentCoding');
  if (typeof route.body === 'object') names.push('UnsupportedMediaType');
  if (isCounted(route)) names.push('AccessRateLimit');
  const isSessionNeeded = ['session', 'either', 'admin'].includes(route.auth);
  if (isSessionNeeded || route.strictSession === true) names.push('SessionNotFound');
  if (route.feature !== undefined) names.push(MISSING_FEATURE[route.feature]);
  if (route.idempotent === true) names.push('IdempotencyKeyReused');
  // The account of a session is an actor, whose rows are read; every change waits for the journal.
  const readsAccount = route.auth !== 'none';
  if (readsAccount) names.push('Quarantined');
  if (readsAccount || (route.method !== 'GET' && route.method !== 'HEAD')) names.push('JournalUnavailable');
  return names;
}
