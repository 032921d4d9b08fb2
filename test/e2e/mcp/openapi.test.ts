/**
 * OpenAPI documents of five services, as their makers publish them: imported by the program, checked, and ten rows of each
 * called against a fake of the service. What arrives there is compared with the document, not with the row.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import http from 'node:http';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { parse as parseJsonc } from 'jsonc-parser';
import t, { type Test } from 'tap';
import { parse as parseYaml } from 'yaml';
import { bearerOf, callTool, signUpAgent } from '../../../kit/agent.ts';
import { listenFor } from '../../../kit/http.ts';
import { entryOf, launchFor, NO_LIMITS, plainEnvironment, runToEnd } from '../../../kit/launch.ts';
import { outputOf, PROGRAMS } from '../../../kit/run-sync.ts';
import { runCommand } from '../../support/command.ts';
import { NODE, unavailable } from '../../support/connect/peers.ts';
import { temporaryFolder } from '../../support/files/file-storage.ts';
import { type Schema, sampleOf } from '../../support/upstreams/schema-samples.ts';

t.setTimeout(240_000);

/** By module, with the least number of rows: OpenAPI 3.1 in YAML, 2.0 in JSON, 3.0 in JSON and in YAML, 3.1 in JSON. */
const DOCUMENTS = {
  figma: ['@figma/rest-api-spec/openapi/openapi.yaml', 50],
  netlify: ['@netlify/open-api/dist/swagger.json', 177],
  directus: ['@directus/specs/dist/openapi.json', 136],
  postcodes: ['@ideal-postcodes/openapi/dist/openapi.yaml', 31],
  readme: ['@readme/oas-examples/3.1/json/readme.json', 54],
} as const;
type Name = keyof typeof DOCUMENTS;
const NAMES = Object.keys(DOCUMENTS) as Name[];
const CALLS = 10;
const fileOf = (name: Name) => join(PROGRAMS, 'node_modules', DOCUMENTS[name][0]);

interface Row {
  readonly endpoint: string;
  readonly method: string;
  readonly inputSchema: Schema;
}
interface Imported {
  readonly Modules: object;
  readonly McpTools: Readonly<Record<string, Row>>;
}
interface Parameter {
  readonly name: string;
  readonly in: string;
  readonly required?: boolean;
  readonly $ref?: string;
}
interface Operation {
  readonly operationId?: string;
  readonly parameters?: readonly Parameter[];
}
interface Received {
  readonly method: string;
  readonly path: string;
  readonly query: readonly string[];
  readonly body: string;
}

const imported = new Map<Name, Imported & { readonly text: string }>();
for (const name of NAMES)
  t.test(`openapi import: ${name} has no fault, and the program takes every row`, async (t) => {
    const run = name === 'postcodes' ? runToEnd : runCommand;
    const { code, stdout, stderr } = await run(['import-openapi', fileOf(name), '--module', name]);
    t.match({ code, stderr }, { code: 0, stderr: '' });
    const file = parseJsonc(stdout) as Imported;
    const rows = Object.keys(file.McpTools).length;
    t.ok(rows >= DOCUMENTS[name][1], `${rows} rows`);
    imported.set(name, { ...file, text: stdout });
    const folder = temporaryFolder(t);
    writeFileSync(join(folder, 'imported.jsonc'), stdout);
    const checked = await runCommand(['check-config', '--config', join(folder, 'imported.jsonc')]);
    t.match(checked, { code: 0, stdout: 'configuration: no faults\n' });
  });

t.test('openapi import: a newer Node prints the same', { skip: unavailable }, async (t) => {
  for (const name of NAMES) {
    const args = ['import-openapi', fileOf(name), '--module', name];
    const newer = outputOf(NODE, [entryOf(), ...args], { env: plainEnvironment() });
    t.equal(newer, imported.get(name)?.text, name);
  }
});

async function startFake(t: Test) {
  const received: Received[] = [];
  const server = http.createServer(async (request, response) => {
    const { pathname, searchParams } = new URL(request.url ?? '', 'http://x');
    const { method = '' } = request;
    const query = [...searchParams.keys()];
    received.push({ method, path: decodeURIComponent(pathname), query, body: await text(request) });
    response.writeHead(200, { 'content-type': 'application/json' }).end('{"ok":true}');
  });
  const { url } = await listenFor(t, server);
  return { received, url };
}

