/** The log of events of the journal in memory: the same rows as on disk, for the simulation and for tests. */
import { EventFollowers } from '../../src/actors/runtime/journal/event-writes.ts';
import { copyPlain } from '../../src/actors/runtime/journal/plain-data.ts';
import type {
  EventFollower,
  EventRow,
  EventRows,
  EventWrite,
  Packed,
} from '../../src/actors/runtime/journal/port.ts';

export class MemoryEvents implements EventRows {
  /** Both in ascending order of their keys, which is the order in which they are added. */
  readonly #log = new Map<number, EventRow>();
  readonly #waiting = new Map<number, EventRow>();
  readonly #identities = new Set<string>();
  readonly #followers = new EventFollowers();
  #newest = 0;

  follow(follower: EventFollower): () => void {
    return this.#followers.add(follower);
  }

  write(write: EventWrite): void {
    this.#followers.writing(write);
    switch (write.op) {
      case 'eventWait':
        this.#waiting.set(write.arrival, write.row as EventRow);
        this.#identities.add(write.identity);
        return;
      case 'eventEnter':
        if (write.arrival !== null) this.#waiting.delete(write.arrival);
        this.#log.set(write.sequence, write.row as EventRow);
        this.#newest = write.sequence;
        return;
      case 'eventLeave':
        this.#log.delete(write.sequence);
        if (write.identity !== null) this.#identities.delete(write.identity);
        return;
    }
  }

  /** The process that uses the journal has ended. */
  crash(): void {
    this.#followers.clear();
  }

  /** Announces that the written rows are on disk. */
  committed(): void {
    this.#followers.written();
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

  lastArrival(): number {
    return Math.max(0, ...this.#waiting.keys());
  }

  waits(arrival: number): boolean {
    return this.#waiting.has(arrival);
  }

  waitingRow(arrival: number): Packed | undefined {
    return this.#waiting.get(arrival);
  }

  knows(identity: string): boolean {
    return this.#identities.has(identity);
  }

  sizeBytes(): number {
    let sum = 0;
    for (const [, , , , , , , jsonText] of this.#log.values()) sum += jsonText.length;
    return sum;
  }
}
