/**
 * Checks the wall clock of this node: sessions and keys end by it. It is wrong when it differs from the database's and
 * from those of most members, so that a database with another clock expels no node.
 */
import type { LeaseMoment } from './lease.ts';
import type { ClockReading, NodeState, Renewed } from './port.ts';

const OFF_MS = 5_000;
/** One that is out for its clock comes back below this, so that a clock about the bound does not come and go. */
const BACK_MS = 4_000;
/** One of the two clocks has stepped: what members have said is of before it. */
const STEP_MS = 1_000;
/** A clock is off in so many renewals in a row. */
const RENEWALS = 3;
/**
 * A member says at a renewal what it has measured at the one before: the second one after a moment is newer. Its counter
 * counts a join too, which says nothing.
 */
const COUNTS_UNTIL_FRESH = 3;

/** Both times by the clock of this node, around a question that the database answered with its own. */
export function readClock(sentMs: number, receivedMs: number, databaseMs: number): ClockReading {
  const halfMs = (receivedMs - sentMs) / 2;
  return { offsetMs: databaseMs - (sentMs + halfMs), errorMs: Math.abs(halfMs) };
}

/** unsure: no time of this clock may be stored until members have said theirs. */
export type ClockVerdict = 'right' | 'unsure' | 'wrong';

export class ClockCheck {
  #renewals = 0;
  /** The wall clock minus the monotonic one when this clock was right. */
  #trustedMs: number | undefined;
  /** Counter of each member when the clock was first off from that of the database, or has stepped since. */
  #since: Map<number, number> | undefined;
  #offsetMs = 0;
  #isOff = false;

  /** This node is out, or about to be, until its clock is right. */
  get isOff(): boolean {
    return this.#isOff;
  }

  /**
   * Must be called with each renewal, and the moment before it was sent. Wrong: the node has to leave; never when it is
   * alone.
   */
  judge(renewed: Renewed, { wallMs, monotonicMs }: LeaseMoment): ClockVerdict {
    const aheadMs = wallMs - monotonicMs;
    const verdict = this.#verdict(renewed, Math.abs(aheadMs - (this.#trustedMs ?? aheadMs)) > STEP_MS);
    if (verdict === 'right') this.#trustedMs = aheadMs;
    return verdict;
  }

  /** `hasStepped`: it is this clock that moved since it was right, and not that of the database. */
  #verdict({ clock, others }: Renewed, hasStepped: boolean): ClockVerdict {
    const isOff = isApart(clock.offsetMs, clock, OFF_MS);
    if (!isOff || isApart(clock.offsetMs - this.#offsetMs, clock, STEP_MS)) this.#forget();
    this.#offsetMs = clock.offsetMs;
    if (!isOff) return 'right';
    this.#since ??= new Map();
    for (const { node, renewals } of others) if (!this.#since.has(node)) this.#since.set(node, renewals);
    const fresh = others.filter((other) => this.#isFresh(other) && other.clockOffsetMs !== undefined);
    const apart = fresh.filter((other) => differs(clock, other, OFF_MS) === true);
    const isMostApart = isMost(apart, others);
    this.#renewals = isMostApart ? this.#renewals + 1 : 0;
    if (this.#renewals < RENEWALS) {
      const isOpen = isMostApart || fresh.length < others.length;
      return hasStepped && isOpen ? 'unsure' : 'right';
    }
    this.#forget();
    this.#isOff = true;
    return 'wrong';
  }

  /** Must be asked before a join: the clock agrees with that of the database, or with those of most members. */
  mayJoin({ clock, others }: Renewed): boolean {
    const boundMs = this.#isOff ? BACK_MS : OFF_MS;
    const near = others.filter((other) => differs(clock, other, boundMs) === false);
    this.#isOff = isApart(clock.offsetMs, clock, boundMs) && !isMost(near, others);
    return !this.#isOff;
  }

  #forget(): void {
    this.#since = undefined;
    this.#renewals = 0;
  }

  #isFresh({ node, renewals }: NodeState): boolean {
    return renewals - (this.#since?.get(node) ?? renewals) >= COUNTS_UNTIL_FRESH;
  }
}

function isMost(some: readonly NodeState[], all: readonly NodeState[]): boolean {
  return some.length * 2 > all.length;
}

/** The offset of another node is from the same database. Undefined while the node has said none. */
function differs(clock: ClockReading, { clockOffsetMs }: NodeState, boundMs: number): boolean | undefined {
  return clockOffsetMs === undefined ? undefined : isApart(clock.offsetMs - clockOffsetMs, clock, boundMs);
}

function isApart(distanceMs: number, { errorMs }: ClockReading, boundMs: number): boolean {
  return Math.abs(distanceMs) - errorMs > boundMs;
}
