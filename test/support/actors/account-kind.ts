/** An actor kind that uses every part of the contract; the runtime's tests and its simulation run on it. */
import { type Claim, defineActor, Later, refuse } from '../../../src/actors/runtime/actor.ts';
import { messageTo, type Protocol, receiver } from '../../../src/actors/runtime/protocol.ts';

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

interface Receive {
  readonly type: 'receive';
  readonly text: string;
}

const ACCOUNT = receiver<Receive>('account');

export type AccountCommand =
  | { readonly type: 'deposit'; readonly amount: number }
  | { readonly type: 'withdraw'; readonly amount: number }
  | { readonly type: 'claim'; readonly name: string; readonly replaces?: string }
  | { readonly type: 'release'; readonly name: string }
  | { readonly type: 'send'; readonly toId: string; readonly text: string }
  | Receive
  | { readonly type: 'work'; readonly task: () => Promise<AccountCommand> }
  | { readonly type: 'queue' }
  | { readonly type: 'approve' }
  | { readonly type: 'remind'; readonly name: string; readonly dueMs: number | null }
  | { readonly type: 'reminded'; readonly name: string }
  | { readonly type: 'crash' }
  | { readonly type: 'store'; readonly value: unknown }
  | { readonly type: 'stamp' }
  | { readonly type: 'refuse' };

interface AccountReplies {
  readonly deposit: number;
  readonly withdraw: number;
  readonly claim: string;
  readonly release: string;
  readonly send: string;
  /** The reply to the command that the task resolves with. */
  readonly work: unknown;
  readonly queue: string;
  readonly approve: number;
  readonly remind: string;
  readonly crash: never;
  readonly store: string;
  readonly stamp: string;
  readonly refuse: never;
}

export interface AccountView extends AccountState {
  readonly hits: number;
}

export type AccountProtocol = Protocol<
  AccountCommand,
  AccountReplies,
  { readonly type: 'state' } | { readonly type: 'view' },
  { readonly state: AccountView; readonly view: { readonly nowMs: number; readonly windowSeconds: number } },
  { readonly type: 'hit' } | { readonly type: 'crash' } | { readonly type: 'refuse' },
  { readonly hit: number; readonly crash: never; readonly refuse: never }
>;

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

export const account = defineActor<AccountState, AccountProtocol, AccountEvent, { hits: number }>({
  kind: ACCOUNT,
  version: 1,
  limits: { mailbox: 64, snapshotEvery: 50, idleMs: 60_000 },
  initial: () => ({ balance: 0, waiting: [], received: [], fired: [] }),
  volatile: () => ({ hits: 0 }),
  frees: ({ type }) => type === 'withdraw',
  decide: {
    deposit: ({ balance }, { amount }) => ({
      events: [{ type: 'deposited', amount }],
      reply: balance + amount,
    }),
    withdraw({ balance }, { amount }) {
      if (amount > balance) return refuse('InvalidInput', 'amount');
      return { events: [{ type: 'deposited', amount: -amount }], reply: balance - amount };
    },
    claim: ({ balance }, { name, replaces }) => ({
      claims: [claimOf(name, balance, replaces)],
      events: [{ type: 'deposited', amount: 0 }],
      reply: 'claimed',
    }),
    release: (_state, { name }) => ({
      claims: [{ index: 'publicKey', key: name, owner: null, onConflict: 'KeyNotFound' }],
      reply: 'released',
    }),
    send: (_state, { toId, text }) => ({
      send: [messageTo(ACCOUNT, toId, { type: 'receive', text })],
      reply: 'sent',
    }),
    receive: (_state, { text }) => ({ events: [{ type: 'received', from: text }] }),
    work: (_state, { task }) => ({ next: () => task() }),
    queue: (_state, _command, { commandId }) => ({
      events: [{ type: 'queued', commandId }],
      reply: new Later(commandId),
    }),
    approve: ({ waiting }) => ({
      events: [{ type: 'approved' }],
      answers: waiting.map((commandId) => ({ commandId, reply: 'approved' })),
      reply: waiting.length,
    }),
    remind: (_state, { name, dueMs }) => ({
      timers: [dueMs === null ? { name, dueMs } : { name, dueMs, command: { type: 'reminded', name } }],
      reply: 'set',
    }),
    reminded: (_state, { name }) => ({ events: [{ type: 'fired', name }] }),
    crash() {
      throw new Error('planted');
    },
    store: (_state, { value }) => ({ events: [value as AccountEvent], reply: 'stored' }),
    stamp: (_state, _command, turn) => ({ reply: turn.newId() }),
    refuse: () => refuse('Forbidden'),
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
  query: {
    state: (state, _query, { hits }) => ({ ...state, hits }),
    view: (_state, _query, _volatile, { nowMs, settings }) => ({
      nowMs,
      windowSeconds: settings.get('RateLimitWindowSeconds'),
    }),
  },
  decideNow: {
    hit({ balance }, volatile) {
      volatile.hits += 1;
      return volatile.hits + balance;
    },
    crash() {
      throw new Error('planted');
    },
    refuse: () => refuse('AccessRateLimit', undefined, 3),
  },
});
