/** Browser sessions: sessions, close_sessions and login_log, which are gateway tools too, and logout. */

import { user } from '../../actors/accounts/user.ts';
import { ID_EXAMPLE } from '../../domain/examples.ts';
import { array, nothing } from '../../domain/schema.ts';
import type { SessionContext } from '../../domain/sessions.ts';
import {
  type AccountCall,
  closedSessionsSchema,
  closeSessions,
  closeSessionsSchema,
  listLogins,
  listSessions,
  loginSchema,
  sessionSchema,
} from '../accounts/account.ts';
import { originOf } from '../accounts/login-parts.ts';
import { clearSid } from '../http/checks/sid-cookie.ts';
import { defineRoute, Reply, type RouteContext } from '../http/table/route.ts';

export function accountCall(context: RouteContext<unknown, unknown, SessionContext>): AccountCall {
  const { actors, settings, session, nowMs, idempotencyKey, body, span } = context;
  return { actors, settings, session, nowMs, idempotencyKey, body, span, origin: originOf(context) };
}

export const sessions = defineRoute({
  method: 'GET',
  path: '/auth/v1/sessions',
  summary: 'Live sessions of the account',
  spec: '4.4',
  description: 'Browser and MCP sessions. `current` marks the one that asks.',
  group: 'auth',
  auth: 'session',
  result: array(sessionSchema),
  handle: (context) => listSessions(accountCall(context)),
});

export const loginLog = defineRoute({
  method: 'GET',
  path: '/auth/v1/login_log',
  summary: 'The last logins and refused attempts, the newest first',
  spec: '4.4',
  description: 'The log is bounded; refusals cannot push successes out.',
  group: 'auth',
  auth: 'session',
  result: array(loginSchema),
  handle: (context) => listLogins(accountCall(context)),
});

export const endSessions = defineRoute({
  method: 'POST',
  path: '/auth/v1/close_sessions',
  summary: 'End sessions: the listed ones, all others, or all',
  spec: '4.4',
  description:
    '`sessionIds` ends the listed ones, `others` all but the calling one, neither of them ends all. Both at once are refused.',
  docs: {
    sends: ['Set-Cookie'],
    examples: {
      others: { body: { others: true } },
      listed: { body: { sessionIds: [ID_EXAMPLE] } },
      all: { body: {} },
    },
  },
  group: 'auth',
  auth: 'session',
  body: closeSessionsSchema,
  bodyOptional: true,
  result: closedSessionsSchema,
  errors: ['NotFound'],
  idempotent: true,
  async handle(context) {
    const { sessionsClosed, currentClosed } = await closeSessions(accountCall(context), context.body);
    return Reply.result({ sessionsClosed }, currentClosed ? clearSid(context.site.secureCookies) : []);
  },
});

export const logout = defineRoute({
  method: 'POST',
  path: '/auth/v1/logout',
  summary: 'End the session of this browser',
  spec: '4.4',
  description: 'Other sessions of the account go on. The cookie is taken back.',
  docs: { sends: ['Set-Cookie'] },
  group: 'auth',
  auth: 'session',
  result: nothing(),
  async handle(context) {
    const { actors, session, site } = context;
    const command = { type: 'endSession' as const, sessionId: session.id, origin: originOf(context) };
    await actors.ask(user, session.userId, command);
    return Reply.result(null, clearSid(site.secureCookies));
  },
});
