/**
 * The tables of a cluster in PostgreSQL: the shared log, its head, the nodes, checkpoints and audit records of calls. Made
 * by the first node that starts; a newer layout than this one is refused.
 */
import { NODES_MAX } from '../../domain/partitions.ts';
import { SESSION_MARK, type Statements } from './database.ts';
import { ClusterMisconfigured, ClusterUnusable, DatabaseFailure, SQL_STATE } from './failures.ts';
import { type Sealer, SealUnopened } from './seal.ts';

/** Version of the tables and of the sealed values in them; a change that an older version cannot read raises it. */
const LAYOUT = 1;
/** Positions of one partition of the log: trimming drops whole partitions. */
export const PARTITION_ROWS = 1_000_000;
const VERSION_MIN = 15;
/** Sealed in the head: shows that two nodes have the same secret. */
const PROOF = Buffer.from('gatehouse cluster');
const NO_PLACE = Buffer.alloc(0);

export interface Head {
  readonly layout: number;
  readonly logId: string;
  readonly position: number;
  readonly proof: Uint8Array;
}

/** Values are a fresh UUID and bytes as hexadecimal text: nothing that needs quoting. */
function tablesOf(logId: string, proof: Buffer): string {
  return `
create schema if not exists gatehouse;
create table gatehouse.head (
  one boolean primary key default true check (one),
  layout int not null,
  log_id uuid not null,
  pos bigint not null,
  incarnation bigint[] not null,
  proof bytea not null
) with (fillfactor = 10, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);
create table gatehouse.log (
  pos bigint primary key, node smallint not null, incarnation bigint not null, node_seq bigint not null,
  at timestamptz not null default clock_timestamp(), body bytea not null
) partition by range (pos);
create index log_outcome on gatehouse.log (node, incarnation, node_seq);
alter table gatehouse.log alter column body set storage external;
create table gatehouse.log_0 partition of gatehouse.log for values from (0) to (${PARTITION_ROWS});
create table gatehouse.node (
  id smallint primary key, name text not null unique, incarnation bigint not null, joined boolean not null,
  digest_pos bigint, digest bytea,
  renewals bigint not null, renewed timestamptz not null, applied bigint not null, address text not null,
  version text not null, config_hash bytea not null, figures jsonb
) with (fillfactor = 20, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);
create table gatehouse.checkpoint (
  pos bigint, part int, parts int not null, sha256 bytea not null, at timestamptz not null default clock_timestamp(),
  body bytea not null, digest_pos bigint, digest bytea, primary key (pos, part)
);
alter table gatehouse.checkpoint alter column body set storage external;
create table gatehouse.audit (
  node smallint, seq bigint, ring text not null, from_ms bigint not null, to_ms bigint not null, rows int not null,
  body bytea not null, primary key (node, seq)
);
create index audit_time on gatehouse.audit (to_ms, node, seq);
create index audit_ring on gatehouse.audit (ring, to_ms, node, seq) include (rows);
alter table gatehouse.audit alter column body set storage external;
insert into gatehouse.head (layout, log_id, pos, incarnation, proof) values
  (${LAYOUT}, '${logId}', 0, array_fill(0::bigint, array[${NODES_MAX}]), '\\x${proof.toString('hex')}');
`;
}

const READ_SERVER = {
  name: 'server',
  text: `select current_setting('server_version_num')::int / 10000 as version, pg_is_in_recovery() as standby,
    current_setting('transaction_read_only') as read_only, current_setting('synchronous_commit') as synchronous,
    current_setting('synchronous_standby_names') as standbys, to_regclass('gatehouse.head') is not null as has_tables,
    ${SESSION_MARK}`,
};
const READ_HEAD = { name: 'head', text: 'select layout, log_id::text, pos, proof from gatehouse.head' };
const SEAL_PROOF = { name: 'proof', text: 'update gatehouse.head set proof = $1 where one and proof = $2' };

/**
 * Checks the server of a new session and how it commits. Rejects with `ClusterUnusable`, `ClusterMisconfigured`, and
 * `DatabaseFailure` for a standby, which may be promoted.
 */
export async function checkServer(session: Statements): Promise<{ readonly hasTables: boolean }> {
  const [row] = (await session.run(READ_SERVER)).rows;
  const version = Number(row?.['version']);
  if (version < VERSION_MIN)
    throw new ClusterUnusable(`PostgreSQL ${version} is too old for a cluster: ${VERSION_MIN} is the oldest`);
  if (row?.['standby'] === true || row?.['read_only'] === 'on')
    throw new DatabaseFailure(
      'PostgreSQL is read-only: a standby, or default_transaction_read_only is on',
      SQL_STATE.readOnly,
    );
  const synchronous = String(row?.['synchronous']);
  if (synchronous === 'off' || synchronous === 'local') {
    if (row?.['standbys'] !== '')
      throw new ClusterMisconfigured(
        'Cluster.url',
        `synchronous_commit is ${synchronous} although synchronous_standby_names names standbys: acknowledged writes could be lost`,
      );
    await session.script('set synchronous_commit = on');
  }
  return { hasTables: row?.['has_tables'] === true };
}

/** The head of the log. Rejects with `ClusterUnusable` for a newer layout. */
export async function readHead(session: Statements): Promise<Head | undefined> {
  const [row] = (await session.run(READ_HEAD)).rows;
  if (row === undefined) return undefined;
  const layout = Number(row['layout']);
  if (layout > LAYOUT)
    throw new ClusterUnusable(
      `the log has layout ${layout}, which a newer version of the gateway writes: this one knows ${LAYOUT}`,
    );
  return {
    layout,
    logId: String(row['log_id']),
    position: Number(row['pos']),
    proof: row['proof'] as Uint8Array,
  };
}

/** Makes the tables unless another node has. Rejects with `ClusterUnusable` when the role may not. */
export async function createTables(session: Statements, logId: string, sealer: Sealer): Promise<void> {
  try {
    await session.script(tablesOf(logId, sealer.seal(PROOF, NO_PLACE)));
  } catch (error) {
    if (!(error instanceof DatabaseFailure)) throw error;
    if (error.sqlState === SQL_STATE.noRight)
      throw new ClusterUnusable(
        `the role of Cluster.url cannot create the schema gatehouse: ${error.message}`,
      );
    const made: readonly (string | undefined)[] = [
      SQL_STATE.unique,
      SQL_STATE.duplicateSchema,
      SQL_STATE.duplicateTable,
    ];
    if (!made.includes(error.sqlState)) throw error;
  }
}

/**
 * Compares the secret with that of the log. The first secret takes over the proof, so that an earlier one can leave the
 * list. Rejects with `ClusterMisconfigured`.
 */
export async function proveSecret(session: Statements, head: Head, sealer: Sealer): Promise<void> {
  let isFirst: boolean;
  try {
    isFirst = sealer.isSealedWithFirst(head.proof, NO_PLACE);
  } catch (error) {
    if (!(error instanceof SealUnopened)) throw error;
    throw new ClusterMisconfigured('Cluster.secret', 'is not the secret of this log, nor is any of the list');
  }
  if (!isFirst) await session.run(SEAL_PROOF, [sealer.seal(PROOF, NO_PLACE), head.proof]);
}
