/** An actor kind that uses every part of the contract; the runtime's tests and its simulation run on it. */
import { type Claim, defineActor, Later, refuse } from '../../../src/actors/runtime/actor.ts';

export interface AccountState {
  readonly balance: number;
  /** Command ids of deposits that wait for `approve`. */
  readonly waiting: readonly string[];
  readonly received: readonly string[];
  readonly fired: readonly string[];
}

export type AccountEvent =
  | { readonly type: 'deposited'; readonly amount: number }
  | { readonly type: 'queued'; readonly commandId: string }
  | { readonly type: 'approved' }
  | { readonly type: 'received'; readonly from: string }
  | { readonly type: 'fired'; readonly name: string };

export type AccountCommand =
  | { readonly type: 'deposit'; readonly amount: number }
  | { readonly type: 'withdraw'; readonly amount: number }
  | { readonly type: 'claim'; readonly name: string; readonly replaces?: string }
  | { readonly type: 'release'; readonly name: string }
  | { readonly type: 'send'; readonly toId: string; readonly text: string }
  | { readonly type: 'receive'; readonly text: string }
  | { readonly type: 'work'; readonly task: () => Promise<object> }
  | { readonly type: 'queue' }
  | { readonly type: 'approve' }
  | { readonly type: 'remind'; readonly name: string; readonly dueMs: number | null }
  | { readonly type: 'reminded'; readonly name: string }
  | { readonly type: 'crash' }
  | { readonly type: 'store'; readonly value: unknown }
  | { readonly type: 'stamp' }
  | { readonly type: 'refuse' };

/** The claim of a name; the stored owner says how much the account held then. */
function claimOf(key: string, balance: number, replaces: string | undefined): Claim {
  const claim: Claim = {
    index: 'publicKey',
    key,
    owner: `owner-${balance}`,
    onConflict: 'KeyAlreadyRegistered',
  };
  return replaces === undefined ? claim : { ...claim, replaces };
}

export const account = defineActor<AccountState, AccountCommand, AccountEvent, object, { hits: number }>({
  kind: 'account',
  version: 1,
  limits: { mailbox: 64, snapshotEvery: 50, idleMs: 60_000 },
  initial: () => ({ balance: 0, waiting: [], received: [], fired: [] }),
  volatile: () => ({ hits: 0 }),
  frees: (command) => (command as AccountCommand).type === 'withdraw',
  decide(state, command, turn) {
    switch (command.type) {
      case 'deposit':
        return {
          events: [{ type: 'deposited', amount: command.amount }],
          reply: state.balance + command.amount,
        };
      case 'withdraw':
        if (command.amount > state.balance) return refuse('InvalidInput', 'amount');
        return {
          events: [{ type: 'deposited', amount: -command.amount }],
          reply: state.balance - command.amount,
        };
      case 'claim':
        return {
          claims: [claimOf(command.name, state.balance, command.replaces)],
          events: [{ type: 'deposited', amount: 0 }],
          reply: 'claimed',
        };
      case 'release':
        return {
          claims: [{ index: 'publicKey', key: command.name, owner: null, onConflict: 'KeyNotFound' }],
          reply: 'released',
        };
      case 'send':
        return {
          send: [{ toKind: 'account', toId: command.toId, command: { type: 'receive', text: command.text } }],
          reply: 'sent',
        };
      case 'receive':
        return { events: [{ type: 'received', from: command.text }] };
      case 'work':
        return { next: () => command.task() };
      case 'queue':
        return {
          events: [{ type: 'queued', commandId: turn.commandId }],
          reply: new Later(turn.commandId),
        };
      case 'approve':
        return {
          events: [{ type: 'approved' }],
          answers: state.waiting.map((commandId) => ({ commandId, reply: 'approved' })),
          reply: state.waiting.length,
        };
      case 'remind': {
        const { name, dueMs } = command;
        return { timers: [{ name, dueMs, command: { type: 'reminded', name } }], reply: 'set' };
      }
      case 'reminded':
        return { events: [{ type: 'fired', name: command.name }] };
      case 'crash':
        throw new Error('planted');
      case 'store':
        return { events: [command.value as AccountEvent], reply: 'stored' };
      case 'stamp':
        return { reply: turn.newId() };
      case 'refuse':
        return refuse('Forbidden');
    }
  },
  evolve(state, event) {
    switch (event.type) {
      case 'deposited':
        return { ...state, balance: state.balance + event.amount };
      case 'queued':
        return { ...state, waiting: [...state.waiting, event.commandId] };
      case 'approved':
        return { ...state, waiting: [] };
      case 'received':
        return { ...state, received: [...state.received, event.from] };
      case 'fired':
        return { ...state, fired: [...state.fired, event.name] };
    }
  },
  query: (state, _query, volatile) => ({ ...state, hits: volatile.hits }),
  decideNow(state, volatile, command) {
    const { type } = command as { type: string };
    if (type === 'crash') throw new Error('planted');
    if (type === 'refuse') return refuse('AccessRateLimit', undefined, 3);
    volatile.hits += 1;
    return volatile.hits + state.balance;
  },
});
