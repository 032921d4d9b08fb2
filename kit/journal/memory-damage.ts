/** Faults of a disk under the journal in memory: rows that rot, and a file that was cut off. */
import { DamagedRow } from '../../src/actors/runtime/journal/port.ts';

export class MemoryDamage {
  /** The file has lost its end. */
  cut = false;
  found = 0;
  readonly #rows = new Set<string>();
  readonly #ignored: boolean;

  /** `ignored`: rows are read as the disk has them, which is the planted fault. */
  constructor(ignored: boolean) {
    this.#ignored = ignored;
  }

  /** True when nothing is damaged: reads skip the check. */
  get none(): boolean {
    return this.#rows.size === 0;
  }

  rot(table: string, name: string): void {
    this.#rows.add(`${table}\0${name}`);
  }

  /** The row was written again, or removed. */
  heal(table: string, name: string): void {
    this.#rows.delete(`${table}\0${name}`);
  }

  /** The row as it is read: as written, another one, or what stands for a damaged one. */
  read<Value>(table: string, name: string, value: Value): Value | DamagedRow {
    if (this.none || !this.#rows.has(`${table}\0${name}`)) return value;
    if (this.#ignored) return changed(value) as Value;
    this.found += 1;
    return new DamagedRow(table, name.split('\0'), new Uint8Array(), 'it has rotted');
  }

  /** The same; throws the damaged row. */
  require<Value>(table: string, name: string, value: Value): Value {
    const read = this.read(table, name, value);
    if (read instanceof DamagedRow) throw read;
    return read;
  }
}

/** The value with other numbers and texts. */
function changed(value: unknown): unknown {
  if (typeof value === 'number') return -value;
  if (Array.isArray(value)) return value.map(changed);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([name, each]) => [name, changed(each)]));
}
