/** Damaged rows that were read: each is reported and counted once, however often it is read. */
import type { DamagedRow } from './port.ts';

/** Rows that are remembered; beyond them none is reported. */
const ROWS_MAX = 10_000;

export class DamageReport {
  readonly #rows = new Set<string>();
  readonly #onDamage: (row: DamagedRow) => void;

  constructor(onDamage: (row: DamagedRow) => void) {
    this.#onDamage = onDamage;
  }

  get rows(): number {
    return this.#rows.size;
  }

  readonly add = (row: DamagedRow): void => {
    const name = `${row.table}\0${row.key}`;
    if (this.#rows.size >= ROWS_MAX || this.#rows.has(name)) return;
    this.#rows.add(name);
    this.#onDamage(row);
  };
}
