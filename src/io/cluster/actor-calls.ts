/** Calls of actors between nodes: what a node asks of the owner, and how the owner answers. */
import type { Remote, RemoteReply, RepeatOptions } from '../../actors/routed-system.ts';
import type { ActorSystem, AnyKind } from '../../actors/runtime/actor.ts';
import { ownStrings } from '../../actors/runtime/journal/own-strings.ts';
import { NotOwner } from '../../actors/runtime/not-owner.ts';
import type { Typed } from '../../actors/runtime/protocol.ts';
import { textOf } from '../verb-arguments.ts';
import type { Verbs } from './rpc.ts';

interface ActorVerbsOptions {
  /** The system of this node alone: a call travels once. */
  readonly local: Pick<ActorSystem, 'ask' | 'query' | 'tell' | 'remembers'>;
  readonly kinds: readonly AnyKind[];
  /** Does this node own the actor? */
  readonly owns: (kind: string, id: string) => boolean;
  /** Throws a row of the error table while this node must answer nothing: its lease is over, or it is stopping. */
  readonly admit: () => void;
}

export const ACTOR_VERBS = ['ask', 'query', 'tell', 'remembers'] as const;

/** Verbs that other nodes may call. Throws TypeError for arguments that no node of this version sends. */
export function actorVerbs({ local, kinds, owns, admit }: ActorVerbsOptions): Verbs {
  const byName = new Map(kinds.map((kind) => [kind.kind, kind]));
  const find = (name: unknown, id: unknown): { kind: AnyKind; id: string } => {
    const kind = byName.get(textOf(name));
    if (kind === undefined) throw new TypeError(`there is no kind ${String(name)}`);
    const actorId = textOf(id);
    // First: a node that has left has no lease, and the caller is to ask the new owner.
    if (!owns(kind.kind, actorId)) throw new NotOwner();
    admit();
    return { kind, id: actorId };
  };
  return {
    ask(name, actorId, command, idempotencyKey, fingerprint) {
      const { kind, id } = find(name, actorId);
      return local.ask(kind, id, commandOf(command) as never, {
        ...(typeof idempotencyKey === 'string' ? { idempotencyKey } : {}),
        ...(typeof fingerprint === 'string' ? { fingerprint } : {}),
      });
    },
    query(name, actorId, query) {
      const { kind, id } = find(name, actorId);
      return local.query(kind, id, commandOf(query) as never);
    },
    tell(name, actorId, command) {
      const { kind, id } = find(name, actorId);
      return local.tell(kind, id, commandOf(command));
    },
    remembers(name, actorId, idempotencyKey) {
      const { kind, id } = find(name, actorId);
      return local.remembers(kind, id, textOf(idempotencyKey));
    },
  };
}

function commandOf(value: unknown): Typed {
  if (typeof value !== 'object' || value === null || typeof (value as Partial<Typed>).type !== 'string')
    throw new TypeError('expected a command');
  // The actor may keep texts of it: they must not keep the frame that they came in.
  return ownStrings(value) as Typed;
}

/** Makes a call on a node; rejects at once when there is no link to it. */
type CallNode = (node: number, verb: string, ...args: readonly unknown[]) => Promise<RemoteReply>;

export class RemoteActors implements Remote {
  readonly #call: CallNode;

  constructor(call: CallNode) {
    this.#call = call;
  }

  ask(
    node: number,
    kind: string,
    id: string,
    command: Typed,
    { idempotencyKey, fingerprint }: RepeatOptions,
  ): Promise<RemoteReply> {
    return this.#call(node, 'ask', kind, id, command, idempotencyKey ?? null, fingerprint ?? null);
  }

  query(node: number, kind: string, id: string, query: Typed): Promise<RemoteReply> {
    return this.#call(node, 'query', kind, id, query);
  }

  tell(node: number, kind: string, id: string, command: Typed): Promise<RemoteReply> {
    return this.#call(node, 'tell', kind, id, command);
  }

  remembers(node: number, kind: string, id: string, idempotencyKey: string): Promise<RemoteReply> {
    return this.#call(node, 'remembers', kind, id, idempotencyKey);
  }
}
