/**
 * One quota of bytes per second: a token bucket with debts, whose income is shared evenly by persons first, then by the
 * streams of each (decision 0042). Like the request limiter it is synchronous (decision 0105), and it has neither clock nor timer:
 * io/files/throttle.ts brings both.
 */
import { SECOND_MS } from '../../domain/time.ts';

/** Milliseconds that a share lasts at most before the next one is handed out. */
export const TURN_MS = 100;
/** Milliseconds of quota that idle time may save up, so that the quota holds for short transfers too. */
const IDLE_SAVINGS_MS = TURN_MS;
/** Milliseconds of quota saved while a stream is present: a late turn hands out later what the earlier one did not. */
const SAVINGS_MS = SECOND_MS;
/** A stream that used less than its share is given so many times what it used; one that owes has no such bound. */
const ROOM_FACTOR = 2;
const UNBOUNDED = Number.MAX_VALUE;

/** A stream as the bucket sees it. The owner keeps the object; `clear` is called once it owes nothing any more. */
export interface Debtor {
  clear(): void;
}

interface Account {
  readonly debtor: Debtor;
  readonly person: Person;
  /** Bytes that were passed on and are not paid. */
  owedBytes: number;
  /** Bytes left of its share of the present turn. */
  creditBytes: number;
  /** Charged since the last turn. */
  usedBytes: number;
}

interface Person {
  readonly name: string;
  readonly accounts: Set<Account>;
  /** Share in the last turn. */
  shareBytes: number;
}

export class FairBucket {
  readonly #bytesPerSecond: () => number;
  readonly #onPersons: (persons: number) => void;
  readonly #accounts = new Map<Debtor, Account>();
  /** Those with a stream: the last one that leaves takes the person along. */
  readonly #persons = new Map<string, Person>();
  #waiting = 0;
  #savedBytes: number;
  #lastMs: number;

  /**
   * `bytesPerSecond` is asked at every use; 0 means that nothing is limited. `onPersons` is called when the number of
   * persons with a stream has changed.
   */
  constructor(
    bytesPerSecond: () => number,
    nowMs: number,
    onPersons: (persons: number) => void = () => undefined,
  ) {
    this.#bytesPerSecond = bytesPerSecond;
    this.#onPersons = onPersons;
    this.#savedBytes = this.#worthOf(IDLE_SAVINGS_MS);
    this.#lastMs = nowMs;
  }

  /** `personName` says who shares one part of the quota. */
  join(debtor: Debtor, personName: string, nowMs: number): void {
    this.#refill(nowMs);
    const known = this.#persons.get(personName);
    const person = known ?? { name: personName, accounts: new Set<Account>(), shareBytes: 0 };
    this.#persons.set(personName, person);
    if (known === undefined) this.#onPersons(this.#persons.size);
    const account = { debtor, person, owedBytes: 0, creditBytes: 0, usedBytes: 0 };
    person.accounts.add(account);
    this.#accounts.set(debtor, account);
  }

  /** Forgets the debt of a stream that leaves: the others get its share from now on. */
  leave(debtor: Debtor, nowMs: number): void {
    this.#refill(nowMs);
    const account = this.#accounts.get(debtor);
    if (account === undefined) return;
    const { person, creditBytes, owedBytes } = account;
    this.#savedBytes += creditBytes;
    if (owedBytes > 0) this.#waiting -= 1;
    this.#accounts.delete(debtor);
    person.accounts.delete(account);
    if (person.accounts.size > 0) return;
    this.#persons.delete(person.name);
    this.#onPersons(this.#persons.size);
  }

