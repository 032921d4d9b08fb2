/**
 * The turn: command in, writes, answers and slow calls out. Owns the order that keeps promises: judge, pack, write,
 * and only then change the state in memory; answers and calls leave behind the commit.
 */

import { GatewayError, invariant } from '../../domain/errors.ts';
import { type AnyOutcome, isRefusal, Later, type Refusal, refuse } from './actor.ts';
import type { AskWaiter, Cell, Chain } from './cell.ts';
import type { Claims } from './claims.ts';
import type { ClusterView } from './cluster-view.ts';
import type { CommitGroup, OpenGate, Verdicts } from './commit-group.ts';
import type { Effect, EffectOf } from './effects.ts';
import type { GroupCommit } from './group-commit.ts';
import { type Journal, type Operation, VERDICT } from './journal/port.ts';
import type { Entry, Mailboxes } from './mailbox.ts';
import { NotOwner } from './not-owner.ts';
import type { Passivation } from './passivation.ts';
import { PortCallRunner } from './port-calls.ts';
import type { Ports } from './ports.ts';
import { type PreparedTurn, prepareTurn } from './prepared-turn.ts';
import type { Typed } from './protocol.ts';
import type { GatedTurns } from './replication/gated-turns.ts';
import { type RuntimeContext, type RuntimeLimits, TurnView } from './runtime-context.ts';
import type { Supervision } from './supervision.ts';

interface TurnsOptions {
  readonly journal: Journal;
  readonly context: RuntimeContext;
  readonly limits: RuntimeLimits;
  readonly ports: Ports;
  readonly commit: GroupCommit;
  readonly claims: Claims;
  readonly supervision: Supervision;
  readonly mailboxes: Mailboxes;
  readonly onEntryFailed: (entry: Entry, error: unknown) => void;
  /** Absent: there is one node. */
  readonly cluster: Pick<ClusterView, 'owns'> | undefined;
  /** Turns that other nodes of a cluster may not know yet. */
  readonly gatedTurns: GatedTurns | undefined;
  readonly passivation: Pick<Passivation, 'live' | 'drop'>;
}

const NOTHING: AnyOutcome = {};
const NO_COMMANDS: NonNullable<Cell['held']> = [];

export class Turns implements Verdicts<PreparedTurn, Effect> {
  readonly #options: TurnsOptions;
  readonly #portCalls: PortCallRunner;
  turns = 0;
  messagesRefused = 0;

