/** Where the rows of the log go on a node. Type only. */
import type { Members } from './members.ts';
import type { LogRow } from './port.ts';

/** Applies rows of the log in order. */
export interface RowSink {
  /** Last row that is visible in the store. */
  readonly position: number;
  /** As of `position`. */
  readonly members: Members;
  /** The rows begin at `position` + 1. Resolves when they are visible; a rejection ends the process. */
  apply(rows: readonly LogRow[]): Promise<void>;
}
