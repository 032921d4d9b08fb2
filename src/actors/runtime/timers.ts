/**
 * Durable timers. Owns when the journal is read for due rows. A due row goes to the mailbox and leaves the journal in
 * the commit of the turn that used it. Only due timers under way are in memory.
 */
import type { Clock } from '../../domain/time.ts';
import type { ClusterView } from './cluster-view.ts';
import type { IsWanted, Journal, TimerKey, TimerRow } from './journal/port.ts';
import type { Schedule } from './runtime-context.ts';

/** Due rows taken by one scan, and rows under way beyond which no more are taken. */
const SCAN_ROWS = 256;
const UNDER_WAY_MAX = 10_000;
/** The longest sleep: a clock that jumps ahead is noticed by then. */
const SLEEP_MAX_MS = 60_000;

interface TimersOptions {
  readonly journal: Journal;
  readonly schedule: Schedule;
  readonly clock: Clock;
  readonly due: (row: TimerRow) => void;
  /** Timers of its own actors fire here; all unless given. */
  readonly cluster?: Pick<ClusterView, 'owns' | 'isMember'> | undefined;
}

export class Timers {
  readonly #options: TimersOptions;
  readonly #owns: IsWanted | undefined;
  /** Timers under way, by name. */
  readonly #underWay = new Map<string, TimerKey>();
  #cancel: (() => void) | undefined;
  #wakeMs = Number.POSITIVE_INFINITY;
  #stopped = false;

  constructor(options: TimersOptions) {
    this.#options = options;
    const { cluster } = options;
    if (cluster !== undefined) this.#owns = (kind, id) => cluster.owns(kind, id);
  }

  start(): void {
    this.#sleepUntil(this.#options.clock());
  }

  /** Forgets the timers of actors that another node owns now. Their rows stay. */
  evict(): void {
    for (const [name, { kind, id }] of this.#underWay) {
      if (this.#owns?.(kind, id) === false) this.#underWay.delete(name);
    }
  }

  stop(): void {
    this.#stopped = true;
    this.#cancel?.();
  }

  get underWay(): number {
    return this.#underWay.size;
  }

  /** A timer row is on disk. */
  stored(dueMs: number): void {
    if (dueMs < this.#wakeMs) this.#sleepUntil(dueMs);
  }

  /** The row of this timer is gone from the journal. */
  done(key: TimerKey): void {
    const full = this.#underWay.size >= UNDER_WAY_MAX;
    this.#underWay.delete(timerName(key));
    if (full) this.#sleepUntil(this.#options.clock());
  }

  #sleepUntil(dueMs: number): void {
    if (this.#stopped) return;
    this.#cancel?.();
    const delayMs = Math.min(Math.max(0, dueMs - this.#options.clock()), SLEEP_MAX_MS);
    this.#wakeMs = dueMs;
    this.#cancel = this.#options.schedule.timer(delayMs, this.#scan);
  }

  readonly #scan = (): void => {
    const { journal, clock, due, cluster } = this.#options;
    // Nothing is looked for among the rows of others: a change of the members starts it again.
    if (this.#stopped || cluster?.isMember === false) return;
    const room = Math.min(SCAN_ROWS, UNDER_WAY_MAX - this.#underWay.size);
    let taken = 0;
    for (const row of journal.timers(clock(), this.#underWay.size + room, this.#owns)) {
      if (this.#underWay.has(timerName(row))) continue;
      this.#underWay.set(timerName(row), row);
      taken += 1;
      due(row);
    }
    this.#wakeMs = Number.POSITIVE_INFINITY;
    this.#sleepUntil(room === 0 ? Number.POSITIVE_INFINITY : this.#nextMs(taken === room));
  };

  /** Returns the time at which the earliest timer is due that is not under way. */
  #nextMs(more: boolean): number {
    if (more) return this.#options.clock();
    const { journal } = this.#options;
    const rows = journal.timers(Number.MAX_SAFE_INTEGER, this.#underWay.size + 1, this.#owns);
    return rows.find((row) => !this.#underWay.has(timerName(row)))?.dueMs ?? Number.POSITIVE_INFINITY;
  }
}

function timerName(key: TimerKey): string {
  return `${key.dueMs}\0${key.kind}\0${key.id}\0${key.name}`;
}
