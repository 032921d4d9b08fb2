/** The command `cluster`: its actions, what they print, and their exit codes. */
import { backUp } from '../bootstrap/journal-copy.ts';
import { parseFlags, UsageError } from '../config/load.ts';
import { agreementOf } from '../domain/config/agreement.ts';
import type { ClusterConfiguration, Configuration } from '../domain/config/configuration.ts';
import type { ClusterState } from '../io/cluster/administration.ts';
import { ClusterUnusable } from '../io/cluster/failures.ts';
import { digitsOf, type NodeReport, reportNodes } from '../io/cluster/node-report.ts';
import { EXIT, endWithFaults, loadOrEnd, print } from './output.ts';

type Action = (args: readonly string[]) => Promise<void>;

const FROM_DATABASE = '--from-database';
const JSON_FLAG = '--json';
const MEBIBYTE = 1024 * 1024;

const ACTIONS: Readonly<Record<string, Action>> = {
  async import(args) {
    const { configuration, cluster } = load(args);
    const { importJournal } = await commands();
    const position = await importJournal(cluster, configuration.dataPath);
    print(
      `the log begins at ${position} with the journal of ${configuration.dataPath}; each node fetches it into an empty data folder\n`,
    );
  },
  async export(args) {
    const [target, rest] = operandOf('cluster export needs a folder: cluster export DIR', args);
    const { configuration } = load(rest);
    await backUp(configuration.dataPath, target, Date.now());
    print(`${target} holds a journal for a gateway without Cluster\n`);
  },
  async status(args) {
    const { configuration, cluster } = load(args.filter((each) => each !== JSON_FLAG));
    const { clusterState } = await commands();
    const report = reportOf(await clusterState(cluster), configuration, cluster);
    print(args.includes(JSON_FLAG) ? `${JSON.stringify(report, null, 2)}\n` : tableOf(report));
    if (!report.healthy) process.exitCode = EXIT.storage;
  },
  async recover(args) {
    const fromDatabase = args.includes(FROM_DATABASE);
    const { configuration, cluster } = load(args.filter((each) => each !== FROM_DATABASE));
    const { recoverFromDatabase, recoverFromJournal } = await commands();
    const { dataPath } = configuration;
    const position = await (fromDatabase
      ? recoverFromDatabase(cluster)
      : recoverFromJournal(cluster, dataPath));
    const source = fromDatabase ? 'the database' : `the journal of ${dataPath}`;
    print(
      `the log continues after ${position} with the state of ${source}; empty the data folders of all nodes\n`,
    );
  },
  async forget(args) {
    const [name, rest] = operandOf('cluster forget needs the name of a node: cluster forget NAME', args);
    const { cluster } = load(rest);
    const { forgetNode } = await commands();
    const outcome = await forgetNode(cluster, name);
    if (outcome === 'unknown') throw new UsageError(`the cluster has no node ${JSON.stringify(name)}`);
    if (outcome === 'joined')
      throw new ClusterUnusable(
        `the node ${name} is in: stop it, or let another node run until it has expelled it`,
      );
    print(`the node ${name} is forgotten\n`);
  },
};

/** Loaded here, because a gateway without `Cluster` never loads the client of PostgreSQL. */
function commands() {
  return import('../bootstrap/cluster/commands.ts');
}

export async function runCluster([action, ...rest]: readonly string[]): Promise<void> {
  const run = action !== undefined && Object.hasOwn(ACTIONS, action) ? ACTIONS[action] : undefined;
  if (run === undefined)
    throw new UsageError('cluster takes one action: import, export DIR, status, recover or forget NAME');
  await run(rest);
}

function operandOf(message: string, [operand, ...rest]: readonly string[]): [string, string[]] {
  if (operand === undefined || operand === '' || operand.startsWith('-')) throw new UsageError(message);
  return [operand, rest];
}

function load(args: readonly string[]): { configuration: Configuration; cluster: ClusterConfiguration } {
  const configuration = loadOrEnd(parseFlags(args));
  const { cluster } = configuration;
  if (cluster === undefined)
    endWithFaults([{ path: 'Cluster', message: 'is needed for the commands cluster' }]);
  return { configuration, cluster };
}

interface ClusterReport {
  /** At least one node is in and renews. */
  readonly healthy: boolean;
  readonly logId: string;
  readonly layout: number;
  readonly position: number;
  readonly logBytes: number;
  readonly checkpoint: { readonly position: number; readonly ageMs: number } | null;
  readonly lowestVersion: string | null;
  /** Names of nodes whose configuration differs from this one, where they should be alike. */
  readonly otherConfigurations: readonly string[];
  readonly nodes: readonly NodeReport[];
}

function reportOf(
  { nodes, checkpoint, logId, layout, position, logBytes }: ClusterState,
  configuration: Configuration,
  { leaseMilliseconds }: ClusterConfiguration,
): ClusterReport {
  const own = digitsOf(agreementOf(configuration));
  const reports = reportNodes(nodes, position, leaseMilliseconds);
  const joined = reports.filter(({ state }) => state !== 'out');
  const versions = joined.map(({ version }) => version).sort(byVersion);
  return {
    healthy: joined.some(({ state }) => state === 'joined'),
    logId,
    layout,
    position,
    logBytes,
    checkpoint: checkpoint === undefined ? null : { position: checkpoint.position, ageMs: checkpoint.ageMs },
    lowestVersion: versions[0] ?? null,
    otherConfigurations: joined.filter(({ configuration }) => configuration !== own).map(({ name }) => name),
    nodes: reports,
  };
}

function byVersion(a: string, b: string): number {
  return a.localeCompare(b, 'en', { numeric: true });
}

function tableOf(report: ClusterReport): string {
  const { checkpoint, nodes } = report;
  const rows = [
    [
      ...['NODE', 'NUMBER', 'STATE', 'LAG', 'LEASE', 'PARTITIONS', 'REFUSED', 'THROWN', 'CLOCK'],
      ...['VERSION', 'CONFIGURATION', 'ADDRESS'],
    ],
    ...nodes.map((node) => [
      node.name,
      String(node.number),
      node.state,
      String(node.lag),
      `${node.leaseLeftMs} ms`,
      String(node.partitionsOwned),
      String(node.turnsRefused),
      String(node.turnsThrown),
      `${node.clockOffsetMs} ms`,
      node.version,
      node.configuration,
      node.address,
    ]),
  ];
  const widths = (rows[0] ?? []).map((_, column) =>
    Math.max(...rows.map((row) => (row[column] ?? '').length)),
  );
  const lines = rows.map((row) =>
    row
      .map((text, column) => text.padEnd(widths[column] ?? 0))
      .join('  ')
      .trimEnd(),
  );
  const others = report.otherConfigurations;
  return `${[
    `log ${report.logId}, layout ${report.layout}: row ${report.position}, ${Math.round(report.logBytes / MEBIBYTE)} MiB`,
    checkpoint === null
      ? 'no checkpoint'
      : `checkpoint at row ${checkpoint.position}, ${Math.round(checkpoint.ageMs / 1_000)} s old`,
    ...(others.length === 0 ? [] : [`another configuration than here: ${others.join(', ')}`]),
    ...(nodes.length === 0 ? ['no nodes'] : lines),
  ].join('\n')}\n`;
}