  constructor(options: TurnsOptions) {
    this.#options = options;
    const { ports, limits, mailboxes } = options;
    const resume = (cell: Cell) => mailboxes.resumeActor(cell.kind.kind, cell.id);
    this.#portCalls = new PortCallRunner({
      ports,
      callsPerActorMax: limits.callsPerActorMax,
      ended: (cell, chain, command) => {
        this.run(cell, command, chain);
        resume(cell);
      },
      failed: (cell, chain, error) => {
        this.#bug(cell, { type: 'next' }, chain, error);
        resume(cell);
      },
    });
  }

  run(cell: Cell, command: Typed, chain: Chain): void {
    const { context, claims, supervision } = this.#options;
    this.turns += 1;
    if (this.#options.commit.failed) {
      this.#takeWaiter(cell, chain)?.settle(undefined, new GatewayError('JournalUnavailable'));
      return;
    }
    if (cell.held !== undefined) {
      cell.held.push({ command, chain });
      return;
    }
    if (cell.gone) {
      this.#moved(cell, chain);
      return;
    }
    if (cell.stale && !this.#revive(cell, command, chain)) return;
    let prepared: PreparedTurn | undefined;
    let refusal: Refusal | undefined;
    let conflictPending = false;
    try {
      const outcome = cell.kind.decide(cell.state, command, new TurnView(context, chain.commandId));
      if (isRefusal(outcome)) refusal = outcome;
      else {
        const conflict = outcome.claims === undefined ? undefined : claims.conflict(outcome.claims);
        if (conflict === undefined) prepared = this.#prepare(cell, outcome, chain);
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
    else if (prepared !== undefined) this.#write(prepared);
  }

  /** An instance that threw is replayed, once its wait is over and everything it wrote is on disk. */
  #revive(cell: Cell, command: Typed, chain: Chain): boolean {
    const { supervision, journal, mailboxes } = this.#options;
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
      if (entry !== undefined) mailboxes.back(entry);
      return false;
    }
  }

  #prepare(cell: Cell, outcome: AnyOutcome, chain: Chain, refusal?: Refusal): PreparedTurn {
    const { journal, mailboxes } = this.#options;
    const waiter = chain.waiter ?? cell.waiting?.get(chain.commandId);
    const nextMailSeq = () => mailboxes.nextSeq();
    return prepareTurn({ cell, outcome, chain, waiter, refusal, journal, nextMailSeq });
  }

  #refused(cell: Cell, chain: Chain, refusal: Refusal, conflictPending: boolean): void {
    if (chain.entry !== undefined) {
      this.messagesRefused += 1;
      this.#write(this.#prepare(cell, NOTHING, chain, refusal));
      return;
    }
    const waiter = this.#takeWaiter(cell, chain);
    if (waiter === undefined) return;
    const error = errorOf(refusal);
    const gate = conflictPending ? this.#options.commit.newestPending : cell.gate;
    if (gate === undefined) waiter.settle(undefined, error);
    else {
      gate.gate(waiter, undefined, error);
      this.#options.commit.flushSoon(gate);
    }
  }

  #takeWaiter(cell: Cell, chain: Chain): AskWaiter | undefined {
    const waiter = chain.waiter ?? cell.waiting?.get(chain.commandId);
    chain.waiter = undefined;
    cell.waiting?.delete(chain.commandId);
    return waiter;
  }

  #write(prepared: PreparedTurn): void {
    const { commit, claims } = this.#options;
    const { cell } = prepared;
    const isUnawaited = prepared.outcome.unawaited === true;
    if (prepared.operations.length === 0) {
      this.#finish(prepared, commit.open);
      if (!isUnawaited && cell.gate !== undefined) commit.flushSoon(cell.gate);
      return;
    }
    if (prepared.claims.length > 0) claims.write(prepared.claims, commit.open);
    const written = commit.add(prepared, this);
    if (isUnawaited && written !== undefined) commit.wroteUnawaited(1, prepared.sizeBytes);
    else commit.wrote(1, prepared.sizeBytes);
  }

  /** Every later command of its actor waits too. */
  waits({ cell }: PreparedTurn): void {
    invariant(cell.held === undefined, 'one turn of an actor at a time waits for its verdict');
    cell.held = [];
  }

  /** Called at once on a single node, with the commit in a cluster. */
  judged(
    prepared: PreparedTurn,
    verdict: number,
    written: CommitGroup<Effect> | undefined,
    openGate: OpenGate | undefined,
  ): void {
    const { cell, chain } = prepared;
    const { held = NO_COMMANDS } = cell;
    cell.held = undefined;
    if (verdict === VERDICT.applied) this.#applied(prepared, written, openGate);
    else if (verdict === VERDICT.fenced || verdict === VERDICT.stale) {
      this.#takeWaiter(cell, chain)?.settle(undefined, new NotOwner());
      this.evict(cell);
      const { entry } = chain;
      chain.entry = undefined;
      if (entry !== undefined) this.#options.mailboxes.outdated(entry);
    } else {
      const claim = prepared.claims[verdict - VERDICT.conflict];
      this.#refused(cell, chain, { refuse: claim?.onConflict ?? 'InternalError' }, false);
    }
    if (openGate === undefined) return;
    for (const { command, chain } of held) this.run(cell, command, chain);
    this.#options.mailboxes.resumeActor(cell.kind.kind, cell.id);
  }

  /** The state moves on; what follows from the turn waits for the rows, or for other nodes, or for nothing. */
  #applied(
    prepared: PreparedTurn,
    written: CommitGroup<Effect> | undefined,
    openGate: OpenGate | undefined,
  ): void {
    const { cell } = prepared;
    if (cell.gone) this.#evictNewerInstance(cell);
    const rows = prepared.seq - cell.seq;
    invariant(rows === 0 || rows === 1, 'a turn starts from the state that the turn before it left');
    cell.state = prepared.state;
    cell.seq = prepared.seq;
    cell.tail += prepared.events;
    cell.remember(prepared.ring, prepared.timers);
    if (prepared.outcome.erases === true) cell.erased();
    if (cell.tail >= cell.kind.limits.snapshotEvery && !cell.gone) this.snapshot(cell);
    if (written !== undefined) {
      written.writtenBy(cell, prepared.outcome.unawaited !== true);
      addRowEffects(written, prepared);
    } else if (openGate !== undefined && isGated(cell, prepared)) openGate().writtenBy(cell, true);
    this.#finish(prepared, written);
  }

  /** The process ends: nothing is known of a turn that waits for its verdict, and later ones do not run. */
  lost({ cell, chain }: PreparedTurn, error: GatewayError): void {
    const { held = [] } = cell;
    cell.held = undefined;
    for (const each of [chain, ...held.map(({ chain }) => chain)]) {
      this.#takeWaiter(cell, each)?.settle(undefined, error);
    }
  }

  /**
   * Hands out the results of a turn: its entry once `written` is on disk; answers, a notification and slow work behind
   * the gate of the instance.
   */
  #finish(prepared: PreparedTurn, written: CommitGroup<Effect> | undefined): void {
    const { commit } = this.#options;
    const { cell, chain, outcome, entry } = prepared;
    if (entry !== undefined) {
      commit.after(written, { type: 'done', entry });
      chain.entry = undefined;
    }
    this.#answer(prepared);
    const { notify, next } = outcome;
    if (notify !== undefined) commit.after(cell.gate, { type: 'notify', cell, notify });
    if (next === undefined) return;
    cell.calls += 1;
    commit.after(cell.gate, { type: 'call', cell, chain, next });
  }

  /** Another node owns the actor, or went on with it: the instance leaves, and nothing of these commands has happened. */
  evict(cell: Cell): void {
    const { held = [] } = cell;
    cell.gone = true;
    cell.held = undefined;
    this.#options.passivation.drop(cell);
    for (const { chain } of held) this.#moved(cell, chain);
    cell.abandon('Overloaded');
  }

  /**
   * Another node, or a former instance, may have written what this one starts from. When that was gated, nothing that
   * follows from it leaves before all nodes have applied it: also a reply that is only repeated.
   */
  takeOver(cell: Cell): void {
    const { commit, cluster, gatedTurns } = this.#options;
    const { kind } = cell.kind;
    if (cluster?.owns(kind, cell.id) !== true) return;
    const position = gatedTurns?.positionOf(kind, cell.id);
    if (position !== undefined) commit.gateAt(position, cell);
  }

  /**
   * The actor left this node and came back while a turn of its former instance was on the way. That turn counts, so an
   * instance that was loaded before it is out of date.
   */
  #evictNewerInstance(former: Cell): void {
    const newerInstance = this.#options.passivation.live(former.kind.kind, former.id);
    if (newerInstance !== undefined && newerInstance.seq <= former.seq) this.evict(newerInstance);
  }

  /** A command whose actor is no longer here. Its durable row is at the new owner. */
  #moved(cell: Cell, chain: Chain): void {
    this.#takeWaiter(cell, chain)?.settle(undefined, new NotOwner());
    const { entry } = chain;
    chain.entry = undefined;
    if (entry !== undefined) this.#options.mailboxes.back(entry);
  }

  /** Notifies after the commit. A notification that throws is reported; the turn is not undone. */
  notify({ cell, notify }: EffectOf<'notify'>): void {
    const { supervision, ports } = this.#options;
    try {
      notify(ports);
    } catch (error) {
      supervision.report(cell.kind.kind, cell.id, { type: 'notify' }, error);
    }
  }

  /** Starts a call after the commit. */
  call({ cell, chain, next }: EffectOf<'call'>): void {
    this.#portCalls.start(cell, chain, next);
  }

  #answer({ cell, chain, outcome, refusal }: PreparedTurn): void {
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
      if (outcome.unawaited === true) answerUnawaited(cell, waiter, reply);
      else cell.answer(waiter, reply, undefined);
    } else cell.park(chain.commandId, waiter);
  }

  /** Adds a snapshot to the open group, with the rows it covers to be deleted. False when it cannot be stored. */
  snapshot(cell: Cell): boolean {
    const { journal, commit, supervision } = this.#options;
    cell.tail = 0;
    let row: unknown;
    try {
      row = journal.pack(cell.snapshotRow());
    } catch (error) {
      supervision.report(cell.kind.kind, cell.id, { type: 'snapshot' }, error);
      return false;
    }
    const { seq, id } = cell;
    const { kind } = cell.kind;
    const operation: Operation = { op: 'snapshot', kind, id, seq, fromSeq: cell.snapshotSeq + 1, row };
    commit.open.sizeBytes += journal.sizeBytes(row);
    commit.add({ kind, id, operations: [operation], claims: [] })?.writtenBy(cell, false);
    cell.snapshotSeq = seq;
    return true;
  }

  #bug(cell: Cell, command: Typed, chain: Chain, error: unknown): void {
    this.#options.supervision.failed(cell.kind.kind, cell.id, command, error);
    cell.stale = true;
    this.#takeWaiter(cell, chain)?.settle(undefined, new GatewayError('InternalError'));
    const { entry } = chain;
    chain.entry = undefined;
    if (entry !== undefined) this.#options.onEntryFailed(entry, error);
  }
}

function addRowEffects({ effects }: CommitGroup<Effect>, { mail, timers }: PreparedTurn): void {
  for (const row of mail) effects.push({ type: 'message', row });
  for (const [, dueMs] of timers) if (dueMs !== null) effects.push({ type: 'timer', dueMs });
}

/**
 * Do the answers of a turn leave once all nodes have applied it? One that was waited for tells what another actor has done,
 * whose own node may be slower to apply that than this one.
 */
function isGated(cell: Cell, { claims, outcome }: PreparedTurn): boolean {
  return claims.length > 0 || cell.kind.gated === true || (outcome.answers ?? []).length > 0;
}

function answerUnawaited(cell: Cell, waiter: AskWaiter, reply: unknown): void {
  const gate = cell.awaitedGate;
  if (gate === undefined) waiter.settle(reply, undefined);
  else gate.gate(waiter, reply, undefined);
}

export function errorOf({ refuse, detail, retryAfterSeconds, scope }: Refusal): GatewayError {
  return new GatewayError(refuse, detail, retryAfterSeconds, scope);
}

function refusalOf({ row, detail, retryAfterSeconds, scope }: GatewayError): Refusal {
  return refuse(row, detail, retryAfterSeconds, scope);
}
