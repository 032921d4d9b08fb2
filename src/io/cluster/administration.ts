/**
 * Work of the commands `cluster` in the database: state of nodes and log, giving up a name, and replacing the log by
 * the state of one journal, at an import or after the database lost rows.
 */
import { randomUUID } from 'node:crypto';
import { MINUTE_MS } from '../../domain/time.ts';
import { Checkpoints, type ReplicaCheckpoint } from './checkpoints.ts';
import { Database } from './database.ts';
import { ClusterUnusable, DatabaseFailure } from './failures.ts';
import { LogPartitions } from './log-partitions.ts';
import { FORGET_NODE } from './log-statements.ts';
import { listNodes, type NodeRecord } from './node-table.ts';
import { checkServer, type Head, readHead } from './pg-schema.ts';
import { type HeadOptions, openHead } from './pg-start.ts';

export interface ClusterState {
  readonly logId: string;
  readonly layout: number;
  /** Newest row of the log. */
  readonly position: number;
  readonly logBytes: number;
  readonly checkpoint: ReplicaCheckpoint | undefined;
  readonly nodes: readonly NodeRecord[];
}

interface AdministrationOptions extends HeadOptions {
  readonly leaseMs: number;
}

const STATEMENT_TIMEOUT_MS = MINUTE_MS;
const LOG_BYTES = {
  name: 'log_bytes',
  text: `select coalesce(sum(pg_total_relation_size(inhrelid)), 0)::bigint as bytes
    from pg_inherits where inhparent = 'gatehouse.log'::regclass`,
};

export class ClusterAdministration {
  readonly #options: AdministrationOptions;
  readonly #database: Database;
  readonly #checkpoints: Checkpoints;

  constructor(options: AdministrationOptions) {
    const { url } = options;
    this.#options = options;
    this.#database = new Database({
      url,
      applicationName: 'gatehouse command',
      statementTimeoutMs: STATEMENT_TIMEOUT_MS,
    });
    this.#checkpoints = new Checkpoints(options);
  }

  /** Reads without a change. Rejects with `ClusterUnusable` when there is no database or no log in it. */
  async state(): Promise<ClusterState> {
    const head = await this.#answered(() => this.#head());
    return this.#answered(async () => ({
      logId: head.logId,
      layout: head.layout,
      position: head.position,
      logBytes: Number((await this.#database.run(LOG_BYTES)).rows[0]?.['bytes']),
      checkpoint: await this.#checkpoints.newest(),
      nodes: await listNodes(this.#database),
    }));
  }

  async #head(): Promise<Head> {
    const { hasTables } = await checkServer(this.#database);
    const head = hasTables ? await readHead(this.#database) : undefined;
    if (head === undefined) throw new ClusterUnusable('the database of Cluster.url holds no log');
    return head;
  }

  /** Frees the name and the number of a node that is out. */
  async forget(name: string): Promise<'forgotten' | 'joined' | 'unknown'> {
    await this.#answered(() => this.#head());
    const { rows } = await this.#answered(() => this.#database.run(FORGET_NODE, [name]));
    if (rows.length > 0) return 'forgotten';
    const nodes = await this.#answered(() => listNodes(this.#database));
    return nodes.some((node) => node.name === name) ? 'joined' : 'unknown';
  }

  /**
   * Makes the tables when there are none, and checks that nothing uses the log. `empty`: nor has anything used it.
   * Rejects with `ClusterUnusable` and `ClusterMisconfigured`.
   */
  async requireUnused(empty: boolean): Promise<Head> {
    const head = await openHead(this.#options);
    const checkpoint = await this.#answered(() => this.#checkpoints.newest());
    if (empty && (head.position > 0 || checkpoint !== undefined))
      throw new ClusterUnusable(
        `the log is in use: its newest row is ${Math.max(head.position, checkpoint?.position ?? 0)}; import takes an empty database`,
      );
    const before = await this.#answered(() => listNodes(this.#database));
    const leases = before.filter(({ joined }) => joined).map(({ figures }) => figures?.leaseMs ?? 0);
    if (leases.length > 0) await this.#options.wait(Math.max(this.#options.leaseMs, ...leases));
    const after = await this.#answered(() => listNodes(this.#database));
    const running = after.find(
      ({ node, joined, renewals }) =>
        joined && renewals !== before.find((each) => each.node === node)?.renewals,
    );
    if (running !== undefined)
      throw new ClusterUnusable(`the node ${running.name} runs: stop all nodes first`);
    return head;
  }

  /**
   * The log begins again with the state in `file`, the copy of a journal as of `position`. Every node is out, and each
   * fetches that state. `logId`: the new life, which the state names too.
   */
  async replaceLog(logId: string, position: number, file: string): Promise<void> {
    const partitions = new LogPartitions({ url: this.#options.url, keepHours: 1 });
    try {
      await this.#answered(() => partitions.prepare(position));
    } finally {
      partitions.close();
    }
    if (!(await this.#answered(() => this.#checkpoints.upload(position, file))))
      throw new ClusterUnusable(`another process stores the state of position ${position}`);
    await this.#answered(() => this.#database.script(replacement(logId, position)));
  }

  /** The log stays as it is, and is another one for every node from now on: after a restore of the database. */
  async renameLog(): Promise<string> {
    const logId = randomUUID();
    await this.#answered(() => this.#database.script(`update gatehouse.head set log_id = '${logId}'`));
    return logId;
  }

  close(): void {
    this.#database.close();
    this.#checkpoints.close();
  }

  async #answered<Result>(work: () => Promise<Result>): Promise<Result> {
    try {
      return await work();
    } catch (error) {
      if (!(error instanceof DatabaseFailure)) throw error;
      throw new ClusterUnusable(`the database of Cluster.url cannot be used: ${error.message}`);
    }
  }
}

/**
 * One transaction. The first row is of no node: it is never opened, and shows a reader that the log continues its position.
 * Incarnations rise, so that nothing that a node has asked before can land.
 */
function replacement(logId: string, position: number): string {
  return `
truncate gatehouse.log;
delete from gatehouse.checkpoint where pos <> ${position};
update gatehouse.node set joined = false, incarnation = incarnation + 2, applied = 0, digest_pos = null, digest = null;
update gatehouse.head set log_id = '${logId}', pos = ${position}, incarnation =
  (select array_agg(value + 2 order by number) from unnest(incarnation) with ordinality as each (value, number));
insert into gatehouse.log (pos, node, incarnation, node_seq, body) values (${position}, 0, 0, 0, '');
`;
}
