/**
 * The journal as the runtime uses it: synchronous reads of durable rows, and one group of writes at a time that is on
 * disk as a whole or not at all. Types only; lmdb.ts and memory.ts implement it under one contract suite.
 */

import type { AuditRing, NodeRing, StoredRing } from '../../../domain/audit.ts';
import type { Claim, IndexName } from '../actor.ts';
import type { Typed } from '../protocol.ts';

/** A value in the journal's own form. Packing happens in the turn, so that what cannot be stored fails that turn only. */
export type Packed = unknown;

/**
 * A value that may be packed: null, undefined, booleans, numbers, bigints of 64 bits, strings, Uint8Array, Date, and
 * arrays, plain objects, Maps and Sets of these.
 */
export type Plain = unknown;

/** A reply kept for a repeated Idempotency-Key, with the fingerprint of its command where it had one. */
export type RingEntry = readonly [key: string, reply: unknown, fingerprint?: string];
/** The due time of a named timer; null when it was cancelled or has fired. */
export type TimerChange = readonly [name: string, dueMs: number | null];

/** One turn of an actor: `[kind version, events, ring entries, timer changes]`. */
export type TurnRow = readonly [
  version: number,
  events: readonly unknown[],
  ring: readonly RingEntry[],
  timers: readonly TimerChange[],
];

/** State after the row `seq`: `[kind version, seq, state, ring, timers]`. */
export type SnapshotRow = readonly [
  version: number,
  seq: number,
  state: unknown,
  ring: readonly RingEntry[],
  timers: readonly (readonly [name: string, dueMs: number])[],
];

/** A key as messages name it. */
export function keyText(key: unknown): string {
  return Array.isArray(key) ? key.join('/') : String(key);
}

/** A row that is not what was written: its checksum does not fit, it cannot be decoded, or it is missing. */
export class DamagedRow extends Error {
  /** The sub-database. */
  readonly table: string;
  readonly key: string;
  /** Bytes on disk; empty when the row is missing. */
  readonly bytes: Uint8Array;

  constructor(table: string, key: unknown, bytes: Uint8Array, reason: string) {
    const text = keyText(key);
    super(`the row ${text} of ${table} is damaged: ${reason}`);
    this.name = 'DamagedRow';
    this.table = table;
    this.key = text;
    this.bytes = bytes;
  }
}

export interface StoredActor {
  readonly snapshot: SnapshotRow | undefined;
  /** Rows after the snapshot, in order, without gaps. */
  readonly rows: readonly { readonly seq: number; readonly row: TurnRow }[];
}

/** Names one mailbox row. `seq` rises over all messages of the journal, so an actor's mail is in sending order. */
export interface MailKey {
  readonly toKind: string;
  readonly toId: string;
  readonly seq: number;
  readonly fromKind: string;
  readonly fromId: string;
}
export interface MailRow extends MailKey {
  /** The command; `{ type: 'unreadable', bytes }` for a damaged row. */
  readonly command: Typed;
  readonly damage?: DamagedRow;
}
export interface TimerKey {
  readonly dueMs: number;
  readonly kind: string;
  readonly id: string;
  readonly name: string;
}
export interface TimerRow extends TimerKey {
  /** The command; for a damaged row that of `MailRow`. */
  readonly command: Typed;
  readonly damage?: DamagedRow;
}
export interface DeadKey {
  readonly timeMs: number;
  readonly kind: string;
  readonly id: string;
  readonly seq: number;
}
export interface DeadRow extends DeadKey {
  readonly command: Typed;
  readonly reason: string;
}

/** One write. A group is applied in the order given: a later write of the same key wins. */
export type Operation =
  | {
      readonly op: 'append';
      readonly kind: string;
      readonly id: string;
      readonly seq: number;
      readonly row: Packed;
    }
  /** Writes the snapshot and deletes the turn rows `fromSeq` to `seq`, which it covers. */
  | {
      readonly op: 'snapshot';
      readonly kind: string;
      readonly id: string;
      readonly seq: number;
      readonly fromSeq: number;
      readonly row: Packed;
    }
  | { readonly op: 'mail'; readonly key: MailKey; readonly row: Packed }
  | { readonly op: 'mailRemove'; readonly key: MailKey }
  | { readonly op: 'timer'; readonly key: TimerKey; readonly row: Packed }
  | { readonly op: 'timerRemove'; readonly key: TimerKey }
  /** `row` packs `{ command, reason }`. */
  | { readonly op: 'dead'; readonly key: DeadKey; readonly row: Packed }
  | { readonly op: 'deadRemove'; readonly key: DeadKey }
  | { readonly op: 'index'; readonly index: IndexName; readonly key: string; readonly owner: string | null }
  | { readonly op: 'audit'; readonly ring: AuditRing | NodeRing; readonly row: Packed }
  /**
   * Removes so many of the oldest records of a ring, but never the newest of all shared rings or of all rings of the
   * node: positions count on from them.
   */
  | {
      readonly op: 'auditTrim';
      readonly ring: StoredRing;
      readonly rows: number;
      /**
       * Number of the trim in a cluster, from 1: one that does not follow the last one does nothing, so no trim is done
       * twice.
       */
      readonly trim?: number;
    }
  | { readonly op: 'meta'; readonly key: string; readonly row: Packed }
  /** The same where the key has no value yet, or the value `was`: the first writer wins. */
  | { readonly op: 'metaOnce'; readonly key: string; readonly row: Packed; readonly was?: Plain }
  | EventRequest
  | EventWrite;

