/** Damaged rows that were read: each is reported and counted once, however often it is read. */
import type { DamagedRow } from './port.ts';

/** A row, or a page of the table. */
export type Damage = Pick<DamagedRow, 'table' | 'key' | 'message'>;

/** Rows that are remembered; beyond them none is reported. */
const ROWS_MAX = 10_000;

export class DamageReport {
  readonly #rows = new Set<string>();
  readonly #onDamage: (row: Damage) => void;

  constructor(onDamage: (row: Damage) => void) {
    this.#onDamage = onDamage;
  }

  get rows(): number {
    return this.#rows.size;
  }

  readonly add = (row: Damage): void => {
    const name = `${row.table}\0${row.key}`;
    if (this.#rows.size >= ROWS_MAX || this.#rows.has(name)) return;
    this.#rows.add(name);
    this.#onDamage(row);
  };
}
