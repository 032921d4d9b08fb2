/** Makes a row of `McpTools` of an operation, or says why there is none; what a row does not send is noted. */
import { hash } from 'node:crypto';
import { parseEndpoint } from '../../io/http-client/endpoint.ts';
import { isObject, type JsonObject } from '../../io/mcp/input-schema.ts';
import {
  hasBody,
  type ToolAnnotations,
  type ToolMethod,
  type ToolRow,
  toolFaults,
} from '../../io/mcp/tool.ts';
import { BUILT_IN } from '../../io/mcp/tools/built-in.ts';
import { type Documents, type Located, ReferenceFault } from './documents.ts';
import { type ApiOperation, bodyOf } from './operations.ts';
import { type BodyMember, SchemaCopies } from './schemas.ts';
import { oneLine } from './text.ts';

const TITLE_MAX = 100;
const DESCRIPTION_MAX = 1_000;
const SCHEMA_MAX = 64 * 1024;
const NAME_MAX = 64;
const HASH_CHARACTERS = 8;
/** Names of arguments that every host takes. */
const ARGUMENT = /^[A-Za-z0-9_.-]{1,64}$/;
/** Ignored by the specification: the gateway sets them. */
const OWN_HEADERS = /^(?:accept|content-type|authorization)$/i;
const ANNOTATIONS: Readonly<Record<ToolMethod, ToolAnnotations>> = {
  GET: { readOnlyHint: true },
  POST: { readOnlyHint: false, destructiveHint: false },
  PUT: { readOnlyHint: false, destructiveHint: false, idempotentHint: true },
  PATCH: { readOnlyHint: false, destructiveHint: false },
  DELETE: { readOnlyHint: false, destructiveHint: true, idempotentHint: true },
};

export interface ImportedRow {
  readonly operation: ApiOperation;
  readonly name: string;
  readonly row: ToolRow;
  /** Parts of the operation that the row does not send. */
  readonly notes: readonly string[];
}

export interface LeftOutOperation {
  readonly operation: ApiOperation;
  readonly reason: string;
}

/** Names of the rows, which later imports of the same document repeat. */
export function namesOf(
  operations: readonly ApiOperation[],
  module: string,
): ReadonlyMap<ApiOperation, string> {
  const plain = operations.map((operation) => [operation, plainName(operation, module)] as const);
  const counts = new Map<string, number>();
  for (const [, name] of plain) counts.set(name, (counts.get(name) ?? 0) + 1);
  return new Map(
    plain.map(([operation, name]) => {
      const isFree =
        counts.get(name) === 1 && name.length <= NAME_MAX && !Object.hasOwn(BUILT_IN.tools, name);
      return [operation, isFree ? name : hashedName(operation, name)];
    }),
  );
}

function plainName({ id, method, path }: ApiOperation, module: string): string {
  const own = id ?? `${method.toLowerCase()}${path}`;
  const parts = own.split(/[^A-Za-z0-9_-]/).filter((part) => part !== '');
  return `${module}_${parts.join('_')}`;
}

function hashedName({ method, path }: ApiOperation, name: string): string {
  const digest = hash('sha256', `${method} ${path}`).slice(0, HASH_CHARACTERS);
  return `${name.slice(0, NAME_MAX - 1 - HASH_CHARACTERS)}_${digest}`;
}

export function rowOf(
  documents: Documents,
  operation: ApiOperation,
  name: string,
  module: string,
): ImportedRow | LeftOutOperation {
  try {
    const draft = new RowDraft(documents, operation, module);
    const row = draft.row();
    const fault = faultOf(name, row, module);
    if (fault !== undefined) return { operation, reason: fault };
    return { operation, name, row, notes: [...new Set(draft.notes)] };
  } catch (error) {
    if (!(error instanceof ReferenceFault)) throw error;
    return { operation, reason: error.message };
  }
}

