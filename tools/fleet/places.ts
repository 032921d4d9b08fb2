/** Where a fleet's day takes place: one process, or nodes of a cluster of which each request reaches one by chance. */
import { type NodeProcess, type Nodes, type NodesOptions, startNodes } from '../../kit/cluster/nodes.ts';
import { pickPort } from '../../kit/free-port.ts';
import { launch, NO_FILE_LIMITS, type RunningGateway } from '../../kit/launch.ts';
import { MODULE_KEY } from './events.ts';

const Modules = { core: { url: 'http://127.0.0.1:9', key: MODULE_KEY } };
const Settings = {
  ...NO_FILE_LIMITS,
  ConnectionsPerNetworkPercent: 0,
  EventReorderMilliseconds: 0,
  SseStreamsPerAddress: 50_000,
  SseStreamsPerSession: 100,
};

/** Thousands of streams on one machine hold up a node for longer than the default. */
const LEASE_MS = 5_000;

export interface FleetPlace {
  /** Address for the next request. */
  readonly url: string;
  /** Address to which modules push. */
  readonly internal: string;
  /** `kill -9`, and a start once the place has taken note. Resolves when all serves again. */
  killAndStart(): Promise<void>;
  stop(): Promise<unknown>;
}

/** `plant`: the program is gone, and its folder lies still: what a test does to it must be found. */
export async function openProcess(dataPath: string, plant?: (dataPath: string) => void): Promise<FleetPlace> {
  const port = await pickPort();
  const start = () => launch({ dataPath, port, args: ['--sandbox'], configuration: { Modules, Settings } });
  return new Process(await start(), start, () => plant?.(dataPath));
}

class Process implements FleetPlace {
  #gateway: RunningGateway;
  readonly #start: () => Promise<RunningGateway>;
  readonly #plant: () => void;

  constructor(gateway: RunningGateway, start: () => Promise<RunningGateway>, plant: () => void) {
    this.#gateway = gateway;
    this.#start = start;
    this.#plant = plant;
  }

  get url(): string {
    return this.#gateway.url;
  }

  get internal(): string {
    return this.#gateway.internal;
  }

  async killAndStart(): Promise<void> {
    await this.#gateway.kill();
    this.#plant();
    this.#gateway = await this.#start();
  }

  stop(): Promise<unknown> {
    return this.#gateway.stop();
  }
}

/** Nodes over one folder of files, or over a bucket of `objectStorage`. */
export async function openNodes(
  place: Pick<NodesOptions, 'postgres' | 'nodes' | 'objectStorage'>,
  random: () => number,
): Promise<FleetPlace> {
  return new SomeNodes(
    await startNodes({
      ...{ ...place, modules: Modules, configuration: { Settings } },
      cluster: { leaseMilliseconds: LEASE_MS },
    }),
    random,
  );
}

class SomeNodes implements FleetPlace {
  readonly #nodes: Nodes;
  readonly #random: () => number;

  constructor(nodes: Nodes, random: () => number) {
    this.#nodes = nodes;
    this.#random = random;
  }

  get url(): string {
    return this.#pick().url;
  }

  get internal(): string {
    return this.#pick().gateway.internal;
  }

  async killAndStart(): Promise<void> {
    const node = this.#pick();
    await node.gateway.kill();
    await this.#nodes.isOut(node);
    await node.start();
  }

  stop(): Promise<unknown> {
    return this.#nodes.stop();
  }

  #pick(): NodeProcess {
    const { nodes } = this.#nodes;
    const node = nodes[Math.floor(this.#random() * nodes.length)];
    if (node === undefined) throw new Error('no node was started');
    return node;
  }
}
