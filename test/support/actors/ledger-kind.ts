/**
 * The actor kind of the simulation. Its state is a ledger of what happened to it, so that afterwards every promise
 * of the runtime can be checked against what the clients saw.
 */
import {
  defineActor,
  Later,
  type Outcome,
  type Refusal,
  refuse,
  type Turn,
} from '../../../src/actors/runtime/actor.ts';
import { type Asked, messageTo, type Protocol, receiver } from '../../../src/actors/runtime/protocol.ts';

export interface LedgerState {
  /** Operations of clients, in order of application. */
  readonly applied: readonly number[];
  readonly sent: readonly number[];
  readonly received: readonly number[];
  readonly names: readonly string[];
  /** Operation that set each timer that has not fired. */
  readonly timers: Readonly<Record<string, number>>;
  readonly fired: readonly number[];
  /** Timers that were replaced or cancelled before they fired. */
  readonly dropped: readonly number[];
  /** Operations that wait for `settle`, with the command that asked. */
  readonly queue: readonly { readonly operation: number; readonly commandId: string }[];
}

export type LedgerEvent =
  | { readonly type: 'applied'; readonly operation: number }
  | { readonly type: 'sent'; readonly operation: number }
  | { readonly type: 'received'; readonly operation: number }
  | { readonly type: 'named'; readonly name: string }
  | { readonly type: 'unnamed'; readonly name: string }
  | { readonly type: 'timed'; readonly name: string; readonly operation: number }
  | { readonly type: 'cancelled'; readonly name: string }
  | { readonly type: 'fired'; readonly name: string; readonly operation: number }
  | { readonly type: 'queued'; readonly operation: number; readonly commandId: string }
  | { readonly type: 'settled' };

/** A message to a ledger. */
type LedgerMessage =
  | { readonly type: 'receive'; readonly operation: number }
  | { readonly type: 'fetch'; readonly operation: number }
  | { readonly type: 'poison'; readonly operation: number };

/** After which a message whose slow call was late makes it again. */
const AGAIN_MS = 1_000;

const LEDGER = receiver<LedgerMessage>('ledger');

export type LedgerCommand =
  | { readonly type: 'apply'; readonly operation: number }
  /** An operation that a thread that stood still did not do; `again`: of a message, which stays. */
  | { readonly type: 'late'; readonly operation: number; readonly again: boolean }
  | { readonly type: 'work'; readonly operation: number; readonly work: () => Promise<LedgerCommand> }
  | {
      readonly type: 'send';
      readonly operation: number;
      readonly toId: string;
      readonly how: LedgerMessage['type'];
    }
  | LedgerMessage
  | { readonly type: 'take'; readonly operation: number; readonly name: string; readonly id: string }
  | { readonly type: 'drop'; readonly operation: number; readonly name: string; readonly id: string }
  | { readonly type: 'time'; readonly operation: number; readonly name: string; readonly delayMs: number }
  | { readonly type: 'cancel'; readonly operation: number; readonly name: string }
  | { readonly type: 'fire'; readonly operation: number; readonly name: string }
  | { readonly type: 'queue'; readonly operation: number }
  | { readonly type: 'settle'; readonly operation: number };

/** The reply to each is its operation; `work` has that of the command it resolves with. */
type LedgerReplies = {
  readonly [T in Exclude<LedgerCommand['type'], 'receive' | 'fetch' | 'fire' | 'late'>]: number;
};

type LedgerProtocol = Protocol<
  LedgerCommand,
  LedgerReplies,
  { readonly type: 'state' },
  { readonly state: LedgerState },
  { readonly type: 'hit' },
  { readonly hit: number }
>;

/** A command that a client asks. */
export type LedgerRequest = Asked<LedgerProtocol>;

/** The slow call of `fetch`, injected by the simulation: resolves with `{ type: 'receive' }`. */
export type Fetch = (operation: number) => Promise<LedgerCommand>;

type Decision = Outcome<LedgerEvent, number, LedgerCommand, number>;
/** Effect of a command that a client applies: `applied` and the reply are added. */
type Effect = Omit<Decision, 'reply'>;

/**
 * `notified` is called for each `apply` that has taken effect. `clock`: of audit records, the same at every node; without it
 * there are none.
 */