function operationFor(document: Schema, { method, path }: Received): Operation | undefined {
  const paths = document['paths'] as Record<string, Record<string, Operation> & Operation>;
  const fits = (template: string) =>
    new RegExp(`^${template.replace(/[.*+?^$()[\]\\|]/g, '\\$&').replace(/\{[^{}]*\}/g, '[^/]+')}$`).test(
      path,
    );
  // A template without placeholders wins.
  const [template = ''] = Object.keys(paths)
    .filter((each) => fits(each) && paths[each]?.[method.toLowerCase()] !== undefined)
    .sort((a, b) => a.split('{').length - b.split('{').length);
  const item = paths[template];
  const operation = item?.[method.toLowerCase()];
  if (item === undefined || operation === undefined) return undefined;
  const parameters = [...(item.parameters ?? []), ...(operation.parameters ?? [])];
  return { ...operation, parameters: parameters.map((each) => followed(document, each)) };
}

function followed(document: Schema, parameter: Parameter): Parameter {
  if (parameter.$ref === undefined) return parameter;
  let value: unknown = document;
  for (const step of parameter.$ref.slice(2).split('/')) value = (value as Record<string, unknown>)[step];
  return value as Parameter;
}

/** Spread over the document. */
function rowsOf(name: Name): (readonly [tool: string, row: Row])[] {
  const rows = Object.entries(imported.get(name)?.McpTools ?? {});
  const chosen = Array.from({ length: CALLS }, (_, at) => rows[Math.floor((at * rows.length) / CALLS)]);
  return chosen.filter((each) => each !== undefined);
}

t.test('openapi import: ten rows of each document arrive at the service as it describes them', async (t) => {
  const fake = await startFake(t);
  const chosen = new Map(NAMES.map((name) => [name, rowsOf(name)]));
  const gateway = await launchFor(t, {
    configuration: {
      Modules: Object.fromEntries(NAMES.map((name) => [name, { url: fake.url }])),
      McpTools: Object.fromEntries([...chosen.values()].flat()),
      Settings: NO_LIMITS,
    },
  });
  const person = await signUpAgent(gateway.url);
  const bearer = await bearerOf(gateway.url, person.key);
  const methods = new Set<string>();
  for (const name of NAMES) {
    const source = readFileSync(fileOf(name), 'utf8');
    const document = (fileOf(name).endsWith('.json') ? JSON.parse(source) : parseYaml(source)) as Schema;
    for (const [tool, row] of chosen.get(name) ?? []) {
      const values = sampleOf(row.inputSchema) as Record<string, unknown>;
      fake.received.length = 0;
      const answer = await callTool(gateway.url, bearer, tool, values);
      t.match(
        answer.json['result'],
        { content: [{ text: '{"ok":true}' }] },
        `${tool} ${JSON.stringify(values)}`,
      );
      const [request] = fake.received;
      if (request === undefined) continue;
      methods.add(request.method);
      const operation = operationFor(document, request);
      const named = operation?.operationId?.replace(/[^A-Za-z0-9_-]+/g, '_') ?? '';
      t.ok(
        operation !== undefined && tool.startsWith(`${name}_${named}`.slice(0, 50)),
        `${tool}: ${request.path}`,
      );
      const inQuery = operation?.parameters?.filter((each) => each.in === 'query') ?? [];
      t.same(
        request.query.filter((each) => !inQuery.some((one) => one.name === each)),
        [],
        `${tool}: query`,
      );
      const needed = inQuery.filter(({ required }) => required === true).map((one) => one.name);
      t.same(
        needed.filter((each) => !request.query.includes(each)),
        [],
        `${tool}: what the query needs`,
      );
      if (request.body !== '') t.type(JSON.parse(request.body), Object, `${tool}: body`);
    }
  }
  for (const method of ['GET', 'POST', 'PATCH', 'DELETE']) t.ok(methods.has(method), method);
});

t.test('openapi import: the example of the page is what the program prints', async (t) => {
  const [, section = ''] = readFileSync('docs/upstreams.md', 'utf8').split(
    '## An HTTP service by its OpenAPI document\n',
  );
  const [, document = ''] = /```yaml\n([\s\S]*?)```/.exec(section) ?? [];
  const [, rows = ''] = /```jsonc\n([\s\S]*?)```/.exec(section) ?? [];
  const [, command = ''] = /`gatehouse (import-openapi [^>`]*) > shop\.jsonc`/.exec(section) ?? [];
  const folder = temporaryFolder(t);
  writeFileSync(join(folder, 'shop.yaml'), document);
  const [name = '', file = '', ...rest] = command.split(' ');
  const { stdout } = await runCommand([name, join(folder, file), ...rest]);
  const version = / by gatehouse \d+\.\d+\.\d+\./;
  t.equal(stdout.replace(`${folder}/`, '').replace(version, ''), rows.replace(version, ''));
});
