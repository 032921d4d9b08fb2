/** The audit log in memory: rows in the order of their positions, each ring within its own bound. */

import { type AuditOperation, GONE_PER_RECORD } from '../../src/actors/runtime/journal/audit.ts';
import type { AuditRow } from '../../src/actors/runtime/journal/port.ts';
import { isNodeRing, type StoredRing } from '../../src/domain/audit.ts';

export class MemoryAudit {
  readonly #rowsMax: (ring: StoredRing) => number;
  #rows: AuditRow[] = [];

  constructor(rowsMax: (ring: StoredRing) => number) {
    this.#rowsMax = rowsMax;
  }

  write(operation: AuditOperation): void {
    const { ring } = operation;
    const newest = this.#rows.at(-1)?.seq ?? 0;
    if (operation.op === 'auditTrim') {
      const kept = this.#rows.findLast((row) => isNodeRing(row.ring) === isNodeRing(ring));
      let left = operation.rows;
      this.#rows = this.#rows.filter((row) => row.ring !== ring || row === kept || --left < 0);
      return;
    }
    this.#rows.push({ seq: newest + 1, ring, record: operation.row });
    this.#shrink(ring);
    this.#shrink(null);
  }

  #shrink(ring: StoredRing): void {
    const max = this.#rowsMax(ring);
    if (this.#rows.length <= max) return;
    let over = Math.min(this.#of([ring]).length - max, GONE_PER_RECORD);
    if (over > 0) this.#rows = this.#rows.filter((row) => row.ring !== ring || --over < 0);
  }

  rows(ring: StoredRing): number {
    return this.#of([ring]).length;
  }

  page(afterSeq: number, limit: number, rings?: readonly StoredRing[]): AuditRow[] {
    return this.#of(rings)
      .filter(({ seq }) => seq > afterSeq)
      .slice(0, limit);
  }

  before(beforeSeq: number, limit: number, rings?: readonly StoredRing[]): AuditRow[] {
    return this.#of(rings)
      .filter(({ seq }) => seq < beforeSeq)
      .slice(-limit)
      .reverse();
  }

  #of(rings: readonly StoredRing[] | undefined): readonly AuditRow[] {
    return rings === undefined ? this.#rows : this.#rows.filter(({ ring }) => rings.includes(ring));
  }
}
