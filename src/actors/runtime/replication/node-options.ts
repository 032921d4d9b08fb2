/** Options of a node of a cluster. Types only. */
import type { Schedule } from '../runtime-context.ts';
import type { MemberChange } from './members.ts';
import type { PeerListener, Peers, SharedLog } from './port.ts';
import type { RowSink } from './row-sink.ts';

export interface LogNodeOptions {
  readonly log: SharedLog;
  readonly peers: (listener: PeerListener) => Peers;
  readonly sink: RowSink;
  readonly schedule: Schedule;
  /** The wall clock, in milliseconds. */
  readonly clock: () => number;
  /** A clock that never steps, in milliseconds. */
  readonly monotonicMs: () => number;
  readonly leaseMs: number;
  readonly name: string;
  /** Life of the log that the replica follows; undefined for an empty one. */
  readonly logId?: string;
  /** Rows of this process are numbered from here on: by chance, so that no two rows ever have one name. Default 0. */
  readonly firstSeq?: number | undefined;
  /** Body of a row that changes the members. */
  readonly encodeMember: (change: MemberChange) => Uint8Array;
  /** The process is to end; nothing is repaired. */
  readonly onFatal: (error: Error) => void;
}
