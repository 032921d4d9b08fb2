/**
 * Group commit and the output gate. Owns the order in which writes reach the journal: turns add to the open group,
 * one group is in flight, and nothing that depends on a group leaves before it is on disk.
 */
import { GatewayError, invariant } from '../../domain/errors.ts';
import { CommitGroup, type Verdicts, type Waiter, type Writer } from './commit-group.ts';
import type { Effect } from './effects.ts';
import { type Journal, type JournalTurn, type Judged, VERDICT } from './journal/port.ts';
import { NotOwner } from './not-owner.ts';
import type { RuntimeLimits, Schedule } from './runtime-context.ts';

/** Delay before unawaited writes start a commit of their own. Milliseconds. */
const IDLE_WAIT_MS = 50;
/** Intervals before a commit has taken too long. */
const INTERVALS = 10;

/** Consequences of a turn that no instance waits for. */
interface Consequences {
  /** Performed when its rows are on disk. In a cluster the follower does this for the rows of all nodes. */
  readonly written?: Effect;
  /** Performed when it is on disk and applied. */
  readonly applied?: Effect;
  /** Called instead when the log has judged otherwise: nothing was written. */
  readonly outdated?: () => void;
  /** Answered after that, with the number of requests of events that were passed over, or with the reason why not. */
  readonly waiter?: Waiter;
}

interface GroupCommitOptions {
  readonly journal: Journal;
  /** Calls back when every other node has applied a position of the log. Absent: the journal does not judge. */
  readonly reached?: ((position: number, run: () => void) => void) | undefined;
  readonly schedule: Schedule;
  readonly limits: RuntimeLimits;
  readonly onCommitted: (group: CommitGroup) => void;
  readonly perform: (effect: Effect) => void;
  /** A commit failed or took too long. The process is to end; nothing is repaired. */
  readonly onFatal: (error: Error) => void;
}

export class GroupCommit {
  readonly #options: GroupCommitOptions;
  #open = new CommitGroup<Effect>();
  #sealed: CommitGroup<Effect>[] = [];
  #inFlight: CommitGroup<Effect> | undefined;
  #startScheduled = false;
  #cancelTimeout: (() => void) | undefined;
  /** Groups of answers that wait for other nodes. */
  #gated = new Set<CommitGroup<Effect>>();
  /** Groups whose replies are leaving in slices, and how far the first one is. */
  #releasing: CommitGroup<Effect>[] = [];
  #released = 0;
  #failure: Error | undefined;
  groupsCommitted = 0;
  commandsCommitted = 0;

  constructor(options: GroupCommitOptions) {
    this.#options = options;
  }

  get open(): CommitGroup<Effect> {
    return this.#open;
  }

