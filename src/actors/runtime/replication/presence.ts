/**
 * This node among the members: it enters the log, catches up and joins, and does so again after an expulsion or after
 * an answer that was lost. Owns the incarnations of this process.
 */
import { MINUTE_MS } from '../../../domain/time.ts';
import type { Schedule } from '../runtime-context.ts';
import type { MemberChange } from './members.ts';
import {
  checkLog,
  Expelled,
  LogLost,
  type LogRow,
  type LogWrite,
  NameTaken,
  type NodeState,
  OutcomeUnknown,
  type Renewed,
  type SharedLog,
} from './port.ts';
import { NodeStopped } from './tail.ts';

/** Wait before a question whose answer was lost is asked again. */
const RETRY_MS = 100;
/** Leases for which a name that is in use is waited for: its process may have been killed just now. */
const NAME_WAIT_LEASES = 2;
/** A node that waits until its clock is right looks so often. */
const CLOCK_WAIT_MS = 1_000;
/** One that is expelled for the third time in a minute waits so long, each further time twice as long up to a bound. */
const EXPULSIONS = 3;
const CALM_MS = 5_000;
const CALM_MAX_MS = 20_000;

/** The write that has no outcome yet, and the position of its row once that has passed. */
export class Unsettled {
  #write: LogWrite | undefined;
  position: number | undefined;

  get isOpen(): boolean {
    return this.#write !== undefined;
  }

  begin(write: LogWrite): void {
    this.#write = write;
    this.position = undefined;
  }

  end(): void {
    this.#write = undefined;
  }

  passing(rows: readonly LogRow[]): void {
    const { node, incarnation, nodeSeq } = this.#write ?? {};
    for (const row of rows)
      if (row.node === node && row.incarnation === incarnation && row.nodeSeq === nodeSeq)
        this.position = row.position;
  }
}

interface PresenceOptions {
  readonly log: SharedLog;
  readonly name: string;
  readonly leaseMs: number;
  readonly schedule: Schedule;
  readonly monotonicMs: () => number;
  readonly encodeMember: (change: MemberChange) => Uint8Array;
  readonly nextSeq: () => number;
  /** True if a member may have the clock of this node. */
  readonly mayJoin: (seen: Renewed) => boolean;
  /** Newest position that is applied. */
  readonly applied: () => number;
  /** Resolves when everything up to this position is applied. */
  readonly reach: (position: number) => Promise<void>;
  /** A row of this node is in the log. */
  readonly onWritten: (write: LogWrite, position: number) => void;
}

export class Presence {
  readonly #options: PresenceOptions;
  /** Incarnations that rows not applied yet may have. */
  readonly #own = new Set<number>();
  /** out: enters next. entered: joins next. in: writes. */
  #phase: 'out' | 'entered' | 'in' = 'out';
  #stopped = false;
  /** It does not wait for a join any more. */
  #leaving = false;
  /** Moments of the last minute, by the monotonic clock. */
  #expulsions: number[] = [];
  /** Newest position of the log when this incarnation began. */
  #caughtUpAt = 0;
  #coming: Promise<void> | undefined;
  node = 0;
  incarnation = 0;
  /** Position of the newest own join; infinite from before it is sent until its answer is here. */
  joinPosition = Number.POSITIVE_INFINITY;

  constructor(options: PresenceOptions) {
    this.#options = options;
  }

  get isIn(): boolean {
    return this.#phase === 'in';
  }

  get isOut(): boolean {
    return this.#phase === 'out';
  }

  isOwn(node: number, incarnation: number): boolean {
    return node === this.node && this.#own.has(incarnation);
  }

  /** The own join row is applied: no row that follows has an earlier incarnation. */
  joinApplied(): void {
    for (const incarnation of this.#own) if (incarnation < this.incarnation) this.#own.delete(incarnation);
  }

  /** This incarnation can write no more: the next write comes in again. */
  expelled(): void {
    if (this.isIn) this.#expulsions.push(this.#options.monotonicMs());
    this.#phase = 'out';
  }

  /** The same by its own row: the next write comes in again. */
  left(): void {
    this.#phase = 'out';
  }

  /** A join that waits is given up. */
  leave(): void {
    this.#leaving = true;
  }

  /** Steps that wait are given up at their next step. */
  stop(): void {
    this.#stopped = true;
    this.#phase = 'out';
  }

  /** Resolves when this node has written its join; at once while it is in. */
  comeIn(): Promise<void> {
    if (this.#phase === 'in' && !this.#stopped) return Promise.resolve();
    this.#coming ??= this.#enterAndJoin().finally(() => {
      this.#coming = undefined;
    });
    return this.#coming;
  }

