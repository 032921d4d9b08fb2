/**
 * The actor system as a sampled request sees it: a span for each command, with the turn and the commit that its answer
 * waits for below it, and calls of ports below the turn. Kinds and commands are named, ids never.
 */
import type {
  ActorSystem,
  AnyKind,
  AskObserver,
  AskOptions,
  AuditRecord,
  IndexName,
  KindOf,
} from '../../actors/runtime/actor.ts';
import type { Ports } from '../../actors/runtime/ports.ts';
import type { AnyProtocol, Tagged, Typed, TypeIn } from '../../actors/runtime/protocol.ts';
import { GatewayError } from '../../domain/errors.ts';
import type { TraceSpan } from './span.ts';
import { portsBelow } from './traced-ports.ts';

export class TracedActors implements ActorSystem {
  readonly #actors: ActorSystem;
  readonly #parent: TraceSpan;

  constructor(actors: ActorSystem, parent: TraceSpan) {
    this.#actors = actors;
    this.#parent = parent;
  }

  /** The same system below another span. */
  below(parent: TraceSpan): TracedActors {
    return new TracedActors(this.#actors, parent);
  }

  ask<P extends AnyProtocol, T extends TypeIn<P['replies']>>(
    kind: KindOf<P>,
    id: string,
    command: Tagged<P['command'], T>,
    options?: AskOptions,
  ): Promise<P['replies'][T]> {
    const span = this.#open('ask', kind, command);
    const observer = new CommandObserver(span);
    const reply = this.#actors.ask(kind, id, command, { ...options, observer });
    return ended(reply, (error) => observer.end(error));
  }

  now<P extends AnyProtocol, T extends TypeIn<P['volatileReplies']>>(
    kind: KindOf<P>,
    id: string,
    command: Tagged<P['volatileCommand'], T>,
  ): P['volatileReplies'][T] {
    const span = this.#open('now', kind, command);
    try {
      return this.#actors.now(kind, id, command);
    } finally {
      span.end();
    }
  }

  query<P extends AnyProtocol, T extends TypeIn<P['results']>>(
    kind: KindOf<P>,
    id: string,
    query: Tagged<P['query'], T>,
  ): P['results'][T] | Promise<P['results'][T]> {
    const span = this.#open('query', kind, query);
    let result: P['results'][T] | Promise<P['results'][T]> | undefined;
    try {
      result = this.#actors.query(kind, id, query);
    } finally {
      // An answer that is no promise waits for no commit.
      if (!(result instanceof Promise)) span.end();
    }
    if (!(result instanceof Promise)) return result;
    const commit = openCommit(span);
    return ended(result, (error) => {
      commit.end();
      span.end(error);
    });
  }

  tell<P extends AnyProtocol>(kind: KindOf<P>, id: string, command: P['command']): Promise<void> {
    const span = this.#open('tell', kind, command);
    const commit = openCommit(span);
    return ended(this.#actors.tell(kind, id, command), (error) => {
      commit.end();
      span.end(error);
    });
  }

  auditFirst(record: AuditRecord): Promise<void> {
    const span = openCommit(this.#parent);
    span.set({ 'gatehouse.audit.event': record.event });
    return ended(this.#actors.auditFirst(record), (error) => span.end(error));
  }

  remembers(kind: AnyKind, id: string, idempotencyKey: string): boolean | Promise<boolean> {
    return this.#actors.remembers(kind, id, idempotencyKey);
  }

  lookup(index: IndexName, key: string): string | undefined {
    return this.#actors.lookup(index, key);
  }

  count(index: IndexName): number {
    return this.#actors.count(index);
  }

  exists(kind: AnyKind, id: string): boolean {
    return this.#actors.exists(kind, id);
  }

  audit(record: AuditRecord): void {
    this.#actors.audit(record);
  }

  auditRefusal(record: AuditRecord, caller: string): void {
    this.#actors.auditRefusal(record, caller);
  }

  #open(way: string, { kind }: AnyKind, { type }: Typed): TraceSpan {
    const span = this.#parent.child(`${way} ${kind}.${type}`);
    span.set({ 'gatehouse.actor.kind': kind, 'gatehouse.actor.command': type });
    return span;
  }
}

/** Returns traced actors for a sampled request, and the system itself for any other. */
export function actorsBelow(actors: ActorSystem, parent: TraceSpan | undefined): ActorSystem {
  return parent === undefined ? actors : new TracedActors(actors, parent);
}

/** The spans below a command: its turn, the port calls in it, its commit and the write of that. */
class CommandObserver implements AskObserver {
  readonly #span: TraceSpan;
  readonly #turn: TraceSpan;
  #commit: TraceSpan | undefined;
  #write: TraceSpan | undefined;
  #group: { readonly commands: number } | undefined;

  constructor(span: TraceSpan) {
    this.#span = span;
    this.#turn = span.child('turn');
  }

  gated(group: { readonly commands: number }): void {
    this.#turn.end();
    this.#group = group;
    this.#commit = openCommit(this.#span);
  }

  writing(): void {
    this.#write = this.#commit?.child('write');
  }

  portsOf(ports: Ports): Ports {
    return portsBelow(ports, this.#turn);
  }

  end(error: string | undefined): void {
    this.#turn.end();
    this.#write?.end();
    this.#commit?.set({ 'db.operation.batch.size': this.#group?.commands });
    this.#commit?.end();
    this.#span.end(error);
  }
}

/** Named and described as the database conventions do. */
function openCommit(parent: TraceSpan): TraceSpan {
  const span = parent.child('commit');
  span.set({ 'db.system.name': 'lmdb', 'db.operation.name': 'commit' });
  return span;
}

/** Calls `end` before the caller sees the result, with the error of a failure. */
function ended<Reply>(reply: Promise<Reply>, end: (errorType?: string) => void): Promise<Reply> {
  return reply.then(
    (value) => {
      end();
      return value;
    },
    (error: unknown) => {
      end(error instanceof GatewayError ? error.row : 'bug');
      throw error;
    },
  );
}
