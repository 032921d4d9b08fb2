/** The cluster as the runtime of a member sees it. Types only; log/ has what is behind them. */

import type { Ownership } from './ownership.ts';
import type { ReplicaListener } from './replication/replica.ts';

/** Newest ids of the nodes: a later turn of an actor has higher ids, whichever node it is at. */
export interface NewestIds {
  /** Newest id of the rows that are applied here. */
  readonly applied: bigint;
  /** Newest id of this node; its next row says so. */
  given: bigint;
}

export interface ClusterView extends Ownership {
  /** True if this node owns the actor, by the rows of the log that it has applied. */
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
  /** Calls the listener for rows that are applied here, from now on. */
  follow(listener: ReplicaListener): void;
}
