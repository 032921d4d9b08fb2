/**
 * The shared log in PostgreSQL: one row a group of writes, in the order of the lock of one head row. Appends, renewals,
 * expulsions and reads have connections of their own, so that none waits for another.
 */

import { readClock } from '../../actors/runtime/replication/clock-check.ts';
import { ROW_VERSION } from '../../actors/runtime/replication/entry.ts';
import {
  type ClockReading,
  checkRowAt,
  type DigestSample,
  type Entered,
  Expelled,
  LogLost,
  type LogRow,
  type LogWrite,
  NameTaken,
  nameOf,
  OutcomeUnknown,
  type Renewed,
  type RowName,
  type SharedLog,
} from '../../actors/runtime/replication/port.ts';
import {
  bytesOf,
  Database,
  type DatabaseAnswer,
  type DatabaseRow,
  type Statement,
  type Statements,
} from './database.ts';
import { ClusterUnusable, DatabaseFailure, SQL_STATE } from './failures.ts';
import * as sql from './log-statements.ts';
import {
  listNodes,
  type NodeDescription,
  type NodeFigures,
  type NodeRecord,
  sampleOf,
} from './node-table.ts';
import { checkServer, type Head, readHead } from './pg-schema.ts';
import { type HeadOptions, refusalOf } from './pg-start.ts';
import { Sealer, SealUnopened } from './seal.ts';

export interface PgLogOptions extends HeadOptions {
  readonly leaseMs: number;
  /** The newest row that this node has applied: each new connection finds it in the log. */
  readonly applied?: () => { readonly position: number; readonly lastRow: RowName | undefined } | undefined;
  /** Description of this process for the other nodes; all but the address may change. */
  readonly process: NodeDescription;
  /** Goes with each entry and renewal. */
  readonly figures: () => Omit<NodeFigures, 'readsRows' | 'leaseMs' | 'clockOffsetMs'>;
}

/** Polls of a name's counter in a lease. */
const POLLS = 10;
/** The log is another one, or of another layout. */
const LOST_STATES: readonly (string | undefined)[] = [
  SQL_STATE.noTable,
  SQL_STATE.noSchema,
  SQL_STATE.noColumn,
];

export class PgLog implements SharedLog {
  readonly logId: string;
  readonly #options: PgLogOptions;
  readonly #sealer: Sealer;
  readonly #appends: Database;
  readonly #renewals: Database;
  readonly #expulsions: Database;
  readonly #reads: Database;
  /** Before it a refusal that does not pass ends the start; from then on all are waited for. */
  #hasJoined = false;
  /** Clock at the last renewal or look. */
  clock: ClockReading = { offsetMs: 0, errorMs: 0 };
  /** True if the last renewal or look was answered: others must know when the offset was measured. */
  #isClockKnown = false;

