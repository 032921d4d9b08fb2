/**
 * `npm run cluster [-- --nodes N] [-- --port N]`: PostgreSQL, a sandbox and nodes of one cluster behind one address, to try
 * what happens when a node ends. Nothing is kept, and everything ends with this process.
 */
import { createInterface } from 'node:readline';
import { setTimeout as wait } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { type Nodes, startNodes } from '../../kit/cluster/nodes.ts';
import { startPostgres } from '../../kit/cluster/postgres.ts';
import { type Balancer, startBalancer } from './balancer.ts';
import { COMMANDS, type ControlledNode, runCommand } from './commands.ts';
import { ownersTable } from './owners-table.ts';

const USAGE = 'usage: npm run cluster [-- --nodes N (2 to 8)] [-- --port N]\n';
const EXIT_FAILED = 1;
const EXIT_USAGE = 64;
const WATCH_MS = 500;
const NODES = { default: 3, min: 2, max: 8 };
const PORT = { default: 8080, min: 1, max: 65_535 };

interface Options {
  readonly nodes: number;
  readonly port: number;
}

function write(text: string): void {
  process.stdout.write(text);
}

/** Undefined for a wrong option. */
function readOptions(): Options | undefined {
  try {
    const { values } = parseArgs({ options: { nodes: { type: 'string' }, port: { type: 'string' } } });
    const nodes = Number(values.nodes ?? NODES.default);
    const port = Number(values.port ?? PORT.default);
    const isBetween = (value: number, { min, max }: { min: number; max: number }) =>
      Number.isInteger(value) && value >= min && value <= max;
    return isBetween(nodes, NODES) && isBetween(port, PORT) ? { nodes, port } : undefined;
  } catch (error) {
    if (error instanceof TypeError) return undefined;
    throw error;
  }
}

/** Resolves when the user, or the end of the process that started this one, asks for the end. */
function asked(): { readonly end: Promise<void>; now(): void } {
  let now = (): void => undefined;
  const end = new Promise<void>((resolve) => {
    now = resolve;
  });
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, now);
  const parent = process.ppid;
  const watch = setInterval(() => process.ppid !== parent && now(), WATCH_MS);
  watch.unref();
  return { end, now };
}

/** Commands of standard input. At a terminal, its end is the end. */
function readCommands(
  nodes: ReadonlyMap<string, ControlledNode>,
  showTable: () => void,
  quit: () => void,
): () => void {
  const input = createInterface({ input: process.stdin });
  input.on('line', (line) => {
    const command = line.trim();
    if (command === 'q') quit();
    else if (command === 't') showTable();
    else
      runCommand(command, nodes).then(
        (text) => text !== undefined && write(text),
        (error: unknown) => write(`${String(error)}\n`),
      );
  });
  input.on('close', () => process.stdin.isTTY === true && quit());
  return () => {
    input.close();
    process.stdin.destroy();
  };
}

/** Prints the table of the nodes whenever it has changed, until the end. */
async function watchNodes(
  { cluster, balancer, end }: { cluster: Nodes; balancer: Balancer; end: Promise<void> },
  nodes: ReadonlyMap<string, ControlledNode>,
  shown: { table: string },
): Promise<void> {
  let isOver = false;
  void end.then(() => {
    isOver = true;
  });
  while (!isOver) {
    const records = await cluster.records();
    const rows = [...nodes.values()].map(({ node, isStopped }) => {
      const { process: child } = node.gateway;
      const runs = child.exitCode === null && child.signalCode === null;
      const pid = runs ? child.pid : undefined;
      return { name: node.name, url: node.url, pid, isStopped, condition: balancer.condition(node.url) };
    });
    const table = ownersTable(rows, records);
    if (table !== shown.table && !isOver) write(`\n${table}`);
    shown.table = table;
    await Promise.race([wait(WATCH_MS), end]);
  }
}

function banner(cluster: Nodes, url: string, database: number): string {
  const [first] = cluster.nodes;
  const setup = cluster.nodes
    .map(({ gateway }) => /^ {2}admin set-up +(\S+)$/m.exec(gateway.output().stdout)?.[1])
    .find((each) => each !== undefined);
  const lines = [
    '',
    `Open      ${url}/  (any node answers; a session holds at all of them)`,
    `For MCP   ${url}/connect/mcp`,
    ...(setup === undefined ? [] : [`Admin     ${setup}  (once)`]),
    `Database  process ${database}, at ${cluster.databaseUrl}`,
    `Logs      ${cluster.nodes.map((each) => each.logFile).join(' ')}`,
    `Try       kill -9 ${first?.gateway.process.pid}, here or in another terminal, and use the page: the other nodes`,
    '          serve on after 1.4 s at most. The table is printed again. Ctrl-C ends everything; nothing is kept.',
    '',
  ];
  return `${lines.join('\n')}${COMMANDS}`;
}

async function run({ nodes: count, port }: Options): Promise<number> {
  const { end, now } = asked();
  write('starting PostgreSQL, a sandbox and the nodes ...\n');
  const postgres = await startPostgres();
  if (typeof postgres === 'string') {
    process.stderr.write(`${postgres}\n`);
    return EXIT_FAILED;
  }
  const started: { end(): unknown }[] = [{ end: () => postgres.stop() }];
  try {
    const url = `http://localhost:${port}`;
    const running: { cluster?: Nodes } = {};
    const balancer = await startBalancer({
      port,
      nodes: () => running.cluster?.nodes.map((each) => each.url) ?? [],
    });
    started.unshift({ end: () => balancer.close() });
    const configuration = { BaseUrl: url };
    const launch = { detached: true };
    const cluster = await startNodes({
      postgres,
      nodes: count,
      polled: true,
      configuration,
      launch,
      logFiles: true,
    });
    running.cluster = cluster;
    started.unshift({ end: () => cluster.stop() });
    await balancer.check();
    const nodes = new Map(cluster.nodes.map((node) => [node.name, { node, isStopped: false }]));
    write(banner(cluster, url, postgres.pid));
    const shown = { table: '' };
    const stopReading = readCommands(nodes, () => write(`\n${shown.table}`), now);
    started.unshift({ end: stopReading });
    await watchNodes({ cluster, balancer, end }, nodes, shown);
    write('\nending: the nodes leave, then the database stops\n');
    return 0;
  } catch (error) {
    process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`);
    return EXIT_FAILED;
  } finally {
    for (const each of started) await each.end();
  }
}

const options = readOptions();
if (options === undefined) {
  process.stderr.write(USAGE);
  process.exitCode = EXIT_USAGE;
} else process.exitCode = await run(options);