/** A write of events, which comes true or is passed over by the state that it meets. */
export type EventRequest =
  /** An event of a module waits for its sequence number, unless one with this identity waits or is in the log. */
  | { readonly op: 'eventAccept'; readonly identity: string; readonly row: Packed }
  /** The event that waits under the arrival gets the next sequence number; of a cluster, the owner of the log says so. */
  | {
      readonly op: 'eventRelease';
      readonly arrival: number;
      /** The row, from a writer that has it: spares reading it. It is not sent to other nodes. */
      readonly row?: Packed;
    }
  /** An event that never waits gets the next sequence number. */
  | { readonly op: 'eventPublish'; readonly row: Packed }
  /** The oldest event leaves the log and is forgotten. The newest stays, because sequence numbers continue from it. */
  | { readonly op: 'eventRemove'; readonly sequence: number; readonly identity: string | null };

/** Decided request: event-writes.ts alone makes these, and no row of a shared log has one. */
export type EventWrite =
  | { readonly op: 'eventWait'; readonly arrival: number; readonly identity: string; readonly row: Packed }
  /** `arrival`: under which it has waited, null where it never did. */
  | {
      readonly op: 'eventEnter';
      readonly arrival: number | null;
      readonly sequence: number;
      readonly row: Packed;
    }
  | { readonly op: 'eventLeave'; readonly sequence: number; readonly identity: string | null };

/** Hears of changes of the log of events and its inbox, by whichever node. */
export interface EventFollower {
  /** The log begins with this sequence number as soon as the group that is being written is on disk. */
  leaving(oldest: number): void;
  /** The writes of a group, in order, once they are on disk and before its callers are answered. */
  written(writes: readonly EventWrite[]): void;
}

/** Writes that stand or fall together. */
export interface JournalTurn {
  /** The actor whose turn wrote them. Rows of no actor have no kind, and as id the partition whose owner alone writes them, if any. */
  readonly kind: string;
  readonly id: string;
  readonly operations: readonly Operation[];
  /** Names that the turn takes or frees. `operations` has them as writes of the indexes. */
  readonly claims: readonly Claim[];
}

/** Rows that are of no actor. `partition`: 0 to 255; of a cluster, its owner alone may write them. */
export function ofNoActor(operations: readonly Operation[], partition?: number): JournalTurn {
  return { kind: '', id: partition === undefined ? '' : String(partition), operations, claims: [] };
}

/**
 * Verdict on a turn: `conflict` plus n says that its n-th claim was taken. Anything but `applied` has changed nothing.
 */
export const VERDICT = {
  applied: 0,
  /** The writer is not a member, or another node owns the actor. */
  fenced: 1,
  /** The turn does not follow the actor's last row. */
  stale: 2,
  /** The turn could not be applied: a bug of its writer. */
  refused: 3,
  conflict: 4,
} as const;

/** Judgement of a group, where the journal judges. */
export interface Judged {
  /** Position of the group in the log. */
  readonly position: number;
  /** One for each turn, in order. */
  readonly verdicts: Uint16Array;
  readonly skipped: SkippedWrites;
}

/** By the place of a turn in its group: how many requests of events were passed over. Turns without one are left out. */
export type SkippedWrites = ReadonlyMap<number, number>;

export interface AuditRow {
  /** Position in the log: the cursor of the next page. */
  readonly seq: number;
  /** Null: of a version without rings. */
  readonly ring: StoredRing;
  /** Undefined: the row is damaged. */
  readonly record: unknown;
}

/** Metadata: names one life of the log of events; absent in a copy, which begins another one when it is opened. */
export const EVENT_EPOCH_KEY = 'eventEpoch';
/** The life of the log of a cluster that it belongs to. A log that was restored or replaced may lack events. */
export const EVENT_EPOCH_LOG_KEY = 'eventEpochLog';

/** Metadata of a node: number of the last trim of shared audit records. */
export const AUDIT_TRIMS_KEY = 'auditTrims';

/** Metadata: a floor above all ids that were given; nodes have floors of their own. */
export function floorKey(node: number | undefined): string {
  return node === undefined ? 'tickFloor' : `tickFloor.${node}`;
}

/** Metadata: the version of each kind. */
export const KIND_VERSIONS_KEY = 'kindVersions';

/**
 * Metadata of a node of a cluster: `[position, digest, members]` of the shared log as this journal has applied it. Absent
 * in a copy that continues without a cluster.
 */
