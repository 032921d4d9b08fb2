/**
 * Unique names across actors. Owns the view of the indexes that includes what is being committed: a claim is judged
 * against it within the turn, so two actors can never both win.
 */
import type { ErrorName } from '../../domain/errors.ts';
import type { Claim, IndexName } from './actor.ts';
import type { Group } from './group-commit.ts';
import type { Journal } from './journal-port.ts';

interface Pending {
  readonly owner: string | null;
  readonly group: Group;
}

export interface ClaimConflict {
  readonly row: ErrorName;
  /** The conflict is with a write that is not on disk yet: the refusal waits for it. */
  readonly pending: boolean;
}

/** Told that a name is free again, once that is on disk and before anybody gets an answer that says so. */
export type ReleaseListener = (key: string, owner: string) => void;

export class Claims {
  readonly #journal: Journal;
  readonly #listeners = new Map<IndexName, Set<ReleaseListener>>();
  /** Names written by groups that are not on disk yet. Emptied as they get there. */
  readonly #pending = new Map<string, Pending>();

  constructor(journal: Journal) {
    this.#journal = journal;
  }

  lookup(index: IndexName, key: string): string | undefined {
    if (this.#pending.size > 0) {
      const pending = this.#pending.get(`${index}\0${key}`);
      if (pending !== undefined) return pending.owner ?? undefined;
    }
    return this.#journal.lookup(index, key);
  }

  /** Is the present value of this name on disk? */
  isPending(index: IndexName, key: string): boolean {
    return this.#pending.has(`${index}\0${key}`);
  }

  /** The first conflict, or undefined when all can be written. Claims of one turn see the ones before them. */
  conflict(claims: readonly Claim[]): ClaimConflict | undefined {
    const earlier = claims.length > 1 ? new Map<string, string | null>() : undefined;
    for (const claim of claims) {
      const name = `${claim.index}\0${claim.key}`;
      const written = earlier?.get(name);
      const present = written === undefined ? this.lookup(claim.index, claim.key) : (written ?? undefined);
      if (!allowed(claim, present)) return { row: claim.onConflict, pending: this.#pending.has(name) };
      earlier?.set(name, claim.owner);
    }
    return undefined;
  }

  /** Returns the way to stop that. */
  onRelease(index: IndexName, listener: ReleaseListener): () => void {
    const listeners = this.#listeners.get(index) ?? new Set();
    this.#listeners.set(index, listeners.add(listener));
    return () => listeners.delete(listener);
  }

  write(claims: readonly Claim[], group: Group): void {
    for (const { index, key, owner } of claims) {
      if (owner === null) this.#announce(index, key, group);
      this.#pending.set(`${index}\0${key}`, { owner, group });
      group.operations.push({ op: 'index', index, key, owner });
    }
  }

  #announce(index: IndexName, key: string, group: Group): void {
    const listeners = this.#listeners.get(index);
    const owner = listeners === undefined ? undefined : this.lookup(index, key);
    if (listeners === undefined || owner === undefined) return;
    group.effects.push(() => {
      for (const listener of listeners) listener(key, owner);
    });
  }

  committed(group: Group): void {
    if (this.#pending.size === 0) return;
    for (const operation of group.operations) {
      if (operation.op !== 'index') continue;
      const name = `${operation.index}\0${operation.key}`;
      if (this.#pending.get(name)?.group === group) this.#pending.delete(name);
    }
  }
}

/** With `replaces` the stored value must be that one; a name already held by the same owner is never a conflict. */
function allowed(claim: Claim, present: string | undefined): boolean {
  if ((claim.owner ?? undefined) === present) return true;
  if (claim.replaces !== undefined) return present === claim.replaces;
  return claim.owner === null || present === undefined;
}
