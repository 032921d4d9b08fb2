/**
 * Live actors follow the log of the cluster: rows of other nodes change instances in memory, messages and timers wake
 * actors of this node alone, and what another node owns from now on leaves.
 */
import type { Claims } from './claims.ts';
import type { ClusterView } from './cluster-view.ts';
import type { Journal } from './journal/port.ts';
import type { Mailboxes } from './mailbox.ts';
import type { Passivation } from './passivation.ts';
import type { AppliedTurn } from './replication/batch-view.ts';
import type { GatedTurns } from './replication/gated-turns.ts';
import type { Members } from './replication/members.ts';
import type { ReplicaListener } from './replication/replica.ts';
import type { Timers } from './timers.ts';
import type { Turns } from './turns.ts';

export interface FollowerDeps {
  readonly cluster: ClusterView;
  readonly journal: Journal;
  readonly claims: Claims;
  readonly passivation: Passivation;
  readonly mailboxes: Mailboxes;
  readonly timers: Timers;
  readonly turns: Turns;
  readonly gatedTurns: GatedTurns;
}

/** Called when rows of a kind were applied, of any node: the journal has them, and a live instance of this node may not yet. */
export type AppliedListener = (id: string) => void;

export class Follower implements ReplicaListener {
  readonly #deps: FollowerDeps;
  readonly #listeners = new Map<string, Set<AppliedListener>>();

  constructor(deps: FollowerDeps) {
    this.#deps = deps;
  }

  /** Returns the way to stop that. */
  onApplied(kind: string, listener: AppliedListener): () => void {
    const listeners = this.#listeners.get(kind) ?? new Set();
    this.#listeners.set(kind, listeners.add(listener));
    return () => listeners.delete(listener);
  }

  applied({ kind, id, operations, released }: AppliedTurn): void {
    const { cluster, claims, mailboxes, timers, passivation, gatedTurns } = this.#deps;
    let isGated = passivation.kindNamed(kind)?.gated === true;
    for (const operation of operations) {
      if (operation.op === 'mail') {
        const { toKind, toId } = operation.key;
        if (cluster.owns(toKind, toId)) mailboxes.stored(toKind, toId);
      } else if (operation.op === 'timer') {
        const { key } = operation;
        if (cluster.owns(key.kind, key.id)) timers.stored(key.dueMs);
      } else if (operation.op === 'index') isGated = true;
    }
    for (const { index, key, owner } of released) claims.released(index, key, owner);
    if (kind === '') return;
    if (isGated) gatedTurns.applied(kind, id, cluster.position);
    this.#follow(kind, id);
    for (const listener of this.#listeners.get(kind) ?? []) listener(id);
  }

  /** An instance that waits for the verdict on its own turn takes the state from that. */
  #follow(kind: string, id: string): void {
    const { passivation, journal } = this.#deps;
    const cell = passivation.live(kind, id);
    if (cell !== undefined && cell.held === undefined && !cell.stale) cell.follow(journal);
  }

  membersChanged(before: Members, now: Members): void {
    const { cluster, passivation, mailboxes, timers, turns } = this.#deps;
    const { owners } = before;
    if (now.owners.every((owner, partition) => owner === owners[partition])) return;
    for (const cell of [...passivation.cells()]) {
      const { kind, id } = cell;
      if (before.ownerOf(kind.kind, id) === now.ownerOf(kind.kind, id)) continue;
      if (cluster.owns(kind.kind, id)) turns.takeOver(cell);
      else turns.evict(cell);
    }
    mailboxes.evict();
    timers.evict();
    mailboxes.start();
    timers.start();
  }
}
