/**
 * Whether the wall clock of this node is one that a member may have: sessions and keys end by it. It is wrong when it
 * differs from the database's and from those of most members, so that a database with another clock expels nobody.
 */
import type { ClockReading, NodeState, Renewed } from './port.ts';

const OFF_MS = 5_000;
/** One that is out for its clock comes back below this, so that a clock about the bound does not come and go. */
const BACK_MS = 4_000;
/** One of the two clocks has stepped: what members have said is of before it. */
const STEP_MS = 1_000;
/** A clock is off in so many renewals in a row. */
const RENEWALS = 3;
/** A member says at a renewal what it has measured at the one before: the second one after a moment is newer. */
const RENEWALS_UNTIL_FRESH = 2;

/** Both times by the clock of this node, around a question that the database answered with its own. */
export function readClock(sentMs: number, receivedMs: number, databaseMs: number): ClockReading {
  const halfMs = (receivedMs - sentMs) / 2;
  return { offsetMs: databaseMs - (sentMs + halfMs), errorMs: Math.abs(halfMs) };
}

export class ClockCheck {
  #renewals = 0;
  /** Counter of each member when the clock was first off from that of the database, or has stepped since. */
  #since: Map<number, number> | undefined;
  #offsetMs = 0;
  #isOff = false;

  /** This node is out, or about to be, until its clock is right. */
  get isOff(): boolean {
    return this.#isOff;
  }

  /** To be called with each renewal; true: the node has to leave. Never when it is alone. */
  hasToLeave({ clock, others }: Renewed): boolean {
    const isOff = isApart(clock.offsetMs, clock, OFF_MS);
    if (!isOff || isApart(clock.offsetMs - this.#offsetMs, clock, STEP_MS)) this.#forget();
    this.#offsetMs = clock.offsetMs;
    if (!isOff) return false;
    this.#since ??= new Map();
    for (const { node, renewals } of others) if (!this.#since.has(node)) this.#since.set(node, renewals);
    const apart = others.filter((other) => this.#isFresh(other) && differs(clock, other, OFF_MS) === true);
    this.#renewals = isMost(apart, others) ? this.#renewals + 1 : 0;
    if (this.#renewals < RENEWALS) return false;
    this.#forget();
    this.#isOff = true;
    return true;
  }

  /** To be asked before a join: the clock agrees with that of the database, or with those of most members. */
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
    return renewals - (this.#since?.get(node) ?? renewals) >= RENEWALS_UNTIL_FRESH;
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
