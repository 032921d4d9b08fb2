/**
 * The turn: command in, writes, answers and slow calls out. Owns the order that keeps promises: judge, pack, write,
 * and only then change the state in memory; answers and calls leave behind the commit.
 */
import { GatewayError } from '../../domain/errors.ts';
import { isRefusal, Later, type Outcome, type Refusal, refuse } from './actor.ts';
import type { AskWaiter, Cell } from './cell.ts';
import type { Claims } from './claims.ts';
import type { Group } from './commit-group.ts';
import type { GroupCommit } from './group-commit.ts';
import type { Journal } from './journal/port.ts';
import type { Entry, Inbox } from './mailbox.ts';
import { Calls, type Chain } from './port-calls.ts';
import type { Ports } from './ports.ts';
import { type Draft, draftOf } from './prepared-turn.ts';
import { type RuntimeLimits, TurnView, type World } from './runtime-context.ts';
import type { Supervision } from './supervision.ts';

export interface TurnsOptions {
  readonly journal: Journal;
  readonly world: World;
  readonly limits: RuntimeLimits;
  readonly ports: Ports;
  readonly commit: GroupCommit;
  readonly claims: Claims;
  readonly supervision: Supervision;
  readonly inbox: Inbox;
  /** Rows of a group that are on disk now. */
  readonly onEntryDone: (entry: Entry) => void;
  readonly onEntryFailed: (entry: Entry, error: unknown) => void;
  readonly onTimerStored: (dueMs: number) => void;
}

const NOTHING: Outcome<unknown> = {};

export class Turns {
  readonly #options: TurnsOptions;
  readonly #calls: Calls;
  turns = 0;
  messagesRefused = 0;

