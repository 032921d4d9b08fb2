/** The table of nodes as the commands, the panel and links read it. */
import type { DatabaseRow, Statements } from './database.ts';
import { LIST_NODES } from './log-statements.ts';

export interface NodeDescription {
  /** Where its links listen. */
  readonly address: string;
  readonly version: string;
  /** Of what all configurations should say alike. */
  readonly configHash: Uint8Array;
}

export interface NodeRecord extends NodeDescription {
  readonly node: number;
  readonly name: string;
  readonly incarnation: number;
  readonly joined: boolean;
  readonly renewals: number;
  readonly applied: number;
  /** By the clock of the database. */
  readonly renewedAgoMs: number;
}

/** Every node that has a number, joined or not. Rejects with `DatabaseFailure`. */
export async function listNodes(session: Statements): Promise<readonly NodeRecord[]> {
  return (await session.run(LIST_NODES)).rows.map(nodeRecordOf);
}

function nodeRecordOf(row: DatabaseRow): NodeRecord {
  return {
    node: Number(row['id']),
    name: String(row['name']),
    incarnation: Number(row['incarnation']),
    joined: row['joined'] === true,
    renewals: Number(row['renewals']),
    applied: Number(row['applied']),
    address: String(row['address']),
    version: String(row['version']),
    configHash: row['config_hash'] as Uint8Array,
    renewedAgoMs: Number(row['renewed_ago_ms']),
  };
}
