/** Counters and gauges of event streams, as the metrics export them. */
import type { ByeReason } from './frames.ts';
import type { StreamRefusal } from './registry.ts';

/** Totals since the start. */
export interface StreamCounters {
  opened: number;
  /** Opened with a `Last-Event-ID` that is still in the log. */
  resumed: number;
  /** Sent a `reset` event, because events are missing. */
  resets: number;
  /** Events sent to clients, writes, and bytes. */
  frames: number;
  writes: number;
  bytes: number;
  /** Dropped: due frames left the ring while the socket was blocked. */
  lag: number;
  /** Closed by the transport: the client did not read. */
  stall: number;
  readonly ended: Record<ByeReason, number>;
  readonly refused: Record<StreamRefusal | 'stopping', number>;
}

export interface HubCounters extends StreamCounters {
  readonly streams: number;
  /** Streams whose socket is blocked now. */
  readonly blocked: number;
  /** Streams that wait for a replay of the log. */
  readonly behind: number;
  readonly ringFrames: number;
  readonly ringBytes: number;
}

export function newStreamCounters(): StreamCounters {
  return {
    opened: 0,
    resumed: 0,
    resets: 0,
    frames: 0,
    writes: 0,
    bytes: 0,
    lag: 0,
    stall: 0,
    ended: { evicted: 0, session: 0, lifetime: 0, drain: 0 },
    refused: { node: 0, user: 0, address: 0, connects: 0, stopping: 0 },
  };
}
