/**
 * Work that one node does for the cluster apart from its actors: events and webhooks. Owns the one listener of members for
 * it, and waits while a member cannot apply the rows of that work.
 */

import type { Ownership } from '../../actors/runtime/ownership.ts';
import { EVENTS_ROW_VERSION } from '../../actors/runtime/replication/entry.ts';
import type { Replica } from '../../actors/runtime/replication/replica.ts';
import type { NodeRecord } from '../../io/cluster/node-table.ts';

export class OwnedWork implements Ownership {
  readonly #ownership: Ownership;
  readonly #listeners: (() => void)[] = [];
  #membersReadEvents = false;
  readonly #firstReading: Promise<void>;
  #wasRead = (): void => undefined;

  constructor(ownership: Ownership) {
    this.#ownership = ownership;
    this.#firstReading = new Promise((resolve) => {
      this.#wasRead = resolve;
    });
  }

  /** True if members read events, by the last reading of the table of nodes. */
  get membersReadEvents(): boolean {
    return this.#membersReadEvents;
  }

  owns(kind: string, id: string): boolean {
    return this.#membersReadEvents && this.#ownership.owns(kind, id);
  }

  /** Calls the listener whenever `owns` may answer otherwise than before. */
  follow(listener: () => void): void {
    this.#listeners.push(listener);
  }

  /** Must be called once the actors follow the replica: they know the owners before this work asks for them. */
  followMembers(replica: Pick<Replica, 'follow'>): void {
    replica.follow({ applied: () => undefined, membersChanged: () => this.#changed() });
  }

  /** Takes a reading of the table of nodes. */
  read(nodes: readonly Pick<NodeRecord, 'joined' | 'figures'>[]): void {
    const before = this.#membersReadEvents;
    this.#membersReadEvents = nodes.every(
      ({ joined, figures }) => !joined || (figures?.readsRows ?? 1) >= EVENTS_ROW_VERSION,
    );
    this.#wasRead();
    if (this.#membersReadEvents !== before) this.#changed();
  }

  /** Resolves when the table has been read. */
  wasRead(): Promise<void> {
    return this.#firstReading;
  }

  #changed(): void {
    for (const listener of this.#listeners) listener();
  }
}
