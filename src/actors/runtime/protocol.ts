/** Typed actor protocol: which commands and queries a kind takes, and the reply of each by its type. */
export interface Typed {
  readonly type: string;
}

/**
 * The protocol of a kind: commands with the reply of each command type, queries with their results, volatile commands
 * with their replies. A command type without a reply is a message: it cannot be asked.
 */
export interface Protocol<
  Command extends Typed,
  Replies extends object,
  Query extends Typed = never,
  Results extends object = object,
  VolatileCommand extends Typed = never,
  VolatileReplies extends object = object,
> {
  readonly command: Command;
  readonly replies: Replies;
  readonly query: Query;
  readonly results: Results;
  readonly volatileCommand: VolatileCommand;
  readonly volatileReplies: VolatileReplies;
}

export type AnyProtocol = Protocol<Typed, object, Typed, object, Typed, object>;

export type TypeIn<Replies> = Extract<keyof Replies, string>;

/** The member of the union with this type. The first half lets TypeScript infer `T` from the argument. */
export type Tagged<Union, T extends string> = { readonly type: T } & Extract<Union, { readonly type: T }>;

export type ReplyOf<Replies, T> = T extends keyof Replies ? Replies[T] : null | undefined;

/** The commands of a kind that can be asked. */
export type Asked<P extends AnyProtocol, T extends TypeIn<P['replies']> = TypeIn<P['replies']>> = Tagged<
  P['command'],
  T
>;

/** The reply to any command of a kind; unknown where the kind is. */
export type AnyReply<Replies> = [keyof Replies] extends [never] ? unknown : Replies[keyof Replies];

/** Names the receiver of messages by its kind and the commands it takes, where importing the kind would be a cycle. */
export interface Receiver<Command extends Typed> {
  readonly kind: string;
  /** Never set: carries the type of the commands. */
  readonly command?: Command;
}

export function receiver<Command extends Typed>(kind: string): Receiver<Command> {
  return { kind };
}

export function messageTo<Command extends Typed>(
  to: Receiver<Command>,
  toId: string,
  command: NoInfer<Command>,
): { readonly toKind: string; readonly toId: string; readonly command: Command } {
  return { toKind: to.kind, toId, command };
}
