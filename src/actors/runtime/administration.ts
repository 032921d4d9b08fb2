/**
 * Administration of the runtime: quarantined actors, dead letters, the audit log and small durable values of other
 * components. Owns the writes that belong to no actor.
 */
import {
  auditRowsMax,
  isNodeRing,
  NODE_RINGS,
  SHARED_RINGS,
  STORED_RINGS,
  type StoredRing,
} from '../../domain/audit.ts';
import { GatewayError } from '../../domain/errors.ts';
import { homeOf } from '../../domain/partitions.ts';
import type { AuditRecord } from './actor.ts';
import { type CallAudit, JournalCallAudit } from './audit/call-audit.ts';
import { RefusalBudget } from './audit/refusal-budget.ts';
import { checkName, ID_MAX_BYTES } from './journal/plain-data.ts';
import {
  AUDIT_TRIMS_KEY,
  type AuditRow,
  type DeadKey,
  type DeadRow,
  type Journal,
  type Operation,
  ofNoActor,
  type StoredActor,
} from './journal/port.ts';
import type { QuarantineEntry } from './supervision.ts';
import type { Wiring } from './wiring.ts';

/** Records read and removed at a time: some 20 ms of the disk's thread. */
const AUDIT_BATCH_ROWS = 1_000;
/** In a cluster, the owner of this home trims the records that all nodes have. */
const AUDIT_HOME = ['auditLog', 'all'] as const;

export class Administration {
  readonly journal: Journal;
  readonly #wiring: Wiring;
  /** Values that are being written, so that a reader sees its own writes. */
  readonly #meta = new Map<string, unknown>();
  readonly #refusals = new RefusalBudget();
  readonly #calls: CallAudit;
  #isTrimming = false;

  /** `calls`: where audit records that belong to no turn go; the journal unless given. */
  constructor(journal: Journal, wiring: Wiring, calls?: CallAudit) {
    this.journal = journal;
    this.#wiring = wiring;
    const { commit } = wiring;
    const write = (operations: readonly Operation[], sizeBytes: number) => this.write(operations, sizeBytes);
    this.#calls = calls ?? new JournalCallAudit({ journal, commit, write });
  }

  /** An audit record that belongs to no turn; not awaited. */
  audit(record: AuditRecord): void {
    this.#calls.write(record);
  }

  /** The same, resolved when the record is on disk: for what must leave a trace before it happens. Rejects when full. */
  auditFirst(record: AuditRecord): Promise<void> {
    return this.#calls.writeFirst(record);
  }

  get auditDropped(): number {
    return this.#calls.dropped;
  }

  /**
   * Rows that belong to no actor, in one group: all of them are on disk when it resolves, or none. Resolves with the number
   * of requests of events that were passed over. `partition`: of a cluster, its owner alone may write them; rejects with
   * `NotOwner` otherwise.
   */
  write(operations: readonly Operation[], sizeBytes: number, partition?: number): Promise<number> {
    const { commit } = this.#wiring;
    if (commit.failed) return Promise.reject(new GatewayError('JournalUnavailable'));
    return new Promise((resolve, reject) => {
      const settle = (skipped: unknown, error: Error | undefined) =>
        error === undefined ? resolve(Number(skipped)) : reject(error);
      commit.addRows(ofNoActor(operations, partition), { waiter: { settle } });
      commit.wrote(operations.length, sizeBytes);
    });
  }

  /** A fresh gateway id (int64, decimal): above all earlier ones, also after a restart. */
  tick(): string {
    const { context } = this.#wiring;
    return String(context.ids.next(context.clock()));
  }

  /** Ids of a kind that have state on disk, after `afterId` ('' from the start): ascending, or `descending`. */
  ids(kind: string, afterId: string, limit: number, descending = false): string[] {
    return this.journal.ids(kind, afterId, limit, descending);
  }

