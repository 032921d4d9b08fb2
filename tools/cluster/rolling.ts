/** Nodes behind one address whose clients work while nodes join, leave and restart. */
import { setTimeout as wait } from 'node:timers/promises';
import { Agent } from 'undici';
import { expectOk, mcpLogin, type Person, signUpAgent, untilAvailable } from '../../kit/agent.ts';
import { type NodeProcess, type Nodes, startNodes } from '../../kit/cluster/nodes.ts';
import type { Postgres } from '../../kit/cluster/postgres.ts';
import type { Exit } from '../../kit/launch.ts';
import { NO_LIMITS } from '../../kit/launch.ts';
import { startBalancer } from './balancer.ts';
import { type Client, type LoadReport, startLoad } from './load.ts';

const POLL_MS = 20;

export interface RollingOptions {
  readonly postgres: Postgres;
  readonly nodes: number;
  readonly clients: number;
  /** Wait of a client between an answer and its next request. */
  readonly pauseMs: number;
  /** Starts another proxy in front of these nodes, and resolves with its address; default: the balancer of this folder. */
  readonly front?: (nodes: readonly string[]) => Promise<string>;
}

export interface Rolling {
  readonly cluster: Nodes;
  readonly url: string;
  /** Runs it while the clients work. */
  under(work: () => Promise<void>): Promise<LoadReport>;
  /**
   * Ends a node with SIGTERM and starts it again, as a rolling restart does. Resolves when it gets connections. `ended`: between
   * both.
   */
  restart(node: NodeProcess, ended?: () => Promise<void>): Promise<Exit>;
  /** A further node; resolves when it gets connections. */
  join(): Promise<NodeProcess>;
  stop(): Promise<void>;
}

export async function startRolling(options: RollingOptions): Promise<Rolling> {
  const { postgres, nodes, clients, pauseMs, front } = options;
  const cluster = await startNodes({ postgres, nodes, configuration: { Settings: NO_LIMITS } });
  const balancer = await startBalancer({ port: 0, nodes: () => cluster.nodes.map((each) => each.url) });
  const dispatchers: Agent[] = [];
  const stop = async () => {
    await Promise.all(dispatchers.map((each) => each.destroy()));
    balancer.close();
    await cluster.stop();
  };
  const isHealthy = async (node: NodeProcess) => {
    while (balancer.condition(node.url) !== 'healthy') await wait(POLL_MS);
  };
  try {
    const url =
      front === undefined
        ? `http://127.0.0.1:${balancer.port}`
        : await front(cluster.nodes.map((each) => each.url));
    const people: Client[] = [];
    for (let index = 0; index < clients; index += 1) {
      const dispatcher = new Agent({ connections: 1 });
      dispatchers.push(dispatcher);
      people.push({ ...(await untilAvailable(() => signUpForTools(url))), dispatcher });
    }
    return {
      cluster,
      url,
      async under(work) {
        const load = startLoad(url, people, pauseMs);
        try {
          await work();
        } finally {
          await load.stop();
        }
        return await load.stop();
      },
      async restart(node, ended = async () => undefined) {
        node.gateway.process.kill('SIGTERM');
        const exit = await node.gateway.exited;
        await ended();
        await node.start();
        await isHealthy(node);
        return exit;
      },
      async join() {
        const node = await cluster.add();
        await isHealthy(node);
        return node;
      },
      stop,
    };
  } catch (error) {
    await stop();
    throw error;
  }
}

/** A person whose key may call tools, with a session of a tool caller that the log-ins of its load do not end. */
async function signUpForTools(url: string): Promise<{ person: Person; bearer: string }> {
  const person = await signUpAgent(url);
  const login = expectOk('mcp_login', await mcpLogin(url, person.key, Date.now()));
  return { person, bearer: String(login.json['result']?.['sessionId']) };
}