  /** Raises the incarnation, so that the write cannot land any more; its position when it has. */
  async resolve(write: LogWrite): Promise<number | undefined> {
    const position = await this.#repeat(() => this.#options.log.resolve(write));
    this.incarnation = write.incarnation + 1;
    this.#own.add(this.incarnation);
    this.#phase = 'entered';
    return position;
  }

  /** Enters, anew after an expulsion, and catches up with all that former incarnations may have written. */
  async enter(): Promise<void> {
    await this.#enter();
    await this.#options.reach(this.#caughtUpAt);
  }

  async #enterAndJoin(): Promise<void> {
    while (this.#phase !== 'in') {
      try {
        if (this.#phase === 'out') await this.#enter();
        await this.#options.reach(this.#caughtUpAt);
        await this.#calm();
        await this.#clockIsRight();
        await this.#join();
      } catch (error) {
        if (!(error instanceof Expelled)) throw error;
        this.expelled();
      }
    }
  }

  async #enter(): Promise<void> {
    const { log, name, leaseMs, monotonicMs } = this.#options;
    const applied = this.#options.applied();
    const previous = this.incarnation === 0 ? undefined : this.incarnation;
    const endMs = monotonicMs() + NAME_WAIT_LEASES * leaseMs;
    const entered = await this.#repeat(
      () => log.enter(name, previous),
      (error) => error instanceof NameTaken && monotonicMs() < endMs,
    );
    checkLog(entered.logId, log.logId);
    if (entered.position < applied)
      throw new LogLost(`the log ends at ${entered.position}, and this node has applied ${applied}`);
    this.node = entered.node;
    this.incarnation = entered.incarnation;
    this.#own.add(entered.incarnation);
    this.#caughtUpAt = entered.position;
    this.#phase = 'entered';
  }

  /**
   * Each return moves partitions twice: a node that does not stay is given time, while another member renews. So the nodes
   * of a slow machine never wait all at once.
   */
  async #calm(): Promise<void> {
    const { monotonicMs, leaseMs } = this.#options;
    const nowMs = monotonicMs();
    this.#expulsions = this.#expulsions.filter((atMs) => nowMs - atMs < MINUTE_MS);
    const more = this.#expulsions.length - EXPULSIONS;
    if (more < 0) return;
    const endMs = nowMs + Math.min(CALM_MAX_MS, CALM_MS * 2 ** more);
    let before = await this.#look();
    for (let renews = before.others.length > 0; renews && monotonicMs() < endMs; ) {
      await this.#waitToJoin(leaseMs);
      const seen = await this.#look();
      renews = hasRenewed(before.others, seen.others);
      before = seen;
    }
  }

  async #clockIsRight(): Promise<void> {
    while (!this.#options.mayJoin(await this.#look())) await this.#waitToJoin(CLOCK_WAIT_MS);
  }

  #look(): Promise<Renewed> {
    return this.#repeat(() => this.#options.log.look(this.node));
  }

  async #waitToJoin(ms: number): Promise<void> {
    await new Promise<void>((resolve) => this.#options.schedule.timer(ms, resolve));
    if (this.#stopped || this.#leaving) throw new NodeStopped();
  }

  async #join(): Promise<void> {
    const { log, encodeMember, nextSeq, onWritten } = this.#options;
    if (this.#stopped) throw new NodeStopped();
    const { node, incarnation } = this;
    const write = { node, incarnation, nodeSeq: nextSeq(), body: encodeMember({ type: 'join' }) };
    // From here on a renewal may succeed although rows before the join, such as the own expulsion, are not applied.
    this.joinPosition = Number.POSITIVE_INFINITY;
    try {
      const position = await log.join(write);
      this.joinPosition = position;
      this.#phase = 'in';
      onWritten(write, position);
    } catch (error) {
      if (!(error instanceof OutcomeUnknown)) throw error;
      // The row may be there or not: the incarnation is a new one now, and joins again.
      await this.resolve(write);
    }
  }

  /** Asks until an answer is here. */
  async #repeat<T>(ask: () => Promise<T>, isPassing = (_: unknown) => false): Promise<T> {
    for (;;) {
      if (this.#stopped) throw new NodeStopped();
      try {
        return await ask();
      } catch (error) {
        if (!(error instanceof OutcomeUnknown) && !isPassing(error)) throw error;
      }
      await new Promise<void>((resolve) => this.#options.schedule.timer(RETRY_MS, resolve));
    }
  }
}

function hasRenewed(before: readonly NodeState[], now: readonly NodeState[]): boolean {
  const renewals = new Map(before.map((each) => [each.node, each.renewals]));
  return now.some((each) => each.renewals > (renewals.get(each.node) ?? each.renewals));
}
