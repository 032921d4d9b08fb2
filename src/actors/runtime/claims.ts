/**
 * Unique names across actors. Owns the view of the indexes that includes what is being committed: a claim is judged
 * against it within the turn, so two actors can never both win.
 */
import { type ErrorName, GatewayError } from '../../domain/errors.ts';
import type { Claim, IndexName } from './actor.ts';
import type { CommitGroup } from './commit-group.ts';
import type { Effect } from './effects.ts';
import { DamagedRow, type Journal } from './journal/port.ts';
import { isAllowed } from './replication/judge.ts';

interface Pending {
  readonly owner: string | null;
  readonly group: CommitGroup;
}

interface ClaimConflict {
  readonly row: ErrorName;
  /** The conflict is with a write that is not on disk yet: the refusal waits for it. */
  readonly pending: boolean;
}

/** Called when a name is free, once that is on disk and before any answer says so. */
type ReleaseListener = (key: string, owner: string) => void;

export class Claims {
  readonly #journal: Journal;
  readonly #listeners = new Map<IndexName, Set<ReleaseListener>>();
  /** Names written by groups that are not on disk yet, by index. Emptied as they get there. */
  readonly #pending = new Map<IndexName, Map<string, Pending>>();

  readonly #judges: boolean;

  /** `judges`: releases are announced by `released`, when they are applied, and not with the group. */
  constructor(journal: Journal, judges: boolean) {
    this.#journal = journal;
    this.#judges = judges;
  }

  /** Throws `Quarantined` when the row of the name is damaged: it is neither free nor owned. */
  lookup(index: IndexName, key: string): string | undefined {
    const pending = this.#pending.get(index)?.get(key);
    if (pending !== undefined) return pending.owner ?? undefined;
    try {
      return this.#journal.lookup(index, key);
    } catch (error) {
      throw error instanceof DamagedRow ? new GatewayError('Quarantined') : error;
    }
  }

  /** Is the present value of this name on disk? */
  isPending(index: IndexName, key: string): boolean {
    return this.#pending.get(index)?.has(key) === true;
  }

  /** The first conflict, or undefined when all can be written. Claims of one turn see the ones before them. */
  conflict(claims: readonly Claim[]): ClaimConflict | undefined {
    const earlier = claims.length > 1 ? new Map<string, string | null>() : undefined;
    for (const claim of claims) {
      const { index, key, owner, onConflict } = claim;
      const name = earlier === undefined ? '' : `${index}\0${key}`;
      const written = earlier?.get(name);
      const present = written === undefined ? this.lookup(index, key) : (written ?? undefined);
      if (!isAllowed(claim, present)) return { row: onConflict, pending: this.isPending(index, key) };
      earlier?.set(name, owner);
    }
    return undefined;
  }

  /** Returns the way to stop that. */
  onRelease(index: IndexName, listener: ReleaseListener): () => void {
    const listeners = this.#listeners.get(index) ?? new Set();
    this.#listeners.set(index, listeners.add(listener));
    return () => listeners.delete(listener);
  }

  /** Takes these into the view; the turn of the group that they are of writes them. */
  write(claims: readonly Claim[], group: CommitGroup<Effect>): void {
    for (const { index, key, owner } of claims) {
      if (owner === null && !this.#judges) this.#announce(index, key, group);
      this.#pendingOf(index).set(key, { owner, group });
    }
  }

  #announce(index: IndexName, key: string, group: CommitGroup<Effect>): void {
    const listeners = this.#listeners.get(index);
    const owner = listeners === undefined ? undefined : this.lookup(index, key);
    if (listeners === undefined || owner === undefined) return;
    group.effects.push({ type: 'release', index, key, owner });
  }

  /** The name is free, and that is on disk. */
  released(index: IndexName, key: string, owner: string): void {
    for (const listener of this.#listeners.get(index) ?? []) listener(key, owner);
  }

  committed(group: CommitGroup): void {
    for (const { claims } of group.turns) {
      for (const { index, key } of claims) {
        const pending = this.#pendingOf(index);
        if (pending.get(key)?.group === group) pending.delete(key);
      }
    }
  }

  #pendingOf(index: IndexName): Map<string, Pending> {
    let pending = this.#pending.get(index);
    if (pending === undefined) {
      pending = new Map();
      this.#pending.set(index, pending);
    }
    return pending;
  }
}
