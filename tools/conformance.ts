/**
 * `npm run conformance [-- [--cluster] options of the suite]`: the conformance suite of MCP against the gateway with a mock
 * backend, or against a node that does not own the account. Its proxy adds the bearer; npx fetches the suite and its Node.
 * Scenarios in conformance-failures*.yml must fail, all others must pass.
 */
import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import http from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expectOk, mcpLogin, type Person, request, signUp, updateKey } from '../kit/agent.ts';
import { startNodes } from '../kit/cluster/nodes.ts';
import { startPostgres } from '../kit/cluster/postgres.ts';
import { agree, registerClient } from '../kit/consent.ts';
import { pickPort } from '../kit/free-port.ts';
import { launch, plainEnvironment } from '../kit/launch.ts';
import { startConformanceUpstream } from './conformance-upstream.ts';

/** The line of the suite with the address that a browser is to open. */
const ASKED = /(http\S+\/connect\/authorize\?\S+)/;

const SUITE = [
  '-y',
  '-p',
  'node@24',
  '-p',
  '@modelcontextprotocol/conformance@0.2.0-alpha.12',
  'conformance',
];
const CLUSTER = '--cluster';
/** Expected failures, by the requirements that a run names. */
const FAILURES: Readonly<Record<string, string>> = {
  '2026-07-28': 'conformance-failures-2026-07-28.yml',
};
const FAILURES_OTHERWISE = 'conformance-failures.yml';
/** Raised, never bypassed: the suite sends some hundred requests from one address. */
const RPS = 10_000;

/** Texts that the suite asks for by these names. */
const TEXTS: Readonly<Record<string, { status: number; type: string; body: string }>> = {
  '/text': { status: 200, type: 'text/plain', body: 'This is a simple text response for testing.' },
  '/error': {
    status: 500,
    type: 'application/json',
    body: '{"error":{"code":1,"message":"This tool intentionally returns an error for testing"}}',
  },
  '/progress': {
    status: 200,
    type: 'application/x-ndjson',
    body:
      [0, 50, 100].map((progress) => `{"progress":${progress},"total":100}\n`).join('') +
      '{"result":"done"}\n',
  },
  '/schema': { status: 200, type: 'application/json', body: '{"result":"fine"}' },
  '/static': { status: 200, type: 'text/plain', body: 'This is the content of the static text resource.' },
};
const NO_ARGUMENTS = { type: 'object', properties: {} };
const HEADER_SCHEMA = {
  type: 'object',
  properties: { region: { type: 'string', 'x-mcp-header': 'Region' } },
};
const SCHEMA_2020 = {
  $schema: 'https://json-schema.org/draft/2020-12/schema',
  type: 'object',
  $defs: {
    address: { type: 'object', properties: { street: { type: 'string' }, city: { type: 'string' } } },
  },
  properties: { name: { type: 'string' }, address: { $ref: '#/$defs/address' } },
  additionalProperties: false,
};

function listen(server: http.Server): Promise<string> {
  return new Promise((resolve) =>
    server.listen(0, 'localhost', () =>
      resolve(`http://localhost:${(server.address() as AddressInfo).port}`),
    ),
  );
}

function createBackend(): http.Server {
  return http.createServer((request, response) => {
    const { pathname } = new URL(request.url ?? '/', 'http://backend');
    const { status, type, body } = TEXTS[pathname] ?? { status: 404, type: 'text/plain', body: 'not here' };
    request.resume().on('end', () => response.writeHead(status, { 'content-type': type }).end(body));
  });
}

/** Adds the bearer and changes nothing else. */
function createBearerProxy(target: () => { gateway: string; bearer: string }): http.Server {
  return http.createServer((request, response) => {
    const { gateway, bearer } = target();
    const { hostname, port } = new URL(gateway);
    const headers = { ...request.headers, authorization: `Bearer ${bearer}` };
    const { method, url } = request;
    const outgoing = http.request({ hostname, port, method, path: url, headers }, (answer) => {
      response.writeHead(answer.statusCode ?? 502, answer.headers);
      answer.pipe(response);
    });
    outgoing.on('error', () => response.destroy());
    response.on('close', () => outgoing.destroy());
    request.pipe(outgoing);
  });
}

function configurationOf(backend: string, proxy: string, upstream: string): object {
  const tool = { method: 'GET', description: 'A tool of the conformance suite.', inputSchema: NO_ARGUMENTS };
  return {
    Settings: { ApiRPSLimit: RPS, IpRPSLimit: RPS, PubKeyApiRPSLimit: RPS, McpApiRPSLimit: RPS },
    // Production has the same value: the suite asks whether client documents are offered.
    OAuthDocuments: true,
    // The suite calls from the proxy's own origin.
    AllowedOrigins: [proxy],
    McpTools: {
      test_simple_text: { ...tool, endpoint: `${backend}/text` },
      test_tool_with_progress: { ...tool, endpoint: `${backend}/progress` },
      // The suite listens for messages that these tools of its reference server would cause. Here there are none.
      test_logging_tool: { ...tool, endpoint: `${backend}/text` },
      test_streaming_elicitation: { ...tool, endpoint: `${backend}/text` },
      test_header_param: { ...tool, endpoint: `${backend}/text`, inputSchema: HEADER_SCHEMA },
      test_error_handling: { ...tool, endpoint: `${backend}/error` },
      json_schema_2020_12_tool: { ...tool, endpoint: `${backend}/schema`, inputSchema: SCHEMA_2020 },
    },
    // Its names are those of the suite.
    McpServers: { suite: { url: upstream, prefix: '' } },
    McpResources: {
      'test://static-text': { endpoint: `${backend}/static`, name: 'Static text', mimeType: 'text/plain' },
    },
  };
}

