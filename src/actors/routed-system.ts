/**
 * The actor system of a node in a cluster: commands and queries go to the node that owns the actor, names and sessions are
 * read from the replica on this one. Callers do not see where an actor lives.
 */
import { GatewayError } from '../domain/errors.ts';
import type { Departure } from './departure.ts';
import type { ActorSystem, AnyKind, AskOptions, AuditRecord, IndexName, KindOf } from './runtime/actor.ts';
import { NotOwner } from './runtime/not-owner.ts';
import type { AnyProtocol, Tagged, Typed, TypeIn } from './runtime/protocol.ts';

/**
 * Volatile commands with the node that handles them. `replica`: on any node, by the state that it has applied. `owner`:
 * by the owner alone, whose memory holds what they need.
 */
const VOLATILE: Readonly<Record<string, Readonly<Record<string, 'replica' | 'owner'>>>> = {
  user: {
    enterSession: 'replica',
    checkSession: 'replica',
    upstreamCredential: 'replica',
    nickname: 'replica',
  },
  upload: { findPosition: 'owner' },
};

/** Options by which a repeated command is recognised: those of an ask that travel. Observers stay on their node. */
export type RepeatOptions = Pick<AskOptions, 'idempotencyKey' | 'fingerprint'>;

/** The answer of another node. `position`: what it had applied of the log by then. */
export type RemoteReply =
  | { readonly position: number; readonly value: unknown }
  /** A row of the error table, or `NotOwner`. */
  | { readonly position: number; readonly error: Error };

/** Other nodes. A call rejects when there is no answer: the command may have happened, or not. */
export interface Remote {
  ask(node: number, kind: string, id: string, command: Typed, options: RepeatOptions): Promise<RemoteReply>;
  query(node: number, kind: string, id: string, query: Typed): Promise<RemoteReply>;
  tell(node: number, kind: string, id: string, command: Typed): Promise<RemoteReply>;
  remembers(node: number, kind: string, id: string, idempotencyKey: string): Promise<RemoteReply>;
}

/** Facts about the cluster that this node knows. */
export interface Routing {
  readonly node: number;
  readonly departure: Pick<Departure, 'isLeaving' | 'hold'>;
  /** Owner of the actor as of what this node has applied; 0 while no node is in. */
  ownerOf(kind: string, id: string): number;
  /** Resolves when this node has applied the position. Rejects with a row of the error table when it will not. */
  appliedAtLeast(position: number): Promise<void>;
}

interface RoutedSystemOptions {
  readonly local: ActorSystem;
  readonly remote: Remote;
  readonly routing: Routing;
  /** All kinds: each of their volatile commands must be known here. */
  readonly kinds: readonly AnyKind[];
}

/** Seconds after which an owner is known again, as a rule. */
const RETRY_AFTER_SECONDS = 1;

/** The owner is unknown or does not answer: 503. The command may have happened; a repeat with its key finds the reply. */
export function ownerUnavailable(): GatewayError {
  return new GatewayError('Overloaded', undefined, RETRY_AFTER_SECONDS);
}

/** Throws `TypeError` for a kind with a volatile command that says nowhere which node handles it. */
export function createRoutedSystem(options: RoutedSystemOptions): ActorSystem {
  for (const { kind, volatileCommands } of options.kinds)
    for (const type of volatileCommands) {
      if (VOLATILE[kind]?.[type] === undefined)
        throw new TypeError(`${kind}.${type}: no node is named that handles it in a cluster`);
    }
  return new RoutedSystem(options);
}

class RoutedSystem implements ActorSystem {
  readonly #local: ActorSystem;
  readonly #remote: Remote;
  readonly #routing: Routing;

  constructor({ local, remote, routing }: RoutedSystemOptions) {
    this.#local = local;
    this.#remote = remote;
    this.#routing = routing;
  }

