/** Receives the rows of the log on a node. Type only. */
import type { Members } from './members.ts';
import type { DigestSample, Diverged, LogRow, NodeState, RowName } from './port.ts';

/** Applies rows of the log in order. */
export interface RowSink {
  /** Last row that is visible in the store. */
  readonly position: number;
  /** The row at `position`, where it is known. */
  readonly lastRow: RowName | undefined;
  /** Members at `position`. */
  readonly members: Members;
  /** Digest that other nodes may compare with theirs. */
  readonly sample: DigestSample | undefined;
  /** The state of this node is another one than that of the other members. */
  compare(others: readonly NodeState[]): Diverged | undefined;
  /** The rows begin at `position` + 1. Resolves when they are visible; a rejection ends the process. */
  apply(rows: readonly LogRow[]): Promise<void>;
}
