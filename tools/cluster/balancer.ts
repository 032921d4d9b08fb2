/**
 * One port in front of several nodes. Each connection goes to the next node that answers /health with 200; one that cannot
 * be opened goes to another node. Bytes are passed on as they are.
 */
import { request } from 'node:http';
import { connect, createServer, type Socket } from 'node:net';

const HOST = '127.0.0.1';
const CHECK_MS = 100;
/** A node that takes longer than this to answer is silent, as one that has ended. */
const ANSWER_MS = 1_000;

/** A busy machine may make one check late: connections are cut after so many in a row. */
const SILENT_CHECKS = 2;

export type Condition = 'healthy' | 'unhealthy' | 'silent';

export interface Balancer {
  readonly port: number;
  /** Returns the condition at the last check; silent before the first one. */
  condition(url: string): Condition;
  /** Asks all nodes now. */
  check(): Promise<void>;
  close(): void;
}

export interface BalancerOptions {
  /** 0: the system picks one. */
  readonly port: number;
  /** Addresses of the nodes; asked before each check. */
  readonly nodes: () => readonly string[];
}

interface Target {
  readonly url: string;
  readonly port: number;
  condition: Condition;
  silentChecks: number;
  readonly sockets: Set<Socket>;
}

/** Rejects with the error of the system when the port is taken. */
export async function startBalancer({ port, nodes }: BalancerOptions): Promise<Balancer> {
  const targets = new Map<string, Target>();
  let next = 0;
  const check = async () => {
    for (const url of nodes())
      if (!targets.has(url))
        targets.set(url, {
          url,
          port: Number(new URL(url).port),
          condition: 'silent',
          silentChecks: 0,
          sockets: new Set(),
        });
    await Promise.all([...targets.values()].map(checkTarget));
  };
  /** Healthy nodes, those that had a connection longest ago first. */
  const candidates = (): Target[] => {
    const healthy = [...targets.values()].filter((each) => each.condition === 'healthy');
    next += 1;
    return healthy
      .map((_, index) => healthy[(next + index) % healthy.length])
      .filter((each) => each !== undefined);
  };
  const server = createServer((client) => {
    client.setNoDelay(true).pause();
    client.on('error', () => client.destroy());
    open(client, candidates());
  });
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject).listen(port, HOST, resolve);
  });
  await check();
  let timer: NodeJS.Timeout | undefined;
  let isClosed = false;
  const repeat = () => {
    timer = setTimeout(() => {
      void check().then(() => isClosed || repeat());
    }, CHECK_MS);
  };
  repeat();
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('the balancer has no port');
  return {
    port: address.port,
    condition: (url) => targets.get(url)?.condition ?? 'silent',
    check,
    close() {
      isClosed = true;
      clearTimeout(timer);
      for (const target of targets.values()) cut(target);
      server.close();
    },
  };
}

/** A node that leaves is unhealthy and ends its connections itself; those of a silent one are cut. */
async function checkTarget(target: Target): Promise<void> {
  target.condition = await ask(target.url);
  target.silentChecks = target.condition === 'silent' ? target.silentChecks + 1 : 0;
  if (target.silentChecks === SILENT_CHECKS) cut(target);
}

function cut({ sockets }: Target): void {
  for (const socket of sockets) socket.destroy();
}

function ask(url: string): Promise<Condition> {
  return new Promise((resolve) => {
    const asked = request(`${url}/health?plain=1`, { agent: false, timeout: ANSWER_MS }, (response) => {
      response.resume();
      resolve(response.statusCode === 200 ? 'healthy' : 'unhealthy');
    });
    asked.once('timeout', () => asked.destroy());
    asked.once('error', () => resolve('silent')).end();
  });
}

/** Opens a connection to the first candidate that accepts one. Without any the client is cut off. */
function open(client: Socket, [target, ...others]: readonly Target[]): void {
  if (target === undefined) {
    client.destroy();
    return;
  }
  const upstream = connect(target.port, HOST).setNoDelay(true);
  const refused = () => open(client, others);
  upstream.once('error', refused);
  upstream.once('connect', () => {
    upstream.off('error', refused);
    target.sockets.add(upstream);
    upstream.on('error', () => client.destroy());
    upstream.once('close', () => {
      target.sockets.delete(upstream);
      client.destroy();
    });
    client.once('close', () => upstream.destroy());
    if (client.destroyed) upstream.destroy();
    client.pipe(upstream);
    upstream.pipe(client);
  });
}
