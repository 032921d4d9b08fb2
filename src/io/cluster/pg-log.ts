/**
 * The shared log in PostgreSQL: one row a group of writes, in the order of the lock of one head row. Appends, renewals,
 * expulsions and reads have connections of their own, so that none waits for another.
 */
import {
  type Entered,
  Expelled,
  LogLost,
  type LogRow,
  type LogWrite,
  NameTaken,
  OutcomeUnknown,
  type Renewed,
  type SharedLog,
} from '../../actors/runtime/log/port.ts';
import {
  Database,
  type DatabaseAnswer,
  type DatabaseRow,
  type Statement,
  type Statements,
} from './database.ts';
import { ClusterUnusable, DatabaseFailure, SQL_STATE } from './failures.ts';
import * as sql from './log-statements.ts';
import { listNodes, type NodeDescription, type NodeFigures, type NodeRecord } from './node-table.ts';
import { checkServer, type Head, readHead } from './pg-schema.ts';
import { type HeadOptions, openHead } from './pg-start.ts';
import { Sealer, SealUnopened } from './seal.ts';

export interface PgLogOptions extends HeadOptions {
  readonly leaseMs: number;
  /** What the other nodes read of this process; all but the address may change. */
  readonly process: NodeDescription;
  /** Goes with each renewal. */
  readonly figures: () => Omit<NodeFigures, 'leaseMs' | 'clockOffsetMs'>;
}

/** Polls of a name's counter in a lease. */
const POLLS = 10;
/** Rows of which is remembered who wrote them: a database that lost rows may have others at their positions. */
const WRITERS_MAX = 4_096;
/** The log is another one, or of another layout. */
const LOST_STATES: readonly (string | undefined)[] = [
  SQL_STATE.noTable,
  SQL_STATE.noSchema,
  SQL_STATE.noColumn,
];

/** Rejects with `ClusterUnusable` and `ClusterMisconfigured`. */
export async function openPgLog(options: PgLogOptions): Promise<PgLog> {
  return new PgLog(options, await openHead(options));
}

export class PgLog implements SharedLog {
  readonly logId: string;
  readonly #options: PgLogOptions;
  readonly #sealer: Sealer;
  readonly #appends: Database;
  readonly #renewals: Database;
  readonly #expulsions: Database;
  readonly #reads: Database;
  /** By position, the oldest first. */
  readonly #writers = new Map<number, string>();
  /** Clock of the database minus that of this process at the last renewal, and how far that may be wrong. Milliseconds. */
  clock = { offsetMs: 0, errorMs: 0 };

  constructor(options: PgLogOptions, head: Head) {
    this.#options = options;
    this.logId = head.logId;
    this.#sealer = new Sealer(options.secrets, 'log');
    const connection = (use: string) =>
      new Database({
        url: options.url,
        applicationName: `gatehouse ${use}`,
        prepare: (session) => this.#checkSession(session),
      });
    this.#appends = connection('appends');
    this.#renewals = connection('renewals');
    this.#expulsions = connection('expulsions');
    this.#reads = connection('reads');
  }

