/**
 * The actor kind of the simulation. Its state is a ledger of what happened to it, so that afterwards every promise
 * of the runtime can be checked against what the clients saw.
 */
import { defineActor, Later, type Outcome, refuse } from '../../../src/actors/runtime/actor.ts';

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

export type LedgerCommand =
  | { readonly type: 'apply'; readonly operation: number }
  | { readonly type: 'work'; readonly operation: number; readonly work: () => Promise<object> }
  | { readonly type: 'send'; readonly operation: number; readonly toId: string; readonly how: string }
  | { readonly type: 'receive'; readonly operation: number }
  | { readonly type: 'fetch'; readonly operation: number }
  | { readonly type: 'poison'; readonly operation: number }
  | { readonly type: 'take'; readonly operation: number; readonly name: string; readonly id: string }
  | { readonly type: 'drop'; readonly operation: number; readonly name: string; readonly id: string }
  | { readonly type: 'time'; readonly operation: number; readonly name: string; readonly delayMs: number }
  | { readonly type: 'cancel'; readonly operation: number; readonly name: string }
  | { readonly type: 'fire'; readonly operation: number; readonly name: string }
  | { readonly type: 'queue'; readonly operation: number }
  | { readonly type: 'settle'; readonly operation: number };

/** The slow call of `fetch`, injected by the simulation: resolves with `{ type: 'receive' }`. */
export type Fetch = (operation: number) => Promise<object>;

export function ledgerKind(fetch: Fetch) {
  return defineActor<LedgerState, LedgerCommand, LedgerEvent, object, { hits: number }>({
    kind: 'ledger',
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
    query: (state) => state,
    decideNow: (_state, volatile) => {
      volatile.hits += 1;
      return volatile.hits;
    },
    decide(state, command, turn) {
      switch (command.type) {
        case 'work':
          return { next: () => command.work() };
        case 'fetch':
          return { next: () => fetch(command.operation) };
        case 'poison':
          throw new Error('planted');
        case 'receive':
          return { events: [{ type: 'received', operation: command.operation }] };
        case 'fire':
          return { events: [{ type: 'fired', name: command.name, operation: command.operation }] };
        case 'queue':
          if (state.applied.includes(command.operation)) return { reply: command.operation };
          return {
            events: [{ type: 'queued', operation: command.operation, commandId: turn.commandId }],
            reply: new Later(turn.commandId),
          };
        default: {
          const applied: LedgerEvent = { type: 'applied', operation: command.operation };
          const outcome = decideSimple(state, command, turn.nowMs);
          if ('refuse' in outcome) return outcome;
          return { ...outcome, events: [applied, ...(outcome.events ?? [])], reply: command.operation };
        }
      }
    },
    evolve,
  });
}

type Simple = Extract<
  LedgerCommand,
  { type: 'apply' | 'send' | 'take' | 'drop' | 'time' | 'cancel' | 'settle' }
>;

function decideSimple(state: LedgerState, command: Simple, nowMs: number) {
  const { operation } = command;
  switch (command.type) {
    case 'apply':
      return {} satisfies Outcome<LedgerEvent>;
    case 'send': {
      const message = { toKind: 'ledger', toId: command.toId, command: { type: command.how, operation } };
      return { events: [{ type: 'sent', operation }], send: [message] } satisfies Outcome<LedgerEvent>;
    }
    case 'take': {
      const { name, id } = command;
      const claim = { index: 'publicKey', key: name, owner: id, onConflict: 'KeyAlreadyRegistered' } as const;
      const events = state.names.includes(name) ? [] : [{ type: 'named', name } as const];
      return { events, claims: [claim] } satisfies Outcome<LedgerEvent>;
    }
    case 'drop': {
      const { name, id } = command;
      if (!state.names.includes(name)) return refuse('KeyNotFound');
      const claim = {
        index: 'publicKey',
        key: name,
        owner: null,
        replaces: id,
        onConflict: 'Forbidden',
      } as const;
      return { events: [{ type: 'unnamed', name }], claims: [claim] } satisfies Outcome<LedgerEvent>;
    }
    case 'time': {
      const { name, delayMs } = command;
      const timer = { name, dueMs: nowMs + delayMs, command: { type: 'fire', name, operation } };
      return { events: [{ type: 'timed', name, operation }], timers: [timer] } satisfies Outcome<LedgerEvent>;
    }
    case 'cancel': {
      const { name } = command;
      const timer = { name, dueMs: null };
      return { events: [{ type: 'cancelled', name }], timers: [timer] } satisfies Outcome<LedgerEvent>;
    }
    case 'settle': {
      const answers = state.queue.map((waiting) => ({
        commandId: waiting.commandId,
        reply: waiting.operation,
      }));
      return { events: [{ type: 'settled' }], answers } satisfies Outcome<LedgerEvent>;
    }
  }
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