  /** The newest group that is not on disk yet, if there is one. */
  get newestPending(): CommitGroup | undefined {
    if (this.#open.turns.length > 0) return this.#open;
    return this.#sealed.at(-1) ?? this.#inFlight;
  }

  /** Commands that are not on disk yet. */
  get backlog(): number {
    let commands = this.#open.commands + (this.#inFlight?.commands ?? 0);
    for (const group of this.#sealed) commands += group.commands;
    return commands;
  }

  get idle(): boolean {
    return this.newestPending === undefined && this.#releasing.length === 0 && this.#gated.size === 0;
  }

  /** Several nodes write, so a turn waits for the commit to know its verdict. */
  get #isShared(): boolean {
    return this.#options.reached !== undefined;
  }

  get failed(): boolean {
    return this.#failure !== undefined;
  }

  /**
   * Adds the writes of a turn. A single node judges alone: the turn is applied before this returns, and what follows from
   * it waits for the group that is returned. To be followed by `wrote` or `wroteUnawaited`.
   */
  add<Turn extends JournalTurn>(
    turn: Turn,
    verdicts?: Verdicts<Turn, Effect>,
  ): CommitGroup<Effect> | undefined {
    const group = this.#open;
    group.turns.push(turn);
    if (!this.#isShared) {
      verdicts?.judged(turn, VERDICT.applied, group, undefined);
      return group;
    }
    if (verdicts !== undefined) {
      verdicts.waits(turn);
      group.waiting.set(turn, verdicts);
    }
    return undefined;
  }

  /** The same for writes that change no state in memory. */
  addRows(turn: JournalTurn, { written, applied, outdated, waiter }: Consequences): void {
    const open = this.#open;
    const index = open.turns.length;
    const settle = (_: unknown, error: Error | undefined) => waiter?.settle(open.skippedOf(index), error);
    this.add(turn, {
      waits: () => undefined,
      judged: (_turn, verdict, group) => {
        if (verdict !== VERDICT.applied) {
          outdated?.();
          waiter?.settle(undefined, new NotOwner());
          return;
        }
        if (written !== undefined) group?.effects.push(written);
        if (applied !== undefined) this.after(group, applied);
        if (group === undefined) settle(undefined, undefined);
        else if (waiter !== undefined) group.gate({ ...waiter, settle }, undefined, undefined);
      },
      lost: (_turn, error) => waiter?.settle(undefined, error),
    });
  }

  /** Must be called after a turn added its writes to the open group. */
  wrote(commands: number, sizeBytes: number): void {
    this.#open.urgent = true;
    this.#grow(commands, sizeBytes);
    this.#scheduleStart();
  }

  /** The same for unawaited writes: they join the next group, or are committed after the delay above. */
  wroteUnawaited(commands: number, sizeBytes: number): void {
    if (this.#grow(commands, sizeBytes)) this.#scheduleStart();
    else this.#scheduleIdleCommit();
  }

  /** A caller waits for `group`: starts it now when it is the open one; any other is on its way. */
  flushSoon(group = this.newestPending): void {
    if (group !== this.#open) return;
    group.urgent = true;
    this.#scheduleStart();
  }

  /** True when the group was full and has been sealed. */
  #grow(commands: number, sizeBytes: number): boolean {
    const group = this.#open;
    group.commands += commands;
    group.sizeBytes += sizeBytes;
    const { groupCommandsMax, groupBytesMax } = this.#options.limits;
    const full = group.commands >= groupCommandsMax || group.sizeBytes >= groupBytesMax;
    if (full) this.#seal();
    return full;
  }

  #scheduleIdleCommit(): void {
    if (this.#startScheduled || this.#inFlight !== undefined || this.#failure !== undefined) return;
    this.#cancelTimeout ??= this.#options.schedule.timer(IDLE_WAIT_MS, () => this.#scheduleStart());
  }

  #seal(): void {
    this.#sealed.push(this.#open);
    this.#open = new CommitGroup<Effect>();
  }

  #scheduleStart(): void {
    if (this.#startScheduled || this.#inFlight !== undefined || this.#failure !== undefined) return;
    this.#startScheduled = true;
    this.#options.schedule.immediate(this.#start);
  }

  readonly #start = (): void => {
    this.#startScheduled = false;
    this.#cancelTimeout?.();
    this.#cancelTimeout = undefined;
    if (this.#inFlight !== undefined || this.#failure !== undefined) return;
    if (this.#sealed.length === 0) {
      if (this.#open.turns.length === 0) return;
      this.#seal();
    }
    const group = this.#sealed.shift();
    if (group === undefined) return;
    this.#inFlight = group;
    group.writing();
    const cancelWatchdog = this.#isShared ? undefined : this.#watch(group);
    this.#options.journal.commit(group.turns, (error, judged, skipped) => {
      cancelWatchdog?.();
      if (this.#inFlight !== group) return;
      group.skipped = skipped;
      if (error === undefined) this.#committed(group, judged);
      else this.#fail(error);
    });
  };

  /**
   * Counts intervals instead of elapsed time (decision 0083), so that a suspended process does not time out a healthy
   * commit. A suspension is one interval, however long it was. A shared log has no limit of its own: while it is away
   * the lease of the node ends, and nothing is admitted.
   */
  #watch(group: CommitGroup): () => void {
    const { schedule, limits } = this.#options;
    let intervals = 0;
    let cancel = (): void => undefined;
    const wait = () => {
      cancel = schedule.timer(limits.commitTimeoutMs / INTERVALS, () => {
        intervals += 1;
        if (this.#inFlight !== group) return;
        if (intervals < INTERVALS) wait();
        else this.#fail(new Error(`a commit took over ${limits.commitTimeoutMs} ms`));
      });
    };
    wait();
    return () => cancel();
  }

  #committed(group: CommitGroup<Effect>, judged: Judged | undefined): void {
    this.#inFlight = undefined;
    group.committed = true;
    this.groupsCommitted += 1;
    this.commandsCommitted += group.commands;
    this.#options.onCommitted(group);
    if (judged !== undefined && !this.#decide(group, judged)) return;
    this.#perform(group);
    this.#openGate(group);
    if (this.#sealed.length > 0 || this.#open.urgent) this.#scheduleStart();
    else if (this.#open.turns.length > 0) this.#scheduleIdleCommit();
  }

  /** Tells every turn that waits what became of it. False when the log refused one, which is a bug of this node. */
  #decide(group: CommitGroup<Effect>, { position, verdicts }: Judged): boolean {
    let gate: CommitGroup<Effect> | undefined;
    const openGate = () => {
      gate ??= new CommitGroup<Effect>();
      return gate;
    };
    for (const [index, turn] of group.turns.entries()) {
      const verdict = verdicts[index] ?? VERDICT.refused;
      if (verdict === VERDICT.refused) {
        this.#inFlight = group;
        this.#fail(new Error(`the log refused a turn of ${turn.kind} ${turn.id}`));
        return false;
      }
      group.waiting.get(turn)?.judged(turn, verdict, undefined, openGate);
      group.waiting.delete(turn);
    }
    if (gate !== undefined) this.#holdBack(gate, position);
    return true;
  }

  /** Holds back the consequences of this writer's present state until every other node has applied the position. */
  gateAt(position: number, writer: Writer): void {
    const gate = new CommitGroup<Effect>();
    gate.writtenBy(writer, true);
    this.#holdBack(gate, position);
  }

  #holdBack(gate: CommitGroup<Effect>, position: number): void {
    this.#gated.add(gate);
    this.#options.reached?.(position, () => {
      if (!this.#gated.delete(gate)) return;
      gate.committed = true;
      this.#perform(gate);
      this.#openGate(gate);
    });
  }

