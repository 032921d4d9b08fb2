/** Admin JSON of accounts: users and their block, sessions of one user. */

import { user } from '../../../actors/accounts/user.ts';
import type { ActorSystem } from '../../../actors/runtime/actor.ts';
import type { Administration } from '../../../actors/runtime/administration.ts';
import { GatewayError } from '../../../domain/errors.ts';
import { ROLES } from '../../../domain/roles.ts';
import {
  array,
  boolean,
  idText,
  int64,
  integer,
  named,
  nameText,
  nullable,
  object,
  oneOf,
  optional,
  type Static,
  text,
  utcText,
} from '../../../domain/schema.ts';
import type { SessionContext } from '../../../domain/sessions.ts';
import { toIso } from '../../../domain/time.ts';
import {
  closedSessionsSchema,
  closeSessionsSchema,
  listSessions,
  sessionSchema,
} from '../../accounts/account.ts';
import { originOf, requireId } from '../../accounts/login-parts.ts';
import { nicknameOf, nicknameSchema } from '../../accounts/nicknames.ts';
import { NICKNAME_MAX } from '../../accounts/profile.ts';
import {
  nextLink,
  pageOf,
  pageQuery,
  type RowPage,
  readPage,
  requireAccount,
  requireFresh,
} from '../../admin/pagination.ts';
import { endedHostSchema, endHost, hostSchema, listHosts } from '../../connect/hosts.ts';
import { type AnyRoute, adminRoute, Reply } from '../../http/table/route.ts';
import { accountCall } from '../sessions.ts';
import type { StaffDeps } from './staff.ts';

const userItem = named(
  'Account',
  object({
    id: idText(),
    nickname: nicknameSchema,
    createdUtc: utcText(),
    blocked: boolean(),
    role: nullable(oneOf(ROLES)),
    keys: integer(),
    sessions: integer(),
    apps: integer(),
  }),
);
export const accountFilter = object({
  search: optional(
    text({ maxLength: NICKNAME_MAX, examples: ['ada'], description: 'Part of the nickname or of the id' }),
  ),
  blocked: optional(boolean()),
});
export type AccountFilter = Static<typeof accountFilter>;
/** Characters. */
const REASON_MAX = 200;
const USERS = '/ProxyAdmin/api/users';
/** Accounts that a page looks at where a filter leaves some out. */
const FILTERED_ACCOUNTS_MAX = 1_000;
const ofUser = object({ userId: int64('User id: decimal string') });
/** One account: as a row of the list, with what it has connected. */
const accountItem = named(
  'AccountRecord',
  object({
    ...userItem.properties,
    hosts: integer(),
    /** Last use of its live sessions; null without one. */
    lastSeenUtc: nullable(utcText()),
  }),
);
export type AccountRow = Static<typeof userItem>;

export interface AdminAccountDeps extends Pick<StaffDeps, 'staff'> {
  readonly administration: Administration;
}

export function createAdminAccountRoutes(deps: AdminAccountDeps): AnyRoute[] {
  return [
    usersRoute(deps),
    accountRoute(deps.staff),
    blockRoute(deps.staff),
    sessionsRoute,
    endSessionsRoute(deps.staff),
    hostsRoute,
    endHostRoute,
  ];
}

/** A page of accounts, for the list and its export. A filter looks at 1,000 accounts a page. */
export function pageOfAccounts(
  { administration, staff }: AdminAccountDeps,
  actors: ActorSystem,
  filter: AccountFilter,
  page: { readonly after: string; readonly limit: number; readonly newest: boolean },
): Promise<RowPage<AccountRow>> {
  const idsAfter = (after: string, limit: number) => administration.ids('user', after, limit, page.newest);
  const words = filter.search?.trim().toLowerCase() ?? '';
  const isSearched = (id: string) =>
    words === '' || id.includes(words) || nicknameOf(actors, id)?.toLowerCase().includes(words) === true;
  const rowOf = async (id: string) => {
    const row = isSearched(id) ? await viewUser(actors, staff, id) : undefined;
    return filter.blocked === undefined || row?.blocked === filter.blocked ? row : undefined;
  };
  const isFiltered = words !== '' || filter.blocked !== undefined;
  return pageOf(page, idsAfter, rowOf, isFiltered ? FILTERED_ACCOUNTS_MAX : undefined);
}

function usersRoute(deps: AdminAccountDeps): AnyRoute {
  return adminRoute({
    method: 'GET',
    path: USERS,
    summary: 'Accounts in the order of their ids, a page at a time; `Link` names the next one',
    description:
      'Without a filter a page with fewer rows than `limit` is the last. A filter looks at 1,000 accounts a page, so that a page may be empty and still name a next one. Accounts that were never opened are passed over.',
    docs: { sends: ['Link'] },
    query: object({ ...pageQuery.properties, ...accountFilter.properties }),
    result: array(userItem),
    async handle({ actors, query }) {
      const { rows, next } = await pageOfAccounts(deps, actors, query, readPage(query));
      return Reply.result(rows, next === undefined ? [] : [['Link', nextLink(USERS, query, next)]]);
    },
  });
}

function accountRoute(staff: StaffDeps['staff']): AnyRoute {
  return adminRoute({
    method: 'GET',
    path: '/ProxyAdmin/api/account',
    summary: 'One account, with its role and how much it has of keys, sessions, hosts and applications',
    description: 'What the page of an account shows above its lists.',
    query: ofUser,
    result: accountItem,
    errors: ['NotFound'],
    async handle({ actors, query }) {
      const userId = requireId(query.userId, 'userId');
      const view = await viewUser(actors, staff, userId);
      if (view === undefined) throw new GatewayError('NotFound', 'no such user');
      const hosts = await listHosts(actors, userId);
      const sessions = await actors.query(user, userId, { type: 'sessions' });
      const lastSeenMs = Math.max(...sessions.map((session) => session.lastSeenMs));
      return {
        ...view,
        hosts: hosts.length,
        lastSeenUtc: sessions.length === 0 ? null : toIso(lastSeenMs),
      };
    },
  });
}

