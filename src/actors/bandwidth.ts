/**
 * One quota of bytes per second that streams share fairly: a token bucket in which every stream has a debt of its own.
 * What comes in during a turn pays the debts of all who owe in equal shares, so that streams which always want more end
 * together, whatever the size of their pieces (files.md "Bandwidth limiter").
 *
 * Like the request limiter it is a plain object of the main thread, not an actor with a mailbox (decision 0021): nothing
 * of it outlives a restart. It has no clock and no timer; io/files/throttle.ts brings both.
 */
import { SECOND_MS } from '../domain/time.ts';

/** Length of a turn: how long a share lasts at most before the next one is handed out. */
export const TURN_MS = 100;
/** What idle time may save up, so that the quota holds for short transfers too. */
const IDLE_SAVINGS_MS = TURN_MS;
/** While somebody is there: a late turn hands out later what the earlier one did not. */
const SAVINGS_MS = SECOND_MS;

/** A stream as the bucket sees it. The owner keeps the object; `clear` is called once it owes nothing any more. */
export interface Debtor {
  clear(): void;
}

export class FairBucket {
  readonly #bytesPerSecond: () => number;
  readonly #present = new Set<Debtor>();
  /** Bytes that were passed on and are not paid. */
  readonly #owed = new Map<Debtor, number>();
  /** What is left to a stream of its share of the present turn. */
  readonly #credit = new Map<Debtor, number>();
  /** Charged since the last turn. */
  readonly #active = new Set<Debtor>();
  #savedBytes: number;
  #lastMs: number;

  /** `bytesPerSecond` is asked at every use; 0 means that nothing is limited. */
  constructor(bytesPerSecond: () => number, nowMs: number) {
    this.#bytesPerSecond = bytesPerSecond;
    this.#savedBytes = this.#worthOf(IDLE_SAVINGS_MS);
    this.#lastMs = nowMs;
  }

  join(debtor: Debtor, nowMs: number): void {
    this.#refill(nowMs);
    this.#present.add(debtor);
  }

  /** Whatever it owes is forgotten: the others get its share from now on. */
  leave(debtor: Debtor, nowMs: number): void {
    this.#refill(nowMs);
    this.#savedBytes += this.#credit.get(debtor) ?? 0;
    this.#credit.delete(debtor);
    this.#owed.delete(debtor);
    this.#active.delete(debtor);
    this.#present.delete(debtor);
  }

  /** Adds to what a stream owes. True: it is paid at once. False: `clear` follows from a later turn. */
  charge(debtor: Debtor, sizeBytes: number, nowMs: number): boolean {
    // Who owes from before the quota was lifted is let go by the next turn, like everybody else.
    if (this.#bytesPerSecond() === 0) return !this.#owed.has(debtor);
    this.#refill(nowMs);
    this.#active.add(debtor);
    const credit = this.#credit.get(debtor) ?? 0;
    const fromCredit = Math.min(credit, sizeBytes);
    this.#credit.set(debtor, credit - fromCredit);
    const rest = sizeBytes - fromCredit;
    // Savings belong to those who wait already.
    const fromSavings = this.#owed.size === 0 ? Math.min(this.#savedBytes, rest) : 0;
    this.#savedBytes -= fromSavings;
    if (rest > fromSavings) this.#owed.set(debtor, (this.#owed.get(debtor) ?? 0) + rest - fromSavings);
    return !this.#owed.has(debtor);
  }

  /**
   * Hands out what came in since the last turn, the same to all who took part in it. Who owes less than a share has the
   * rest for its next pieces, until the next turn: otherwise small pieces would be slower than large ones. Answers with
   * the debtors who owe nothing any more.
   */
  turn(nowMs: number): Debtor[] {
    if (this.#bytesPerSecond() === 0) return this.#letGo();
    this.#refill(nowMs);
    const sharers = new Set([...this.#owed.keys(), ...this.#active]);
    this.#active.clear();
    if (sharers.size === 0) return [];
    const share = this.#collect() / sharers.size;
    const clear: Debtor[] = [];
    for (const debtor of sharers) {
      const owed = this.#owed.get(debtor) ?? 0;
      if (owed > share) this.#owed.set(debtor, owed - share);
      else {
        this.#credit.set(debtor, share - owed);
        if (this.#owed.delete(debtor)) clear.push(debtor);
      }
    }
    return clear;
  }

  /** Streams that owe. */
  get waiting(): number {
    return this.#owed.size;
  }

  get present(): number {
    return this.#present.size;
  }

  /** Nobody there and nothing to remember: a new bucket would be the same. */
  isFresh(nowMs: number): boolean {
    this.#refill(nowMs);
    return this.#present.size === 0 && this.#savedBytes >= this.#worthOf(IDLE_SAVINGS_MS);
  }

  #letGo(): Debtor[] {
    const all = [...this.#owed.keys()];
    this.#owed.clear();
    this.#credit.clear();
    return all;
  }

  /** Everything there is to hand out, shares that were not used included. */
  #collect(): number {
    let sum = this.#savedBytes;
    for (const credit of this.#credit.values()) sum += credit;
    this.#savedBytes = 0;
    this.#credit.clear();
    return sum;
  }

  #refill(nowMs: number): void {
    const elapsedMs = Math.max(0, nowMs - this.#lastMs);
    this.#lastMs = nowMs;
    const most = this.#worthOf(this.#present.size === 0 ? IDLE_SAVINGS_MS : SAVINGS_MS);
    this.#savedBytes = Math.min(this.#savedBytes + this.#worthOf(elapsedMs), most);
  }

  #worthOf(durationMs: number): number {
    return (this.#bytesPerSecond() * durationMs) / SECOND_MS;
  }
}
