/** Applications that may act for the user: taking their access back ends the sessions they hold. */
import { type Outcome, type Refusal, refuse, type Turn } from './runtime/actor.ts';
import { audited, type Origin, outcome } from './user-change.ts';
import { endSessions } from './user-sessions.ts';
import type { UserEvent, UserState } from './user-state.ts';

export interface RevokeAppAccess {
  readonly type: 'revokeAppAccess';
  readonly appId: string;
  readonly origin: Origin;
}

export interface RevokedAppAccess {
  readonly appId: string;
  readonly sessionsClosed: number;
}

export function decideApps(
  state: UserState,
  { appId, origin }: RevokeAppAccess,
  turn: Turn,
): Outcome<UserEvent> | Refusal {
  if (!state.appAccess.some((access) => access.appId === appId))
    return refuse('NotFound', 'no such application');
  const ended = state.sessions.filter((session) => session.appId === appId);
  const reply: RevokedAppAccess = { appId, sessionsClosed: ended.length };
  return outcome(
    [
      { events: [{ type: 'appAccessRevoked', appId }] },
      endSessions(state, ended),
      audited(state, turn, 'app_access_revoked', origin, { appId, sessionsClosed: ended.length }),
    ],
    reply,
  );
}