  /** `head`: as `openHead` has found it. */
  constructor(options: PgLogOptions, head: Pick<Head, 'logId'>) {
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
    const { position, lastRow } = this.#options.applied?.() ?? {};
    if (position === undefined || lastRow === undefined) return;
    const [row] = (await session.run(sql.ROW_AT, [position])).rows;
    checkRowAt(position, row && rowNameOf(row), lastRow);
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
    try {
      const values = [name, ...this.#description()];
      const { rows } = await this.#appends.run(sql.ADD_NODE, values);
      if (rows[0] !== undefined) return enteredOf(rows[0]);
    } catch (error) {
      // Another node took the number or the name meanwhile.
      if (error instanceof DatabaseFailure && error.sqlState === SQL_STATE.unique) return undefined;
      throw this.#portErrorOf(error);
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
    const values = [found['id'], found['incarnation'], found['renewals'], ...this.#description()];
    const [row] = (await this.#run(this.#appends, sql.TAKE_NODE, values)).rows;
    return row === undefined ? undefined : enteredOf(row);
  }

  /** The lease of a process whose counter stands still for a lease is over. Rejects with `NameTaken`. */
  async #standsStill(name: string, found: DatabaseRow): Promise<boolean> {
    const { monotonicMs, wait } = this.#options;
    const leaseMs = Math.max(this.#options.leaseMs, optionalNumber(found['lease_ms']) ?? 0);
    const endMs = monotonicMs() + leaseMs;
    while (monotonicMs() < endMs) {
      await wait(leaseMs / POLLS);
      const [row] = (await this.#run(this.#appends, sql.FIND_NODE, [name])).rows;
      if (row === undefined || row['joined'] !== true) return false;
      if (row['renewals'] !== found['renewals']) throw new NameTaken(name);
    }
    return true;
  }

  #description(): readonly unknown[] {
    const { address, version, configHash } = this.#options.process;
    return [address, version, configHash, this.#figures()];
  }

  #figures(): string {
    const { leaseMs, figures } = this.#options;
    const clockOffsetMs = this.#isClockKnown ? Math.round(this.clock.offsetMs) : undefined;
    return JSON.stringify({
      readsRows: ROW_VERSION,
      leaseMs,
      clockOffsetMs,
      ...figures(),
    } satisfies NodeFigures);
  }

  append(write: LogWrite): Promise<number> {
    return this.#write(this.#appends, sql.APPEND, write);
  }

  async join(write: LogWrite): Promise<number> {
    const position = await this.#write(this.#appends, sql.JOIN, write);
    this.#hasJoined = true;
    return position;
  }

  leave(write: LogWrite): Promise<number> {
    return this.#write(this.#appends, sql.LEAVE, write);
  }

  async expel(write: LogWrite, target: number, renewals: number): Promise<number | undefined> {
    const rows = await this.#writeRows(this.#expulsions, sql.EXPEL, write, [target, renewals]);
    return positionOf(rows);
  }

  async #write(database: Database, statement: Statement, write: LogWrite): Promise<number> {
    const position = positionOf(await this.#writeRows(database, statement, write));
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
    const sealed = this.#sealer.seal(body, associatedOf(write));
    try {
      const values = [node, incarnation, nodeSeq, sealed, ...more];
      return confirmed(await database.run(statement, values)).rows;
    } catch (error) {
      if (error instanceof DatabaseFailure && error.sqlState === SQL_STATE.notNull)
        throw new Expelled(node, incarnation);
      throw this.#portErrorOf(error);
    }
  }

  async renew(node: number, incarnation: number, applied: number, sample?: DigestSample): Promise<Renewed> {
    const { process } = this.#options;
    const digest = [sample?.position, sample?.digest];
    const values = [node, incarnation, applied, process.configHash, this.#figures(), ...digest];
    const seen = await this.#look(sql.RENEW, values);
    if (seen === undefined) throw new Expelled(node, incarnation);
    return seen;
  }

  async look(node: number): Promise<Renewed> {
    const seen = await this.#look(sql.LOOK, [node]);
    if (seen === undefined) throw new LogLost('the table gatehouse.head is empty');
    return seen;
  }

  async #look(statement: Statement, values: readonly unknown[]): Promise<Renewed | undefined> {
    const sentMs = Date.now();
    this.#isClockKnown = false;
    const { rows } = await this.#run(this.#renewals, statement, values);
    const [first] = rows;
    if (first === undefined) return undefined;
    this.#isClockKnown = true;
    this.clock = readClock(sentMs, Date.now(), Number(first['database_ms']));
    const others = rows.filter((row) => row['id'] !== null);
    return {
      position: Number(first['pos']),
      clock: this.clock,
      others: others.map((row) => ({
        node: Number(row['id']),
        renewals: Number(row['renewals']),
        applied: Number(row['applied']),
        sample: sampleOf(row),
        clockOffsetMs: optionalNumber(row['clock_offset_ms']),
        leaseMs: optionalNumber(row['lease_ms']),
      })),
    };
  }

  async resolve(write: LogWrite): Promise<number | undefined> {
    const { node, incarnation, nodeSeq } = write;
    const raised = await this.#run(this.#appends, sql.RAISE, [node, incarnation]);
    if (raised.rows.length === 0) throw new Expelled(node, incarnation);
    const { rows } = await this.#run(this.#appends, sql.OUTCOME, [node, incarnation, nodeSeq]);
    return positionOf(rows);
  }

  async fetch(after: number, limit: number, row?: RowName): Promise<readonly LogRow[]> {
    const isStart = after === 0;
    const { rows } = await this.#run(this.#reads, sql.FETCH, [after, limit + (isStart ? 0 : 1)]);
    const [first] = rows;
    if (!isStart) {
      const isThere = first !== undefined && Number(first['pos']) === after;
      checkRowAt(after, isThere ? rowNameOf(first) : undefined, row);
    }
    const found = (isStart ? rows : rows.slice(1)).map((each) => this.#rowOf(each));
    if (found[0] !== undefined && found[0].position !== after + 1)
      throw new LogLost(`row ${after + 1} of the log is gone: it was trimmed, or the database lost it`);
    return found;
  }

  #rowOf(row: DatabaseRow): LogRow {
    const name = rowNameOf(row);
    const position = Number(row['pos']);
    try {
      const body = this.#sealer.open(bytesOf(row['body']), associatedOf(name));
      return { ...name, position, body };
    } catch (error) {
      if (!(error instanceof SealUnopened)) throw error;
      throw new LogLost(
        `row ${position} of the log is sealed with a secret that Cluster.secret does not list`,
      );
    }
  }

  /** Every node that has a number, joined or not. */
  nodes(): Promise<readonly NodeRecord[]> {
    return listNodes(this.#reads).catch((error: unknown) => Promise.reject(this.#portErrorOf(error)));
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
      throw this.#portErrorOf(error);
    });
    return confirmed(answer);
  }

  /**
   * Turns an error into one of the port: a failure of the database leaves the outcome unknown, unless the log itself is
   * gone.
   */
  #portErrorOf(error: unknown): unknown {
    if (!(error instanceof DatabaseFailure)) return error;
    if (LOST_STATES.includes(error.sqlState))
      return new LogLost(`the tables of the log cannot be used: ${error.message}`);
    if (error.sqlState !== undefined) this.#options.onRefused?.(error);
    return this.#hasJoined || error.isPassing ? new OutcomeUnknown(error.message) : refusalOf(error);
  }
}

/** A wait for a synchronous standby that was cancelled answers success with a warning. */
function confirmed(answer: DatabaseAnswer): DatabaseAnswer {
  if (answer.noticed) throw new OutcomeUnknown('PostgreSQL sent a warning with the commit');
  return answer;
}

function rowNameOf(row: DatabaseRow): RowName {
  return nameOf({
    node: Number(row['node']),
    incarnation: Number(row['incarnation']),
    nodeSeq: Number(row['node_seq']),
  });
}

function optionalNumber(value: unknown): number | undefined {
  return value === null || value === undefined ? undefined : Number(value);
}

function positionOf([row]: readonly DatabaseRow[]): number | undefined {
  return row === undefined ? undefined : Number(row['pos']);
}

/** Returns the place that the seal of a row is bound to. */
function associatedOf({ node, incarnation, nodeSeq }: RowName): Buffer {
  return Buffer.from(`${node}.${incarnation}.${nodeSeq}`);
}

function enteredOf(row: DatabaseRow): Entered {
  return {
    node: Number(row['id']),
    incarnation: Number(row['incarnation']),
    logId: String(row['log_id']),
    position: Number(row['pos']),
  };
}