  constructor(options: TurnsOptions) {
    this.#options = options;
    const { ports, limits, inbox } = options;
    const poke = (cell: Cell) => inbox.poke(cell.kind.kind, cell.id);
    this.#calls = new Calls({
      ports,
      callsPerActorMax: limits.callsPerActorMax,
      ended: (cell, chain, command) => {
        this.run(cell, command, chain);
        poke(cell);
      },
      failed: (cell, chain, error) => {
        this.#bug(cell, { type: 'next' }, chain, error);
        poke(cell);
      },
    });
  }

  run(cell: Cell, command: object, chain: Chain): void {
    const { world, claims, supervision } = this.#options;
    this.turns += 1;
    if (this.#options.commit.failed) {
      this.#takeWaiter(cell, chain)?.settle(undefined, new GatewayError('JournalUnavailable'));
      return;
    }
    if (cell.stale && !this.#revive(cell, command, chain)) return;
    let draft: Draft | undefined;
    let refusal: Refusal | undefined;
    let conflictPending = false;
    try {
      const outcome = cell.kind.decide(cell.state, command, new TurnView(world, chain.commandId));
      if (isRefusal(outcome)) refusal = outcome;
      else {
        const conflict = outcome.claims === undefined ? undefined : claims.conflict(outcome.claims);
        if (conflict === undefined) draft = this.#draft(cell, outcome, chain);
        else {
          refusal = { refuse: conflict.row };
          conflictPending = conflict.pending;
        }
      }
    } catch (error) {
      if (!(error instanceof GatewayError)) {
        this.#bug(cell, command, chain, error);
        return;
      }
      refusal = refusalOf(error);
    }
    supervision.succeeded(cell.kind.kind, cell.id);
    if (refusal !== undefined) this.#refused(cell, chain, refusal, conflictPending);
    else if (draft !== undefined) this.#apply(cell, chain, draft);
  }

  /** An instance that threw is replayed, once its wait is over and everything it wrote is on disk. */
  #revive(cell: Cell, command: object, chain: Chain): boolean {
    const { supervision, journal, inbox } = this.#options;
    try {
      supervision.check(cell.kind.kind, cell.id);
      if (cell.gate !== undefined) throw new GatewayError('Quarantined', undefined, 1);
      cell.replay(journal);
      return true;
    } catch (error) {
      if (!(error instanceof GatewayError)) {
        this.#bug(cell, command, chain, error);
        return false;
      }
      this.#takeWaiter(cell, chain)?.settle(undefined, error);
      const { entry } = chain;
      chain.entry = undefined;
      if (entry !== undefined) inbox.back(entry);
      return false;
    }
  }

  #draft(cell: Cell, outcome: Outcome<unknown>, chain: Chain): Draft {
    const { journal, inbox } = this.#options;
    const waiter = chain.waiter ?? cell.waiting?.get(chain.commandId);
    return draftOf({ cell, outcome, chain, waiter, journal, nextMailSeq: () => inbox.nextSeq() });
  }

  #refused(cell: Cell, chain: Chain, refusal: Refusal, conflictPending: boolean): void {
    if (chain.entry !== undefined) {
      this.messagesRefused += 1;
      this.#apply(cell, chain, this.#draft(cell, NOTHING, { ...chain, waiter: undefined }), refusal);
      return;
    }
    const waiter = this.#takeWaiter(cell, chain);
    if (waiter === undefined) return;
    const error = errorOf(refusal);
    if (conflictPending) this.#options.commit.hurry();
    const gate = conflictPending ? this.#options.commit.newestPending : cell.gate;
    if (gate === undefined) waiter.settle(undefined, error);
    else gate.gate(waiter, undefined, error);
  }

  #takeWaiter(cell: Cell, chain: Chain): AskWaiter | undefined {
    const waiter = chain.waiter ?? cell.waiting?.get(chain.commandId);
    chain.waiter = undefined;
    cell.waiting?.delete(chain.commandId);
    return waiter;
  }

  #apply(cell: Cell, chain: Chain, draft: Draft, refusal?: Refusal): void {
    const { commit, claims } = this.#options;
    const { outcome } = draft;
    const group = commit.open;
    cell.state = draft.state;
    cell.seq = draft.seq;
    cell.tail += draft.events;
    cell.remember(draft.ring, draft.timers);
    for (const operation of draft.operations) group.operations.push(operation);
    if (outcome.claims !== undefined) claims.write(outcome.claims, group);
    const wrote = draft.operations.length > 0 || (outcome.claims?.length ?? 0) > 0;
    const snapshotBytes = wrote && cell.tail >= cell.kind.limits.snapshotEvery ? this.snapshot(cell) : 0;
    if (wrote) {
      group.writtenBy(cell);
      this.#addEffects(group, draft);
    }
    if (draft.entry !== undefined) {
      const { entry } = draft;
      group.effects.push(() => this.#options.onEntryDone(entry));
      chain.entry = undefined;
    }
    this.#answer(cell, chain, draft, refusal);
    if (outcome.next !== undefined) this.#calls.start(cell, chain, outcome.next);
    if (wrote) commit.wrote(1, draft.sizeBytes + snapshotBytes);
  }

  #addEffects(group: Group, draft: Draft): void {
    const { inbox, onTimerStored } = this.#options;
    for (const row of draft.mail) group.effects.push(() => inbox.mail(row));
    for (const [, dueMs] of draft.timers) {
      if (dueMs !== null) group.effects.push(() => onTimerStored(dueMs));
    }
  }

  #answer(cell: Cell, chain: Chain, draft: Draft, refusal: Refusal | undefined): void {
    const { outcome } = draft;
    for (const answer of outcome.answers ?? []) {
      const own = answer.commandId === chain.commandId;
      const waiter = own ? this.#takeWaiter(cell, chain) : cell.waiting?.get(answer.commandId);
      if (waiter === undefined) continue;
      cell.waiting?.delete(answer.commandId);
      if ('refusal' in answer) cell.answer(waiter, undefined, errorOf(answer.refusal));
      else cell.answer(waiter, answer.reply, undefined);
    }
    const { reply } = outcome;
    const waiter = this.#takeWaiter(cell, chain);
    if (waiter === undefined) return;
    if (refusal !== undefined) cell.answer(waiter, undefined, errorOf(refusal));
    else if (reply instanceof Later) {
      waiter.later = true;
      cell.park(reply.commandId, waiter);
    } else if (reply !== undefined || (outcome.next === undefined && !waiter.later)) {
      cell.answer(waiter, reply, undefined);
    } else cell.park(chain.commandId, waiter);
  }

  /** Adds a snapshot to the open group, with the rows it covers to be deleted; bytes added. */
  snapshot(cell: Cell): number {
    const { journal, commit, supervision } = this.#options;
    cell.tail = 0;
    let row: unknown;
    try {
      row = journal.pack(cell.snapshotRow());
    } catch (error) {
      supervision.report(cell.kind.kind, cell.id, { type: 'snapshot' }, error);
      return 0;
    }
    const group = commit.open;
    group.operations.push({
      op: 'snapshot',
      kind: cell.kind.kind,
      id: cell.id,
      seq: cell.seq,
      fromSeq: cell.snapshotSeq + 1,
      row,
    });
    cell.snapshotSeq = cell.seq;
    group.writtenBy(cell);
    return journal.sizeBytes(row);
  }

  #bug(cell: Cell, command: object, chain: Chain, error: unknown): void {
    this.#options.supervision.failed(cell.kind.kind, cell.id, command, error);
    cell.stale = true;
    this.#takeWaiter(cell, chain)?.settle(undefined, new GatewayError('InternalError'));
    const { entry } = chain;
    chain.entry = undefined;
    if (entry !== undefined) this.#options.onEntryFailed(entry, error);
  }
}

export function errorOf({ refuse, detail, retryAfterSeconds, scope }: Refusal): GatewayError {
  return new GatewayError(refuse, detail, retryAfterSeconds, scope);
}

function refusalOf({ row, detail, retryAfterSeconds, scope }: GatewayError): Refusal {
  return refuse(row, detail, retryAfterSeconds, scope);
}