/** The catalog takes the row as it stands. */
function faultOf(name: string, row: ToolRow, module: string): string | undefined {
  const characters = JSON.stringify(row.inputSchema).length;
  if (characters > SCHEMA_MAX) return `its schema has more than ${SCHEMA_MAX / 1024} KiB`;
  const endpoint = parseEndpoint(row.endpoint, new Map([[module, 'http://127.0.0.1:1']]));
  if (!endpoint.ok) return `its path ${endpoint.fault}`;
  const [fault] = toolFaults(name, row);
  return fault === undefined ? undefined : `${fault.path} ${fault.message}`.trim();
}

interface Parameter extends Located {
  readonly value: JsonObject;
  readonly name: string;
  readonly where: string;
  readonly isRequired: boolean;
}

class RowDraft {
  readonly notes: string[] = [];
  readonly #documents: Documents;
  readonly #operation: ApiOperation;
  readonly #module: string;
  readonly #schemas: SchemaCopies;
  readonly #properties: Record<string, JsonObject> = {};
  readonly #required: string[] = [];
  readonly #query: string[] = [];
  #root: string | undefined;

  constructor(documents: Documents, operation: ApiOperation, module: string) {
    this.#documents = documents;
    this.#operation = operation;
    this.#module = module;
    this.#schemas = new SchemaCopies(documents, this.notes);
  }

  row(): ToolRow {
    const { method, summary, description, path } = this.#operation;
    if (!isToolMethod(method)) throw new ReferenceFault(`${method} is no method of a tool`);
    const parameters = this.#parameters();
    for (const parameter of parameters) this.#addElsewhere(parameter);
    this.#addBody(method, parameters);
    const endpoint = `${this.#module}:${this.#addPath(parameters)}`;
    const title = oneLine(summary, TITLE_MAX);
    const said = [summary, description]
      .map((text) => oneLine(text, DESCRIPTION_MAX))
      .filter((text) => text !== '');
    const { definitions } = this.#schemas;
    const isPlaced = hasBody(method) && this.#query.length > 0;
    return {
      endpoint,
      method,
      ...(title === '' ? {} : { title }),
      description: oneLine([...new Set(said)].join(' — '), DESCRIPTION_MAX) || `${method} ${path}`,
      inputSchema: {
        type: 'object',
        properties: this.#properties,
        ...(this.#required.length === 0 ? {} : { required: this.#required }),
        ...(Object.keys(definitions).length === 0 ? {} : { $defs: definitions }),
      },
      ...(isPlaced ? { queryParams: this.#query } : {}),
      ...(this.#root === undefined ? {} : { bodyRootProperty: this.#root }),
      restricted: ['McpBasic'],
      annotations: ANNOTATIONS[method],
    };
  }

  /** A parameter of the operation replaces that of its path. */
  #parameters(): Parameter[] {
    const found = new Map<string, Parameter>();
    for (const each of this.#operation.parameters) {
      const { value, document } = this.#documents.follow(each);
      if (!isObject(value)) continue;
      const { name, in: where, required } = value;
      if (typeof name !== 'string' || typeof where !== 'string') continue;
      found.set(`${where} ${name}`, { value, document, name, where, isRequired: required === true });
    }
    return [...found.values()];
  }

  /** Parameters of the query; what is sent nowhere is noted, or leaves the operation out. */
  #addElsewhere(parameter: Parameter): void {
    const { name, where, isRequired } = parameter;
    if (where === 'path' || where === 'body' || where === 'formData') return;
    if (where === 'header' && OWN_HEADERS.test(name)) return;
    const unfit = where === 'query' ? this.#unfitQuery(parameter) : `${where} ${name} is not sent`;
    if (unfit !== undefined) {
      if (isRequired) throw new ReferenceFault(`${unfit}, and the operation needs it`);
      this.notes.push(unfit);
      return;
    }
    this.#add(name, this.#schemaOf(parameter), isRequired);
    this.#query.push(name);
  }

  #unfitQuery({ name, value, document }: Parameter): string | undefined {
    if (!isArgument(name)) return `query ${name} has a name that clients refuse`;
    const schema = this.#documents.follow({ value: value['schema'] ?? value, document });
    const isObjectValue = isObject(schema.value) && schema.value['type'] === 'object';
    return isObjectValue && value['content'] === undefined ? `query ${name} is an object` : undefined;
  }

  /** A list whose values stand in one text is an argument with that text. */
  #schemaOf({ value, document, where }: Parameter): JsonObject {
    const { schema: given, content, description } = value;
    const [media] = isObject(content) ? Object.values(content) : [];
    const schema = given ?? (isObject(media) ? media['schema'] : undefined) ?? value;
    const { value: followed } = this.#documents.follow({ value: schema, document });
    const separator = where === 'path' ? ',' : separatorOf(value, given !== undefined);
    const said = typeof description === 'string' ? oneLine(description, 200) : '';
    if (isObject(followed) && followed['type'] === 'array' && separator !== undefined) {
      const form = `Values separated by ${JSON.stringify(separator)}.`;
      return { type: 'string', description: said === '' ? form : `${said} ${form}` };
    }
    const copy = this.#schemas.copy({ value: schema, document, isText: true });
    return said === '' ? copy : { ...copy, description: said };
  }

