/**
 * The actor contract. A kind is a table row: how state starts, how a command is decided, how an event changes the
 * state. `decide` is pure and synchronous; what it returns is committed before anything leaves (write before answer).
 */
import type { AuditEvent } from '../../domain/audit.ts';
import type { ErrorName } from '../../domain/errors.ts';
import type { ScopeCode } from '../../domain/limits/quotas.ts';
import type { SettingsReader } from '../../domain/settings/settings.ts';
import type { Ports } from './ports.ts';
import type { AnyProtocol, AnyReply, Receiver, ReplyOf, Tagged, Typed, TypeIn } from './protocol.ts';

/** Everything a turn may know of the outside. No clock and no randomness of its own. */
export interface Turn {
  readonly nowMs: number;
  /** Id of the command under decision; name it in `answers` to reply to it from a later turn. */
  readonly commandId: string;
  readonly settings: SettingsReader;
  /** Other nodes serve the same actors: what they remember without writing it down is not known here. */
  readonly hasPeers: boolean;
  /** A fresh gateway id (domain/ids.ts), decimal. Unique over restarts. */
  newId(): string;
  randomBytes(length: number): Uint8Array;
}

/** Context of a query beside the state: the node that answers it has its own clock and settings. */
export type QueryView = Pick<Turn, 'nowMs' | 'settings'>;

/** An expected failure: nothing is written, the caller gets the row. */
export interface Refusal {
  readonly refuse: ErrorName;
  readonly detail?: string;
  readonly retryAfterSeconds?: number;
  /** Scope of a limit: see `GatewayError`. */
  readonly scope?: ScopeCode;
}

/** A unique name across actors, written in the same commit as the events. */
export interface Claim {
  readonly index: IndexName;
  readonly key: string;
  /** Stored value: the owner, in whatever form the index uses; null releases the name. */
  readonly owner: string | null;
  /** The value that may be replaced (or released). Without it any present value of another owner is a conflict. */
  readonly replaces?: string;
  /** The row the caller gets when the name is taken. */
  readonly onConflict: ErrorName;
}

/** Indexes of the journal: name to owner. */
export type IndexName =
  | 'publicKey'
  | 'credentialId'
  | 'sessionHash'
  | 'sidHash'
  /** SHA-256 of a contact sync token. */
  | 'contactSync'
  | 'appId'
  | 'crc32'
  | 'contact'
  /** File id of an open draft to the draft's slot. */
  | 'draft';

/** A durable message: a mailbox row in the sender's commit, removed in the receiver's. */
export interface Message {
  readonly toKind: string;
  readonly toId: string;
  readonly command: Typed;
}

/** A named timer of this actor; setting the same name again replaces it, `dueMs: null` cancels it. */
export type Timer<Command extends Typed = never> =
  | { readonly name: string; readonly dueMs: number; readonly command: Command }
  | { readonly name: string; readonly dueMs: null; readonly command?: never };

/** The reply comes from a later turn of this actor that lists `commandId` in its `answers`. */
export class Later {
  readonly commandId: string;
  constructor(commandId: string) {
    this.commandId = commandId;
  }
}

/** Reply to a command that was answered with `Later`. */
export type Answer<Reply = never> =
  | { readonly commandId: string; readonly reply: Reply }
  | { readonly commandId: string; readonly refusal: Refusal };

/** A record of the audit log. It rides in the group commit of the turn. */
export interface AuditRecord {
  readonly utcMs: number;
  /** Says which ring of the log keeps it. */
  readonly event: AuditEvent;
  readonly userId: string | null;
  readonly fields: Readonly<Record<string, string | number | boolean | null>>;
  /** The node that a record of no turn comes from, in a cluster. */
  readonly node?: string;
}

/**
 * Effects of a turn. `FollowUp`: commands that come back to this actor, of a timer or as the result of `next`.
 * `Answered`: replies to earlier commands.
 */
export interface Outcome<Event, Reply = null, FollowUp extends Typed = never, Answered = never> {
  /** Committed before anything below leaves. */
  readonly events?: readonly Event[];
  readonly claims?: readonly Claim[];
  readonly send?: readonly Message[];
  readonly timers?: readonly Timer<FollowUp>[];
  readonly audit?: readonly AuditRecord[];
  /** Undefined with `next`: the turn that decides the command of `next` replies instead. */
  readonly reply?: Reply | Later;
  readonly answers?: readonly Answer<Answered>[];
  /**
   * The reply does not wait for the commit: a restart finds what these events say without the journal. They join the
   * next group, after 50 ms at most. Only for events; their number must be bounded while commits are slow.
   */
  readonly unawaited?: true;
  /**
   * In the same commit a snapshot of the new state takes the place of all rows of the actor, and first replies to
   * Idempotency-Keys are forgotten: nothing remains of what the events took out of the state.
   */
  readonly erases?: true;
  /** Slow work. Starts after the commit; what it resolves with comes back as a command. It never rejects. */
  readonly next?: (ports: Ports) => Promise<FollowUp>;
  /** A volatile notification: called once after the commit, lost in a crash, followed by no turn. */
  readonly notify?: (ports: Ports) => void;
}

