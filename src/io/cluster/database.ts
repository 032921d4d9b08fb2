/**
 * One connection to PostgreSQL, opened when it is needed and again after a failure. Statements run one at a time, each as
 * one message. The only importer of `pg`.
 */
import { randomUUID } from 'node:crypto';
import pg from 'pg';
import { DatabaseFailure, SessionsPooled, SQL_STATE } from './failures.ts';

/** A prepared statement; the name is unique in a session. */
export interface Statement {
  readonly name: string;
  readonly text: string;
}

export type DatabaseRow = Readonly<Record<string, unknown>>;

export interface DatabaseAnswer {
  readonly rows: readonly DatabaseRow[];
  /** PostgreSQL sent a notice before the answer: a commit may not have reached the standbys. */
  readonly noticed: boolean;
}

/** Runs statements: a connection, or the session of a connection that is being prepared. */
export interface Statements {
  run(statement: Statement, values?: readonly unknown[]): Promise<DatabaseAnswer>;
  /** Several statements without values in one message: one transaction. */
  script(text: string): Promise<void>;
}

interface DatabaseOptions {
  /** `postgres://…`, or `socket:/folder?db=…`. */
  readonly url: string;
  /** Shown in pg_stat_activity. */
  readonly applicationName: string;
  /** PostgreSQL ends a statement after so long. Milliseconds. */
  readonly statementTimeoutMs?: number;
  /** Checks a new session before anything else runs in it; a rejection ends the session. */
  readonly prepare?: (session: Statements) => Promise<void>;
}

const STATEMENT_TIMEOUT_MS = 2_000;
/** The answer of a statement that PostgreSQL has ended still has so long to arrive. */
const ANSWER_GRACE_MS = 1_000;
const CONNECT_TIMEOUT_MS = 2_000;
const IDLE_IN_TRANSACTION_MS = 1_000;
/** Statements that wait for those before them; the callers have fewer. */
const WAITING_MAX = 64;
/** Object id of 64-bit integers (pg_type), which here are below 2^53. */
const INT8 = 20;

/** Column of an answer that shows whether it comes from the session that this connection has marked. */
export const SESSION_MARK = "current_setting('gatehouse.session', true) as session_mark";
/** A pooler has moved the connection to a session without its statements, or with those of another one. */
const POOLED_STATES: readonly (string | undefined)[] = [SQL_STATE.noStatement, SQL_STATE.duplicateStatement];

/**
 * Values are read as text: results in the binary format are decoded as UTF-8 first, which changes bytes (pg-protocol
 * 1.16).
 */
const TYPES: pg.CustomTypesConfig = {
  getTypeParser: ((oid: number, format?: 'text' | 'binary') =>
    oid === INT8 ? Number : pg.types.getTypeParser(oid, format)) as typeof pg.types.getTypeParser,
};

/** Many bytes of a column, as `bytesOf` reads them: in half the time of the client's own form, which is hexadecimal. */
export function asText(column: string): string {
  return `encode(${column}, 'base64')`;
}

export function bytesOf(text: unknown): Buffer {
  return Buffer.from(String(text), 'base64');
}

export class Database implements Statements {
  readonly #options: DatabaseOptions;
  #client: pg.Client | undefined;
  /** Mark of the session of `#client`. */
  #mark = '';
  #notices = 0;
  #tail: Promise<unknown> = Promise.resolve();
  #waiting = 0;
  #closed = false;

  constructor(options: DatabaseOptions) {
    this.#options = options;
  }

  /** Rejects with `DatabaseFailure` and `SessionsPooled`, or with what `prepare` rejects with. */
  run(statement: Statement, values: readonly unknown[] = []): Promise<DatabaseAnswer> {
    return this.#next((client) => this.#answer(client, { ...statement, values: [...values] }));
  }