  /** A new connection may lead to another server: one that was promoted or restored. */
  async #checkSession(session: Statements): Promise<void> {
    const { hasTables } = await checkServer(session);
    const head = hasTables ? await readHead(session) : undefined;
    if (head === undefined) throw new LogLost('the database of Cluster.url holds no log any more');
    if (head.logId !== this.logId)
      throw new LogLost(
        `the log has the id ${head.logId} now, it had ${this.logId}: it was restored or replaced`,
      );
  }

  async enter(name: string, previous?: number): Promise<Entered> {
    this.#sealer.freshSalt();
    for (;;) {
      const [found] = (await this.#run(this.#appends, sql.FIND_NODE, [name])).rows;
      const entered = found === undefined ? await this.#add(name) : await this.#take(name, found, previous);
      if (entered !== undefined) return entered;
    }
  }

  async #add(name: string): Promise<Entered | undefined> {
    const { address, version, configHash } = this.#options.process;
    try {
      const values = [name, address, version, configHash];
      const { rows } = await this.#appends.run(sql.ADD_NODE, values);
      if (rows[0] !== undefined) return enteredOf(rows[0]);
    } catch (error) {
      // Another node took the number or the name meanwhile.
      if (error instanceof DatabaseFailure && error.sqlState === SQL_STATE.unique) return undefined;
      throw portErrorOf(error);
    }
    const freed = await this.#run(this.#appends, sql.FREE_NODE);
    if (freed.rows.length === 0)
      throw new ClusterUnusable(
        'all node numbers are taken: give one up with the command cluster forget NAME',
      );
    return undefined;
  }

  /** Undefined when the node changed meanwhile. */
  async #take(name: string, found: DatabaseRow, previous: number | undefined): Promise<Entered | undefined> {
    const isOwn = previous !== undefined && Number(found['incarnation']) === previous;
    if (!isOwn && found['joined'] === true && !(await this.#standsStill(name, found))) return undefined;
    const { address, version, configHash } = this.#options.process;
    const values = [found['id'], found['incarnation'], found['renewals'], address, version, configHash];
    const [row] = (await this.#run(this.#appends, sql.TAKE_NODE, values)).rows;
    return row === undefined ? undefined : enteredOf(row);
  }

  /** The lease of a process whose counter stands still for a lease is over. Rejects with `NameTaken`. */
  async #standsStill(name: string, found: DatabaseRow): Promise<boolean> {
    const { leaseMs, monotonicMs, wait } = this.#options;
    const endMs = monotonicMs() + leaseMs;
    while (monotonicMs() < endMs) {
      await wait(leaseMs / POLLS);
      const [row] = (await this.#run(this.#appends, sql.FIND_NODE, [name])).rows;
      if (row === undefined || row['joined'] !== true) return false;
      if (row['renewals'] !== found['renewals']) throw new NameTaken(name);
    }
    return true;
  }

  append(write: LogWrite): Promise<number> {
    return this.#write(this.#appends, sql.APPEND, write);
  }

  join(write: LogWrite): Promise<number> {
    return this.#write(this.#appends, sql.JOIN, write);
  }

  leave(write: LogWrite): Promise<number> {
    return this.#write(this.#appends, sql.LEAVE, write);
  }

  async expel(write: LogWrite, target: number, renewals: number): Promise<number | undefined> {
    const rows = await this.#writeRows(this.#expulsions, sql.EXPEL, write, [target, renewals]);
    return this.#wrote(write, rows);
  }

  async #write(database: Database, statement: Statement, write: LogWrite): Promise<number> {
    const position = this.#wrote(write, await this.#writeRows(database, statement, write));
    if (position === undefined) throw new Expelled(write.node, write.incarnation);
    return position;
  }

  async #writeRows(
    database: Database,
    statement: Statement,
    write: LogWrite,
    more: readonly unknown[] = [],
  ): Promise<readonly DatabaseRow[]> {
    const { node, incarnation, nodeSeq, body } = write;
    const sealed = this.#sealer.seal(body, placeOf(write));
    try {
      const values = [node, incarnation, nodeSeq, sealed, ...more];
      return confirmed(await database.run(statement, values)).rows;
    } catch (error) {
      if (error instanceof DatabaseFailure && error.sqlState === SQL_STATE.notNull)
        throw new Expelled(node, incarnation);
      throw portErrorOf(error);
    }
  }

  #wrote(write: LogWrite, [row]: readonly DatabaseRow[]): number | undefined {
    if (row === undefined) return undefined;
    const position = Number(row['pos']);
    this.#remember(position, writerOf(write));
    return position;
  }

  async renew(node: number, incarnation: number, applied: number): Promise<Renewed> {
    const { leaseMs, process, figures } = this.#options;
    const said: NodeFigures = { leaseMs, clockOffsetMs: Math.round(this.clock.offsetMs), ...figures() };
    const values = [node, incarnation, applied, process.configHash, JSON.stringify(said)];
    const sentMs = Date.now();
    const { rows } = await this.#run(this.#renewals, sql.RENEW, values);
    const [first] = rows;
    if (first === undefined) throw new Expelled(node, incarnation);
    const errorMs = (Date.now() - sentMs) / 2;
    this.clock = { offsetMs: Number(first['database_ms']) - (sentMs + errorMs), errorMs: Math.abs(errorMs) };
    const others = rows.filter((row) => row['id'] !== null);
    return {
      position: Number(first['pos']),
      others: others.map((row) => ({
        node: Number(row['id']),
        renewals: Number(row['renewals']),
        applied: Number(row['applied']),
      })),
    };
  }

  async resolve(write: LogWrite): Promise<number | undefined> {
    const { node, incarnation, nodeSeq } = write;
    const raised = await this.#run(this.#appends, sql.RAISE, [node, incarnation]);
    if (raised.rows.length === 0) throw new Expelled(node, incarnation);
    const { rows } = await this.#run(this.#appends, sql.OUTCOME, [node, incarnation, nodeSeq]);
    return this.#wrote(write, rows);
  }

  async fetch(after: number, limit: number): Promise<readonly LogRow[]> {
    const isStart = after === 0;
    const { rows } = await this.#run(this.#reads, sql.FETCH, [after, limit + (isStart ? 0 : 1)]);
    const [first] = rows;
    if (!isStart) this.#checkRowAt(after, first);
    const found = (isStart ? rows : rows.slice(1)).map((row) => this.#rowOf(row));
    if (found[0] !== undefined && found[0].position !== after + 1)
      throw new LogLost(`row ${after + 1} of the log is gone: it was trimmed, or the database lost it`);
    return found;
  }

  #checkRowAt(position: number, row: DatabaseRow | undefined): void {
    if (row === undefined || Number(row['pos']) !== position)
      throw new LogLost(`row ${position} of the log is gone: it was trimmed, or the database lost it`);
    const known = this.#writers.get(position);
    if (known !== undefined && known !== writerOf(nameOf(row)))
      throw new LogLost(`row ${position} of the log is another one than before: the database lost rows`);
  }

  #rowOf(row: DatabaseRow): LogRow {
    const name = nameOf(row);
    const position = Number(row['pos']);
    try {
      const body = this.#sealer.open(row['body'] as Uint8Array, placeOf(name));
      this.#remember(position, writerOf(name));
      return { ...name, position, body };
    } catch (error) {
      if (!(error instanceof SealUnopened)) throw error;
      throw new LogLost(
        `row ${position} of the log is sealed with a secret that Cluster.secret does not list`,
      );
    }
  }

  #remember(position: number, writer: string): void {
    this.#writers.set(position, writer);
    if (this.#writers.size <= WRITERS_MAX) return;
    const [oldest] = this.#writers.keys();
    if (oldest !== undefined) this.#writers.delete(oldest);
  }

  /** Every node that has a number, joined or not. */
  nodes(): Promise<readonly NodeRecord[]> {
    return listNodes(this.#reads).catch((error: unknown) => Promise.reject(portErrorOf(error)));
  }

  /** Old versions of the row that orders the log, which a long transaction of another user keeps. */
  async headDeadRows(): Promise<number> {
    const { rows } = await this.#run(this.#reads, sql.HEAD_DEAD_ROWS);
    return Number(rows[0]?.['dead'] ?? 0);
  }

  close(): void {
    for (const each of [this.#appends, this.#renewals, this.#expulsions, this.#reads]) each.close();
  }

  async #run(
    database: Database,
    statement: Statement,
    values: readonly unknown[] = [],
  ): Promise<DatabaseAnswer> {
    const answer = await database.run(statement, values).catch((error: unknown) => {
      throw portErrorOf(error);
    });
    return confirmed(answer);
  }
}

/** A wait for a synchronous standby that was cancelled answers success with a warning. */
function confirmed(answer: DatabaseAnswer): DatabaseAnswer {
  if (answer.noticed) throw new OutcomeUnknown('PostgreSQL sent a warning with the commit');
  return answer;
}

type RowName = Pick<LogRow, 'node' | 'incarnation' | 'nodeSeq'>;

function nameOf(row: DatabaseRow): RowName {
  return {
    node: Number(row['node']),
    incarnation: Number(row['incarnation']),
    nodeSeq: Number(row['node_seq']),
  };
}

function writerOf({ node, incarnation, nodeSeq }: RowName): string {
  return `${node}.${incarnation}.${nodeSeq}`;
}

/** What the seal of a row is bound to. */
function placeOf(name: RowName): Buffer {
  return Buffer.from(writerOf(name));
}

function enteredOf(row: DatabaseRow): Entered {
  return {
    node: Number(row['id']),
    incarnation: Number(row['incarnation']),
    logId: String(row['log_id']),
    position: Number(row['pos']),
  };
}

/** What the port names: a failure of the database leaves open what happened, unless the log itself is gone. */
function portErrorOf(error: unknown): unknown {
  if (!(error instanceof DatabaseFailure)) return error;
  return LOST_STATES.includes(error.sqlState)
    ? new LogLost(`the tables of the log cannot be used: ${error.message}`)
    : new OutcomeUnknown(error.message);
}
