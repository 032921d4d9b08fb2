/**
 * Applications (spec 4.5; shapes in config.md "App registration"): registration, the owner's list, removal, rotation of
 * the API key; and the REST twins of get_app_info, list_app_access and revoke_app_access, with the grant beside them.
 */
import { app, type SettledApp } from '../../actors/app.ts';
import { user } from '../../actors/user.ts';
import type { RemovedApp } from '../../actors/user-apps.ts';
import {
  APP_NAME_LENGTH_MAX,
  APP_URL_LENGTH_MAX,
  type AppPatch,
  type AppView,
  CURRENCIES_MAX,
  isWebUrl,
  NET_TYPES_MAX,
} from '../../domain/apps.ts';
import { GatewayError } from '../../domain/errors.ts';
import {
  array,
  int64,
  integer,
  nameText,
  nullable,
  object,
  optional,
  type Static,
  text,
} from '../../domain/schema.ts';
import type { SettingsReader } from '../../domain/settings.ts';
import type { Site } from '../../domain/site.ts';
import { judgeWebhookUrl } from '../../domain/webhook-target.ts';
import { BATCH_EVENTS_MAX } from '../../domain/webhooks.ts';
import { askOptions } from '../account.ts';
import {
  appAccessSchema,
  appItem,
  appSchema,
  getApp,
  grantAppAccess,
  listAppAccess,
  listApps,
  revokeAppAccess,
} from '../apps.ts';
import { type AnyRoute, defineRoute } from '../http/route.ts';
import { originOf, requireId } from '../login-parts.ts';
import type { Vault } from '../vault.ts';
import { accountCall } from './sessions.ts';

const appIdSchema = int64('Application id: decimal string');
const idBody = object({ id: appIdSchema });
const appIdBody = object({ appId: appIdSchema });
const sessionsEnded = object({ appId: text(), sessionsClosed: integer() });
const withKey = object({ ...appSchema.properties, apiKey: optional(text()) });

/** Null, or left out: unchanged. An empty `webhookUrl` ends webhooks, empty lists end filtering. */
const registration = object({
  id: optional(nullable(appIdSchema)),
  name: optional(nullable(nameText(APP_NAME_LENGTH_MAX))),
  url: optional(nullable(text({ maxLength: APP_URL_LENGTH_MAX }))),
  webhookUrl: optional(nullable(text({ maxLength: APP_URL_LENGTH_MAX }))),
  currencies: optional(
    nullable(array(text({ pattern: '^[A-Za-z0-9_-]{1,16}$' }), { maxItems: CURRENCIES_MAX })),
  ),
  netTypes: optional(nullable(array(integer({ minimum: 0, maximum: 255 }), { maxItems: NET_TYPES_MAX }))),
  /** Events of one webhook delivery; 1: never several in one body. */
  maxBatch: optional(nullable(integer({ minimum: 1, maximum: BATCH_EVENTS_MAX }))),
});

export function createAppRoutes(vault: Vault): AnyRoute[] {
  return [
    upsertRoute(vault),
    listRoute,
    removeRoute,
    rotateRoute(vault),
    infoRoute,
    accessRoute,
    grantRoute,
    revokeRoute,
  ];
}

function upsertRoute(vault: Vault): AnyRoute {
  return defineRoute({
    method: 'POST',
    path: '/auth/v1/app/upsert_usr_app',
    summary: 'Register an application or change one; the API key is shown once, when it is created',
    group: 'apps',
    auth: 'session',
    limits: [],
    body: registration,
    result: withKey,
    errors: ['InvalidInput', 'SessionNotFound', 'NotFound', 'AppLimitReached'],
    idempotent: true,
    async handle(context) {
      const { actors, session, body, site, settings } = context;
      const patch = readPatch(body, site, settings);
      const appId =
        typeof body.id === 'string' || typeof body.id === 'number' ? requireId(body.id, 'id') : undefined;
      const issued = vault.issue();
      const command = {
        type: 'upsertApp',
        ...(appId === undefined ? {} : { appId }),
        patch,
        key: issued.sealed,
        origin: originOf(context),
      };
      const options = askOptions('upsert_usr_app', context);
      const settled = await actors.ask<SettledApp>(user, session.userId, command, options);
      // Not that of an application that was there before, nor of a repeat with the same Idempotency-Key.
      const taken = settled.keyId === issued.sealed.keyId;
      return { ...appItem(settled.app), ...(taken ? { apiKey: issued.apiKey } : {}) };
    },
  });
}

