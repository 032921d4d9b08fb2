/**
 * `npm run cluster [-- --nodes N] [-- --port N]`: PostgreSQL, a sandbox and nodes of one cluster behind one address, to try
 * what happens when a node ends. Nothing is kept, and everything ends with this process.
 */
import { createInterface } from 'node:readline';
import { setTimeout as wait } from 'node:timers/promises';
import { type NodeProcess, type Nodes, startNodes } from '../../kit/cluster/nodes.ts';
import { startPostgres } from '../../kit/cluster/postgres.ts';
import { SETTINGS_ID, settings } from '../../src/actors/admin/settings.ts';
import { STAFF_ID, staff } from '../../src/actors/admin/staff.ts';
import { homeOf, ownersOf } from '../../src/domain/partitions.ts';
import type { NodeRecord } from '../../src/io/cluster/node-table.ts';
import { type Balancer, type Condition, startBalancer } from './balancer.ts';
import { type Options, readOptions } from './options.ts';

const USAGE = 'usage: npm run cluster [-- --nodes N (2 to 8)] [-- --port N]\n';
const EXIT_FAILED = 1;
const EXIT_USAGE = 64;
const WATCH_MS = 500;
function write(text: string): void {
  process.stdout.write(text);
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

const COMMANDS = `commands  k NAME  kill -9        s NAME  stop as a hang (SIGSTOP)   c NAME  continue
          l NAME  let it leave   r NAME  restart                     t       table      q  quit
`;

interface ControlledNode {
  readonly node: NodeProcess;
  isStopped: boolean;
}

/** A sentence for the terminal; undefined where there is nothing to say. */
async function runCommand(
  line: string,
  nodes: ReadonlyMap<string, ControlledNode>,
): Promise<string | undefined> {
  const [command = '', name = ''] = line.trim().split(/\s+/);
  const controlled = nodes.get(name);
  if (!'ksclr'.includes(command) || command.length !== 1) return COMMANDS;
  if (controlled === undefined) return `there is no node "${name}"\n`;
  const { node } = controlled;
  const { process, exited } = node.gateway;
  const runs = process.exitCode === null && process.signalCode === null;
  if (!runs && command !== 'r') return `the process of ${name} has ended: r ${name} starts it\n`;
  switch (command) {
    case 'k':
      process.kill('SIGKILL');
      break;
    case 's':
      controlled.isStopped = process.kill('SIGSTOP');
      return undefined;
    case 'c':
      process.kill('SIGCONT');
      break;
    case 'l':
      endGently(controlled);
      break;
    default:
      if (runs) {
        endGently(controlled);
        await exited;
      }
      await node.start();
  }
  controlled.isStopped = false;
  return undefined;
}

function endGently({ node, isStopped }: ControlledNode): void {
  // A stopped process would not see the other signal.
  if (isStopped) node.gateway.process.kill('SIGCONT');
  node.gateway.process.kill('SIGTERM');
}

/** Actors that a cluster has once, by kind and id. */
const SINGLE = [
  { kind: settings.kind, id: SETTINGS_ID },
  { kind: staff.kind, id: STAFF_ID },
];

interface NodeRow {
  readonly name: string;
  readonly url: string;
  /** Undefined once the process has ended. */
  readonly pid: number | undefined;
  readonly isStopped: boolean;
  readonly condition: Condition;
}

const HEADINGS = ['node', 'process', 'state', 'partitions', 'also owns', 'address'];

/** `records`: the nodes as the database has them. */
function ownersTable(nodes: readonly NodeRow[], records: readonly NodeRecord[]): string {
  const joined = records.filter((each) => each.joined);
  const owners = ownersOf(joined.map((each) => each.node));
  const rows = nodes.map(({ name, url, pid, isStopped, condition }) => {
    const record = joined.find((each) => each.name === name);
    const number = record?.node;
    const partitions = owners.reduce((count, owner) => count + (owner === number ? 1 : 0), 0);
    const also = SINGLE.filter(({ kind, id }) => number !== undefined && owners[homeOf(kind, id)] === number);
    return [
      name,
      pid === undefined ? 'ended' : String(pid),
      stateOf(record !== undefined, isStopped, condition),
      `${partitions} of ${owners.length}`,
      also.map(({ kind }) => kind).join(', '),
      url,
    ];
  });
  const widths = HEADINGS.map((heading, column) =>
    Math.max(heading.length, ...rows.map((row) => row[column]?.length ?? 0)),
  );
  const line = (cells: readonly string[]) =>
    `  ${cells.map((cell, column) => cell.padEnd(widths[column] ?? 0)).join('  ')}`.trimEnd();
  return `${[HEADINGS, ...rows].map(line).join('\n')}\n`;
}

function stateOf(isIn: boolean, isStopped: boolean, condition: Condition): string {
  const place = isIn ? 'in' : 'out';
  if (isStopped) return `${place}, stopped`;
  return isIn && condition !== 'healthy' ? `${place}, ${condition}` : place;
}

const options = readOptions(process.argv.slice(2));
if (options === undefined) {
  process.stderr.write(USAGE);
  process.exitCode = EXIT_USAGE;
} else process.exitCode = await run(options);
