/** Keys that several accounts try to register at the same time: each goes to one of them. */
import { newKey, type SoftwareKey } from '../../../kit/agent.ts';
import { BrokenPromise } from './calls.ts';

/** So many attempts, then there is another key. */
const ATTEMPTS = 3;

export class Contest {
  readonly #winners = new Map<SoftwareKey, string>();
  /** Keys that an account was refused, because another one has them. */
  readonly #lost = new Set<SoftwareKey>();
  #key = newKey();
  #attempts = 0;

  /** The key that others try to get too. */
  next(): SoftwareKey {
    if (this.#attempts === ATTEMPTS) {
      this.#key = newKey();
      this.#attempts = 0;
    }
    this.#attempts += 1;
    return this.#key;
  }

  /** An answer gave the key to the account. */
  won(key: SoftwareKey, who: string): void {
    const other = this.#winners.get(key);
    if (other !== undefined && other !== who)
      throw new BrokenPromise(who, `the key ${key.publicKey} is also of ${other}`);
    this.#winners.set(key, who);
  }

  /** An answer says that another account has the key, whose own answer may be on its way. */
  lost(key: SoftwareKey): void {
    this.#lost.add(key);
  }

  /** Once all clients are done. Returns how many keys were refused to an account. */
  requireWinners(): number {
    for (const key of this.#lost)
      if (!this.#winners.has(key))
        throw new BrokenPromise('contest', `the key ${key.publicKey} was refused, and no account has it`);
    return this.#lost.size;
  }
}