  ask<P extends AnyProtocol, T extends TypeIn<P['replies']>>(
    kind: KindOf<P>,
    id: string,
    command: Tagged<P['command'], T>,
    options?: AskOptions,
  ): Promise<P['replies'][T]>;
  ask(kind: AnyKind, id: string, command: Typed, options: AskOptions = {}): Promise<unknown> {
    const { idempotencyKey, fingerprint } = options;
    const repeat: RepeatOptions = {
      ...(idempotencyKey === undefined ? {} : { idempotencyKey }),
      ...(fingerprint === undefined ? {} : { fingerprint }),
    };
    return this.#route(kind, id, {
      here: () => this.#askLocal(kind, id, command, options),
      there: (node) => this.#remote.ask(node, kind.kind, id, command, repeat),
      waits: true,
    });
  }

  now<P extends AnyProtocol, T extends TypeIn<P['volatileReplies']>>(
    kind: KindOf<P>,
    id: string,
    command: Tagged<P['volatileCommand'], T>,
  ): P['volatileReplies'][T] {
    const isReplicated = VOLATILE[kind.kind]?.[command.type] === 'replica';
    if (!isReplicated && !this.#owns(kind, id)) throw ownerUnavailable();
    return this.#local.now(kind, id, command);
  }

  query<P extends AnyProtocol, T extends TypeIn<P['results']>>(
    kind: KindOf<P>,
    id: string,
    query: Tagged<P['query'], T>,
  ): P['results'][T] | Promise<P['results'][T]>;
  query(kind: AnyKind, id: string, query: Typed): unknown {
    if (this.#owns(kind, id) && !this.#routing.departure.isLeaving) return this.#queryLocal(kind, id, query);
    return this.#route(kind, id, {
      here: async () => this.#queryLocal(kind, id, query),
      there: (node) => this.#remote.query(node, kind.kind, id, query),
    });
  }

  remembers(kind: AnyKind, id: string, idempotencyKey: string): boolean | Promise<boolean> {
    const here = () => this.#local.remembers(kind, id, idempotencyKey);
    if (this.#owns(kind, id) && !this.#routing.departure.isLeaving) return here();
    return this.#route(kind, id, {
      here: async () => here(),
      there: (node) => this.#remote.remembers(node, kind.kind, id, idempotencyKey),
    }) as Promise<boolean>;
  }

  async tell<P extends AnyProtocol>(kind: KindOf<P>, id: string, command: P['command']): Promise<void> {
    await this.#route(kind, id, {
      here: () => this.#local.tell(kind, id, command),
      there: (node) => this.#remote.tell(node, kind.kind, id, command),
      waits: true,
    });
  }

  lookup(index: IndexName, key: string): string | undefined {
    return this.#local.lookup(index, key);
  }

  count(index: IndexName): number {
    return this.#local.count(index);
  }

  exists(kind: AnyKind, id: string): boolean {
    return this.#local.exists(kind, id);
  }

  audit(record: AuditRecord): void {
    this.#local.audit(record);
  }

  auditRefusal(record: AuditRecord, caller: string): void {
    this.#local.auditRefusal(record, caller);
  }

  auditFirst(record: AuditRecord): Promise<void> {
    return this.#local.auditFirst(record);
  }

  #owns(kind: AnyKind, id: string): boolean {
    return this.#routing.ownerOf(kind.kind, id) === this.#routing.node;
  }

  /** The types of a command, which the caller has checked, do not reach so far. */
  #askLocal(kind: AnyKind, id: string, command: Typed, options: AskOptions): Promise<unknown> {
    return this.#local.ask(kind, id, command as never, options);
  }

  #queryLocal(kind: AnyKind, id: string, query: Typed): unknown {
    return this.#local.query(kind, id, query as never);
  }

  #route(kind: AnyKind, id: string, call: RoutedCall): Promise<unknown> {
    return atOwner(this.#routing, kind.kind, id, call);
  }
}

interface RoutedCall {
  /** Runs at this node. */
  here(): Promise<unknown>;
  there(node: number): Promise<RemoteReply>;
  /** It writes: the answer waits until this node has applied it. */
  readonly waits?: true;
}

/** Asks the owner of an actor; if it no longer was, once more the owner that is known then. */
export async function atOwner(
  routing: Routing,
  kind: string,
  id: string,
  call: RoutedCall,
): Promise<unknown> {
  try {
    return await attempt(routing, kind, id, call);
  } catch (error) {
    if (!(error instanceof NotOwner)) throw error;
    return await attempt(routing, kind, id, call);
  }
}

async function attempt(
  routing: Routing,
  kind: string,
  id: string,
  { here, there, waits }: RoutedCall,
): Promise<unknown> {
  const owner = routing.ownerOf(kind, id);
  if (owner === routing.node) return await routing.departure.hold(here);
  if (owner === 0) throw ownerUnavailable();
  const reply = await there(owner);
  const isMoved = 'error' in reply && reply.error instanceof NotOwner;
  // A caller finds its own writes on this node; and who owns what is known as the other node knows it.
  if (waits === true || isMoved) await routing.appliedAtLeast(reply.position);
  if ('error' in reply) throw reply.error;
  return reply.value;
}
