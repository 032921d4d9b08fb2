/** Failures of a cluster's database and log. Each message is one sentence for the operator. */

/** The cluster cannot be served at present, and the configuration is not at fault: exit code 70. */
export class ClusterUnusable extends Error {
  override readonly name = 'ClusterUnusable';
}

/** A key of the configuration is at fault: exit code 78. */
export class ClusterMisconfigured extends Error {
  override readonly name = 'ClusterMisconfigured';
  readonly key: string;

  constructor(key: string, message: string) {
    super(message);
    this.key = key;
  }
}

/** `Cluster.url` leads to a pooler that gives each transaction another session: exit code 70. */
export class SessionsPooled extends ClusterUnusable {
  constructor() {
    super(
      'Cluster.url leads to a pooler of transactions, such as pgbouncer with pool_mode transaction or statement, and a node needs a session of its own for each connection: connect to PostgreSQL itself, or pool sessions',
    );
  }
}

/** Classes of SQLSTATEs: connection, transaction rollback, insufficient resources, operator intervention. */
const PASSING: readonly string[] = ['08', '40', '53', '57'];

/** A statement has no answer, or PostgreSQL refused it. */
export class DatabaseFailure extends Error {
  override readonly name = 'DatabaseFailure';
  /** SQLSTATE, five characters; undefined when the connection failed or no answer came in time. */
  readonly sqlState: string | undefined;
  /** PostgreSQL refused the statement and said so: nothing of it was committed. */
  readonly refused: boolean;

  /** It is over by itself, or when a server is promoted: worth to wait for. */
  get isPassing(): boolean {
    const { sqlState } = this;
    return (
      sqlState === undefined || sqlState === SQL_STATE.readOnly || PASSING.includes(sqlState.slice(0, 2))
    );
  }

  constructor(message: string, sqlState?: string, refused = false) {
    super(message);
    this.sqlState = sqlState;
    this.refused = refused;
  }
}

/** SQLSTATEs by which the program decides (PostgreSQL, appendix A). */
export const SQL_STATE = {
  notNull: '23502',
  unique: '23505',
  noPartition: '23514',
  noTable: '42P01',
  noSchema: '3F000',
  noColumn: '42703',
  noRight: '42501',
  duplicateSchema: '42P06',
  duplicateTable: '42P07',
  wrongObject: '42809',
  wrongState: '55000',
  readOnly: '25006',
  noStatement: '26000',
  duplicateStatement: '42P05',
} as const;
