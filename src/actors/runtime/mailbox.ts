/**
 * Durable input: mailbox rows and due timers on their way to their actors. Owns which rows are in memory, their
 * order, and how often each has failed. A row leaves the journal in the commit of the turn that used it, so it is
 * delivered again after a crash and never counted twice.
 */
import type { DamagedRow, Journal, MailKey, MailRow, TimerKey, TimerRow } from './journal/port.ts';
import type { Schedule } from './runtime-context.ts';

/** Rows of one actor that are kept in memory; the rest is read from the journal when these are done. */
const PAGE_ROWS = 64;
/** Turns per turn of the event loop. */
const SLICE_TURNS = 256;

export type Source =
  | { readonly type: 'mail'; readonly key: MailKey }
  | { readonly type: 'timer'; readonly key: TimerKey };

export interface Entry {
  readonly box: Box;
  readonly source: Source;
  readonly command: object;
  /** The row cannot be read. */
  readonly damage: DamagedRow | undefined;
  attempts: number;
}

export interface Box {
  readonly kind: string;
  readonly id: string;
  /** Waiting, in order. */
  readonly entries: Entry[];
  /** Delivered, its rows not yet removed on disk. */
  running: number;
  /** Highest mail number that was taken into memory. */
  lastSeq: number;
  /** The journal holds mail after `lastSeq`. */
  more: boolean;
  /** Cancels the later try, while one is scheduled. */
  cancelRetry: (() => void) | undefined;
}

/** What became of an entry that was offered: taken, or to be offered again after so many milliseconds. */
export type Delivery = 'taken' | 'busy' | { readonly retryMs: number };

export interface InboxOptions {
  readonly journal: Journal;
  readonly schedule: Schedule;
  /** Runs the turn of an entry, or says when to try again. */
  readonly deliver: (entry: Entry) => Delivery;
  /** False while so much waits for the disk that nothing should be added. */
  readonly roomy: () => boolean;
}

export class Inbox {
  readonly #options: InboxOptions;
  readonly #boxes = new Map<string, Box>();
  readonly #ready = new Set<Box>();
  #pumpScheduled = false;
  #stopped = false;
  #lastSeq = 0;
  delivered = 0;

  constructor(options: InboxOptions) {
    this.#options = options;
  }

  /** Finds the mail that an earlier run left behind. */
  start(): void {
    for (const { toKind, toId, lastSeq } of this.#options.journal.mailboxes()) {
      const box = this.#box(toKind, toId);
      box.more = true;
      this.#lastSeq = Math.max(this.#lastSeq, lastSeq);
      this.#ready.add(box);
    }
    this.#schedule();
  }