/** Runs the suite against a URL, its words on this terminal; its exit code. */
function runSuite(url: string, further: readonly string[]): Promise<number> {
  const folder = mkdtempSync(join(tmpdir(), 'gatehouse-conformance-'));
  const requirements = further[further.indexOf('--requirements') + 1] ?? '';
  const name = FAILURES[requirements] ?? FAILURES_OTHERWISE;
  const failures = fileURLToPath(new URL(`../../tools/${name}`, import.meta.url));
  const args = [...SUITE, 'server', '--url', url, '--expected-failures', failures, ...further];
  // It leaves a folder of results where it is run.
  const child = spawn('npx', args, { cwd: folder, env: plainEnvironment(), stdio: 'inherit' });
  return new Promise((resolve, reject) => {
    child.once('error', reject);
    child.once('close', (code) => {
      rmSync(folder, { recursive: true, force: true });
      resolve(code ?? 1);
    });
  });
}

/** The gateway that the suite runs against, and a person with an account there. */
interface Target {
  readonly url: string;
  readonly person: Person;
  stop(): Promise<unknown>;
}

async function alone(configuration: object): Promise<Target> {
  const gateway = await launch({ configuration, args: ['--sandbox'] });
  await gateway.said(/mcp server up/);
  return { url: gateway.url, person: await signUp(gateway.url), stop: () => gateway.stop() };
}

/** A node of three that does not own the account. */
async function inCluster(configuration: object): Promise<Target> {
  const postgres = await startPostgres();
  if (typeof postgres === 'string') throw new Error(postgres);
  const cluster = await startNodes({ postgres, nodes: 3, configuration });
  for (const { gateway } of cluster.nodes) await gateway.said(/mcp server up/);
  const [first] = cluster.nodes;
  const person = await signUp(first?.url ?? '');
  const owner = await cluster.ownerOf('user', person.userId);
  const { name = '', url = '' } = cluster.nodes.find((each) => each !== owner) ?? {};
  process.stdout.write(`The node ${owner.name} owns the account, the suite runs against the node ${name}.\n`);
  return {
    url,
    person,
    async stop() {
      await cluster.stop();
      await postgres.stop();
    },
  };
}

const further = process.argv.slice(2).filter((argument) => argument !== CLUSTER);
const start = process.argv.includes(CLUSTER) ? inCluster : alone;
const backend = createBackend();
let bearer = '';
const proxy = createBearerProxy(() => ({ gateway: url, bearer }));
const origin = await listen(proxy);
const upstream = await startConformanceUpstream();
const { url, person, stop } = await start(configurationOf(await listen(backend), origin, upstream.url));
expectOk('update_key', await updateKey(url, person, { mcpAccess: true }));
const login = expectOk('mcp_login', await mcpLogin(url, person.key, Date.now()));
bearer = String(login.json['result']?.['sessionId']);
const code = await runSuite(`${origin}/mcp`, further);
// One that this service has to pass and the suite does not run by itself.
const schemas =
  further.length > 0 ? 0 : await runSuite(`${origin}/mcp`, ['--scenario', 'json-schema-2020-12']);
const folder = mkdtempSync(join(tmpdir(), 'gatehouse-conformance-'));
const authorization = further.length > 0 ? 0 : await runAuthorization(SUITE, url, person, folder);
rmSync(folder, { recursive: true, force: true });
process.exitCode = code || schemas || authorization;
proxy.closeAllConnections();
proxy.close();
await stop();
backend.closeAllConnections();
backend.close();
await upstream.close();

/** The exit code of the suite. `suite`: arguments of npx that start it; `folder`: where it leaves its results. */
async function runAuthorization(
  suite: readonly string[],
  url: string,
  person: Person,
  folder: string,
): Promise<number> {
  const port = await pickPort();
  const clientId = await registerClient(url, 'Conformance suite', `http://127.0.0.1:${port}/callback`);
  const options = ['--port', String(port), '--client-id', clientId, '--resource', `${url}/connect/mcp`];
  const metadata = await request(`${url}/.well-known/oauth-authorization-server`);
  const issuer = String(expectOk('metadata', metadata).json['issuer']);
  const child = spawn('npx', [...suite, 'authorization', '--url', issuer, ...options], {
    cwd: folder,
    env: plainEnvironment(),
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  let text = '';
  let isAnswered = false;
  child.stdout.setEncoding('utf8').on('data', (piece: string) => {
    process.stdout.write(piece);
    text += piece;
    const [, asked] = ASKED.exec(text) ?? [];
    if (asked === undefined || isAnswered || !text.includes('Callback server started')) return;
    isAnswered = true;
    // A fault ends the suite, which waits for the browser.
    agree(url, person, asked)
      .then((callback) => request(callback.href))
      .catch((error: unknown) => {
        process.stderr.write(`${String(error)}\n`);
        child.kill();
      });
  });
  return new Promise((resolve, reject) => {
    child.once('error', reject);
    child.once('close', (code) => resolve(code ?? 1));
  });
}