/** The outcome of any kind. */
export type AnyOutcome = Outcome<unknown, unknown, Typed, unknown>;

interface ActorLimits {
  /** Commands waiting for this actor; one more is refused with `Overloaded`. */
  readonly mailbox: number;
  readonly snapshotEvery: number;
  /** An actor idle for so long leaves memory. */
  readonly idleMs: number;
}

/**
 * One kind of actor. `Volatile` is state that is never written: limiter windows, last-seen times. It starts anew
 * whenever the actor is loaded.
 */
interface ActorKind<State, Command extends Typed, Event, Query, Volatile, P> {
  readonly kind: string;
  /** Never set: carries the protocol to the types of `ask`, `now`, `query` and `tell`. */
  readonly protocol?: P;
  /** Version of the rows written. A newer one on disk refuses to start; older ones pass through `upcast`. */
  readonly version: number;
  readonly limits: ActorLimits;
  initial(id: string): State;
  volatile?(id: string): Volatile;
  /** Pure and synchronous. */
  decide(state: State, command: Command, turn: Turn): Outcome<Event, unknown, Command, unknown> | Refusal;
  /** Pure and total: used live and on replay. */
  evolve(state: State, event: Event): State;
  query(state: State, query: Query, volatile: Volatile, view: QueryView): unknown;
  /** Volatile commands: synchronous, no event. The answer goes straight to the caller; a Refusal is thrown there. */
  decideNow(state: State, volatile: Volatile, command: Typed, turn: Turn): unknown;
  readonly volatileCommands: readonly string[];
  /** Commands that free space: they are served when the storage quota is used up (deletions, logouts). */
  frees?(command: Command): boolean;
  /** In a cluster the answer of every turn that writes waits until all nodes have applied it, not of turns with claims alone. */
  readonly gated?: true;
  /** Rows of an earlier version to the present form: pure and kept for ever. */
  upcast?(row: { version: number; events?: unknown[]; state?: unknown }): {
    events?: unknown[];
    state?: unknown;
  };
  /** The state of a snapshot as memory is to hold it; as it was decoded unless given. Pure. */
  restored?(state: State, id: string): State;
}

/** Any kind, for code that holds all of them. Method parameters are bivariant, so every kind fits. */
export type AnyKind = ActorKind<unknown, Typed, unknown, Typed, unknown, AnyProtocol>;

/** A kind that takes the commands of `P`. */
export type KindOf<P extends AnyProtocol> = AnyKind & { readonly protocol?: P };

/** Outcomes that a turn of this kind may have. */
type OutcomeOf<Event, P extends AnyProtocol, Reply> = Outcome<
  Event,
  Reply,
  P['command'],
  AnyReply<P['replies']>
>;

export interface AskOptions {
  /** Repeats with the same key within the actor's ring of 64 get the first reply again. */
  readonly idempotencyKey?: string;
  /**
   * A short text that is the same for repeats of one command alone. A repeat with another is `IdempotencyKeyReused`;
   * where either has none, nothing is compared.
   */
  readonly fingerprint?: string;
  /** Observer for traces. */
  readonly observer?: AskObserver;
}

export interface AskObserver {
  /** The answer is known and waits for a commit; `commands`: of the commit, final once it is on disk. */
  gated(group: { readonly commands: number }): void;
  /** The journal writes that commit now. */
  writing(): void;
  /** The ports that slow work of the command gets. */
  portsOf(ports: Ports): Ports;
}

/** Public API of the actor system. Refusals reject (ask, query) or throw (now) as `GatewayError`. */
export interface ActorSystem {
  /** Durable command: resolves when the commit that holds its events is on disk. */
  ask<P extends AnyProtocol, T extends TypeIn<P['replies']>>(
    kind: KindOf<P>,
    id: string,
    command: Tagged<P['command'], T>,
    options?: AskOptions,
  ): Promise<P['replies'][T]>;
  /** Volatile command: synchronous, nothing written. */
  now<P extends AnyProtocol, T extends TypeIn<P['volatileReplies']>>(
    kind: KindOf<P>,
    id: string,
    command: Tagged<P['volatileCommand'], T>,
  ): P['volatileReplies'][T];
  /** Answered at once, or after the commit that is pending for this actor. Creates nothing. */
  query<P extends AnyProtocol, T extends TypeIn<P['results']>>(
    kind: KindOf<P>,
    id: string,
    query: Tagged<P['query'], T>,
  ): P['results'][T] | Promise<P['results'][T]>;
  /** Is there a first reply for this Idempotency-Key, so that an `ask` with it repeats nothing? Creates nothing. */
  remembers(kind: AnyKind, id: string, idempotencyKey: string): boolean | Promise<boolean>;
  /** A durable message from outside: resolves when its mailbox row is on disk. */
  tell<P extends AnyProtocol>(kind: KindOf<P>, id: string, command: P['command']): Promise<void>;
  /** Owner of a name, with the group that is being committed taken into account. */
  lookup(index: IndexName, key: string): string | undefined;
  /** Names in an index that are on disk: live sessions, for example. */
  count(index: IndexName): number;
  /** Does this actor have any state, live or on disk? Creates nothing. */
  exists(kind: AnyKind, id: string): boolean;
  /** An audit record that belongs to no turn; rides in the next group commit and is not awaited. */
  audit(record: AuditRecord): void;
  /** A refusal of an unauthenticated caller, recorded within the budget of `caller`, an address. */
  auditRefusal(record: AuditRecord, caller: string): void;
  /** An audit record, resolved when it is on disk: for what must leave a trace before it happens. */
  auditFirst(record: AuditRecord): Promise<void>;
}

