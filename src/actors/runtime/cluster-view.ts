/** What the runtime knows of the cluster that its node is a member of. Types only; log/ has what is behind them. */

import type { Ownership } from './ownership.ts';
import type { ReplicaListener } from './replication/replica.ts';

/** Newest ids of the nodes: a later turn of an actor has higher ids, whichever node it is at. */
export interface NewestIds {
  /** Of the rows that are applied here. */
  readonly applied: bigint;
  /** Of this node; its next row says so. */
  given: bigint;
}

export interface ClusterView extends Ownership {
  /** As far as this node has applied the log. */
  owns(kind: string, id: string): boolean;
  /** It has partitions of its own, as far as this node has applied the log. */
  readonly isMember: boolean;
  /** The lease runs: what this node answers is not out of date. */
  readonly admits: boolean;
  /** Last row of the log that the journal shows. */
  readonly position: number;
  readonly newestIds: NewestIds;
  /** Runs when every other member has applied the position, or is out. */
  reached(position: number, run: () => void): void;
  /** Has every other member applied the position, or is it out? */
  isReached(position: number): boolean;
  /** Who hears of rows that are applied here, from now on. */
  follow(listener: ReplicaListener): void;
}
