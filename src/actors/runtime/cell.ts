/**
 * One live instance of an actor. Owns its state in memory, its sequence in the journal and its waiters; replays
 * itself from the journal. turns.ts makes all decisions.
 */
import { type ErrorName, GatewayError, invariant } from '../../domain/errors.ts';
import type { AnyKind, AskObserver } from './actor.ts';
import type { CommitGroup, Waiter } from './commit-group.ts';
import { IdempotencyRing } from './idempotency.ts';
import { ownText } from './journal/own-strings.ts';
import {
  DamagedRow,
  type Journal,
  type RingEntry,
  type SnapshotRow,
  type TimerChange,
  type TurnRow,
} from './journal/port.ts';
import type { Entry } from './mailbox.ts';
import type { Typed } from './protocol.ts';
import { restoredTimers, type TimerList, timerPairs, withTimer } from './timer-list.ts';

/** Commands without an answer, over all actors. */
export interface PendingCount {
  pending: number;
}

/** A command and everything that hangs on it; handed from a turn to the turn that decides its `next`. */
export interface Chain {
  readonly commandId: string;
  waiter: AskWaiter | undefined;
  /** The durable row that started it, until a turn of the chain has written it off. */
  entry: Entry | undefined;
}

/** A command that came while a turn of its actor waits for the verdict. */
interface HeldCommand {
  readonly command: Typed;
  readonly chain: Chain;
}

export class Cell {
  readonly kind: AnyKind;
  readonly id: string;
  state: unknown;
  volatile: unknown;
  /** Last row written, 0 for an actor that has none. */
  seq = 0;
  /** Row that the last snapshot covers. */
  snapshotSeq = 0;
  /** Events since the last snapshot. */
  tail = 0;
  ring: IdempotencyRing | undefined;
  timers: TimerList | undefined;
  /** The newest group that holds writes of this actor; undefined when all is on disk. */
  dirty: CommitGroup | undefined;
  /** The same without unawaited writes. */
  awaited: CommitGroup | undefined;
  /** Commands whose answer comes from a later turn, by command id. */
  waiting: Map<string, AskWaiter> | undefined;
  /** First asks with an Idempotency-Key that have no answer yet; repeats join them. */
  unanswered: Map<string, AskWaiter> | undefined;
  /** Asks without an answer. */
  pending = 0;
  /** Slow calls without a result, those of them in flight, and those that are queued. */
  calls = 0;
  running = 0;
  queuedCalls: (() => void)[] | undefined;
  /** Commands that came since a turn waits for its verdict, in order. */
  held: HeldCommand[] | undefined;
  /** Another node owns the actor: no turn changes this instance any more. */
  gone = false;
  /** A turn threw: replay before the next one. */
  stale = false;
  lastUsedMs = 0;
  /** Neighbours in the order of last use (passivation.ts). */
  older: Cell | undefined;
  newer: Cell | undefined;

  constructor(kind: AnyKind, id: string) {
    this.kind = kind;
    this.id = ownText(id);
  }

  /** Rebuilds everything that is durable; volatile state starts anew. */
  replay(journal: Journal): void {
    const { kind, id } = this;
    this.state = kind.initial(id);
    this.volatile = kind.volatile?.(id);
    this.seq = 0;
    this.snapshotSeq = 0;
    this.tail = 0;
    this.ring = undefined;
    this.timers = undefined;
    const stored = journal.load(kind.kind, id);
    if (stored?.snapshot !== undefined) this.#restore(stored.snapshot);
    for (const { seq, row } of stored?.rows ?? []) {
      if (seq !== this.seq + 1)
        throw new DamagedRow('journal', [kind.kind, id, this.seq + 1], new Uint8Array(), 'it is missing');
      this.#apply(row);
      // Not the number of the key, which is decoded as a fraction and takes a box of its own in every instance.
      this.seq += 1;
    }
    this.stale = false;
  }

  /**
   * Takes over rows that another node has written. Those that this instance has are passed over, so it may have been
   * loaded in the middle of a batch. Volatile state stays. An instance that cannot follow is replayed at its next use.
   */
  follow(journal: Journal): void {
    const { volatile } = this;
    try {
      const rows = journal.rowsAfter(this.kind.kind, this.id, this.seq);
      if (rows === undefined) {
        this.replay(journal);
        this.volatile = volatile;
        return;
      }
      for (const row of rows) {
        this.#apply(row);
        this.seq += 1;
      }
    } catch {
      this.stale = true;
    }
  }

