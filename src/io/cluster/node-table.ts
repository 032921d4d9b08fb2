/** The table of nodes as the commands, the panel and links read it. */
import type { DigestSample } from '../../actors/runtime/replication/port.ts';
import type { DatabaseRow, Statements } from './database.ts';
import { LIST_NODES } from './log-statements.ts';

export interface NodeDescription {
  /** Address at which its links listen. */
  readonly address: string;
  readonly version: string;
  /** Hash of the part that all configurations should have alike. */
  readonly configHash: Uint8Array;
}

/** Figures that a node reports when it enters, and with each renewal. */
export interface NodeFigures {
  /** Newest version of rows that its program applies. Those that apply the first one alone do not say it. */
  readonly readsRows?: number;
  readonly leaseMs: number;
  /** Clock of the database minus that of the node, as of its last renewal; absent where that had no answer. */
  readonly clockOffsetMs?: number | undefined;
  /** Links to other nodes that it has opened. */
  readonly links: number;
  /** Turns of all nodes that break a rule which no correct node breaks, as it has applied them since its start. */
  readonly turnsRefused: number;
  /** The same of turns that could not be judged or applied. */
  readonly turnsThrown: number;
  /** Value of its newest marker in the folder of files (io/files/storage/folder-proof.ts); null before the first. Absent: it shares none. */
  readonly marker?: string | null | undefined;
}

export interface NodeRecord extends NodeDescription {
  readonly node: number;
  readonly name: string;
  readonly incarnation: number;
  readonly joined: boolean;
  readonly renewals: number;
  readonly applied: number;
  /** Time since the renewal by the clock of the database. */
  readonly renewedAgoMs: number;
  /** Undefined before its first renewal. */
  readonly figures: NodeFigures | undefined;
}

/** Every node that has a number, joined or not. Rejects with `DatabaseFailure`. */
export async function listNodes(session: Statements): Promise<readonly NodeRecord[]> {
  return (await session.run(LIST_NODES)).rows.map(nodeRecordOf);
}

/** Reads the sample of a row that has `digest_pos` and `digest`. */
export function sampleOf(row: DatabaseRow): DigestSample | undefined {
  const digest = row['digest'] as Uint8Array | null;
  return digest === null ? undefined : { position: Number(row['digest_pos']), digest };
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
    figures: (row['figures'] ?? undefined) as NodeFigures | undefined,
  };
}