function blockRoute(staff: StaffDeps['staff']): AnyRoute {
  return adminRoute({
    method: 'POST',
    path: '/ProxyAdmin/api/users/block',
    role: 'support',
    summary: 'Block an account, which ends all its sessions, or unblock it',
    description:
      'An account cannot block itself, and only admins block accounts with a role. Needs a recent login.',
    body: object({
      userId: ofUser.properties.userId,
      blocked: boolean(),
      /** Kept in the audit log; the person does not see it. */
      reason: optional(nameText(REASON_MAX)),
    }),
    result: object({ userId: idText(), blocked: boolean(), sessionsClosed: integer() }),
    errors: ['NotFound', 'FreshLoginRequired'],
    async handle(context) {
      requireFresh(context);
      const { actors, session, body } = context;
      const { blocked, reason } = body;
      const userId = requireId(body.userId, 'userId');
      if (blocked && userId === session.userId)
        throw new GatewayError('InvalidInput', 'userId: your own account would lock you out');
      requireRank(staff, session, userId);
      const origin = { ...originOf(context), by: session.userId };
      const command = { type: 'setBlocked' as const, blocked, reason, origin };
      const reply = await actors.ask(user, userId, command);
      return { userId, ...reply };
    },
  });
}

const sessionsRoute = adminRoute({
  method: 'GET',
  path: '/ProxyAdmin/api/sessions',
  summary: 'Live sessions of one account, the oldest first',
  description: 'Browser and MCP sessions.',
  query: ofUser,
  result: array(sessionSchema),
  errors: ['NotFound'],
  async handle(context) {
    const userId = requireId(context.query.userId, 'userId');
    await requireAccount(context.actors, userId);
    const call = accountCall(context);
    return listSessions({ ...call, session: { ...call.session, userId } });
  },
});

function endSessionsRoute(staff: StaffDeps['staff']): AnyRoute {
  return adminRoute({
    method: 'POST',
    path: '/ProxyAdmin/api/sessions/end',
    role: 'support',
    summary: 'End sessions of an account: the listed ones, or all',
    description:
      'Without `sessionIds` connected hosts are disconnected too. Unlike a block, the person may log in again. Only admins end sessions of accounts with a role. Needs a recent login.',
    body: object({
      userId: ofUser.properties.userId,
      sessionIds: closeSessionsSchema.properties.sessionIds,
    }),
    result: closedSessionsSchema,
    errors: ['NotFound', 'FreshLoginRequired'],
    async handle(context) {
      requireFresh(context);
      const { actors, session, body } = context;
      const userId = requireId(body.userId, 'userId');
      await requireAccount(actors, userId);
      requireRank(staff, session, userId);
      const { sessionIds } = body;
      const { sessionsClosed } = await actors.ask(user, userId, {
        type: 'closeSessions',
        currentSessionId: session.id,
        ...(sessionIds === undefined ? {} : { sessionIds }),
        origin: { ...originOf(context), by: session.userId },
      });
      return { sessionsClosed };
    },
  });
}

/** Otherwise a support account could lock out every admin. */
function requireRank(
  staff: StaffDeps['staff'],
  { role, userId: own }: Pick<SessionContext, 'role' | 'userId'>,
  userId: string,
): void {
  if (role !== 'admin' && userId !== own && staff.effectiveRoleOf(userId) !== undefined)
    throw new GatewayError('Forbidden', 'userId: accounts with a role are for admins');
}

const hostsRoute = adminRoute({
  method: 'GET',
  path: '/ProxyAdmin/api/connected_hosts',
  summary: 'Hosts that one account connected with OAuth, the one used last first',
  description: 'Those of switched-off applications are left out: their tokens open nothing.',
  query: ofUser,
  result: array(hostSchema),
  errors: ['NotFound'],
  async handle({ actors, query }) {
    const userId = requireId(query.userId, 'userId');
    await requireAccount(actors, userId);
    return listHosts(actors, userId);
  },
});

const endHostRoute = adminRoute({
  method: 'POST',
  path: '/ProxyAdmin/api/connected_hosts/revoke',
  role: 'support',
  summary: 'Disconnect a host of an account',
  description: 'Its sessions end at once. Needs a recent login.',
  body: object({ userId: ofUser.properties.userId, id: int64('Id of the connected host') }),
  result: endedHostSchema,
  errors: ['NotFound', 'FreshLoginRequired'],
  async handle(context) {
    requireFresh(context);
    const { actors, session, body } = context;
    const userId = requireId(body.userId, 'userId');
    await requireAccount(actors, userId);
    const origin = { ...originOf(context), by: session.userId };
    return endHost(actors, userId, requireId(body.id, 'id'), origin);
  },
});

async function viewUser(
  actors: ActorSystem,
  staff: StaffDeps['staff'],
  id: string,
): Promise<AccountRow | undefined> {
  const { createdMs, nickname, blocked, keys, apps } = await actors.query(user, id, { type: 'account' });
  if (createdMs === null) return undefined;
  const sessions = await actors.query(user, id, { type: 'sessions' });
  return {
    id,
    nickname,
    createdUtc: toIso(createdMs),
    blocked,
    role: staff.effectiveRoleOf(id) ?? null,
    keys: keys.length,
    sessions: sessions.length,
    apps: apps.length,
  };
}
