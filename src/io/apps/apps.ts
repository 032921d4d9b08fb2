/**
 * Applications of an owner, and applications that may act for an account: shared by the REST routes and the gateway tools
 * of /mcp, with their schemas. No API key passes through here.
 */

import { type AccountView, user } from '../../actors/accounts/user.ts';
import type { RevokedAppAccess } from '../../actors/accounts/user-app-access.ts';
import type { AppAccess } from '../../actors/accounts/user-types.ts';
import { app } from '../../actors/apps/app.ts';
import type { ActorSystem } from '../../actors/runtime/actor.ts';
import type { AppView } from '../../domain/apps.ts';
import { GatewayError } from '../../domain/errors.ts';
import { KEY_EXAMPLE } from '../../domain/examples.ts';
import {
  array,
  boolean,
  idText,
  integer,
  named,
  nullable,
  object,
  oneOf,
  optional,
  type Static,
  text,
  utcText,
} from '../../domain/schema.ts';
import { toIso } from '../../domain/time.ts';
import type { WebhookStatus } from '../../domain/webhooks/types.ts';
import { type AccountCall, askOptions } from '../accounts/account.ts';
import { indexEntryOf } from '../http/checks/session-lookup.ts';

/** Spec 2.3, with extensions. */
export const appSchema = named(
  'App',
  object({
    id: idText(),
    name: text({ examples: ['Tea house'] }),
    url: text({ examples: ['https://tea.example'] }),
    /** Left out for McpBasic, which proves no key: the address may contain a secret. */
    webhookUrl: optional(nullable(text({ examples: ['https://tea.example/events'] }))),
    currencies: array(text({ examples: ['EUR'] })),
    netTypes: array(integer()),
    approved: boolean(),
    mcpEnabled: boolean(),
    disabled: boolean(),
    mcpPublicKey: optional(nullable(text({ examples: [KEY_EXAMPLE] }))),
    success_count: integer(),
    failed_count: integer(),
    last_tick: text({ examples: ['1795167000000123'] }),
    createdUtc: utcText(),
    /** Events of one delivery at most. */
    maxBatch: integer(),
    /** Redirect URIs of a host that connects with OAuth. */
    redirectUris: array(text({ examples: ['https://tea.example/callback'] })),
    webhook: object({
      state: oneOf(['active', 'failing', 'disabled']),
      /** The reason for a disabled webhook: the receiver said 410, days of failures, too many refused events. */
      reason: nullable(oneOf(['gone', 'failing', 'parked'])),
      sinceUtc: utcText(),
      retryUtc: nullable(utcText()),
      failures: integer(),
      parked: integer(),
    }),
    keys: array(object({ id: idText(), createdUtc: utcText(), expiresUtc: nullable(utcText()) })),
  }),
);

export const appAccessSchema = named(
  'AppAccess',
  object({
    appId: idText(),
    name: text({ examples: ['Tea house'] }),
    url: text({ examples: ['https://tea.example'] }),
    source: oneOf(['registration', 'consent', 'login']),
    grantedUtc: utcText(),
  }),
);

export type AppItem = Static<typeof appSchema>;
type AppAccessItem = Static<typeof appAccessSchema>;

export function appItem(view: AppView): AppItem {
  return {
    id: view.id,
    name: view.name,
    url: view.url,
    webhookUrl: view.webhookUrl,
    currencies: [...view.currencies],
    netTypes: [...view.netTypes],
    approved: view.approved,
    mcpEnabled: view.mcpEnabled,
    disabled: view.disabled,
    mcpPublicKey: view.mcpPublicKey,
    success_count: view.successCount,
    failed_count: view.failedCount,
    last_tick: view.lastTick,
    createdUtc: toIso(view.createdMs),
    maxBatch: view.maxBatch,
    redirectUris: [...view.redirectUris],
    webhook: webhookItem(view.webhook),
    keys: view.keys.map(({ keyId, createdMs, expiresMs }) => ({
      id: keyId,
      createdUtc: toIso(createdMs),
      expiresUtc: expiresMs === null ? null : toIso(expiresMs),
    })),
  };
}

function webhookItem({
  state,
  reason,
  sinceMs,
  retryAtMs,
  failures,
  parked,
}: WebhookStatus): AppItem['webhook'] {
  const retryUtc = retryAtMs === null ? null : toIso(retryAtMs);
  return { state, reason, sinceUtc: toIso(sinceMs), retryUtc, failures, parked: parked.length };
}

/** Undefined for an application that is not registered, or was removed. */
export async function viewApp(actors: ActorSystem, appId: string): Promise<AppView | undefined> {
  return actors.query(app, appId, { type: 'view' });
}

/** Applications that the account registered, in that order. */
export async function listApps(call: AccountCall): Promise<AppItem[]> {
  const { apps } = await accountOf(call);
  const views = await Promise.all(apps.map(({ appId }) => viewApp(call.actors, appId)));
  return views.filter((view) => view !== undefined).map((view) => shown(view, call));
}

/** One application of the account; `NotFound` for every other id. */
export async function getApp(call: AccountCall, appId: string): Promise<AppItem> {
  return shown(await requireOwnApp(call, appId), call);
}

export async function requireOwnApp(call: AccountCall, appId: string): Promise<AppView> {
  const { apps } = await accountOf(call);
  const own = apps.some((entry) => entry.appId === appId);
  const view = own ? await viewApp(call.actors, appId) : undefined;
  if (view === undefined) throw new GatewayError('NotFound', 'no such application');
  return view;
}

export async function listAppAccess(call: AccountCall): Promise<AppAccessItem[]> {
  const { appAccess } = await accountOf(call);
  const standing = appAccess.filter(({ revokedMs }) => revokedMs === null);
  const items = await Promise.all(standing.map((access) => accessItem(call.actors, access)));
  return items.filter((item) => item !== undefined);
}

/** Takes an application's access back and ends its sessions; `NotFound` for one that has none. */
export async function revokeAppAccess(call: AccountCall, appId: string): Promise<RevokedAppAccess> {
  const command = { type: 'revokeAppAccess' as const, appId, origin: call.origin };
  const options = askOptions('revoke_app_access', call);
  return call.actors.ask(user, call.session.userId, command, options);
}

/** Lets an application act for the account; `NotFound` for one that takes no sessions. */
export async function grantAppAccess(call: AccountCall, appId: string): Promise<AppAccessItem> {
  const command = {
    type: 'grantAppAccess' as const,
    appId,
    indexEntry: indexEntryOf(call.actors, appId),
    origin: call.origin,
  };
  const options = askOptions('grant_app_access', call);
  const access = await call.actors.ask(user, call.session.userId, command, options);
  const item = await accessItem(call.actors, access);
  if (item === undefined) throw new GatewayError('NotFound', 'no such application');
  return item;
}

function shown(view: AppView, { session }: AccountCall): AppItem {
  const item = appItem(view);
  if (session.loginType !== 'McpBasic') return item;
  const { webhookUrl: _webhookUrl, mcpPublicKey: _mcpPublicKey, ...rest } = item;
  return rest;
}

async function accountOf({ actors, session }: AccountCall): Promise<AccountView> {
  return actors.query(user, session.userId, { type: 'account' });
}

async function accessItem(
  actors: ActorSystem,
  { appId, source, grantedMs }: AppAccess,
): Promise<AppAccessItem | undefined> {
  const view = await viewApp(actors, appId);
  if (view === undefined) return undefined;
  return { appId, name: view.name, url: view.url, source, grantedUtc: toIso(grantedMs) };
}
