/**
 * The statements of the log. Every fence is a column of the row that the statement locks: after a wait for a lock PostgreSQL
 * checks the locked row again, and no sub-select of another one. A null position ends a statement of two rows as a whole.
 */
import { NODES_MAX } from '../../domain/partitions.ts';
import { asText, SESSION_MARK, type Statement } from './database.ts';

const statement = (name: string, text: string): Statement => ({ name, text });
const INTO_LOG = 'insert into gatehouse.log (pos, node, incarnation, node_seq, body)';
/** Writes the row of $1 (node), $2 (incarnation), $3 (number) and $4 (body) when CTE `l` changed the node. */
const ROW_OF_NODE = `h as (update gatehouse.head set pos = case when incarnation[$1::int] = $2::bigint then pos + 1 end
    where one and exists (select 1 from l) returning pos)
  ${INTO_LOG} select pos, $1::int, $2::bigint, $3::bigint, $4::bytea from h returning pos`;
const TOUCHED = 'renewals = renewals + 1, renewed = clock_timestamp()';

/** No row: the incarnation is not the newest. */
export const APPEND = statement(
  'append',
  `with h as (update gatehouse.head set pos = pos + 1 where one and incarnation[$1::int] = $2::bigint returning pos)
  ${INTO_LOG} select pos, $1::int, $2::bigint, $3::bigint, $4::bytea from h returning pos`,
);

export const JOIN = statement(
  'join',
  `with l as (update gatehouse.node set joined = true, ${TOUCHED} where id = $1::int and incarnation = $2::bigint
    returning 1), ${ROW_OF_NODE}`,
);

export const LEAVE = statement(
  'leave',
  `with l as (update gatehouse.node set joined = false where id = $1::int and incarnation = $2::bigint and joined
    returning 1), ${ROW_OF_NODE}`,
);

/** $5 is the target, $6 what its counter stood at. No row: it renewed, or is out. A null position: the writer is out. */
export const EXPEL = statement(
  'expel',
  `with l as (update gatehouse.node set joined = false, incarnation = incarnation + 1
    where id = $5::int and joined and renewals = $6::bigint returning 1),
  h as (update gatehouse.head set pos = case when incarnation[$1::int] = $2::bigint then pos + 1 end,
      incarnation[$5::int] = incarnation[$5::int] + 1
    where one and exists (select 1 from l) returning pos)
  ${INTO_LOG} select pos, $1::int, $2::bigint, $3::bigint, $4::bytea from h returning pos`,
);

/** Columns of the log and of each joined node but $1; one row without a node where there is none. */
const OTHERS = `h.pos, (extract(epoch from clock_timestamp()) * 1000)::bigint as database_ms, n.id, n.renewals, n.applied,
    n.digest_pos, n.digest, (n.figures ->> 'clockOffsetMs')::float8 as clock_offset_ms,
    (n.figures ->> 'leaseMs')::float8 as lease_ms, ${SESSION_MARK}`;
const JOINED = 'left join gatehouse.node n on n.joined and n.id <> $1::int';

/** $4 and $5 describe the process. One row a joined node but $1, or one without a node; no row at all: $1 is out. */
export const RENEW = statement(
  'renew',
  `with u as (update gatehouse.node set ${TOUCHED}, applied = $3::bigint, config_hash = $4::bytea, figures = $5::jsonb,
      digest_pos = $6::bigint, digest = $7::bytea
    where id = $1::int and incarnation = $2::bigint and joined returning 1)
  select ${OTHERS} from u cross join gatehouse.head h ${JOINED}`,
);
/** Reads the same as `RENEW`, without a renewal. */
export const LOOK = statement('look', `select ${OTHERS} from gatehouse.head h ${JOINED}`);