  /** Adds to what a stream owes. True: it is paid at once. False: `clear` follows from a later turn. */
  charge(debtor: Debtor, sizeBytes: number, nowMs: number): boolean {
    const account = this.#accounts.get(debtor);
    if (account === undefined) return true;
    // A debt from before the quota was lifted ends with the next turn, as every other one.
    if (this.#bytesPerSecond() === 0) return account.owedBytes === 0;
    this.#refill(nowMs);
    account.usedBytes += sizeBytes;
    const fromCredit = Math.min(account.creditBytes, sizeBytes);
    account.creditBytes -= fromCredit;
    const rest = sizeBytes - fromCredit;
    // Savings belong to those who wait already, and a part of them to each person.
    const forOne = this.#waiting === 0 ? this.#savedBytes / this.#persons.size : 0;
    const fromSavings = Math.min(forOne, rest);
    this.#savedBytes -= fromSavings;
    if (rest > fromSavings) {
      if (account.owedBytes === 0) this.#waiting += 1;
      account.owedBytes += rest - fromSavings;
    }
    return account.owedBytes === 0;
  }

  /**
   * Distributes the income since the last run. A stream that owes less than its share keeps the rest for its next
   * pieces until the next run; otherwise small pieces would be slower than large ones. Returns the streams without
   * debt.
   */
  turn(nowMs: number): Debtor[] {
    if (this.#bytesPerSecond() === 0) return this.#releaseAll();
    this.#refill(nowMs);
    const sharers = [...this.#persons.values()].map((person) => this.#collect(person));
    const shares = evenly(this.#savedBytes, sharers.map(demandOf));
    const clear: Debtor[] = [];
    for (const [index, { person, wants, keptBytes }] of sharers.entries()) {
      person.shareBytes = shares[index] ?? 0;
      this.#savedBytes -= person.shareBytes;
      const parts = evenly(person.shareBytes + keptBytes, wants);
      for (const [index, account] of [...person.accounts].entries())
        if (this.#pay(account, parts[index] ?? 0)) clear.push(account.debtor);
    }
    return clear;
  }

  /** Quota of all streams now; 0: they are not limited. */
  get bytesPerSecond(): number {
    return this.#bytesPerSecond();
  }

  /** Streams that owe. */
  get waiting(): number {
    return this.#waiting;
  }

  get present(): number {
    return this.#accounts.size;
  }

  get persons(): number {
    return this.#persons.size;
  }

  /** Among how many streams as this one the quota is shared when all want more. */
  sharersOf(debtor: Debtor): number {
    return this.#persons.size * (this.#accounts.get(debtor)?.person.accounts.size ?? 1);
  }

  /** Without streams and with full savings: a new bucket would be the same. */
  isFresh(nowMs: number): boolean {
    this.#refill(nowMs);
    return this.present === 0 && this.#savedBytes >= this.#worthOf(IDLE_SAVINGS_MS);
  }

  #releaseAll(): Debtor[] {
    const owing = [...this.#accounts.values()].filter(({ owedBytes }) => owedBytes > 0);
    for (const account of this.#accounts.values()) {
      account.owedBytes = 0;
      account.creditBytes = 0;
    }
    this.#waiting = 0;
    return owing.map(({ debtor }) => debtor);
  }

  /**
   * Sums up the wants of a person's streams, and the part of their unused shares that stays with the person, one share
   * at most.
   */
  #collect(person: Person): Sharer {
    const accounts = [...person.accounts];
    const wants = accounts.map(({ owedBytes, usedBytes }) =>
      owedBytes > 0 ? UNBOUNDED : usedBytes * ROOM_FACTOR,
    );
    const unusedBytes = accounts.reduce((sum, { creditBytes }) => sum + creditBytes, 0);
    const keptBytes = wants.includes(UNBOUNDED) ? Math.min(unusedBytes, person.shareBytes) : 0;
    this.#savedBytes += unusedBytes - keptBytes;
    for (const account of accounts) {
      account.creditBytes = 0;
      account.usedBytes = 0;
    }
    return { person, wants, keptBytes };
  }

  /** True when nothing is owed any more. */
  #pay(account: Account, bytes: number): boolean {
    const { owedBytes } = account;
    account.owedBytes = Math.max(0, owedBytes - bytes);
    account.creditBytes = Math.max(0, bytes - owedBytes);
    const isPaid = owedBytes > 0 && account.owedBytes === 0;
    if (isPaid) this.#waiting -= 1;
    return isPaid;
  }

  #refill(nowMs: number): void {
    const elapsedMs = Math.max(0, nowMs - this.#lastMs);
    this.#lastMs = nowMs;
    const most = this.#worthOf(this.present === 0 ? IDLE_SAVINGS_MS : SAVINGS_MS);
    this.#savedBytes = Math.min(this.#savedBytes + this.#worthOf(elapsedMs), most);
  }

  #worthOf(durationMs: number): number {
    return (this.#bytesPerSecond() * durationMs) / SECOND_MS;
  }
}

interface Sharer {
  readonly person: Person;
  /** Want of each of its streams, in order. */
  readonly wants: readonly number[];
  readonly keptBytes: number;
}

function demandOf({ wants }: Sharer): number {
  return wants.includes(UNBOUNDED) ? UNBOUNDED : wants.reduce((sum, bytes) => sum + bytes, 0);
}

/** Max-min fair parts of a total: the same for all, but to none more than it wants; the others share what that leaves. */
function evenly(total: number, wants: readonly number[]): number[] {
  const parts = wants.map(() => 0);
  const smallestFirst = [...wants.entries()].sort(([, one], [, other]) => one - other);
  let [left, sharers] = [total, wants.length];
  for (const [index, want] of smallestFirst) {
    const part = Math.min(want, left / sharers);
    parts[index] = part;
    left -= part;
    sharers -= 1;
  }
  return parts;
}
