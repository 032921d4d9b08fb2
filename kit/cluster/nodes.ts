/**
 * Starts the program as nodes of one cluster over an embedded PostgreSQL, for tests, benchmarks and tools. The database
 * and the links of each node are behind proxies of their own, so that both can be cut.
 */
import { randomBytes } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { homeOf, ownersOf } from '../../src/domain/partitions.ts';
import { Database } from '../../src/io/cluster/database.ts';
import { listNodes, type NodeRecord } from '../../src/io/cluster/node-table.ts';
import { type RunningSandbox, startSandbox } from '../../src/sandbox/start.ts';
import { untilHolds } from '../agent.ts';
import { pickPort } from '../free-port.ts';
import { type Exit, type LaunchOptions, launch, type RunningGateway } from '../launch.ts';
import type { MemoryS3 } from '../storage/memory-s3.ts';
import type { Postgres } from './postgres.ts';
import { startTcpProxy, type TcpProxy } from './tcp-proxy.ts';

const HOST = '127.0.0.1';
const SECRET_BYTES = 32;
const SHARED = 'files';

export interface NodesOptions {
  readonly postgres: Postgres;
  /** Names are a, b, c … */
  readonly nodes: number;
  /** All start at once; default: one after the other. */
  readonly atOnce?: boolean;
  /** Configuration of every node, beside `Cluster` and `Modules`, which are made here. */
  readonly configuration?: object;
  /** Keys of the section `Cluster`, beside url, name, listen, advertise and secret. */
  readonly cluster?: object;
  /** Files go to it, over a folder that all nodes share; default: they stay in such a folder. */
  readonly fileServer?: string;
  /** Files are in a bucket of it, and no folder is shared. */
  readonly objectStorage?: MemoryS3 | undefined;
  /** Name of the folder of a node, for nodes that do not share one. */
  readonly fileFolder?: (name: string) => string;
  /** Modules of every node, over those of the sandbox. */
  readonly modules?: object;
  /** One sandbox serves all nodes; default true. */
  readonly sandbox?: boolean;
  /** The sandbox is polled for its events; default false. */
  readonly polled?: boolean;
  readonly launch?: Pick<LaunchOptions, 'args' | 'environment' | 'nodeArgs' | 'checkout' | 'detached'>;
  /** Each node writes its log to `logFile`, for long runs; default: kept in memory by `gateway.output`. */
  readonly logFiles?: boolean;
}

export interface NodeProcess {
  readonly name: string;
  /** Kept over restarts. */
  readonly url: string;
  readonly dataPath: string;
  readonly logFile: string;
  /** Proxy in front of the database, for this node alone. */
  readonly database: TcpProxy;
  /** Proxy in front of the address that other nodes connect to. */
  readonly links: TcpProxy;
  /** The process of the last start. */
  readonly gateway: RunningGateway;
  /**
   * Again, with the same data folder and ports. The former process must have ended. Rejects once the nodes are being
   * stopped.
   */
  start(): Promise<void>;
}

export interface Nodes {
  readonly databaseUrl: string;
  readonly secret: string;
  /** The folder that nodes share unless given another one. */
  readonly files: string;
  readonly nodes: readonly NodeProcess[];
  readonly sandbox: RunningSandbox | undefined;
  /** A further node, under the next name. */
  add(): Promise<NodeProcess>;
  /** The owner of an actor among the nodes that the database says are in. */
  ownerOf(kind: string, id: string): Promise<NodeProcess>;
  records(): Promise<readonly NodeRecord[]>;
  isOut(node: NodeProcess): Promise<void>;
  allServe(): Promise<void>;
  /** Ends nodes with SIGTERM, sandbox and proxies, removes the data folders. Exits of the nodes that still ran. */
  stop(): Promise<readonly Exit[]>;
}

/** Resolves when every node serves and has its links; what was started ends when one does not. */
export async function startNodes(options: NodesOptions): Promise<Nodes> {
  const folder = mkdtempSync(join(tmpdir(), 'gatehouse-nodes-'));
  const files = join(folder, SHARED);
  const databaseUrl = await options.postgres.createDatabase();
  const secret = randomBytes(SECRET_BYTES).toString('hex');
  const sandbox = options.sandbox === false ? undefined : await startSandbox({ dataPath: folder });
  const database = new Database({ url: databaseUrl, applicationName: 'tool' });
  const nodes: Node[] = [];
  const create = async () => {
    const name = String.fromCharCode('a'.charCodeAt(0) + nodes.length);
    const node = await Node.create(options, { name, folder, databaseUrl, secret, sandbox });
    nodes.push(node);
    return node;
  };
  const add = async () => {
    const node = await create();
    await node.start();
    return node;
  };
  const stop = async () => {
    const exits = await Promise.all(nodes.map((node) => node.end()));
    await sandbox?.close();
    database.close();
    rmSync(folder, { recursive: true, force: true });
    return exits.filter((exit) => exit !== undefined);
  };
  try {
    for (let count = 0; count < options.nodes; count += 1) await (options.atOnce === true ? create() : add());
    if (options.atOnce === true) await Promise.all(nodes.map((node) => node.start()));
    await linked(nodes);
  } catch (error) {
    await stop();
    throw error;
  }
  const records = () => listNodes(database);
  return {
    ...{ databaseUrl, secret, files, nodes, sandbox, add, records, stop },
    async isOut({ name }) {
      await untilHolds(async () => !(await records()).some((each) => each.name === name && each.joined));
    },
    async allServe() {
      for (const { url } of nodes) await untilHolds(() => serves(url));
    },
    async ownerOf(kind, id) {
      const joined = (await records()).filter((each) => each.joined);
      const number = ownersOf(joined.map((each) => each.node))[homeOf(kind, id)];
      const name = joined.find((each) => each.node === number)?.name;
      const owner = nodes.find((each) => each.name === name);
      if (owner === undefined) throw new Error('no node is in');
      return owner;
    },
  };
}