  #perform({ committed, effects }: CommitGroup<Effect>): void {
    invariant(committed, 'an effect starts after the commit of its turn');
    for (const effect of effects) this.#options.perform(effect);
  }

  /** Performs an effect behind the writes of `gate`: at once when they are on disk. */
  after(gate: CommitGroup | undefined, effect: Effect): void {
    if (gate === undefined) this.#options.perform(effect);
    else gate.effects.push(effect);
  }

  /** Lets the answers of a group leave. */
  #openGate(group: CommitGroup<Effect>): void {
    group.forget();
    this.#releasing.push(group);
    if (this.#releasing.length === 1) this.#release();
  }

  readonly #release = (): void => {
    const group = this.#releasing[0];
    if (group === undefined) return;
    invariant(group.committed, 'an answer leaves after the commit of its turn');
    const end = Math.min(this.#released + this.#options.limits.releaseSlice, group.waiters.length);
    for (let index = this.#released; index < end; index += 1) {
      group.waiters[index]?.settle(group.replies[index], group.errors[index]);
    }
    this.#released = end;
    if (end === group.waiters.length) {
      group.waiters.length = 0;
      group.replies.length = 0;
      group.errors.length = 0;
      this.#releasing.shift();
      this.#released = 0;
    }
    if (this.#releasing.length > 0) this.#options.schedule.immediate(this.#release);
  };

  #fail(error: Error): void {
    this.#end(error, new GatewayError('JournalUnavailable'));
    this.#options.onFatal(error);
  }

  /** Takes no more writes; rejects every waiter with `Stopping`. */
  halt(): void {
    if (this.#failure === undefined) this.#end(new Error('closed'), new GatewayError('Stopping'));
  }

  #end(reason: Error, answer: GatewayError): void {
    this.#failure = reason;
    this.#cancelTimeout?.();
    const lost = [this.#inFlight, ...this.#sealed, this.#open, ...this.#gated];
    this.#gated.clear();
    this.#inFlight = undefined;
    this.#sealed = [];
    this.#open = new CommitGroup<Effect>();
    for (const group of lost) {
      for (const waiter of group?.waiters ?? []) waiter.settle(undefined, answer);
      for (const [turn, verdicts] of group?.waiting ?? []) verdicts.lost(turn, answer);
    }
  }
}