  #addBody(method: ToolMethod, parameters: readonly Parameter[]): void {
    const body = bodyOf(this.#documents, this.#operation, parameters);
    if (body.kind === 'none') return;
    const unfit = !hasBody(method)
      ? `a body of ${method} is not sent`
      : body.kind === 'other'
        ? `its body is ${body.types.join(' or ')}, and rows send JSON`
        : undefined;
    if (unfit !== undefined && body.isRequired) throw new ReferenceFault(unfit);
    if (unfit !== undefined) this.notes.push(unfit);
    if (unfit !== undefined || body.kind === 'other') return;
    const members = [...(this.#schemas.members(body.schema)?.values() ?? [])];
    if (members.length > 0 && members.every((member) => this.#isFree(member)))
      for (const { name, value, document, isRequired } of members)
        this.#add(name, this.#schemas.copy({ value, document, isText: false }), isRequired);
    else {
      const root = this.#freeName('body');
      this.#root = root;
      this.#add(root, this.#schemas.copy({ ...body.schema, isText: false }), body.isRequired);
    }
  }

  #isFree({ name }: BodyMember): boolean {
    return isArgument(name) && !Object.hasOwn(this.#properties, name);
  }

  #freeName(base: string): string {
    let name = base;
    while (Object.hasOwn(this.#properties, name)) name = `${name}_`;
    return name;
  }

  /** The path with an argument for each placeholder. Their names are the row's own, so they are renamed on a conflict. */
  #addPath(parameters: readonly Parameter[]): string {
    return this.#operation.path.replace(/\{([^{}]*)\}/g, (_, name: string) => {
      const parameter = parameters.find((each) => each.where === 'path' && each.name === name);
      const plain = name
        .replace(/[^A-Za-z0-9_]/g, '_')
        .replace(/^(?=\d|$)/, '_')
        .slice(0, NAME_MAX - 8);
      const isTaken = Object.hasOwn(this.#properties, plain);
      const own = this.#freeName(isTaken ? `path_${plain}` : plain);
      this.#add(own, parameter === undefined ? { type: 'string' } : this.#schemaOf(parameter), true);
      return `{${own}}`;
    });
  }

  #add(name: string, schema: JsonObject, isRequired: boolean): void {
    this.#properties[name] = schema;
    if (isRequired) this.#required.push(name);
  }
}

/**
 * Returns the separator between values of one text; undefined where each value is sent by itself, as the gateway does.
 */
function separatorOf({ style, explode, collectionFormat }: JsonObject, isNewer: boolean): string | undefined {
  if (!isNewer) {
    if (collectionFormat === 'multi') return undefined;
    return { ssv: ' ', tsv: '\t', pipes: '|' }[String(collectionFormat)] ?? ',';
  }
  if (style === 'spaceDelimited') return ' ';
  if (style === 'pipeDelimited') return '|';
  return explode === false ? ',' : undefined;
}

function isArgument(name: string): boolean {
  return ARGUMENT.test(name) && name !== '__proto__';
}

function isToolMethod(method: string): method is ToolMethod {
  return Object.hasOwn(ANNOTATIONS, method);
}
