/** What the runtime knows of the cluster that its node is a member of. Types only; log/ has what is behind them. */
import type { ReplicaListener } from './log/replica.ts';

export interface ClusterView {
  /** Does this node own the actor, as far as it has applied the log? */
  owns(kind: string, id: string): boolean;
  /** The lease runs: what this node answers is not out of date. */
  readonly admits: boolean;
  /** Runs when every other member has applied the position, or is out. */
  reached(position: number, run: () => void): void;
  /** Who hears of rows that are applied here, from now on. */
  follow(listener: ReplicaListener): void;
}