export function refuse(
  row: ErrorName,
  detail?: string,
  retryAfterSeconds?: number,
  scope?: ScopeCode,
): Refusal {
  return {
    refuse: row,
    ...(detail === undefined ? {} : { detail }),
    ...(retryAfterSeconds === undefined ? {} : { retryAfterSeconds }),
    ...(scope === undefined ? {} : { scope }),
  };
}

/**
 * Prefix of the ids of all commands of one run of the program: distinguishes a message of this run from an older one.
 */
export function runOf(commandId: string): string {
  return commandId.slice(0, commandId.indexOf('.'));
}

export function isRefusal(value: unknown): value is Refusal {
  return typeof value === 'object' && value !== null && 'refuse' in value;
}

/** One handler for each command type; each returns the reply that the protocol declares for it. */
export type Handlers<State, P extends AnyProtocol, Event> = {
  readonly [T in P['command']['type']]: (
    state: State,
    command: Extract<P['command'], { readonly type: T }>,
    turn: Turn,
  ) => OutcomeOf<Event, P, ReplyOf<P['replies'], T>> | Refusal;
};

type QueryHandlers<State, P extends AnyProtocol, Volatile> = {
  readonly [T in P['query']['type']]: (
    state: State,
    query: Extract<P['query'], { readonly type: T }>,
    volatile: Volatile,
    view: QueryView,
  ) => ReplyOf<P['results'], T> | Refusal;
};

type VolatileHandlers<State, P extends AnyProtocol, Volatile> = {
  readonly [T in P['volatileCommand']['type']]: (
    state: State,
    volatile: Volatile,
    command: Extract<P['volatileCommand'], { readonly type: T }>,
    turn: Turn,
  ) => ReplyOf<P['volatileReplies'], T> | Refusal;
};

/** `kind`: the name in the journal. A kind that takes messages names the receiver, which knows them. */
type Definition<State, Event, P extends AnyProtocol, Volatile> = Omit<
  ActorKind<State, P['command'], Event, P['query'], Volatile, P>,
  'kind' | 'decide' | 'query' | 'decideNow' | 'volatileCommands' | 'frees' | 'protocol'
> & {
  readonly kind: string | Receiver<P['command']>;
  readonly decide: Handlers<State, P, Event>;
  readonly query?: QueryHandlers<State, P, Volatile>;
  readonly decideNow?: VolatileHandlers<State, P, Volatile>;
  /** Commands that free space: they are served when the storage quota is used up. */
  readonly frees?: (command: P['command']) => boolean;
};

/** Defines a kind by tables of handlers. */
export function defineActor<State, P extends AnyProtocol, Event, Volatile = undefined>(
  definition: Definition<State, Event, P, Volatile>,
): ActorKind<State, P['command'], Event, P['query'], Volatile, P>;
export function defineActor(definition: Definition<unknown, unknown, AnyProtocol, unknown>): AnyKind {
  const kind = typeof definition.kind === 'string' ? definition.kind : definition.kind.kind;
  const decideBy = tableOf<DecideHandler>(definition.decide);
  const queryBy = tableOf<QueryHandler>(definition.query);
  const decideNowBy = tableOf<VolatileHandler>(definition.decideNow);
  return {
    ...definition,
    kind,
    decide: (state, command, turn) => handlerOf(decideBy, kind, command)(state, command, turn),
    query: (state, asked, volatile, view) => handlerOf(queryBy, kind, asked)(state, asked, volatile, view),
    decideNow: (state, volatile, command, turn) =>
      handlerOf(decideNowBy, kind, command)(state, volatile, command, turn),
    volatileCommands: Object.keys(decideNowBy),
  };
}

type DecideHandler = Handlers<unknown, AnyProtocol, unknown>[string];
type QueryHandler = QueryHandlers<unknown, AnyProtocol, unknown>[string];
type VolatileHandler = VolatileHandlers<unknown, AnyProtocol, unknown>[string];
type Table<Handler> = Readonly<Record<string, Handler | undefined>>;

/** Without a prototype, so that no name of Object.prototype is a command. */
function tableOf<Handler>(handlers: Table<Handler> | undefined): Table<Handler> {
  return Object.assign(Object.create(null) as object, handlers);
}

function handlerOf<Handler>(handlers: Table<Handler>, kind: string, { type }: Typed): Handler {
  const handler = handlers[type];
  if (handler === undefined) throw new TypeError(`${kind} has no command ${type}`);
  return handler;
}