export function ledgerKind(fetch: Fetch, notified: (operation: number) => void, clock?: () => number) {
  const applying = <Command extends { readonly operation: number }>(effectOf: EffectOf<Command>) =>
    recordedBy(clock, effectOf);
  return defineActor<LedgerState, LedgerProtocol, LedgerEvent, { hits: number }>({
    kind: LEDGER,
    version: 1,
    limits: { mailbox: 6, snapshotEvery: 7, idleMs: 1_000 },
    initial: () => ({
      applied: [],
      sent: [],
      received: [],
      names: [],
      timers: {},
      fired: [],
      dropped: [],
      queue: [],
    }),
    volatile: () => ({ hits: 0 }),
    query: { state: (state) => state },
    decideNow: {
      hit(_state, volatile) {
        volatile.hits += 1;
        return volatile.hits;
      },
    },
    decide: {
      work: (_state, { work }) => ({ next: () => work() }),
      fetch: (_state, { operation }) => ({ next: () => fetch(operation) }),
      late: (_state, { operation, again }, { nowMs }) =>
        again
          ? {
              timers: [
                {
                  name: `again ${operation}`,
                  dueMs: nowMs + AGAIN_MS,
                  command: { type: 'fetch', operation },
                },
              ],
            }
          : refuse('TaskTimedOut'),
      poison() {
        throw new Error('planted');
      },
      receive: (_state, { operation }) => ({ events: [{ type: 'received', operation }] }),
      fire: (_state, { name, operation }) => ({ events: [{ type: 'fired', name, operation }] }),
      queue(state, { operation }, { commandId }) {
        if (state.applied.includes(operation)) return { reply: operation };
        return { events: [{ type: 'queued', operation, commandId }], reply: new Later(commandId) };
      },
      apply: applying((_state, { operation }) => ({ notify: () => notified(operation) })),
      send: applying((_state, { operation, toId, how }) => ({
        events: [{ type: 'sent', operation }],
        send: [messageTo(LEDGER, toId, { type: how, operation })],
      })),
      take: applying(take),
      drop: applying(drop),
      time: applying((_state, { operation, name, delayMs }, { nowMs }) => ({
        events: [{ type: 'timed', name, operation }],
        timers: [{ name, dueMs: nowMs + delayMs, command: { type: 'fire', name, operation } }],
      })),
      cancel: applying((_state, { name }) => ({
        events: [{ type: 'cancelled', name }],
        timers: [{ name, dueMs: null }],
      })),
      settle: applying(({ queue }) => ({
        events: [{ type: 'settled' }],
        answers: queue.map(({ commandId, operation }) => ({ commandId, reply: operation })),
      })),
    },
    evolve,
  });
}

type CommandOf<T> = Extract<LedgerCommand, { type: T }>;

type EffectOf<Command> = (state: LedgerState, command: Command, turn: Turn) => Effect | Refusal;

function recordedBy<Command extends { readonly operation: number }>(
  clock: (() => number) | undefined,
  effectOf: EffectOf<Command>,
) {
  return (state: LedgerState, command: Command, turn: Turn): Decision | Refusal => {
    const effect = effectOf(state, command, turn);
    if ('refuse' in effect) return effect;
    const { operation } = command;
    return {
      ...effect,
      ...(clock !== undefined && {
        audit: [{ utcMs: clock(), event: 'key_added', userId: null, fields: { operation } }],
      }),
      events: [{ type: 'applied', operation }, ...(effect.events ?? [])],
      reply: operation,
    };
  };
}

function take({ names }: LedgerState, { name, id }: CommandOf<'take'>): Effect {
  return {
    events: names.includes(name) ? [] : [{ type: 'named', name }],
    claims: [{ index: 'publicKey', key: name, owner: id, onConflict: 'KeyAlreadyRegistered' }],
  };
}

function drop({ names }: LedgerState, { name, id }: CommandOf<'drop'>): Effect | Refusal {
  if (!names.includes(name)) return refuse('KeyNotFound');
  return {
    events: [{ type: 'unnamed', name }],
    claims: [{ index: 'publicKey', key: name, owner: null, replaces: id, onConflict: 'Forbidden' }],
  };
}

function evolve(state: LedgerState, event: LedgerEvent): LedgerState {
  switch (event.type) {
    case 'applied':
      return { ...state, applied: [...state.applied, event.operation] };
    case 'sent':
      return { ...state, sent: [...state.sent, event.operation] };
    case 'received':
      return { ...state, received: [...state.received, event.operation] };
    case 'named':
      return { ...state, names: [...state.names, event.name] };
    case 'unnamed':
      return { ...state, names: state.names.filter((name) => name !== event.name) };
    case 'timed': {
      const before = state.timers[event.name];
      const dropped = before === undefined ? state.dropped : [...state.dropped, before];
      return { ...state, dropped, timers: { ...state.timers, [event.name]: event.operation } };
    }
    case 'cancelled': {
      const { [event.name]: before, ...timers } = state.timers;
      return { ...state, timers, dropped: before === undefined ? state.dropped : [...state.dropped, before] };
    }
    case 'fired': {
      const { [event.name]: expected, ...others } = state.timers;
      const timers = expected === event.operation ? others : state.timers;
      return { ...state, timers, fired: [...state.fired, event.operation] };
    }
    case 'queued': {
      const queue = state.queue.filter(({ operation }) => operation !== event.operation);
      return { ...state, queue: [...queue, { operation: event.operation, commandId: event.commandId }] };
    }
    case 'settled':
      return {
        ...state,
        queue: [],
        applied: [...state.applied, ...state.queue.map(({ operation }) => operation)],
      };
  }
}
