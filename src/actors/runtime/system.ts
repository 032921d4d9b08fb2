/** Public API of the actor system: ask, tell, query, now, drain, close. */
import { GatewayError } from '../../domain/errors.ts';
import type { SettingsReader } from '../../domain/settings/settings.ts';
import { type Clock, DAY_MS, MINUTE_MS } from '../../domain/time.ts';
import {
  type ActorSystem,
  type AnyKind,
  type AskOptions,
  type AuditRecord,
  type IndexName,
  isRefusal,
  type KindOf,
} from './actor.ts';
import { Administration } from './administration.ts';
import { Admission } from './admission.ts';
import type { CallAudit } from './audit/call-audit.ts';
import { AskWaiter, Cell } from './cell.ts';
import type { Claims } from './claims.ts';
import type { AppliedListener } from './follower.ts';
import { requireSame } from './idempotency.ts';
import { checkName, ID_MAX_BYTES, IDEMPOTENCY_KEY_MAX_BYTES, isName } from './journal/plain-data.ts';
import { ofNoActor } from './journal/port.ts';
import type { Ownership } from './ownership.ts';
import type { AnyProtocol, Tagged, Typed, TypeIn } from './protocol.ts';
import { DEFAULT_LIMITS, type RuntimeLimits, type Schedule, TurnView } from './runtime-context.ts';
import { errorOf } from './turns.ts';
import { compose, type Wiring, type WiringOptions } from './wiring.ts';

interface ActorSystemOptions extends WiringOptions {
  readonly limits?: Partial<RuntimeLimits>;
  /** Receiver of audit records that belong to no turn; the journal unless given. */
  readonly callAudit?: CallAudit;
  /** Decides which actors this node works for; all unless given. */
  readonly ownership?: Ownership;
}

/** Interval at which a drain checks whether it is done. */
const DRAIN_INTERVAL_MS = 10;

/** Starts the runtime over an open journal. Throws `JournalTooNew` when a kind's rows are newer than its code. */
export function createActorSystem(options: ActorSystemOptions): RunningSystem {
  return new RunningSystem(options);
}

export class RunningSystem implements ActorSystem {
  readonly #options: ActorSystemOptions;
  readonly #wiring: Wiring;
  readonly #stopRetention: () => void;
  readonly #admission: Admission;
  /** Quarantine, dead letters, the audit log, metadata: for the admin panel and other components. */
  readonly administration: Administration;
  /**
   * Calls the listener for every released name of an index, such as that of an ended session. Returns a function that
   * stops it.
   */
  readonly onRelease: Claims['onRelease'] = (...which) => this.#wiring.claims.onRelease(...which);

  /** Calls the listener when rows of a kind were applied, of any node. Returns a function that stops it. */
  onApplied(kind: AnyKind, listener: AppliedListener): () => void {
    return this.#wiring.follower?.onApplied(kind.kind, listener) ?? (() => undefined);
  }

