/**
 * Events as the gateway holds them (spec 2.6, 6): one log of what the modules reported, in the order in which it is
 * delivered. The log is written by one owner and read by the event streams and the webhooks.
 */

export interface StoredEvent {
  /** Position in the log, rising in the order of delivery; never used twice, also not after a restart. */
  readonly sequence: number;
  readonly module: string;
  /** int64, decimal (spec 2.6). */
  readonly tick: string;
  readonly type: string;
  /** The user it concerns (`crmId`, decimal); undefined: all users. */
  readonly userId: string | undefined;
  /** From `data`, for routing and filters; undefined where the event has no such field. */
  readonly appId: string | undefined;
  readonly currency: string | undefined;
  /** 0 to 255: the routing field beside `crmId`, else that of `data`. */
  readonly netType: number | undefined;
  /**
   * JSON of `{module, tick, type, data}` as it is sent: the bytes of `data` are those that the module sent. A module
   * that prints its JSON in several lines has line breaks in here.
   */
  readonly jsonText: string;
  readonly acceptedMs: number;
}

/** An event of the gateway itself, for the browsers of one user: a webhook that fails, for example. */
export interface OwnEvent {
  readonly type: string;
  readonly userId: string;
  /** The webhook of this application gets it too. */
  readonly appId?: string;
  readonly data: Readonly<Record<string, string | number | boolean | null>>;
}

/** The event log as readers see it. All reads are synchronous and show only what is on disk. */
export interface EventLog {
  /** Changes only when the log is created anew or restored. */
  readonly epoch: string;
  /** Positions of the oldest and the newest event that are still there; 0 when the log is empty. */
  readonly oldest: number;
  readonly newest: number;
  /**
   * Events after a position, in order; at most `limit`. One that has left the log is not among them: ask `missedAfter`
   * first.
   */
  page(afterSequence: number, limit: number): readonly StoredEvent[];
  /** Calls back after new events are readable. Returns the way to stop that. */
  subscribe(listener: () => void): () => void;
  /**
   * Adds an event of the gateway's own, module `gateway`. It reaches the browsers of its user, and the webhook
   * of the application that it names. Resolves
   * when it is on disk. Rejects with `GatewayError`: `StorageFull`, `Stopping`, `JournalUnavailable`.
   */
  publish(event: OwnEvent): Promise<void>;
}

/** Module of the gateway's own events; no backend module has this name. */
export const OWN_MODULE = 'gateway';

/** Events that a reader at this position will never see: they have left the log. 0: none. */
export function missedAfter(log: Pick<EventLog, 'oldest'>, afterSequence: number): number {
  return Math.max(0, log.oldest - 1 - afterSequence);
}
