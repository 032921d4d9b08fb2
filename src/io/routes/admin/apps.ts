/** Admin JSON of applications: the list across owners; approval, McpApp logins, the explicit key, disabling. */

import { app } from '../../../actors/apps/app.ts';
import type { AppFlags } from '../../../actors/apps/app-state.ts';
import type { ActorSystem } from '../../../actors/runtime/actor.ts';
import type { Administration } from '../../../actors/runtime/administration.ts';
import type { AppView } from '../../../domain/apps.ts';
import { KEY_EXAMPLE } from '../../../domain/examples.ts';
import {
  array,
  boolean,
  idText,
  int64,
  integer,
  named,
  nullable,
  object,
  optional,
  type Static,
  text,
} from '../../../domain/schema.ts';
import { PUBLIC_KEY_BYTES, requireBytes, requireId } from '../../accounts/login-parts.ts';
import { nicknameOf, nicknameSchema } from '../../accounts/nicknames.ts';
import {
  PAGE_ROWS_MAX,
  pageOf,
  pageQuery,
  type RowPage,
  readPage,
  requireAccount,
  requireFresh,
} from '../../admin/pagination.ts';
import { appItem, appSchema, viewApp } from '../../apps/apps.ts';
import { type AnyRoute, adminRoute } from '../../http/table/route.ts';
import type { WebhookOwnerApi } from '../../webhooks/owner-api.ts';

/** `oldestUndeliveredSeconds`: age of the oldest event that waits for the webhook; null without one. */
const adminAppItem = named(
  'AdminApp',
  object({
    ...appSchema.properties,
    ownerId: idText(),
    /** Nickname of the owner. */
    nickname: nicknameSchema,
    oldestUndeliveredSeconds: nullable(integer()),
  }),
);

export type AdminAppRow = Static<typeof adminAppItem>;
export const appFilters = {
  approved: optional(boolean()),
  userId: optional(int64('Applications of this account')),
};

/** Missing fields stay unchanged. `mcpPublicKey` null removes the explicit key. */
const change = object({
  appId: int64('Application id: decimal string'),
  approved: optional(boolean()),
  mcpEnabled: optional(boolean()),
  disabled: optional(boolean()),
  mcpPublicKey: optional(nullable(text({ maxLength: 64, examples: [KEY_EXAMPLE] }))),
});

export interface AdminAppDeps {
  readonly administration: Administration;
  readonly webhooks: Pick<WebhookOwnerApi, 'oldestUndeliveredSeconds'>;
}

export function createAdminAppRoutes(deps: AdminAppDeps): AnyRoute[] {
  return [appsRoute(deps), updateRoute(deps)];
}

/** A page of applications, for the list and its export. */
export function pageOfApps(
  deps: AdminAppDeps,
  actors: ActorSystem,
  page: {
    readonly after: string;
    readonly limit: number;
    readonly newest: boolean;
    readonly approved?: boolean | undefined;
  },
  nowMs: number,
): Promise<RowPage<AdminAppRow>> {
  const idsAfter = (after: string, limit: number) =>
    deps.administration.ids('app', after, limit, page.newest);
  return pageOf(page, idsAfter, rowOf(deps, actors, page.approved, nowMs));
}

/** The row of an application; undefined where it is removed or the filter leaves it out. */
const rowOf =
  ({ webhooks }: AdminAppDeps, actors: ActorSystem, approved: boolean | undefined, nowMs: number) =>
  async (id: string) => {
    const view = await viewApp(actors, id);
    const isShown = approved === undefined || view?.approved === approved;
    return view === undefined || !isShown ? undefined : adminItem(actors, view, webhooks, nowMs);
  };

function appsRoute(deps: AdminAppDeps): AnyRoute {
  return adminRoute({
    method: 'GET',
    path: '/ProxyAdmin/api/apps',
    summary: 'Applications of all accounts in the order of their ids, a page at a time',
    description:
      'As their owners see them, with the owner and how long the oldest event waits. `approved` false shows those that wait for an approval, or lost it.',
    query: object({ ...pageQuery.properties, ...appFilters }),
    result: array(adminAppItem),
    errors: ['NotFound'],
    async handle({ actors, query, nowMs }) {
      const { userId, approved } = query;
      const { after, limit, newest } = readPage(query, PAGE_ROWS_MAX);
      if (userId === undefined)
        return (await pageOfApps(deps, actors, { after, limit, newest, approved }, nowMs)).rows;
      const { apps } = await requireAccount(actors, requireId(userId, 'userId'));
      const own = apps.map(({ appId }) => appId);
      const isNext = (id: string) => after === '' || BigInt(id) > BigInt(after) !== newest;
      const left = (newest ? own.reverse() : own).filter((id) => id !== after && isNext(id));
      const page = { after: '', limit };
      return (await pageOf(page, () => left.splice(0), rowOf(deps, actors, approved, nowMs))).rows;
    },
  });
}

function updateRoute({ webhooks }: AdminAppDeps): AnyRoute {
  return adminRoute({
    method: 'POST',
    path: '/ProxyAdmin/api/apps/update',
    summary: 'Approve an application, allow it McpApp logins, name its explicit key, disable it',
    description:
      'What is left out stays as it is. `mcpPublicKey` null takes the explicit key away. Needs a recent login.',
    body: change,
    result: adminAppItem,
    errors: ['NotFound', 'FreshLoginRequired'],
    async handle(context) {
      requireFresh(context);
      const { actors, session, client, body, nowMs } = context;
      const flags = readFlags(body);
      const command = {
        type: 'administer' as const,
        flags,
        by: session.userId,
        address: client.address,
      };
      const view = await actors.ask(app, requireId(body.appId, 'appId'), command);
      return adminItem(actors, view, webhooks, nowMs);
    },
  });
}

function readFlags({
  approved,
  mcpEnabled,
  disabled,
  mcpPublicKey,
}: Static<typeof change>): Partial<AppFlags> {
  if (typeof mcpPublicKey === 'string') requireBytes(mcpPublicKey, PUBLIC_KEY_BYTES, 'mcpPublicKey');
  return {
    ...(approved === undefined ? {} : { approved }),
    ...(mcpEnabled === undefined ? {} : { mcpEnabled }),
    ...(disabled === undefined ? {} : { disabled }),
    ...(mcpPublicKey === undefined ? {} : { mcpPublicKey }),
  };
}

async function adminItem(
  actors: ActorSystem,
  view: AppView,
  webhooks: AdminAppDeps['webhooks'],
  nowMs: number,
): Promise<AdminAppRow> {
  const oldestUndeliveredSeconds = await webhooks.oldestUndeliveredSeconds(view.id, nowMs);
  const { ownerId } = view;
  return { ...appItem(view), ownerId, nickname: nicknameOf(actors, ownerId), oldestUndeliveredSeconds };
}
