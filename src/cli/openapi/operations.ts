/** The operations of a document, in its order, with the parts of each as both generations of OpenAPI write them. */
import { withoutTrailing } from '../../domain/host-port.ts';
import { isObject, type JsonObject } from '../../io/mcp/input-schema.ts';
import type { Documents, Located } from './documents.ts';

const METHODS = ['get', 'put', 'post', 'delete', 'options', 'head', 'patch', 'trace', 'query'] as const;
/** Media types that take a JSON body, the best first. */
const JSON_TYPES = [
  /^application\/json(?:\s*;.*)?$/i,
  /^[^;]*\+json(?:\s*;.*)?$/i,
  /^text\/json/i,
  /^\*\/\*$/,
];

export interface ApiOperation {
  readonly method: string;
  readonly path: string;
  /** Id in the document; undefined where it has none. */
  readonly id: string | undefined;
  readonly tags: readonly string[];
  readonly summary: string;
  readonly description: string;
  readonly isDeprecated: boolean;
  /** Parameters of the operation and of its path, references not followed. */
  readonly parameters: readonly Located[];
  readonly value: JsonObject;
  readonly document: string;
}

/** A body that is JSON, or the types of one that is not. */
export type Body =
  | { readonly kind: 'none' }
  | { readonly kind: 'json'; readonly schema: Located; readonly isRequired: boolean }
  | { readonly kind: 'other'; readonly types: readonly string[]; readonly isRequired: boolean };

/** Throws `ReferenceFault` for a path whose reference names nothing. */
export function operationsOf(documents: Documents): ApiOperation[] {
  const { value: root, document } = documents.root;
  const paths = isObject(root) && isObject(root['paths']) ? root['paths'] : {};
  return Object.entries(paths).flatMap(([path, item]) => {
    const followed = documents.follow({ value: item, document });
    if (!isObject(followed.value)) return [];
    const shared = listOf(followed.value['parameters']);
    const { value: methods } = followed;
    return METHODS.filter((method) => isObject(methods[method])).map((method) =>
      operationOf(path, method, methods[method] as JsonObject, shared, followed.document),
    );
  });
}

function operationOf(
  path: string,
  method: string,
  value: JsonObject,
  shared: readonly unknown[],
  document: string,
): ApiOperation {
  const { operationId: id, tags, summary, description, deprecated } = value;
  return {
    method: method.toUpperCase(),
    path,
    id: typeof id === 'string' && id !== '' ? id : undefined,
    tags: listOf(tags).filter((tag) => typeof tag === 'string'),
    summary: typeof summary === 'string' ? summary : '',
    description: typeof description === 'string' ? description : '',
    isDeprecated: deprecated === true,
    // Those of the operation come last and win.
    parameters: [...shared, ...listOf(value['parameters'])].map((each) => ({ value: each, document })),
    value,
    document,
  };
}

/** Returns the body of an operation: `requestBody` in OpenAPI 3, the parameters `body` and `formData` in 2.0. */
export function bodyOf(
  documents: Documents,
  { value, document }: ApiOperation,
  parameters: readonly (Located & { readonly value: JsonObject })[],
): Body {
  const given = documents.follow({ value: value['requestBody'], document });
  if (isObject(given.value)) {
    const { content, required } = given.value;
    return ofContent(isObject(content) ? content : {}, given.document, required === true);
  }
  const form = parameters.filter((each) => each.value['in'] === 'formData');
  const isRequired = (each: { value: JsonObject }) => each.value['required'] === true;
  if (form.length > 0) return { kind: 'other', types: ['a form'], isRequired: form.some(isRequired) };
  const body = parameters.find((each) => each.value['in'] === 'body');
  if (body === undefined) return { kind: 'none' };
  const types = consumedTypes(documents, value);
  return types.length === 0 || types.some(isJson)
    ? {
        kind: 'json',
        schema: { value: body.value['schema'], document: body.document },
        isRequired: isRequired(body),
      }
    : { kind: 'other', types, isRequired: isRequired(body) };
}

function ofContent(content: JsonObject, document: string, isRequired: boolean): Body {
  const types = Object.keys(content);
  for (const form of JSON_TYPES) {
    const type = types.find((each) => form.test(each));
    const media = type === undefined ? undefined : content[type];
    if (isObject(media)) return { kind: 'json', schema: { value: media['schema'], document }, isRequired };
  }
  return types.length === 0 ? { kind: 'none' } : { kind: 'other', types, isRequired };
}

function consumedTypes({ root }: Documents, { consumes }: JsonObject): string[] {
  const whole = isObject(root.value) ? root.value['consumes'] : undefined;
  return listOf(consumes ?? whole).filter((type) => typeof type === 'string');
}

function isJson(type: string): boolean {
  return JSON_TYPES.some((form) => form.test(type));
}

function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}

/** The address of the service as the document has it; undefined where it names no host. */
export function serverOf({ root }: Documents): string | undefined {
  if (!isObject(root.value)) return undefined;
  const { servers, host, basePath, schemes } = root.value;
  const [first] = listOf(servers);
  const url = isObject(first) ? serverUrl(first) : undefined;
  const base = root.document.startsWith('file:') ? undefined : root.document;
  if (url !== undefined) return absolute(url, base);
  if (typeof host !== 'string') return undefined;
  const scheme = listOf(schemes).includes('https') || listOf(schemes).length === 0 ? 'https' : 'http';
  return absolute(`${scheme}://${host}${typeof basePath === 'string' ? basePath : ''}`, base);
}

/** Variables have their defaults. */
function serverUrl({ url, variables }: JsonObject): string | undefined {
  if (typeof url !== 'string') return undefined;
  return url.replace(/\{([^{}]*)\}/g, (whole, name: string) => {
    const variable = isObject(variables) ? variables[name] : undefined;
    return isObject(variable) && variable['default'] !== undefined ? String(variable['default']) : whole;
  });
}

function absolute(url: string, base: string | undefined): string | undefined {
  if (!URL.canParse(url, base)) return undefined;
  const { protocol, origin, pathname } = new URL(url, base);
  if (protocol !== 'https:' && protocol !== 'http:') return undefined;
  return `${origin}${withoutTrailing(pathname, '/')}`;
}
