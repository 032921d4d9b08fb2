/**
 * Durable input meets its actor. Owns what happens to a mailbox row or a due timer: a turn, another try after a
 * failure, or the dead letters, at once where the row cannot be read.
 */
import type { Cell } from './cell.ts';
import type { GroupCommit } from './group-commit.ts';
import type { Journal, Operation } from './journal/port.ts';
import type { Delivery, Entry, Mailboxes } from './mailbox.ts';
import type { Passivation } from './passivation.ts';
import type { RuntimeContext, RuntimeLimits } from './runtime-context.ts';
import { ATTEMPTS_MAX, type Supervision } from './supervision.ts';
import { dueOf } from './timer-list.ts';
import type { Timers } from './timers.ts';
import type { Turns } from './turns.ts';

/** Wait for the instance's own writes before it is replayed. */
const REPLAY_WAIT_MS = 100;
/** Wait for the lease of the node. */
const LEASE_WAIT_MS = 100;

interface DeliveriesOptions {
  readonly journal: Journal;
  readonly context: RuntimeContext;
  readonly limits: RuntimeLimits;
  readonly commit: GroupCommit;
  readonly passivation: Passivation;
  readonly supervision: Supervision;
  readonly mailboxes: () => Mailboxes;
  readonly timers: () => Timers;
  readonly turns: () => Turns;
  readonly nextCommandId: () => string;
  /** False while this node may not decide; asked again shortly. */
  readonly admits: () => boolean;
}

export class Deliveries {
  readonly #options: DeliveriesOptions;
  deadLettered = 0;

  constructor(options: DeliveriesOptions) {
    this.#options = options;
  }

  readonly deliver = (entry: Entry): Delivery => {
    const { passivation, supervision, limits, turns, nextCommandId, admits } = this.#options;
    const { kind, id } = entry.mailbox;
    if (!admits()) return { retryMs: LEASE_WAIT_MS };
    if (passivation.kindNamed(kind) === undefined) {
      this.#moveToDeadLetters(entry, `there is no actor kind ${kind}`);
      return 'taken';
    }
    if (entry.damage !== undefined) {
      this.#moveToDeadLetters(entry, entry.damage.message);
      return 'taken';
    }
    const waitMs = supervision.waitMs(kind, id);
    if (waitMs > 0) return { retryMs: waitMs };
    let cell: Cell;
    try {
      cell = passivation.acquire(kind, id);
    } catch (error) {
      supervision.failed(kind, id, entry.command, error);
      this.failed(entry, error);
      return 'taken';
    }
    if (cell.stale && cell.gate !== undefined) return { retryMs: REPLAY_WAIT_MS };
    if (cell.held !== undefined || cell.calls >= limits.callsPerActorMax) return 'busy';
    if (isOutdated(cell, entry)) this.#discard(entry, []);
    else turns().run(cell, entry.command, { commandId: nextCommandId(), waiter: undefined, entry });
    return 'taken';
  };

  /** The row of an entry is gone from the journal. */
  readonly done = (entry: Entry): void => {
    this.#options.mailboxes().done(entry);
    if (entry.source.type === 'timer') this.#options.timers().done(entry.source.key);
  };

  readonly failed = (entry: Entry, error: unknown): void => {
    entry.attempts += 1;
    if (entry.attempts < ATTEMPTS_MAX) this.#options.mailboxes().back(entry);
    else this.#moveToDeadLetters(entry, error instanceof Error ? error.message : String(error));
  };

  /** Moves the next entry of an actor to the dead letters; false when there is none. */
  skipNext(kind: string, id: string): boolean {
    const entry = this.#options.mailboxes().takeHead(kind, id);
    if (entry === undefined) return false;
    this.#moveToDeadLetters(entry, 'skipped by an administrator');
    return true;
  }

  /** Dead letter and removal in one commit. */
  #moveToDeadLetters(entry: Entry, reason: string): void {
    const { journal, context, mailboxes } = this.#options;
    const { kind, id } = entry.mailbox;
    const seq = entry.source.type === 'mail' ? entry.source.key.seq : mailboxes().nextSeq();
    const key = { timeMs: Math.trunc(context.clock()), kind, id, seq };
    const row = journal.pack({ command: entry.command, reason });
    this.deadLettered += 1;
    this.#discard(entry, [{ op: 'dead', key, row }]);
  }

  /** Removes the row of an entry, together with other writes. */
  #discard(entry: Entry, others: readonly Operation[]): void {
    const { commit } = this.#options;
    const { source, mailbox } = entry;
    const removal: Operation =
      source.type === 'mail' ? { op: 'mailRemove', key: source.key } : { op: 'timerRemove', key: source.key };
    const { kind, id } = mailbox;
    commit.addRows(
      { kind, id, operations: [...others, removal], claims: [] },
      { applied: { type: 'done', entry }, outdated: () => this.#options.mailboxes().outdated(entry) },
    );
    commit.wrote(1, 0);
  }
}

/** A timer that was set anew or cancelled while its old row was on the way. */
function isOutdated(cell: Cell, { source }: Entry): boolean {
  return source.type === 'timer' && dueOf(cell.timers, source.key.name) !== source.key.dueMs;
}