const listRoute = defineRoute({
  method: 'GET',
  path: '/auth/v1/app/list',
  summary: 'Applications that the account registered',
  group: 'apps',
  auth: 'session',
  limits: [],
  result: array(appSchema),
  errors: ['SessionNotFound'],
  handle: (context) => listApps(accountCall(context)),
});

const removeRoute = defineRoute({
  method: 'POST',
  path: '/auth/v1/app/remove',
  summary: 'Remove an application and end its sessions',
  group: 'apps',
  auth: 'session',
  limits: [],
  body: idBody,
  result: sessionsEnded,
  errors: ['InvalidInput', 'SessionNotFound', 'NotFound'],
  idempotent: true,
  handle(context) {
    const { actors, session, body } = context;
    const command = { type: 'removeApp', appId: requireId(body.id, 'id'), origin: originOf(context) };
    return actors.ask<RemovedApp>(user, session.userId, command, askOptions('app_remove', context));
  },
});

function rotateRoute(vault: Vault): AnyRoute {
  return defineRoute({
    method: 'POST',
    path: '/auth/v1/app/rotate_key',
    summary: 'Give an application a new API key, shown once; the former one stays valid for 24 hours',
    group: 'apps',
    auth: 'session',
    limits: [],
    body: idBody,
    result: withKey,
    errors: ['InvalidInput', 'SessionNotFound', 'NotFound'],
    async handle(context) {
      const { actors, session, body } = context;
      const issued = vault.issue();
      const command = {
        type: 'rotateKey',
        userId: session.userId,
        key: issued.sealed,
        origin: originOf(context),
      };
      const view = await actors.ask<AppView>(app, requireId(body.id, 'id'), command);
      return { ...appItem(view), apiKey: issued.apiKey };
    },
  });
}

const infoRoute = defineRoute({
  method: 'GET',
  path: '/auth/v1/app/info',
  summary: 'One application that the account registered',
  group: 'apps',
  auth: 'session',
  limits: [],
  query: idBody,
  result: appSchema,
  errors: ['InvalidInput', 'SessionNotFound', 'NotFound'],
  handle: (context) => getApp(accountCall(context), requireId(context.query.id, 'id')),
});

const accessRoute = defineRoute({
  method: 'GET',
  path: '/auth/v1/app/access',
  summary: 'Applications that may act for the account',
  group: 'apps',
  auth: 'session',
  limits: [],
  result: array(appAccessSchema),
  errors: ['SessionNotFound'],
  handle: (context) => listAppAccess(accountCall(context)),
});

const grantRoute = defineRoute({
  method: 'POST',
  path: '/auth/v1/app/grant_access',
  summary: 'Let an application act for the account',
  group: 'apps',
  auth: 'session',
  limits: [],
  body: appIdBody,
  result: appAccessSchema,
  errors: ['InvalidInput', 'SessionNotFound', 'NotFound', 'AppLimitReached'],
  idempotent: true,
  handle: (context) => grantAppAccess(accountCall(context), requireId(context.body.appId, 'appId')),
});

const revokeRoute = defineRoute({
  method: 'POST',
  path: '/auth/v1/app/revoke_access',
  summary: 'Take the access of an application back and end its sessions',
  group: 'apps',
  auth: 'session',
  limits: [],
  body: appIdBody,
  result: sessionsEnded,
  errors: ['InvalidInput', 'SessionNotFound', 'NotFound'],
  idempotent: true,
  handle: (context) => revokeAppAccess(accountCall(context), requireId(context.body.appId, 'appId')),
});

/** Throws `InvalidInput` that names the field. */
function readPatch(body: Static<typeof registration>, site: Site, settings: SettingsReader): AppPatch {
  const { name, url, webhookUrl, currencies, netTypes, maxBatch } = body;
  if (typeof url === 'string' && !isWebUrl(url))
    throw new GatewayError('InvalidInput', 'url: expected an http or https address');
  if (typeof webhookUrl === 'string' && webhookUrl !== '') {
    const { production, webhookAllow: allow } = site;
    const verdict = judgeWebhookUrl(webhookUrl, { production, allow, ports: settings.get('WebhookPorts') });
    if (!verdict.ok) throw new GatewayError('InvalidInput', `webhookUrl: ${verdict.reason}`);
  }
  return {
    ...(typeof name === 'string' ? { name } : {}),
    ...(typeof url === 'string' ? { url } : {}),
    ...(typeof webhookUrl === 'string' ? { webhookUrl: webhookUrl === '' ? null : webhookUrl } : {}),
    ...(Array.isArray(currencies) ? { currencies } : {}),
    ...(Array.isArray(netTypes) ? { netTypes } : {}),
    ...(typeof maxBatch === 'number' ? { maxBatch } : {}),
  };
}
