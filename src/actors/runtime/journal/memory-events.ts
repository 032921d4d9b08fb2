/** The log of events of the journal in memory: the same rows as on disk, for the simulation and for tests. */
import type { EventOperation } from './events.ts';
import { copyPlain } from './plain-data.ts';
import type { EventRow, EventRows } from './port.ts';

export class MemoryEvents implements EventRows {
  /** Both in ascending order of their keys, which is the order in which they are added. */
  readonly #log = new Map<number, EventRow>();
  readonly #waiting = new Map<number, EventRow>();
  readonly #identities = new Set<string>();
  #newest = 0;

  write(operation: EventOperation): void {
    switch (operation.op) {
      case 'eventAccept':
        this.#waiting.set(operation.arrival, operation.row as EventRow);
        this.#identities.add(operation.identity);
        return;
      case 'eventRelease':
        if (operation.arrival !== null) this.#waiting.delete(operation.arrival);
        this.#log.set(operation.sequence, operation.row as EventRow);
        this.#newest = operation.sequence;
        return;
      case 'eventRemove':
        this.#log.delete(operation.sequence);
        if (operation.identity !== null) this.#identities.delete(operation.identity);
        return;
    }
  }

  ends(): { oldest: number; newest: number } {
    const oldest = this.#log.keys().next().value ?? 0;
    return { oldest, newest: this.#newest };
  }

  page(afterSequence: number, limit: number): { sequence: number; row: EventRow }[] {
    const rows: { sequence: number; row: EventRow }[] = [];
    const first = Math.max(afterSequence + 1, this.ends().oldest);
    for (let sequence = first; sequence <= this.#newest && rows.length < limit; sequence += 1) {
      const row = this.#log.get(sequence);
      if (row !== undefined) rows.push({ sequence, row: copyPlain(row) as unknown as EventRow });
    }
    return rows;
  }

  waiting(afterArrival: number, limit: number): { arrival: number; row: EventRow }[] {
    return [...this.#waiting]
      .filter(([arrival]) => arrival > afterArrival)
      .slice(0, limit)
      .map(([arrival, row]) => ({ arrival, row: copyPlain(row) as unknown as EventRow }));
  }

  knows(identity: string): boolean {
    return this.#identities.has(identity);
  }

  sizeBytes(): number {
    let sum = 0;
    for (const [, , , , , , , wire] of this.#log.values()) sum += wire.length;
    return sum;
  }
}