  stop(): void {
    this.#stopped = true;
    for (const box of this.#boxes.values()) box.cancelRetry?.();
  }

  /** Number of the next message: rises over all of them, so mail keeps its sending order. */
  nextSeq(): number {
    this.#lastSeq += 1;
    return this.#lastSeq;
  }

  /** Entries in memory, waiting or under way. */
  get size(): number {
    let size = 0;
    for (const box of this.#boxes.values()) size += box.entries.length + box.running;
    return size;
  }

  /** A message whose row is on disk. */
  mail(row: MailRow): void {
    const box = this.#box(row.toKind, row.toId);
    if (row.seq <= box.lastSeq) return;
    if (box.more || box.entries.length >= PAGE_ROWS) box.more = true;
    else this.#take(box, row);
    this.#wake(box);
  }

  timer(row: TimerRow): void {
    const { dueMs, kind, id, name, command, damage } = row;
    const box = this.#box(kind, id);
    box.entries.push({
      box,
      source: { type: 'timer', key: { dueMs, kind, id, name } },
      command,
      damage,
      attempts: 0,
    });
    this.#wake(box);
  }

  /** The actor can take more: a call ended, a quarantine was lifted. */
  poke(kind: string, id: string): void {
    const box = this.#boxes.get(`${kind}\0${id}`);
    if (box !== undefined) this.#wake(box);
  }

  resume(): void {
    if (this.#ready.size > 0) this.#schedule();
  }

  /** The row of this entry is gone from the journal. */
  done(entry: Entry): void {
    const { box } = entry;
    box.running -= 1;
    this.#forget(box);
  }

  /** The turn failed; the entry goes back to the front. */
  back(entry: Entry): void {
    entry.box.running -= 1;
    entry.box.entries.unshift(entry);
    this.#wake(entry.box);
  }

  /** The next entry of an actor, for an administrator who looks at a quarantine. */
  head(kind: string, id: string): Entry | undefined {
    const box = this.#boxes.get(`${kind}\0${id}`);
    return box === undefined ? undefined : this.#front(box);
  }

  /** Takes the next entry out, to be removed by the caller. */
  takeHead(kind: string, id: string): Entry | undefined {
    const entry = this.head(kind, id);
    if (entry === undefined) return undefined;
    entry.box.entries.shift();
    entry.box.running += 1;
    return entry;
  }

  #box(kind: string, id: string): Box {
    const name = `${kind}\0${id}`;
    let box = this.#boxes.get(name);
    if (box === undefined) {
      box = { kind, id, entries: [], running: 0, lastSeq: 0, more: false, cancelRetry: undefined };
      this.#boxes.set(name, box);
    }
    return box;
  }

  #forget(box: Box): void {
    if (box.entries.length > 0 || box.running > 0 || box.more) return;
    const name = `${box.kind}\0${box.id}`;
    if (this.#boxes.get(name) === box) this.#boxes.delete(name);
    this.#ready.delete(box);
  }

  #take(box: Box, row: MailRow): void {
    const { toKind, toId, seq, fromKind, fromId, command, damage } = row;
    box.lastSeq = seq;
    box.entries.push({
      box,
      source: { type: 'mail', key: { toKind, toId, seq, fromKind, fromId } },
      command,
      damage,
      attempts: 0,
    });
  }

  #wake(box: Box): void {
    this.#ready.add(box);
    this.#schedule();
  }

  #schedule(): void {
    if (this.#pumpScheduled || this.#stopped) return;
    this.#pumpScheduled = true;
    this.#options.schedule.immediate(this.#pump);
  }

  readonly #pump = (): void => {
    this.#pumpScheduled = false;
    let turns = 0;
    for (const box of this.#ready) {
      if (this.#stopped || !this.#options.roomy()) return;
      if (turns >= SLICE_TURNS) break;
      this.#ready.delete(box);
      turns += this.#serve(box, SLICE_TURNS - turns);
    }
    if (this.#ready.size > 0) this.#schedule();
  };

  #front(box: Box): Entry | undefined {
    if (box.entries.length === 0 && box.more) {
      const page = this.#options.journal.mail(box.kind, box.id, box.lastSeq, PAGE_ROWS);
      box.more = page.length === PAGE_ROWS;
      for (const row of page) this.#take(box, row);
    }
    return box.entries[0];
  }

  #retry(box: Box, retryMs: number): void {
    if (box.cancelRetry !== undefined || !Number.isFinite(retryMs)) return;
    box.cancelRetry = this.#options.schedule.timer(retryMs, () => {
      box.cancelRetry = undefined;
      this.#wake(box);
    });
  }

  #serve(box: Box, turnsMax: number): number {
    for (let turns = 0; turns < turnsMax; turns += 1) {
      const entry = this.#front(box);
      if (entry === undefined) {
        this.#forget(box);
        return turns;
      }
      box.entries.shift();
      box.running += 1;
      const delivery = this.#options.deliver(entry);
      if (delivery === 'taken') {
        this.delivered += 1;
        continue;
      }
      box.running -= 1;
      box.entries.unshift(entry);
      if (delivery !== 'busy') this.#retry(box, delivery.retryMs);
      return turns + 1;
    }
    this.#ready.add(box);
    return turnsMax;
  }
}