  #restore([version, seq, state, ring, timers]: SnapshotRow): void {
    const upcast = version < this.kind.version ? this.kind.upcast?.({ version, state }) : undefined;
    const present = upcast !== undefined && 'state' in upcast ? upcast.state : state;
    this.state = this.kind.restored?.(present, this.id) ?? present;
    this.seq = seq;
    this.snapshotSeq = seq;
    this.remember(ring, []);
    this.timers = restoredTimers(timers);
  }

  #apply([version, written, ring, timers]: TurnRow): void {
    let events = written;
    if (version < this.kind.version && this.kind.upcast !== undefined) {
      events = this.kind.upcast({ version, events: [...written] }).events ?? written;
    }
    for (const event of events) this.state = this.kind.evolve(this.state, event);
    this.tail += written.length;
    this.remember(ring, timers);
  }

  /** Takes over the replies and timers of a row. */
  remember(ring: readonly RingEntry[], timers: readonly TimerChange[]): void {
    if (ring.length > 0) {
      this.ring ??= new IdempotencyRing();
      this.ring.add(ring);
    }
    for (const change of timers) this.timers = withTimer(this.timers, change);
  }

  /** A snapshot of the state has taken the place of all rows. */
  erased(): void {
    this.snapshotSeq = this.seq;
    this.tail = 0;
    this.ring = undefined;
  }

  snapshotRow(): SnapshotRow {
    return [this.kind.version, this.seq, this.state, this.ring?.entries() ?? [], timerPairs(this.timers)];
  }

  /** The group that must be on disk before anything that follows from this state may leave. */
  get gate(): CommitGroup | undefined {
    const { dirty } = this;
    return dirty?.committed === true ? undefined : dirty;
  }

  /** The group that an unawaited answer waits for: it does not follow from unawaited writes. */
  get awaitedGate(): CommitGroup | undefined {
    const { awaited } = this;
    return awaited?.committed === true ? undefined : awaited;
  }

  /** True while something in memory would be lost or doubled if the instance left. */
  get busy(): boolean {
    return (
      this.pending > 0 ||
      this.calls > 0 ||
      this.held !== undefined ||
      (this.waiting?.size ?? 0) > 0 ||
      this.gate !== undefined
    );
  }

  park(commandId: string, waiter: AskWaiter): void {
    this.waiting ??= new Map();
    this.waiting.set(commandId, waiter);
  }

  /** There will be no later turns: every waiter is rejected with the reason. */
  abandon(row: ErrorName): void {
    const waiters = [...(this.waiting?.values() ?? [])];
    this.waiting = undefined;
    for (const waiter of waiters) waiter.settle(undefined, new GatewayError(row));
  }

  /** Answers now, or when what this actor has written is on disk; the caller hurries the group. */
  answer(waiter: Waiter, reply: unknown, error: Error | undefined): void {
    const { gate } = this;
    if (gate === undefined) waiter.settle(reply, error);
    else gate.gate(waiter, reply, error);
  }
}

/** A caller of `ask`. Counts against the bounds from the call until the answer. */
export class AskWaiter implements Waiter {
  readonly #cell: Cell;
  readonly #count: PendingCount;
  readonly #resolve: (reply: unknown) => void;
  readonly #reject: (error: Error) => void;
  readonly key: string | undefined;
  readonly fingerprint: string | undefined;
  /** A turn has announced that the answer comes from a later one. */
  later = false;
  readonly observer: AskObserver | undefined;
  #joined: AskWaiter[] | undefined;

  constructor(
    cell: Cell,
    count: PendingCount,
    key: string | undefined,
    resolve: (reply: unknown) => void,
    reject: (error: Error) => void,
    fingerprint?: string,
    observer?: AskObserver,
  ) {
    this.fingerprint = fingerprint;
    this.observer = observer;
    this.#cell = cell;
    this.#count = count;
    this.#resolve = resolve;
    this.#reject = reject;
    this.key = key;
    cell.pending += 1;
    count.pending += 1;
    if (key === undefined) return;
    const first = cell.unanswered?.get(key);
    if (first !== undefined) first.#join(this);
    else {
      cell.unanswered ??= new Map();
      cell.unanswered.set(key, this);
    }
  }

  #join(repeat: AskWaiter): void {
    this.#joined ??= [];
    this.#joined.push(repeat);
  }

  settle(reply: unknown, error: Error | undefined): void {
    const cell = this.#cell;
    invariant(cell.pending > 0, 'a caller is answered once');
    cell.pending -= 1;
    this.#count.pending -= 1;
    if (this.key !== undefined && cell.unanswered?.get(this.key) === this) cell.unanswered.delete(this.key);
    if (error === undefined) this.#resolve(reply);
    else this.#reject(error);
    for (const repeat of this.#joined ?? []) repeat.settle(reply, error);
  }
}
