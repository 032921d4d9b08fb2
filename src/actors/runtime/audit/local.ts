/**
 * Audit records of no turn on a node of a cluster: in the store of this node alone, in batches, and never in the shared
 * log. Positions in the audit log are those of the node.
 */
import { AUDIT_EVENTS, type NodeRing, nodeRingOf } from '../../../domain/audit.ts';
import { GatewayError } from '../../../domain/errors.ts';
import type { AuditRecord } from '../actor.ts';
import type { Journal, Operation } from '../journal/port.ts';
import type { Schedule } from '../runtime-context.ts';
import { BACKLOG_MAX, type CallAudit, RECORD_WAIT_MS } from './call-audit.ts';

interface LocalCallAuditDeps {
  /** Name of this node, for its records. */
  readonly node: string;
  readonly pack: Journal['pack'];
  /** Writes to the store of this node; resolves when it is on disk. */
  readonly store: (operations: readonly Operation[]) => Promise<void>;
  readonly schedule: Pick<Schedule, 'timer'>;
}

interface Waiter {
  readonly resolve: () => void;
  readonly reject: (error: Error) => void;
}

export class LocalCallAudit implements CallAudit {
  readonly #deps: LocalCallAuditDeps;
  #operations: Operation[] = [];
  #waiters: Waiter[] = [];
  #inFlight = 0;
  #storing: Promise<void> = Promise.resolve();
  #cancel: (() => void) | undefined;
  dropped = 0;

  constructor(deps: LocalCallAuditDeps) {
    this.#deps = deps;
  }

  write(record: AuditRecord): void {
    if (this.#isFull) this.dropped += 1;
    else this.#add(this.#operationOf(record));
  }

  writeFirst(record: AuditRecord): Promise<void> {
    if (this.#isFull) return Promise.reject(new GatewayError('Overloaded'));
    return this.#addFirst(this.#operationOf(record));
  }

  trim(ring: NodeRing, rows: number): Promise<void> {
    return this.#addFirst({ op: 'auditTrim', ring, rows });
  }

  finish(): Promise<void> {
    this.#flush();
    return this.#storing;
  }

  get #isFull(): boolean {
    return this.#operations.length + this.#inFlight >= BACKLOG_MAX;
  }

  #operationOf(record: AuditRecord): Operation {
    const { node, pack } = this.#deps;
    return { op: 'audit', ring: nodeRingOf(AUDIT_EVENTS[record.event]), row: pack({ ...record, node }) };
  }

  #addFirst(operation: Operation): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#add(operation);
      this.#waiters.push({ resolve, reject });
      this.#flush();
    });
  }

  #add(operation: Operation): void {
    this.#operations.push(operation);
    this.#cancel ??= this.#deps.schedule.timer(RECORD_WAIT_MS, () => this.#flush());
  }

  #flush(): void {
    this.#cancel?.();
    this.#cancel = undefined;
    if (this.#operations.length === 0) return;
    const operations = this.#operations;
    const waiters = this.#waiters;
    this.#operations = [];
    this.#waiters = [];
    this.#inFlight += operations.length;
    const settle = (each: (waiter: Waiter) => void) => {
      this.#inFlight -= operations.length;
      waiters.forEach(each);
    };
    this.#storing = this.#deps.store(operations).then(
      () => settle(({ resolve }) => resolve()),
      () => {
        this.dropped += operations.length - waiters.length;
        settle(({ reject }) => reject(new GatewayError('JournalUnavailable')));
      },
    );
  }
}