  constructor(options: ActorSystemOptions) {
    this.#options = options;
    const limits = { ...DEFAULT_LIMITS, ...options.limits };
    this.#wiring = compose(options, limits);
    this.#admission = new Admission(options.journal, this.#wiring, limits);
    this.administration = new Administration(options.journal, this.#wiring, options.callAudit);
    this.#stopRetention = retainAudit({ administration: this.administration, ...options });
  }

  ask<P extends AnyProtocol, T extends TypeIn<P['replies']>>(
    kind: KindOf<P>,
    id: string,
    command: Tagged<P['command'], T>,
    options?: AskOptions,
  ): Promise<P['replies'][T]>;
  ask<Reply>(kind: AnyKind, id: string, command: Typed, options?: AskOptions): Promise<Reply> {
    return new Promise<Reply>((resolve, reject) => {
      try {
        const cell = this.#admission.admit(kind, id, command);
        const { idempotencyKey: key, fingerprint, observer } = options ?? {};
        if (key !== undefined && !isName(key, IDEMPOTENCY_KEY_MAX_BYTES)) {
          throw new GatewayError('InvalidInput', 'Idempotency-Key');
        }
        const { count, turns, nextCommandId } = this.#wiring;
        const settle = resolve as (reply: unknown) => void;
        const kept = key === undefined ? undefined : cell.ring?.get(key);
        if (kept !== undefined) {
          requireSame(kept[2], fingerprint);
          cell.answer(
            new AskWaiter(cell, count, undefined, settle, reject, undefined, observer),
            kept[1],
            undefined,
          );
          if (cell.gate !== undefined) this.#wiring.commit.flushSoon(cell.gate);
          return;
        }
        const first = key === undefined ? undefined : cell.unanswered?.get(key);
        requireSame(first?.fingerprint, fingerprint);
        const waiter = new AskWaiter(cell, count, key, settle, reject, fingerprint, observer);
        if (first === undefined)
          turns.run(cell, command, { commandId: nextCommandId(), waiter, entry: undefined });
      } catch (error) {
        reject(error);
      }
    });
  }

  now<P extends AnyProtocol, T extends TypeIn<P['volatileReplies']>>(
    kind: KindOf<P>,
    id: string,
    command: Tagged<P['volatileCommand'], T>,
  ): P['volatileReplies'][T];
  now<Reply>(kind: AnyKind, id: string, command: Typed): Reply {
    const cell = this.#admission.acquire(kind, id, command);
    const { context, supervision } = this.#wiring;
    let reply: unknown;
    try {
      reply = kind.decideNow(cell.state, cell.volatile, command, new TurnView(context, '', cell.lastUsedMs));
    } catch (error) {
      if (error instanceof GatewayError) throw error;
      supervision.failed(kind.kind, id, command, error);
      cell.stale = true;
      throw new GatewayError('InternalError');
    }
    if (isRefusal(reply)) throw errorOf(reply);
    return reply as Reply;
  }

  query<P extends AnyProtocol, T extends TypeIn<P['results']>>(
    kind: KindOf<P>,
    id: string,
    query: Tagged<P['query'], T>,
  ): P['results'][T] | Promise<P['results'][T]>;
  query<Reply>(kind: AnyKind, id: string, query: Typed): Reply | Promise<Reply> {
    const { passivation, supervision, context } = this.#wiring;
    this.#admission.requireLease();
    let cell: Cell;
    if (passivation.live(kind.kind, id) === undefined && !this.exists(kind, id)) {
      cell = new Cell(kind, id);
      cell.state = kind.initial(id);
      cell.volatile = kind.volatile?.(id);
    } else cell = this.#admission.acquire(kind, id, query);
    let reply: unknown;
    try {
      const view = { nowMs: context.clock(), settings: context.settings };
      reply = kind.query(cell.state, query, cell.volatile, view);
    } catch (error) {
      if (error instanceof GatewayError) throw error;
      supervision.report(kind.kind, id, query, error);
      throw new GatewayError('InternalError');
    }
    if (isRefusal(reply)) throw errorOf(reply);
    const { gate } = cell;
    if (gate === undefined) return reply as Reply;
    return new Promise<Reply>((resolve, reject) => {
      const settle = (value: unknown, error: Error | undefined) =>
        error === undefined ? resolve(value as Reply) : reject(error);
      gate.gate({ settle }, reply, undefined);
      this.#wiring.commit.flushSoon(gate);
    });
  }

  /**
   * Queries the rows of the journal, without a look at the instance in memory, its commits and the lease: for values
   * that are kept in memory and follow the log. Throws `DamagedRow`.
   */
  stored<P extends AnyProtocol, T extends TypeIn<P['results']>>(
    kind: KindOf<P>,
    id: string,
    query: Tagged<P['query'], T>,
  ): P['results'][T];
  stored(kind: AnyKind, id: string, query: Typed): unknown {
    const cell = new Cell(kind, id);
    cell.replay(this.#options.journal);
    const { clock, settings } = this.#wiring.context;
    return kind.query(cell.state, query, cell.volatile, { nowMs: clock(), settings });
  }

  remembers(kind: AnyKind, id: string, idempotencyKey: string): boolean {
    if (!this.exists(kind, id)) return false;
    const { ring, unanswered } = this.#admission.acquire(kind, id, { type: 'remembers' });
    return ring?.get(idempotencyKey) !== undefined || unanswered?.has(idempotencyKey) === true;
  }

  tell<P extends AnyProtocol>(kind: KindOf<P>, id: string, command: P['command']): Promise<void>;
  tell(kind: AnyKind, id: string, command: Typed): Promise<void> {
    return new Promise<void>((resolve, reject) => {
      try {
        this.#admission.check(kind, command);
        checkName('an actor id', id, ID_MAX_BYTES);
        const { mailboxes, commit, count } = this.#wiring;
        const { journal } = this.#options;
        const key = { toKind: kind.kind, toId: id, seq: mailboxes.nextSeq(), fromKind: '', fromId: '' };
        const row = journal.pack(command);
        count.pending += 1;
        const settle = (_: unknown, error: Error | undefined) => {
          count.pending -= 1;
          if (error === undefined) resolve();
          else reject(error);
        };
        commit.addRows(ofNoActor([{ op: 'mail', key, row }]), {
          written: { type: 'message', row: { ...key, command } },
          waiter: { settle },
        });
        commit.wrote(1, journal.sizeBytes(row));
      } catch (error) {
        reject(error);
      }
    });
  }

  lookup(index: IndexName, key: string): string | undefined {
    this.#admission.requireLease();
    return this.#wiring.claims.lookup(index, key);
  }

  count(index: IndexName): number {
    return this.#options.journal.count(index);
  }

  exists(kind: AnyKind, id: string): boolean {
    const cell = this.#wiring.passivation.live(kind.kind, id);
    if (cell !== undefined && !cell.stale) return cell.seq > 0;
    return isName(id, ID_MAX_BYTES) && this.#options.journal.has(kind.kind, id);
  }

  audit(record: AuditRecord): void {
    this.administration.audit(record);
  }

  auditRefusal(record: AuditRecord, caller: string): void {
    this.administration.auditRefusal(record, caller);
  }

  auditFirst(record: AuditRecord): Promise<void> {
    return this.administration.auditFirst(record);
  }

  /** Figures for metrics and tests. */
  counters() {
    const { commit, turns, mailboxes, passivation, supervision, deliveries, count, timers } = this.#wiring;
    return {
      pending: count.pending,
      backlog: commit.backlog,
      groups: commit.groupsCommitted,
      commands: commit.commandsCommitted,
      turns: turns.turns,
      delivered: mailboxes.delivered,
      mailboxPending: mailboxes.size,
      messagesRefused: turns.messagesRefused,
      deadLettered: deliveries.deadLettered,
      timersUnderWay: timers.underWay,
      live: passivation.sizes(),
      passivated: passivation.passivated,
      bugs: supervision.bugs,
      quarantines: supervision.quarantines,
      auditDropped: this.administration.auditDropped,
      refused: { ...this.#admission.refused },
      damagedRows: this.#options.journal.damagedRows,
      walkedBytes: this.#options.journal.walkedBytes,
    };
  }

  /** The journal takes writes: no commit has failed. */
  get healthy(): boolean {
    return !this.#wiring.commit.failed;
  }

  /** Nothing is waiting: no command, no commit, no delivery. */
  get idle(): boolean {
    const { commit, count, mailboxes } = this.#wiring;
    return count.pending === 0 && commit.idle && mailboxes.size === 0;
  }

  /** Lets every idle actor leave memory; one with a long tail leaves after its snapshot is on disk. */
  passivate(): void {
    this.#wiring.passivation.sweep(Number.POSITIVE_INFINITY, true);
  }

  /** Refuses new commands, waits for those under way. False when `timeoutMs` passed first. */
  drain(timeoutMs: number): Promise<boolean> {
    this.#admission.stop();
    this.#wiring.mailboxes.stop();
    this.#wiring.timers.stop();
    this.#stopRetention();
    const endMs = this.#options.clock() + timeoutMs;
    return new Promise((resolve) => {
      const check = () => {
        const { commit, count } = this.#wiring;
        commit.flushSoon();
        if (count.pending === 0 && commit.idle) resolve(true);
        else if (commit.failed || this.#options.clock() >= endMs) resolve(false);
        else this.#options.schedule.timer(DRAIN_INTERVAL_MS, check);
      };
      check();
    });
  }

  /** Stops everything, lets what was written reach the disk, and closes the journal. */
  async close(): Promise<void> {
    this.#admission.stop();
    this.#wiring.stop();
    this.#stopRetention();
    const { commit } = this.#wiring;
    while (!commit.idle && !commit.failed) {
      commit.flushSoon();
      await new Promise<void>((resolve) => this.#options.schedule.immediate(resolve));
    }
    commit.halt();
    for (const cell of this.#wiring.passivation.cells()) cell.abandon('Stopping');
    await this.administration.finishAudit();
    await this.#options.journal.close();
  }
}

/** Wait between batches while there is more to remove, so that other commits interleave. */
const BATCH_WAIT_MS = 100;

interface AuditRetentionOptions {
  readonly administration: Pick<Administration, 'tidyAudit' | 'auditLeftOut'>;
  readonly settings: SettingsReader;
  readonly clock: Clock;
  readonly schedule: Pick<Schedule, 'timer'>;
}

/** Starts it; what it returns stops it. */
function retainAudit({ administration, settings, clock, schedule }: AuditRetentionOptions): () => void {
  const tidy = () => {
    const nowMs = clock();
    administration.auditLeftOut(nowMs);
    const beforeMs = nowMs - settings.get('AuditDays') * DAY_MS;
    const more = administration.tidyAudit(beforeMs);
    cancel = schedule.timer(more ? BATCH_WAIT_MS : MINUTE_MS, tidy);
  };
  let cancel = schedule.timer(MINUTE_MS, tidy);
  return () => cancel();
}
