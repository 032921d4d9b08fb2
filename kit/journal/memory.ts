/**
 * The journal in memory, for the simulation and for tests: order, atomicity and visibility of a disk, with faults on
 * demand. A crash keeps what is durable, and forgets the group in flight or keeps it unacknowledged.
 */

import { checkPlain, copyPlain } from '../../src/actors/runtime/journal/plain-data.ts';
import * as port from '../../src/actors/runtime/journal/port.ts';
import type { StoredRing } from '../../src/domain/audit.ts';
import { MemoryRows } from './memory-rows.ts';

interface Flight {
  /** Number of the process that has committed it. */
  readonly owner: number;
  readonly group: readonly (readonly port.Operation[])[];
  readonly done: port.CommitDone;
}

export interface MemoryJournalOptions {
  /** Runs the completion of a commit. Without it commits wait for `flush` (the simulation drives them). */
  readonly immediate?: (run: () => void) => void;
  /** Audit records kept of a ring; all unless given. */
  readonly auditRowsMax?: (ring: StoredRing) => number;
  /** Planted fault: what reaches the disk instead of the operations of a turn. */
  readonly tamper?: (turn: readonly port.Operation[]) => readonly port.Operation[];
  /** Planted fault: a group is acknowledged before it is written. */
  readonly acknowledgesEarly?: boolean;
  /** Planted fault: damaged rows are read as they are. */
  readonly ignoresChecksums?: boolean;
  /** Planted fault: a process keeps writing after another one has opened the journal. */
  readonly ignoresOwner?: boolean;
  /** Planted fault: a journal that was cut off is opened. */
  readonly ignoresLength?: boolean;
}

export class MemoryJournal extends MemoryRows implements port.Journal {
  readonly #options: MemoryJournalOptions;
  #flights: Flight[] = [];
  #epoch = 0;
  #owner = 0;
  /** Acknowledged and not written: only with the planted fault. */
  #early: Flight['group'][] = [];
  #failure: Error | undefined;
  #full = false;

  constructor(options: MemoryJournalOptions = {}) {
    super(options.ignoresChecksums === true, options.auditRowsMax ?? (() => Number.POSITIVE_INFINITY));
    this.#options = options;
  }

  pack(value: unknown): port.Packed {
    checkPlain(value);
    return copyPlain(value);
  }

  /** A flat charge: groups close by their commands long before. */
  sizeBytes = () => 64;

  /** The journal as a process sees it that opens it now: those that opened it before write nothing more. */
  open(): port.Journal {
    if (this.damage.cut && this.#options.ignoresLength !== true) throw new Error('the journal is cut off');
    this.#owner += 1;
    const owner = this.#owner;
    const commit: port.Journal['commit'] = (turns, done) => this.#commit(owner, turns, done);
    // Private fields are those of this object: every method but `commit` is bound to it.
    return new Proxy(this, {
      get: (journal, name) => {
        if (name === 'commit') return commit;
        const member: unknown = Reflect.get(journal, name, journal);
        return typeof member === 'function' ? member.bind(journal) : member;
      },
    });
  }

  unpack(packed: port.Packed): port.Plain {
    return copyPlain(packed);
  }

  commit(turns: readonly port.JournalTurn[], done: port.CommitDone): void {
    this.#commit(this.#owner, turns, done);
  }

  #commit(owner: number, turns: readonly port.JournalTurn[], done: port.CommitDone): void {
    if (this.#flights.some((flight) => flight.owner === owner))
      throw new Error('a group is in flight already');
    const group = turns.map(({ operations }) => operations);
    this.#flights.push({ owner, group, done });
    const epoch = this.#epoch;
    this.#options.immediate?.(() => {
      if (epoch === this.#epoch) this.flush();
    });
  }

  /** Puts the group in flight on "disk" and acknowledges it. False when there was none. */
  flush(): boolean {
    const inFlight = this.#flights.shift();
    if (inFlight === undefined) return false;
    if (inFlight.owner !== this.#owner && this.#options.ignoresOwner !== true) {
      inFlight.done(new port.JournalTaken('another process has opened the journal'));
      return true;
    }
    const failure = this.#failure;
    this.#failure = undefined;
    let skipped: port.SkippedWrites | undefined;
    if (this.#options.acknowledgesEarly === true) {
      this.#early.push(inFlight.group);
      if (this.#early.length > 1) this.#writeGroup(this.#early.shift() ?? []);
    } else if (failure === undefined) skipped = this.#writeGroup(inFlight.group);
    inFlight.done(failure, undefined, skipped);
    return true;
  }

  get flushing(): boolean {
    return this.#flights.length > 0;
  }

  /** The process dies: the group in flight is lost, or written without an acknowledgement. */
  crash(inFlight: 'lost' | 'written'): void {
    this.events.crash();
    const own = this.#flights.find(({ owner }) => owner === this.#owner);
    if (inFlight === 'written' && own !== undefined) this.#writeGroup(own.group);
    this.#flights = [];
    this.#early = [];
    this.#epoch += 1;
  }

  /** The next commit fails with this error, and nothing of it is written. */
  failNext(error: Error): void {
    this.#failure = error;
  }

  setFull(full: boolean): void {
    this.#full = full;
  }

  full(): boolean {
    return this.#full;
  }

  async close(): Promise<void> {
    this.#epoch += 1;
  }

  #writeGroup(group: Flight['group']): port.SkippedWrites {
    const { tamper } = this.#options;
    const skipped = this.write(tamper === undefined ? group : group.map((turn) => tamper(turn)));
    this.events.committed();
    return skipped;
  }
}
