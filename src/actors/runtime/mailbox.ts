/**
 * Durable input: mailbox rows and due timers on their way to their actors. Owns the rows in memory, their order and
 * their failures. The commit of a turn removes its row, so that a crash repeats it and it counts once.
 */

import { invariant } from '../../domain/errors.ts';
import type { DamagedRow, IsWanted, Journal, MailKey, MailRow, TimerKey, TimerRow } from './journal/port.ts';
import type { Typed } from './protocol.ts';
import type { Schedule } from './runtime-context.ts';

/** Rows of one actor that are kept in memory; the rest is read from the journal when these are done. */
const PAGE_ROWS = 64;
/** Turns in one tick of the event loop. */
const SLICE_TURNS = 256;

export type Source =
  | { readonly type: 'mail'; readonly key: MailKey }
  | { readonly type: 'timer'; readonly key: TimerKey };

export interface Entry {
  readonly mailbox: Mailbox;
  readonly source: Source;
  readonly command: Typed;
  /** The row cannot be read. */
  readonly damage: DamagedRow | undefined;
  attempts: number;
}

interface Mailbox {
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
  /** Another node delivers to this actor. */
  gone: boolean;
  /** Cancels the later try, while one is scheduled. */
  cancelRetry: (() => void) | undefined;
}

/** Result of an offered entry: taken, or to be offered again after so many milliseconds. */
export type Delivery = 'taken' | 'busy' | { readonly retryMs: number };

interface MailboxesOptions {
  readonly journal: Journal;
  readonly schedule: Schedule;
  /** Runs the turn of an entry, or says when to try again. */
  readonly deliver: (entry: Entry) => Delivery;
  /** False while so much waits for the disk that nothing should be added. */
  readonly hasCapacity: () => boolean;
  /** Actors whose input is delivered here; all unless given. */
  readonly owns?: IsWanted | undefined;
}

export class Mailboxes {
  readonly #options: MailboxesOptions;
  readonly #mailboxes = new Map<string, Mailbox>();
  readonly #ready = new Set<Mailbox>();
  #pumpScheduled = false;
  #stopped = false;
  #lastSeq = 0;
  delivered = 0;

  constructor(options: MailboxesOptions) {
    this.#options = options;
  }

  /** Finds the mail that an earlier run, or another node, left behind. */
  start(): void {
    const { journal, owns } = this.#options;
    for (const { toKind, toId, lastSeq } of journal.mailboxes()) {
      if (owns?.(toKind, toId) === false) continue;
      const mailbox = this.#mailbox(toKind, toId);
      mailbox.more = true;
      this.#lastSeq = Math.max(this.#lastSeq, lastSeq);
      this.#ready.add(mailbox);
    }
    this.#schedule();
  }

  /** Forgets the mail of actors that another node delivers to now. Its rows stay. */
  evict(): void {
    const { owns } = this.#options;
    for (const [name, mailbox] of this.#mailboxes) {
      if (owns?.(mailbox.kind, mailbox.id) !== false) continue;
      mailbox.gone = true;
      mailbox.cancelRetry?.();
      this.#mailboxes.delete(name);
      this.#ready.delete(mailbox);
    }
  }

