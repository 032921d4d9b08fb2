/**
 * The end of an account, by its person: one turn releases every name, and nothing of the account remains but its id and
 * the time. Modules that want to know are notified until they have confirmed it, or for a week.
 */
import { FRESH_LOGIN_MS } from '../../domain/sessions.ts';
import { DAY_MS, HOUR_MS, SECOND_MS } from '../../domain/time.ts';
import { APP } from '../apps/app-messages.ts';
import { audited, type Change, merged, type Origin, type UserOutcome, uploadDropped } from '../change.ts';
import { ONE_TIME_CODES, ONE_TIME_CODES_ID } from '../codes/code-messages.ts';
import { draftsDropped } from '../files/v2/draft-ending.ts';
import { type Message, type Outcome, type Refusal, refuse, type Timer, type Turn } from '../runtime/actor.ts';
import { messageTo } from '../runtime/protocol.ts';
import { findById } from './id-list.ts';
import { requestTimers } from './user-app-request.ts';
import { releasedContacts } from './user-contacts.ts';
import { activeKeys, removal } from './user-enrollment.ts';
import { endSessions, SWEEP_TIMER } from './user-sessions.ts';
import type { TellRemoval, UserEvent, UserState, UserTimer } from './user-types.ts';
import { type CallCredential, endedRefreshes } from './user-upstreams.ts';

const TELL_TIMER = 'tellRemoval';
const RETRY_FIRST_MS = 2 * SECOND_MS;
const RETRY_MAX_MS = HOUR_MS;
/** Doublings after which the longest wait is reached anyway. */
const DOUBLINGS_MAX = Math.ceil(Math.log2(RETRY_MAX_MS / RETRY_FIRST_MS));
/** A module that has not confirmed by then is not asked again. */
const TELL_MS = 7 * DAY_MS;

interface RemoveAccount {
  readonly type: 'removeAccount';
  readonly sessionId: string;
  readonly origin: Origin;
}

interface RemovalTried {
  readonly type: 'removalTried';
  /** Modules that did not confirm it. */
  readonly left: readonly string[];
}

export type RemovalCommand = RemoveAccount | RemovalTried;

/** The reply to `removeAccount`. */
export interface RemovedAccount {
  readonly userId: string;
  readonly sessionsClosed: number;
}

/** Nothing may be opened in the place of a removed account: ids are never used again. */
export function isRemoved({ removal }: Pick<UserState, 'removal'>): boolean {
  return removal !== null;
}

export function removeAccount(
  state: UserState,
  { sessionId, origin }: RemoveAccount,
  turn: Turn,
): Outcome<UserEvent, RemovedAccount, UserTimer, CallCredential> | Refusal {
  const session = findById(state.sessions, sessionId);
  if (session === undefined) return refuse('SessionNotFound');
  if (turn.nowMs - session.createdMs > FRESH_LOGIN_MS) return refuse('FreshLoginRequired');
  const { userId, sessions, contacts } = state;
  const released = merged([
    ...activeKeys(state).map((key) => removal(state, key)),
    releasedContacts(state, contacts),
    endSessions(state, sessions),
  ]);
  const { audit, send } = merged([
    ...removedApps(state, origin, turn),
    uploadDropped(state),
    draftsDropped(userId, turn.settings),
    audited(state, turn, 'account_removed', origin),
  ]);
  return {
    events: [{ type: 'accountRemoved', utcMs: turn.nowMs }],
    claims: released.claims,
    send: contacts.length === 0 ? send : [...send, forgetContacts(contacts)],
    timers: [...endedTimers(state), tellTimer(turn.nowMs)],
    audit,
    answers: endedRefreshes(state),
    reply: { userId, sessionsClosed: sessions.length },
    erases: true,
  };
}

function removedApps({ apps, userId: ownerId }: UserState, origin: Origin, { commandId }: Turn): Change[] {
  return apps.map(({ appId }) => {
    const reply = { appId, sessionsClosed: 0 };
    const command = { type: 'remove', commandId, ownerId, reply, origin } as const;
    return { events: [], send: [messageTo(APP, appId, command)] };
  });
}

/** Open codes and the caps of the addresses name them. */
function forgetContacts(contacts: UserState['contacts']): Message {
  return messageTo(ONE_TIME_CODES, ONE_TIME_CODES_ID, { type: 'forgetContacts', contacts });
}

/** Those that wait for an application only answer their callers, and stay. */
function endedTimers({ apps }: UserState): Timer<UserTimer>[] {
  return [{ name: SWEEP_TIMER, dueMs: null }, ...apps.flatMap((entry) => requestTimers(entry, true))];
}

function tellTimer(dueMs: number): Timer<UserTimer> {
  return { name: TELL_TIMER, dueMs, command: { type: 'tellRemoval' } };
}

export function tellRemoval(
  { userId, removal }: UserState,
  _command: TellRemoval,
): UserOutcome<null, RemovalTried> {
  if (removal === null || removal.modules?.length === 0) return { reply: null };
  const { modules } = removal;
  return {
    next: async ({ accountEvents }) => ({
      type: 'removalTried',
      left: (await accountEvents?.tellRemoval(userId, modules)) ?? [],
    }),
  };
}

export function removalTried(state: UserState, { left }: RemovalTried, turn: Turn): UserOutcome<null> {
  const { removal } = state;
  if (removal === null) return { reply: null };
  const told = (modules: readonly string[]) => [{ type: 'removalTold', modules } as const];
  if (left.length === 0) return { events: told([]), reply: null };
  if (turn.nowMs - removal.utcMs < TELL_MS) {
    const waitMs = Math.min(RETRY_FIRST_MS * 2 ** Math.min(removal.failures, DOUBLINGS_MAX), RETRY_MAX_MS);
    return { events: told(left), timers: [tellTimer(turn.nowMs + waitMs)], reply: null };
  }
  const fields = { modules: left.join(',') };
  return {
    events: told([]),
    audit: [{ utcMs: turn.nowMs, event: 'account_removal_untold', userId: state.userId, fields }],
    notify: ({ accountEvents }) => accountEvents?.gaveUp(state.userId, left),
    reply: null,
  };
}
