/**
 * Audit records of no turn in the database of a cluster, in batches. While the database does not answer they wait in
 * memory within a bound; what must leave a trace first is refused.
 */
import type { NodeRing } from '../../../domain/audit.ts';
import { GatewayError } from '../../../domain/errors.ts';
import { SECOND_MS } from '../../../domain/time.ts';
import type { AuditRecord } from '../actor.ts';
import type { Schedule } from '../runtime-context.ts';
import { batchesOf, type CallBatch, type PackedCall, packCall } from './batches.ts';
import { BACKLOG_MAX, type CallAudit, RECORD_WAIT_MS } from './call-audit.ts';

export interface CallTable {
  /**
   * Stores a batch, which is on disk when this resolves. A batch that is given again after a rejection is stored once.
   */
  store(batch: CallBatch): Promise<void>;
}

interface TableCallAuditDeps {
  /** Name of this node, for its records. */
  readonly node: string;
  readonly table: CallTable;
  /** Trims what the journal of this node holds: calls of a time without the table. */
  readonly local: Pick<CallAudit, 'finish' | 'dropped'> & Required<Pick<CallAudit, 'trim'>>;
  readonly schedule: Pick<Schedule, 'timer'>;
  /** The first failure in a row; undefined when a batch is stored again. */
  readonly onShortage: (error: unknown) => void;
}

interface Waiter {
  readonly resolve: () => void;
  readonly reject: (error: Error) => void;
}

/** Wait between attempts while the database does not answer. */
const RETRY_MS = SECOND_MS;

export class TableCallAudit implements CallAudit {
  readonly #deps: TableCallAuditDeps;
  /** Records that are in no batch yet. */
  #pending: PackedCall[] = [];
  #batches: CallBatch[] = [];
  readonly #waiters = new Map<PackedCall, Waiter>();
  /** Records that are not stored yet. */
  #held = 0;
  #dropped = 0;
  /** The pending records have waited long enough, or one of them is awaited. */
  #isDue = false;
  #isFailing = false;
  #storing: Promise<void> | undefined;
  #cancel: (() => void) | undefined;

  constructor(deps: TableCallAuditDeps) {
    this.#deps = deps;
  }

  get dropped(): number {
    return this.#dropped + this.#deps.local.dropped;
  }

  write(record: AuditRecord): void {
    if (this.#held >= BACKLOG_MAX) this.#dropped += 1;
    else this.#add(record);
  }

  writeFirst(record: AuditRecord): Promise<void> {
    if (this.#isFailing) return Promise.reject(new GatewayError('JournalUnavailable'));
    if (this.#held >= BACKLOG_MAX) return Promise.reject(new GatewayError('Overloaded'));
    return new Promise((resolve, reject) => {
      this.#waiters.set(this.#add(record), { resolve, reject });
      void this.#flush();
    });
  }

  trim(ring: NodeRing, rows: number): Promise<void> {
    return this.#deps.local.trim(ring, rows);
  }

  /** Drops and counts the records that the database does not take by now. */
  async finish(): Promise<void> {
    await this.#storing;
    await this.#flush();
    this.#cancel?.();
    this.#cancel = undefined;
    this.#dropped += this.#held;
    this.#held = 0;
    this.#pending = [];
    this.#batches = [];
    await this.#deps.local.finish();
  }

  #add(record: AuditRecord): PackedCall {
    const call = packCall({ ...record, node: this.#deps.node });
    this.#pending.push(call);
    this.#held += 1;
    this.#cancel ??= this.#deps.schedule.timer(RECORD_WAIT_MS, () => this.#flush());
    return call;
  }

  #flush(): Promise<void> {
    this.#cancel?.();
    this.#cancel = undefined;
    this.#isDue = true;
    this.#storing ??= this.#store().finally(() => {
      this.#storing = undefined;
    });
    return this.#storing;
  }

  async #store(): Promise<void> {
    for (;;) {
      if (this.#batches.length === 0) this.#cut();
      const [batch] = this.#batches;
      if (batch === undefined) return;
      try {
        await this.#deps.table.store(batch);
      } catch (error) {
        this.#fail(error);
        return;
      }
      this.#batches.shift();
      this.#held -= batch.records.length;
      for (const record of batch.records) this.#waiters.get(record)?.resolve();
      for (const record of batch.records) this.#waiters.delete(record);
      if (this.#isFailing) this.#deps.onShortage(undefined);
      this.#isFailing = false;
    }
  }

  #cut(): void {
    if (!this.#isDue) return;
    this.#isDue = false;
    this.#batches = batchesOf(this.#pending);
    this.#pending = [];
  }

  #fail(error: unknown): void {
    if (!this.#isFailing) this.#deps.onShortage(error);
    this.#isFailing = true;
    for (const { reject } of this.#waiters.values()) reject(new GatewayError('JournalUnavailable'));
    this.#waiters.clear();
    this.#cancel?.();
    this.#cancel = this.#deps.schedule.timer(RETRY_MS, () => this.#flush());
  }
}
