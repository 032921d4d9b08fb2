/**
 * A typed client for fetch, generated from a description of the API into a temporary folder: its functions by operation,
 * and the compiler's word on a call of each with the examples of the description.
 */
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { programRequire, runSync } from '../../kit/run-sync.ts';

export interface Parameter {
  readonly name: string;
  readonly in: 'path' | 'query' | 'header';
  readonly required: boolean;
  readonly example?: unknown;
}
interface Media {
  readonly schema: { readonly $ref?: string };
  readonly example?: unknown;
  readonly examples?: Readonly<Record<string, { readonly value?: unknown }>>;
}
export interface Operation {
  readonly operationId: string;
  readonly parameters?: readonly Parameter[];
  readonly requestBody?: { readonly required: boolean; readonly content: Readonly<Record<string, Media>> };
  readonly responses: Readonly<
    Record<string, { readonly headers?: object; readonly content?: Readonly<Record<string, Media>> }>
  >;
}
export interface Description {
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>;
  readonly components: { readonly schemas: object };
}

/** Values by the names of the description. A body of bytes is a text. */
export interface Call {
  readonly path?: Readonly<Record<string, unknown>>;
  readonly query?: Readonly<Record<string, unknown>>;
  readonly head?: Readonly<Record<string, unknown>>;
  readonly body?: unknown;
}

type Answer = { readonly status: number; readonly headers: Headers; readonly data: unknown };
type Run = (values?: object, options?: object) => Promise<Answer>;

export interface TypedClient {
  /** Complaints of the compiler about the client and its calls; empty when there are none. */
  readonly complaints: string;
  run(operation: Operation, call: Call, options: object): Promise<Answer>;
  remove(): void;
}

/** Names that the generator marks, as they are words of the language. */
const RESERVED: ReadonlySet<string> = new Set(['module', 'from']);

export async function generateClient(description: Description, baseUrl: string): Promise<TypedClient> {
  const folder = mkdtempSync(join(tmpdir(), 'typed-client-'));
  const generator = pathToFileURL(programRequire.resolve('oazapfts')).href;
  const { generateSource } = (await import(generator)) as {
    generateSource(file: string, options: object): Promise<string>;
  };
  const file = join(folder, 'openapi.json');
  writeFileSync(file, JSON.stringify(description));
  mkdirSync(join(folder, 'src'));
  writeFileSync(join(folder, 'package.json'), '{"type":"module"}');
  writeFileSync(join(folder, 'src/client.ts'), await generateSource(file, { argumentStyle: 'object' }));
  writeFileSync(join(folder, 'src/calls.ts'), callsOf(description));
  symlinkSync(resolve('node_modules'), join(folder, 'node_modules'));
  const compiler = resolve('node_modules/typescript/lib/tsc.js');
  const options = '--strict --module nodenext --target es2023 --lib es2023,dom --types node --skipLibCheck';
  const compiled = runSync(
    process.execPath,
    [compiler, ...options.split(' '), '--outDir', 'out', 'src/client.ts', 'src/calls.ts'],
    { cwd: folder },
  );
  const client = (await import(pathToFileURL(join(folder, 'out/client.js')).href)) as Record<string, Run> & {
    defaults: { baseUrl: string };
  };
  client.defaults.baseUrl = baseUrl;
  return {
    complaints: `${compiled.stdout}${compiled.stderr}`,
    run(operation, call, options) {
      const run = client[camel(operation.operationId)];
      if (run === undefined) throw new Error(`the client has no ${operation.operationId}`);
      const values = valuesOf(operation, call, (text) => new Blob([text]));
      return takesNothing(operation) ? run(options) : run(values, options);
    },
    remove: () => rmSync(folder, { recursive: true, force: true }),
  };
}

export function operationsOf({ paths }: Description): Operation[] {
  return Object.values(paths).flatMap((methods) => Object.values(methods));
}

/** Each example of each operation as a call that the compiler judges. */
function callsOf(description: Description): string {
  const lines = operationsOf(description).flatMap((operation) =>
    examplesOf(operation).map((call) => {
      const values = valuesOf(operation, call, () => BYTES);
      const text = JSON.stringify(values).replaceAll(JSON.stringify(BYTES), 'new Blob([])');
      return `  () => client.${camel(operation.operationId)}(${takesNothing(operation) ? '' : text}),`;
    }),
  );
  return `import * as client from './client.js';\nexport const calls = [\n${lines.join('\n')}\n];\n`;
}

const BYTES = '\u0001bytes';

/** The calls that the description shows. */
export function examplesOf({ parameters = [], requestBody }: Operation): Call[] {
  const placed = (place: Parameter['in']) =>
    Object.fromEntries(
      parameters.flatMap((each) => (each.in === place && each.required ? [[each.name, each.example]] : [])),
    );
  const shared = { path: placed('path'), query: placed('query'), head: placed('header') };
  const [media] = Object.values(requestBody?.content ?? {});
  if (media === undefined) return [shared];
  if (media.schema.$ref === undefined) return [{ ...shared, body: '' }];
  const bodies = Object.values(media.examples ?? { only: { value: media.example } });
  return bodies.map(({ value }) => ({ ...shared, body: value }));
}

function takesNothing({ parameters = [], requestBody }: Operation): boolean {
  return parameters.length === 0 && requestBody === undefined;
}

/** The one argument of a function of the client. */
function valuesOf(operation: Operation, call: Call, bytes: (text: string) => unknown): object {
  const values: Record<string, unknown> = {};
  for (const { name, in: place } of operation.parameters ?? []) {
    const value = call[place === 'header' ? 'head' : place]?.[name];
    if (value === undefined) continue;
    const plain = camel(name);
    const twice = operation.parameters?.some((each) => each.name !== name && camel(each.name) === plain);
    const suffix = twice === true && place === 'header' ? 'Header' : '';
    values[RESERVED.has(plain) ? `$${plain}` : `${plain}${suffix}`] = value;
  }
  const [media] = Object.values(operation.requestBody?.content ?? {});
  if (media !== undefined && call.body !== undefined) {
    const { $ref } = media.schema;
    if ($ref === undefined) values['body'] = bytes(String(call.body));
    else values[camel($ref.split('/').at(-1) ?? '')] = call.body;
  }
  return values;
}

/** `X-MCP-Code` gives `xMcpCode`. */
function camel(name: string): string {
  const words = name
    .split(/[^A-Za-z0-9]+|(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])/)
    .filter((word) => word !== '');
  const capital = (word: string) => `${word.charAt(0).toUpperCase()}${word.slice(1).toLowerCase()}`;
  return words.map((word, place) => (place === 0 ? word.toLowerCase() : capital(word))).join('');
}
