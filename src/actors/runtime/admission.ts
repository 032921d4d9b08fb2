/**
 * Admits commands. Owns the bounds that a command meets before a turn sees it, in their order, and the counts of what
 * was refused at each: a 503 is never silent.
 */

import { type ErrorName, GatewayError } from '../../domain/errors.ts';
import type { AnyKind } from './actor.ts';
import type { Cell } from './cell.ts';
import { ID_MAX_BYTES, isName } from './journal/plain-data.ts';
import { DamagedRow, type Journal } from './journal/port.ts';
import { NotOwner } from './not-owner.ts';
import type { Typed } from './protocol.ts';
import type { RuntimeLimits } from './runtime-context.ts';
import type { Wiring } from './wiring.ts';

/** Commands refused before a turn saw them, by the bound they met. */
export interface Refused {
  /** The gateway is stopping. */
  stopping: number;
  /** Commands without an answer in all. */
  pending: number;
  /** The quota of the journal, or the disk. */
  storage: number;
  /** The actor has failed: back-off or quarantine. */
  quarantine: number;
  /** Commands without an answer of this actor. */
  mailbox: number;
  /** This node of a cluster has no lease. */
  lease: number;
}

export class Admission {
  readonly #journal: Journal;
  readonly #wiring: Wiring;
  readonly #limits: RuntimeLimits;
  readonly refused: Refused = { stopping: 0, pending: 0, storage: 0, quarantine: 0, mailbox: 0, lease: 0 };
  #stopping = false;

  constructor(journal: Journal, wiring: Wiring, limits: RuntimeLimits) {
    this.#journal = journal;
    this.#wiring = wiring;
    this.#limits = limits;
  }

  stop(): void {
    this.#stopping = true;
  }

  /** Nothing is read or decided here while the lease of the node does not run. */
  requireLease(): void {
    if (this.#wiring.cluster?.admits === false) throw this.#refuse('lease', 'JournalUnavailable', 1);
  }

  /** The bounds that concern no particular actor. */
  check(kind: AnyKind, command: Typed): void {
    const { commit, count } = this.#wiring;
    this.requireLease();
    if (commit.failed) throw new GatewayError('JournalUnavailable');
    if (this.#stopping) throw this.#refuse('stopping', 'Stopping');
    if (count.pending >= this.#limits.pendingMax) throw this.#refuse('pending', 'Overloaded');
    if (this.#journal.full() && kind.frees?.(command) !== true) throw this.#refuse('storage', 'StorageFull');
  }

  /** The instance that is to take a durable command. */
  admit(kind: AnyKind, id: string, command: Typed): Cell {
    this.check(kind, command);
    if (this.#wiring.cluster?.owns(kind.kind, id) === false) throw new NotOwner();
    const cell = this.acquire(kind, id, command);
    if (cell.pending >= kind.limits.mailbox) throw this.#refuse('mailbox', 'Overloaded');
    return cell;
  }

  /** The live instance, replayed if need be. `Quarantined` while it may not be tried. */
  acquire(kind: AnyKind, id: string, command: Typed): Cell {
    const { supervision, passivation } = this.#wiring;
    this.requireLease();
    if (supervision.waitMs(kind.kind, id) > 0) {
      this.refused.quarantine += 1;
      supervision.check(kind.kind, id);
    }
    try {
      const cell = passivation.acquire(kind.kind, id);
      if (cell.stale) {
        if (cell.gate !== undefined) throw this.#refuse('quarantine', 'Quarantined', 1);
        cell.replay(this.#journal);
      }
      return cell;
    } catch (error) {
      // A name that cannot be an id is a bug of the caller; no actor has failed.
      if (error instanceof GatewayError || !isName(id, ID_MAX_BYTES)) throw error;
      supervision.failed(kind.kind, id, command, error);
      throw new GatewayError(error instanceof DamagedRow ? 'Quarantined' : 'InternalError');
    }
  }

  #refuse(bound: keyof Refused, row: ErrorName, retryAfterSeconds?: number): GatewayError {
    this.refused[bound] += 1;
    return new GatewayError(row, undefined, retryAfterSeconds);
  }
}
