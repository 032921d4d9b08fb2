/** Writes of several turns on their way to the disk: what they are, who made them, and who waits for them. */
import type { GatewayError } from '../../domain/errors.ts';
import type { AskObserver } from './actor.ts';
import type { JournalTurn, SkippedWrites } from './journal/port.ts';

/** A caller that waits for an answer. Settled exactly once. */
export interface Waiter {
  settle(reply: unknown, error: Error | undefined): void;
  readonly observer?: Pick<AskObserver, 'gated' | 'writing'> | undefined;
}

/** Remembers the newest group that holds writes of its own. */
export interface Writer {
  dirty: CommitGroup | undefined;
  /** The newest of them with writes that answers wait for. */
  awaited: CommitGroup | undefined;
}

/** Gives the group that holds answers back until every other node has applied the turn. */
export type OpenGate = () => CommitGroup;

/** Takes the verdicts on turns that it has added to a group. */
export interface Verdicts<Turn extends JournalTurn, Effect> {
  /** The verdict comes with the commit. Never where one node judges alone. */
  waits(turn: Turn): void;
  /**
   * `written`: the group that holds back what follows; undefined where the rows are on disk, and listeners know them.
   * `openGate`: of turns that have waited.
   */
  judged(
    turn: Turn,
    verdict: number,
    written: CommitGroup<Effect> | undefined,
    openGate: OpenGate | undefined,
  ): void;
  /** The process is about to end: the turn may have been written. */
  lost(turn: Turn, error: GatewayError): void;
}

/** Writes of several turns that become durable together. What its effects are only GroupCommit knows. */
export class CommitGroup<Effect = unknown> {
  readonly turns: JournalTurn[] = [];
  /** Turns that wait for their verdict: only where the journal judges. */
  readonly waiting = new Map<JournalTurn, Verdicts<JournalTurn, Effect>>();
  /** A caller waits for it, or will. */
  urgent = false;
  commands = 0;
  sizeBytes = 0;
  committed = false;
  /** Known once the journal has written the group. */
  skipped: SkippedWrites | undefined;
  /** Start after the commit, before the replies leave: deliveries and slow calls. */
  readonly effects: Effect[] = [];
  readonly waiters: Waiter[] = [];
  readonly replies: unknown[] = [];
  readonly errors: (Error | undefined)[] = [];
  readonly #writers: Writer[] = [];
  #isWriting = false;
  /** Observers of traced requests, until the journal has the group. */
  #observers: NonNullable<Waiter['observer']>[] | undefined;

  /** Requests of events of a turn that were passed over. */
  skippedOf(turn: number): number {
    return this.skipped?.get(turn) ?? 0;
  }

  /** The journal writes the group now. */
  writing(): void {
    this.#isWriting = true;
    if (this.#observers === undefined) return;
    for (const observer of this.#observers) observer.writing();
    this.#observers = undefined;
  }

  /** This group holds writes of `writer`, which remembers it until they are on disk. */
  writtenBy(writer: Writer, isAwaited: boolean): void {
    if (isAwaited) writer.awaited = this;
    if (writer.dirty === this) return;
    writer.dirty = this;
    this.#writers.push(writer);
  }

  /** Lets go of everything but the answers: an instance may live for days after its last write. */
  forget(): void {
    for (const writer of this.#writers) {
      if (writer.dirty === this) writer.dirty = undefined;
      if (writer.awaited === this) writer.awaited = undefined;
    }
    this.#writers.length = 0;
    this.turns.length = 0;
    this.waiting.clear();
    this.effects.length = 0;
  }

  /** Holds an answer back until this group is on disk. */
  gate(waiter: Waiter, reply: unknown, error: Error | undefined): void {
    this.waiters.push(waiter);
    this.replies.push(reply);
    this.errors.push(error);
    const { observer } = waiter;
    if (observer === undefined) return;
    observer.gated(this);
    if (this.#isWriting) {
      observer.writing();
      return;
    }
    this.#observers ??= [];
    this.#observers.push(observer);
  }
}