  /** Records the refusal of a caller without an account within the budget of the minute, else counts it. */
  auditRefusal(record: AuditRecord, caller: string): void {
    const max = this.#wiring.context.settings.get('AnonymousRefusalsPerMinute');
    this.auditLeftOut(record.utcMs);
    if (this.#refusals.take(caller, max, record.utcMs)) this.audit(record);
  }

  /**
   * Removes a batch of the records before `beforeMs`, of one ring; true when there may be more. In a cluster one node
   * does it for all, of records that all have, and also removes what is beyond the bound of a ring.
   */
  tidyAudit(beforeMs: number): boolean {
    const { commit, cluster } = this.#wiring;
    if (commit.failed) return false;
    // A trim counts rows: the next one needs to see what this one has left.
    if (this.#isTrimming) return true;
    const isInCharge = cluster?.owns(...AUDIT_HOME) !== false;
    for (const ring of isInCharge ? STORED_RINGS : NODE_RINGS) {
      const rows = Math.max(
        this.#rowsBefore(ring, beforeMs),
        cluster === undefined ? 0 : this.#rowsOver(ring),
      );
      if (rows === 0) continue;
      this.#isTrimming = true;
      const done = () => {
        this.#isTrimming = false;
      };
      this.#trim(ring, rows).then(done, done);
      return true;
    }
    return false;
  }

  #trim(ring: StoredRing, rows: number): Promise<unknown> {
    if (isNodeRing(ring) && this.#calls.trim !== undefined) return this.#calls.trim(ring, rows);
    const trim = Number(this.journal.meta(AUDIT_TRIMS_KEY) ?? 0) + 1;
    const ofCluster = this.#wiring.cluster === undefined ? {} : { trim };
    return this.write([{ op: 'auditTrim', ring, rows, ...ofCluster }], 0, homeOf(...AUDIT_HOME));
  }

  /** Counts the oldest records of a ring that may go: the newest of the log stays, positions count on from it. */
  #rowsBefore(ring: StoredRing, beforeMs: number): number {
    const [oldest] = this.journal.auditPage(0, 1, [ring]);
    if (oldest === undefined) return 0;
    const rings = isNodeRing(ring) ? NODE_RINGS : SHARED_RINGS;
    const newest = this.journal.auditBefore(Number.MAX_SAFE_INTEGER, 1, rings)[0]?.seq ?? 0;
    const isOver = (row: AuditRow) => isBefore(row, beforeMs) && row.seq !== newest;
    // A damaged record has no time: it goes with the next one that is over.
    const isKept = (row: AuditRow) => row.record !== undefined && !isOver(row);
    if (isKept(oldest)) return 0;
    const batch = this.journal.auditPage(0, AUDIT_BATCH_ROWS, [ring]);
    const kept = batch.findIndex(isKept);
    return batch.slice(0, kept < 0 ? batch.length : kept).findLastIndex(isOver) + 1;
  }

  /** The journal of a node bounds the records of that node alone: those that all nodes have go at all nodes. */
  #rowsOver(ring: StoredRing): number {
    const over = this.journal.auditRows(ring) - auditRowsMax(this.#wiring.context.settings, ring);
    return Math.min(Math.max(over, 0), AUDIT_BATCH_ROWS);
  }

  /** Resolves when the records that were written are durable. */
  finishAudit(): Promise<void> {
    return this.#calls.finish();
  }

  /** One record of the refusals that were only counted, once their minute is over. */
  auditLeftOut(nowMs: number): void {
    const record = this.#refusals.summary(nowMs);
    if (record !== undefined) this.audit(record);
  }

  /** The audit log, oldest first, after position `afterSeq` (0 from the start). */
  auditPage(afterSeq: number, limit: number, rings?: readonly StoredRing[]): AuditRow[] {
    return this.journal.auditPage(afterSeq, limit, rings);
  }

  /** The same, the newest first, before a position. */
  auditBefore(beforeSeq: number, limit: number, rings?: readonly StoredRing[]): AuditRow[] {
    return this.journal.auditBefore(beforeSeq, limit, rings);
  }

  /** A durable value of another part, by its own name. */
  metaGet(key: string): unknown {
    return this.#meta.has(key) ? this.#meta.get(key) : this.journal.meta(`part:${key}`);
  }

  /** Resolves when the value is on disk. `partition`: of a cluster, its owner alone may write the value. */
  async metaPut(key: string, value: unknown, partition?: number): Promise<void> {
    checkName('the name of a value', key, ID_MAX_BYTES);
    const row = this.journal.pack(value);
    const isShared = partition !== undefined && this.#wiring.cluster !== undefined;
    const was = isShared ? this.metaGet(key) : undefined;
    this.#meta.set(key, value);
    try {
      // A value of a partition says which one it replaces: a former owner that comes back overwrites no later one.
      const condition = was === undefined ? {} : { was };
      const write: Operation = { op: isShared ? 'metaOnce' : 'meta', key: `part:${key}`, row, ...condition };
      await this.write([write], this.journal.sizeBytes(row), partition);
    } finally {
      if (this.#meta.get(key) === value) this.#meta.delete(key);
    }
  }

  /** Stores the value unless there is one: of several nodes the first in the log wins. Resolves with what is stored. */
  async metaOnce(key: string, value: unknown): Promise<unknown> {
    const present = this.metaGet(key);
    return present === undefined ? await this.metaReplace(key, undefined, value) : present;
  }

  /** Stores the value where `was` is stored, undefined for none: of several nodes the first wins. Resolves with what is stored. */
  async metaReplace(key: string, was: unknown, value: unknown): Promise<unknown> {
    checkName('the name of a value', key, ID_MAX_BYTES);
    const row = this.journal.pack(value);
    const condition = was === undefined ? {} : { was };
    await this.write(
      [{ op: 'metaOnce', key: `part:${key}`, row, ...condition }],
      this.journal.sizeBytes(row),
    );
    return this.journal.meta(`part:${key}`);
  }

  /** Actors that failed lately, quarantined or in back-off. */
  failing(): QuarantineEntry[] {
    return this.#wiring.supervision.list();
  }

  /** Ends a quarantine: the actor is replayed at its next message. False when it had no failures. */
  reset(kind: string, id: string): boolean {
    const known = this.#wiring.supervision.release(kind, id);
    this.#wiring.mailboxes.resumeActor(kind, id);
    return known;
  }

  /** Moves the actor's next durable message to the dead letters and ends the quarantine. */
  skipNext(kind: string, id: string): boolean {
    const skipped = this.#wiring.deliveries.skipNext(kind, id);
    this.reset(kind, id);
    return skipped;
  }

  /** All that the journal holds of an actor, with its next message, for analysis. Throws `DamagedRow`. */
  export(kind: string, id: string): { stored: StoredActor | undefined; nextMessage: object | undefined } {
    const stored = this.journal.load(kind, id);
    return { stored, nextMessage: this.#wiring.mailboxes.head(kind, id)?.command };
  }

  dead(limit: number): DeadRow[] {
    return this.journal.dead(limit);
  }

  /** Removes a dead letter; resolves when it is gone from disk. */
  async removeDead(key: DeadKey): Promise<void> {
    await this.write([{ op: 'deadRemove', key }], 0);
  }
}

function isBefore(row: AuditRow, beforeMs: number): boolean {
  const utcMs = (row.record as Partial<AuditRecord> | undefined)?.utcMs;
  return utcMs !== undefined && utcMs < beforeMs;
}