  script(text: string): Promise<void> {
    return this.#next(async (client) => {
      await this.#answer(client, { text });
    });
  }

  /** Ends the connection at once; later statements are refused. */
  close(): void {
    this.#closed = true;
    this.#drop();
  }

  /** Ends the connection; the next statement opens another one. */
  reconnect(): void {
    this.#drop();
  }

  #next<Result>(work: (client: pg.Client) => Promise<Result>): Promise<Result> {
    if (this.#waiting >= WAITING_MAX)
      return Promise.reject(new DatabaseFailure('too many statements wait for one connection'));
    this.#waiting += 1;
    const result = this.#tail.then(async () => {
      try {
        return await work(await this.#connected());
      } finally {
        this.#waiting -= 1;
      }
    });
    this.#tail = result.catch(() => undefined);
    return result;
  }

  async #connected(): Promise<pg.Client> {
    if (this.#closed) throw new DatabaseFailure('the connection is closed');
    if (this.#client !== undefined) return this.#client;
    const client = new pg.Client(this.#clientOptions());
    client.on('notice', () => {
      this.#notices += 1;
    });
    client.on('error', () => this.#drop(client));
    client.on('end', () => this.#drop(client));
    this.#client = client;
    try {
      await client.connect().catch((error: unknown) => Promise.reject(failureOf(error)));
      await this.#prepare(client);
    } catch (error) {
      this.#drop(client);
      throw error;
    }
    if (this.#client !== client) throw new DatabaseFailure('the connection was closed');
    return client;
  }

  #clientOptions(): pg.ClientConfig {
    const { url, applicationName, statementTimeoutMs = STATEMENT_TIMEOUT_MS } = this.#options;
    return {
      connectionString: url,
      application_name: applicationName,
      connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
      query_timeout: statementTimeoutMs + ANSWER_GRACE_MS,
      keepAlive: true,
      types: TYPES,
    };
  }

  /** Sets the options by statements and not at the start: a pooler of sessions refuses those. */
  async #prepare(client: pg.Client): Promise<void> {
    const { statementTimeoutMs = STATEMENT_TIMEOUT_MS, prepare } = this.#options;
    const script = async (text: string) => {
      await this.#answer(client, { text });
    };
    this.#mark = randomUUID();
    await script(
      `set gatehouse.session = '${this.#mark}'; set statement_timeout = ${statementTimeoutMs}; set idle_in_transaction_session_timeout = ${IDLE_IN_TRANSACTION_MS};` +
        ` set default_transaction_isolation = 'read committed'; set client_min_messages = warning`,
    );
    await prepare?.({
      run: (statement, values = []) => this.#answer(client, { ...statement, values: [...values] }),
      script,
    });
  }

  async #answer(client: pg.Client, query: pg.QueryConfig): Promise<DatabaseAnswer> {
    const before = this.#notices;
    try {
      // Several statements have several answers, of which none has rows.
      const { rows = [] }: { rows?: DatabaseRow[] } = await client.query<DatabaseRow>(query);
      const mark = rows[0]?.['session_mark'];
      if (mark !== undefined && mark !== this.#mark) throw new SessionsPooled();
      return { rows, noticed: this.#notices !== before };
    } catch (error) {
      if (error instanceof SessionsPooled) throw error;
      const failure = failureOf(error);
      if (POOLED_STATES.includes(failure.sqlState)) throw new SessionsPooled();
      // Without an answer the session may still be busy with the statement.
      if (!failure.refused) this.#drop(client);
      throw failure;
    }
  }

  #drop(client = this.#client): void {
    if (client === undefined) return;
    if (this.#client === client) this.#client = undefined;
    client.end().catch(() => undefined);
  }
}

/** Only an error that is not fatal is an answer: after a fatal one the outcome of a commit is open. */
function failureOf(error: unknown): DatabaseFailure {
  if (error instanceof DatabaseFailure) return error;
  if (error instanceof pg.DatabaseError) {
    const refused = error.severity === 'ERROR' && error.code?.startsWith('57P') === false;
    return new DatabaseFailure(error.message, error.code, refused);
  }
  const text = error instanceof Error ? error.message : String(error);
  const code = error instanceof Error && 'code' in error ? String(error.code) : '';
  return new DatabaseFailure(text === '' ? code : text);
}
