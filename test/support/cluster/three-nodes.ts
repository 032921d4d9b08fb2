/**
 * One cluster of three nodes for the test files of a suite, behind a proxy that gives each request to the next node, as a
 * load balancer does. Its people are an administrator and whom the tests sign up.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import http from 'node:http';
import report, { type Test } from 'tap';
import {
  type Answer,
  bearerOf,
  cookieOf,
  expectOk,
  type Json,
  logIn,
  newKey,
  type Person,
  request,
  signUp,
} from '../../../kit/agent.ts';
import { type NodeProcess, type Nodes, startNodes } from '../../../kit/cluster/nodes.ts';
import { listenOnLoopback } from '../../../kit/http.ts';
import { NO_LIMITS } from '../../../kit/launch.ts';
import { type SlowModule, startSlowModule } from '../mcp-clients/slow-module.ts';
import { shared } from '../shared.ts';
import { sharedPostgres } from './postgres.ts';

export interface ThreeNodes {
  readonly cluster: Nodes;
  readonly nodes: readonly [NodeProcess, NodeProcess, NodeProcess];
  /** `BaseUrl` of all nodes; the proxy answers there. */
  readonly baseUrl: string;
  /** Behind the tool `slow_tool`. */
  readonly slow: SlowModule;
  /** A fresh session of the administrator, at this node. */
  adminOf(node: NodeProcess): Promise<string>;
  /** The nodes, and first those that do not own the actor. */
  othersFirst(kind: string, id: string): Promise<readonly [NodeProcess, NodeProcess, NodeProcess]>;
}

/** The nodes that every file of the suite uses; a text says why there is no database here. */
const sharedNodes = shared(startThreeNodes, async (started) => {
  if (typeof started !== 'string') await started.stop();
});

/** A test with the cluster; it is skipped, with the reason why, where there is no database. */
export function nodesTest(name: string, run: (t: Test, nodes: ThreeNodes) => unknown): void {
  report.test(name, async (t) => {
    const started = await sharedNodes(report);
    if (typeof started === 'string') t.pass(name, { skip: started });
    else await run(t, started);
  });
}

async function startThreeNodes(): Promise<(ThreeNodes & { stop(): Promise<void> }) | string> {
  const postgres = await sharedPostgres(report);
  if (typeof postgres === 'string') return postgres;
  const adminKey = newKey();
  const spread = await startSpreader();
  const slow = await startSlowModule();
  const cluster = await startNodes({
    postgres,
    nodes: 3,
    // No node is to be out: a busy machine may hold up a renewal for longer than the default.
    cluster: { leaseMilliseconds: 10_000 },
    configuration: {
      BaseUrl: spread.url,
      Admin: { publicKeys: [adminKey.publicKey] },
      Settings: NO_LIMITS,
      McpTools: {
        slow_tool: {
          endpoint: `${slow.url}/slow`,
          method: 'GET',
          description: 'Never answers.',
          inputSchema: { type: 'object', properties: {} },
        },
      },
    },
  });
  const [a, b, c] = cluster.nodes;
  if (a === undefined || b === undefined || c === undefined) throw new Error('too few nodes');
  const nodes = [a, b, c] as const;
  spread.to(nodes.map(({ url }) => url));
  await signUp(a.url, adminKey);
  return {
    ...{ cluster, nodes, slow, baseUrl: spread.url },
    adminOf: async ({ url }) => cookieOf(expectOk('login', await logIn(url, adminKey))),
    async othersFirst(kind, id) {
      const owner = await cluster.ownerOf(kind, id);
      const [first, second] = nodes.filter((each) => each !== owner);
      if (first === undefined || second === undefined) throw new Error('too few nodes');
      return [first, second, owner];
    },
    async stop() {
      spread.close();
      await cluster.stop();
      slow.close();
    },
  };
}

/** Gives each request to the next target. */
async function startSpreader() {
  let targets: readonly string[] = [];
  let count = 0;
  const server = http.createServer((incoming, response) => {
    const target = new URL(targets[count % targets.length] ?? '');
    count += 1;
    const { method, url: path, headers } = incoming;
    const outgoing = http.request(
      { hostname: target.hostname, port: target.port, method, path, headers },
      (answer) => {
        response.writeHead(answer.statusCode ?? 502, answer.headers);
        answer.pipe(response);
      },
    );
    outgoing.on('error', () => response.destroy());
    response.on('close', () => outgoing.destroy());
    incoming.pipe(outgoing);
  });
  const { port } = await listenOnLoopback(server);
  return {
    url: `http://localhost:${port}`,
    to(urls: readonly string[]) {
      targets = urls;
    },
    close() {
      server.closeAllConnections();
      server.close();
    },
  };
}

/** A request of a browser session. */
export function asked(node: NodeProcess, cookie: string, path: string, body?: unknown): Promise<Answer> {
  return request(`${node.url}${path}`, { headers: { Cookie: cookie }, body });
}

/** The result of one that must succeed. */
export async function resultOf(
  node: NodeProcess,
  cookie: string,
  path: string,
  body?: unknown,
): Promise<Json> {
  return expectOk(`${path} at ${node.name}`, await asked(node, cookie, path, body)).json['result'] as Json;
}

/** The bearer of a log-in with a signature. */
export async function verifiedBearer(node: NodeProcess, { key }: Pick<Person, 'key'>): Promise<string> {
  return await bearerOf(node.url, key);
}

/** `200`, or status and code of the error of an answer. */
export function outcomeOf({ status, json }: Answer): string {
  const code = json['error']?.['code'];
  return code === undefined ? String(status) : `${status}/${String(code)}`;
}

/** `McpServers` of every node from now on. */
export async function configureServers(three: ThreeNodes, cookie: string, servers: object): Promise<void> {
  for (const { gateway } of three.nodes) {
    const { spawnargs } = gateway.process;
    const file = spawnargs[spawnargs.indexOf('--config') + 1] ?? '';
    const configuration = JSON.parse(readFileSync(file, 'utf8')) as object;
    writeFileSync(file, JSON.stringify({ ...configuration, McpServers: servers }));
  }
  await resultOf(three.nodes[0], cookie, '/ProxyAdmin/api/reload', {});
}