async function serves(url: string): Promise<boolean> {
  const answer = await fetch(`${url}/health`);
  await answer.text();
  return answer.ok;
}

/** Resolves when every node serves, knows all others as members and has links to them: until then calls can be 503. */
export async function linked(nodes: readonly NodeProcess[]): Promise<void> {
  for (const node of nodes) await untilHolds(() => isLinked(node, nodes.length - 1));
}

async function isLinked({ gateway }: NodeProcess, others: number): Promise<boolean> {
  const answer = await fetch(`${gateway.internal}/health`);
  const { cluster } = (await answer.json()) as { cluster?: Record<string, unknown> };
  const has = (links: unknown) => Array.isArray(links) && links.length === others;
  const members: unknown = cluster?.['members'];
  const knowsAll = Array.isArray(members) && members.length === others + 1;
  return cluster?.['serving'] === true && knowsAll && has(cluster['linksOut']) && has(cluster['linksIn']);
}

interface Surroundings {
  readonly name: string;
  readonly folder: string;
  readonly databaseUrl: string;
  readonly secret: string;
  readonly sandbox: RunningSandbox | undefined;
}

class Node implements NodeProcess {
  readonly name: string;
  readonly url: string;
  readonly dataPath: string;
  readonly logFile: string;
  readonly database: TcpProxy;
  readonly links: TcpProxy;
  readonly #launch: LaunchOptions;
  #gateway: RunningGateway | undefined;
  #starting: Promise<unknown> = Promise.resolve();
  #isEnding = false;

  static async create(options: NodesOptions, surroundings: Surroundings): Promise<Node> {
    const linkPort = await pickPort();
    const database = await startTcpProxy({ path: options.postgres.socketFile });
    const links = await startTcpProxy({ host: HOST, port: linkPort });
    return new Node(options, surroundings, { port: await pickPort(), linkPort, database, links });
  }

  private constructor(
    options: NodesOptions,
    { name, folder, databaseUrl, secret, sandbox }: Surroundings,
    ports: { port: number; linkPort: number; database: TcpProxy; links: TcpProxy },
  ) {
    const { port, linkPort, database, links } = ports;
    this.name = name;
    this.url = `http://${HOST}:${port}`;
    this.dataPath = join(folder, name);
    this.logFile = join(folder, `${name}.log`);
    this.database = database;
    this.links = links;
    const files = filesOf(options, join(folder, options.fileFolder?.(name) ?? SHARED));
    const Cluster = {
      ...('LocalFileStoragePath' in files ? { sharedFiles: true } : {}),
      ...options.cluster,
      url: throughProxy(databaseUrl, database.port),
      name,
      listen: `${HOST}:${linkPort}`,
      advertise: `${HOST}:${links.port}`,
      secret,
    };
    const configuration = {
      Modules: { ...modulesOf(sandbox, options.polled ?? false), ...options.modules },
      ...files,
      ...options.configuration,
      Cluster,
    };
    const log = options.logFiles === true ? { logFile: this.logFile } : {};
    this.#launch = { ...options.launch, ...log, dataPath: this.dataPath, port, configuration };
  }

  get gateway(): RunningGateway {
    if (this.#gateway === undefined) throw new Error(`the node ${this.name} was not started`);
    return this.#gateway;
  }

  async start(): Promise<void> {
    if (this.#isEnding) throw new Error(`the node ${this.name} is being stopped`);
    const started = launch(this.#launch).then((gateway) => {
      this.#gateway = gateway;
    });
    this.#starting = started.catch(() => undefined);
    await started;
  }

  /**
   * Ends the node after a start that is under way. Undefined where no process ran. A stopped process continues first,
   * or it would never see the signal.
   */
  async end(): Promise<Exit | undefined> {
    this.#isEnding = true;
    this.database.heal();
    this.links.heal();
    await this.#starting;
    const gateway = this.#gateway;
    const runs =
      gateway !== undefined && gateway.process.exitCode === null && gateway.process.signalCode === null;
    gateway?.process.kill('SIGCONT');
    const exit = await gateway?.stop();
    this.database.close();
    this.links.close();
    return runs ? exit : undefined;
  }
}

/**
 * Returns the keys of a configuration that say where files are kept. A `MemoryS3` of no oracle believes every
 * signature.
 */
function filesOf({ fileServer, objectStorage }: NodesOptions, folder: string): object {
  if (objectStorage !== undefined) {
    const { url: Endpoint, bucket: Bucket } = objectStorage;
    const S3 = { Endpoint, Bucket, PathStyle: true, AccessKeyId: 'kit', SecretAccessKey: 'kit' };
    return { FileServers: { 0: { S3 } } };
  }
  return fileServer === undefined
    ? { LocalFileStoragePath: folder }
    : { FileStagingPath: folder, FileServers: { 0: { Host: fileServer } } };
}

/** The sandbox pushes no events to a cluster: it is not given the addresses of the nodes. */
function modulesOf(sandbox: RunningSandbox | undefined, poll: boolean): Record<string, object> {
  if (sandbox === undefined) return {};
  const addresses = Object.entries(sandbox.modules);
  const given = { key: sandbox.moduleKey, poll };
  return Object.fromEntries(
    addresses.map(([name, url]) => [name, { url, ...given, contactSync: name === 'contacts' }]),
  );
}

/** The database that a `socket:` address names, through a port of loopback. */
function throughProxy(databaseUrl: string, port: number): string {
  const parts = new URL(databaseUrl).searchParams;
  return `postgres://${parts.get('user')}@${HOST}:${port}/${parts.get('db')}`;
}