/** From here on no statement of incarnation $2 can land. No row: the node has another incarnation. */
export const RAISE = statement(
  'raise',
  `with l as (update gatehouse.node set incarnation = $2::bigint + 1
    where id = $1::int and incarnation in ($2::bigint, $2::bigint + 1) returning 1)
  update gatehouse.head set incarnation[$1::int] = $2::bigint + 1 where one and exists (select 1 from l) returning pos`,
);
/** A statement of its own: it sees what was committed while `RAISE` waited. */
export const OUTCOME = statement(
  'outcome',
  'select pos from gatehouse.log where node = $1::int and incarnation = $2::bigint and node_seq = $3::bigint',
);

/** Bodies of one fetch: beyond it, and the row that passes it, rows are left for the next one. */
const FETCH_BYTES = 2 * 1024 * 1024;

/** The row at $1 without its body, and those after it: $2 rows in all at most. */
export const FETCH = statement(
  'fetch',
  `select pos, node, incarnation, node_seq, case when pos > $1::bigint then ${asText('body')} end as body from
    (select *, sum(case when pos > $1::bigint then length(body) end) over (order by pos) - length(body) as before from
      (select * from gatehouse.log where pos >= $1::bigint order by pos limit $2::int) found) counted
  where before is null or before < ${FETCH_BYTES} order by pos`,
);

/** The name of the row at $1. */
export const ROW_AT = statement(
  'row_at',
  'select node, incarnation, node_seq from gatehouse.log where pos = $1::bigint',
);

export const FIND_NODE = statement(
  'find_node',
  `select id, incarnation, joined, renewals, (figures ->> 'leaseMs')::float8 as lease_ms
    from gatehouse.node where name = $1::text`,
);

/**
 * $2 and $3 are the incarnation and the counter that were read; $4 to $7 describe the process. Two above the newest, so
 * that `RAISE` of the process before it finds no row.
 */
export const TAKE_NODE = statement(
  'take_node',
  `with l as (update gatehouse.node set incarnation = incarnation + 2, ${TOUCHED}, address = $4::text,
      version = $5::text, config_hash = $6::bytea, figures = $7::jsonb, digest_pos = null, digest = null
    where id = $1::int and incarnation = $2::bigint and renewals = $3::bigint returning id, incarnation)
  update gatehouse.head set incarnation[$1::int] = $2::bigint + 2 where one and exists (select 1 from l)
  returning $1::int as id, incarnation[$1::int] as incarnation, pos, log_id::text`,
);

/** The lowest number that no node has. A collision of two nodes ends one of the statements (unique_violation). */
export const ADD_NODE = statement(
  'add_node',
  `with f as (select min(i) as id from generate_series(1, ${NODES_MAX}) i
    where not exists (select 1 from gatehouse.node n where n.id = i) having min(i) is not null),
  h as (update gatehouse.head set incarnation[f.id] = incarnation[f.id] + 2 from f where one
    returning f.id, incarnation[f.id] as incarnation, pos, log_id),
  n as (insert into gatehouse.node (id, name, incarnation, joined, renewals, renewed, applied, address, version,
      config_hash, figures)
    select id, $1::text, incarnation, false, 0, clock_timestamp(), 0, $2::text, $3::text, $4::bytea, $5::jsonb from h
    returning id)
  select h.id, h.incarnation, h.pos, h.log_id::text from h, n`,
);

/** Frees the number of the node that has been out longest, when that is 30 days or more. */
export const FREE_NODE = statement(
  'free_node',
  `delete from gatehouse.node where not joined and renewed < clock_timestamp() - interval '30 days' and id =
    (select id from gatehouse.node where not joined order by renewed limit 1) returning id`,
);

export const FORGET_NODE = statement(
  'forget_node',
  'delete from gatehouse.node where name = $1::text and not joined returning id',
);

/** Old versions of the row that orders the log. */
export const HEAD_DEAD_ROWS = statement(
  'head_dead_rows',
  "select n_dead_tup as dead from pg_stat_all_tables where relid = 'gatehouse.head'::regclass",
);

export const LIST_NODES = statement(
  'list_nodes',
  `select id, name, incarnation, joined, renewals, applied, address, version, config_hash, figures,
    (extract(epoch from clock_timestamp() - renewed) * 1000)::bigint as renewed_ago_ms
  from gatehouse.node order by id`,
);