  stop(): void {
    this.#stopped = true;
    for (const mailbox of this.#mailboxes.values()) mailbox.cancelRetry?.();
  }

  /** Number of the next message: rises over all of them, so mail keeps its sending order. */
  nextSeq(): number {
    this.#lastSeq += 1;
    return this.#lastSeq;
  }

  /** Entries in memory, waiting or under way. */
  get size(): number {
    let size = 0;
    for (const mailbox of this.#mailboxes.values()) size += mailbox.entries.length + mailbox.running;
    return size;
  }

  /** A message whose row is on disk. */
  mail(row: MailRow): void {
    const mailbox = this.#mailbox(row.toKind, row.toId);
    if (row.seq <= mailbox.lastSeq) return;
    if (mailbox.more || mailbox.entries.length >= PAGE_ROWS) mailbox.more = true;
    else this.#take(mailbox, row);
    this.#wake(mailbox);
  }

  /** A message for this actor is in the journal; it is read from there. */
  stored(toKind: string, toId: string): void {
    const mailbox = this.#mailbox(toKind, toId);
    mailbox.more = true;
    this.#wake(mailbox);
  }

  timer(row: TimerRow): void {
    const { dueMs, kind, id, name, command, damage } = row;
    const mailbox = this.#mailbox(kind, id);
    mailbox.entries.push({
      mailbox,
      source: { type: 'timer', key: { dueMs, kind, id, name } },
      command,
      damage,
      attempts: 0,
    });
    this.#wake(mailbox);
  }

  /** The actor can take more: a call ended, a quarantine was lifted. */
  resumeActor(kind: string, id: string): void {
    const mailbox = this.#mailboxes.get(`${kind}\0${id}`);
    if (mailbox !== undefined) this.#wake(mailbox);
  }

  resume(): void {
    if (this.#ready.size > 0) this.#schedule();
  }

  /** The row of this entry is gone from the journal. */
  done(entry: Entry): void {
    const mailbox = ended(entry);
    if (!mailbox.gone) this.#forget(mailbox);
  }

  /** The turn failed; the entry goes back to the front. */
  back(entry: Entry): void {
    const mailbox = ended(entry);
    if (mailbox.gone) return;
    mailbox.entries.unshift(entry);
    this.#wake(mailbox);
  }

  /** The turn was out of date: its row may be gone, so the messages of the actor are read anew. */
  outdated(entry: Entry): void {
    const { source } = entry;
    const mailbox = ended(entry);
    if (mailbox.gone) return;
    const timers = mailbox.entries.filter((each) => each.source.type === 'timer');
    if (source.type === 'timer') timers.unshift(entry);
    mailbox.entries.splice(0, Number.POSITIVE_INFINITY, ...timers);
    mailbox.lastSeq = 0;
    mailbox.more = true;
    this.#wake(mailbox);
  }

  /** The next entry of an actor, for an administrator who examines a quarantine. */
  head(kind: string, id: string): Entry | undefined {
    const mailbox = this.#mailboxes.get(`${kind}\0${id}`);
    return mailbox === undefined ? undefined : this.#front(mailbox);
  }

  /** Takes the next entry out, to be removed by the caller. */
  takeHead(kind: string, id: string): Entry | undefined {
    const entry = this.head(kind, id);
    if (entry === undefined) return undefined;
    entry.mailbox.entries.shift();
    entry.mailbox.running += 1;
    return entry;
  }

  #mailbox(kind: string, id: string): Mailbox {
    const name = `${kind}\0${id}`;
    let mailbox = this.#mailboxes.get(name);
    if (mailbox === undefined) {
      mailbox = {
        kind,
        id,
        entries: [],
        running: 0,
        lastSeq: 0,
        more: false,
        gone: false,
        cancelRetry: undefined,
      };
      this.#mailboxes.set(name, mailbox);
    }
    return mailbox;
  }

  #forget(mailbox: Mailbox): void {
    if (mailbox.entries.length > 0 || mailbox.running > 0 || mailbox.more) return;
    const name = `${mailbox.kind}\0${mailbox.id}`;
    if (this.#mailboxes.get(name) === mailbox) this.#mailboxes.delete(name);
    this.#ready.delete(mailbox);
  }

  #take(mailbox: Mailbox, row: MailRow): void {
    const { toKind, toId, seq, fromKind, fromId, command, damage } = row;
    invariant(seq > mailbox.lastSeq, 'mail reaches its actor in the order of its numbers');
    mailbox.lastSeq = seq;
    mailbox.entries.push({
      mailbox,
      source: { type: 'mail', key: { toKind, toId, seq, fromKind, fromId } },
      command,
      damage,
      attempts: 0,
    });
  }

  #wake(mailbox: Mailbox): void {
    this.#ready.add(mailbox);
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
    for (const mailbox of this.#ready) {
      if (this.#stopped || !this.#options.hasCapacity()) return;
      if (turns >= SLICE_TURNS) break;
      this.#ready.delete(mailbox);
      turns += this.#serve(mailbox, SLICE_TURNS - turns);
    }
    if (this.#ready.size > 0) this.#schedule();
  };

  #front(mailbox: Mailbox): Entry | undefined {
    if (mailbox.entries.length === 0 && mailbox.more) {
      const page = this.#options.journal.mail(mailbox.kind, mailbox.id, mailbox.lastSeq, PAGE_ROWS);
      mailbox.more = page.length === PAGE_ROWS;
      for (const row of page) this.#take(mailbox, row);
    }
    return mailbox.entries[0];
  }

  #retry(mailbox: Mailbox, retryMs: number): void {
    if (mailbox.cancelRetry !== undefined || !Number.isFinite(retryMs)) return;
    mailbox.cancelRetry = this.#options.schedule.timer(retryMs, () => {
      mailbox.cancelRetry = undefined;
      this.#wake(mailbox);
    });
  }

  #serve(mailbox: Mailbox, turnsMax: number): number {
    for (let turns = 0; turns < turnsMax; turns += 1) {
      const entry = this.#front(mailbox);
      if (entry === undefined) {
        this.#forget(mailbox);
        return turns;
      }
      mailbox.entries.shift();
      mailbox.running += 1;
      const delivery = this.#options.deliver(entry);
      if (delivery === 'taken') {
        this.delivered += 1;
        continue;
      }
      mailbox.running -= 1;
      mailbox.entries.unshift(entry);
      if (delivery !== 'busy') this.#retry(mailbox, delivery.retryMs);
      return turns + 1;
    }
    this.#ready.add(mailbox);
    return turnsMax;
  }
}

/** The entry is no longer under way. */
function ended({ mailbox }: Entry): Mailbox {
  invariant(mailbox.running > 0, 'an entry that is taken is given back once');
  mailbox.running -= 1;
  return mailbox;
}