export const REPLICA_KEY = 'clusterApplied';
/** Numbers of messages in a cluster: the position of their row times this, and a count. */
export const MESSAGES_OF_ROW_MAX = 2 ** 16;

/** One event as it is kept: in the log under its sequence, before that under its arrival. */
export type EventRow = readonly [
  module: string,
  tick: string,
  type: string,
  userId: string | null,
  appId: string | null,
  currency: string | null,
  netType: number | null,
  jsonText: string,
  acceptedMs: number,
  identity: string | null,
];

export interface EventRows {
  /** Oldest and newest sequence number in the log; zeros while it is empty. */
  ends(): { readonly oldest: number; readonly newest: number };
  /** The log after a sequence number, in order. A row is undefined when it is damaged. */
  page(
    afterSequence: number,
    limit: number,
  ): { readonly sequence: number; readonly row: EventRow | undefined }[];
  /** Events that wait, by arrival. */
  waiting(
    afterArrival: number,
    limit: number,
  ): { readonly arrival: number; readonly row: EventRow | undefined }[];
  /** The last arrival under which an event waits; 0 while none does. */
  lastArrival(): number;
  /** Does an event wait under the arrival? */
  waits(arrival: number): boolean;
  /** The event that waits under an arrival, to be written once more. Throws `DamagedRow`. */
  waitingRow(arrival: number): Packed | undefined;
  /** Is an event with this identity in the log, or waiting? */
  knows(identity: string): boolean;
  /** Returns the way to stop that. */
  follow(follower: EventFollower): () => void;
  /** Bytes that the log takes. */
  sizeBytes(): number;
}

export type CommitDone = (error: Error | undefined, judged?: Judged, skipped?: SkippedWrites) => void;

/** Says whether an actor counts. */
export type IsWanted = (kind: string, id: string) => boolean;

/**
 * Reads verify what they read. `load`, `lookup` and `meta` throw `DamagedRow`; other reads show the row as damaged.
 */
export interface Journal {
  readonly events: EventRows;
  /** Throws TypeError when the value cannot be stored. */
  pack(value: Plain): Packed;
  /** A copy of the value. */
  unpack(packed: Packed): Plain;
  /** Bytes that a packed value takes. */
  sizeBytes(packed: Packed): number;
  /**
   * Writes the group; `done` is called once, later, never from within: without an error it is on disk. Without `judged`
   * all turns are applied.
   */
  commit(turns: readonly JournalTurn[], done: CommitDone): void;

  load(kind: string, id: string): StoredActor | undefined;
  has(kind: string, id: string): boolean;
  /** Number of the actor's last row; 0 for one that has none. */
  lastSeq(kind: string, id: string): number;
  /** Rows of an actor after `afterSeq`, in order; undefined when a snapshot has replaced some of them. */
  rowsAfter(kind: string, id: string, afterSeq: number): readonly TurnRow[] | undefined;
  /** Ids of a kind that have state, after `afterId` ('' from the start): ascending, or all the way back with `descending`. */
  ids(kind: string, afterId: string, limit: number, descending?: boolean): string[];
  lookup(index: IndexName, key: string): string | undefined;
  /** Names in an index. */
  count(index: IndexName): number;
  /** Every mailbox that holds mail, with the highest `seq` in it. */
  mailboxes(): Iterable<{ readonly toKind: string; readonly toId: string; readonly lastSeq: number }>;
  /** Is there such a message? */
  hasMail(key: MailKey): boolean;
  /** Mail of one actor after `afterSeq`, in order. */
  mail(toKind: string, toId: string, afterSeq: number, limit: number): MailRow[];
  /** Timers due at or before `untilMs`, earliest first; those of some actors alone where `isWanted` is given. */
  timers(untilMs: number, limit: number, isWanted?: IsWanted): TimerRow[];
  dead(limit: number): DeadRow[];
  auditRows(ring: StoredRing): number;
  /** The audit log, oldest first, after position `afterSeq` (0 from the start); of some rings alone where given. */
  auditPage(afterSeq: number, limit: number, rings?: readonly StoredRing[]): AuditRow[];
  /** The same, the newest first, before position `beforeSeq`. */
  auditBefore(beforeSeq: number, limit: number, rings?: readonly StoredRing[]): AuditRow[];
  meta(key: string): unknown;
  /** True when more than the allowed share of the quota is live: only commands that free space are served. */
  full(): boolean;
  /** Rows found to be damaged since the start, each once. */
  readonly damagedRows: number;
  /** Bytes that were read since the start to find damage. */
  readonly walkedBytes: number;
  close(): Promise<void>;
}

/** Another process owns the journal now: a group was refused, and nothing of it is on disk. */
export class JournalTaken extends Error {
  constructor(message: string) {
    super(message);
    this.name = 'JournalTaken';
  }
}

/** The journal was written by a newer version of the gateway: starting would lose what this one cannot read. */
export class JournalTooNew extends Error {
  constructor(message: string) {
    super(message);
    this.name = 'JournalTooNew';
  }
}
