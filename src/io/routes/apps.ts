/**
 * Applications (spec 4.5): registration, list, removal, rotation of the API key, and access of applications to the account.
 * The gateway tools get_app_info, list_app_access and revoke_app_access use the same functions.
 */

import { user } from '../../actors/accounts/user.ts';
import { app } from '../../actors/apps/app.ts';
import {
  APP_NAME_LENGTH_MAX,
  APP_NAMES,
  APP_URL_LENGTH_MAX,
  type AppPatch,
  CURRENCIES_MAX,
  isWebUrl,
  NET_TYPES_MAX,
} from '../../domain/apps.ts';
import { GatewayError } from '../../domain/errors.ts';
import { ID_EXAMPLE } from '../../domain/examples.ts';
import {
  APPLICATION_REDIRECTS,
  judgeRedirect,
  REDIRECT_LENGTH_MAX,
  REDIRECTS_MAX,
} from '../../domain/oauth/clients.ts';
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
  optional,
  type Static,
  text,
} from '../../domain/schema.ts';
import type { SettingsReader } from '../../domain/settings/settings.ts';
import type { Site } from '../../domain/site.ts';
import { judgeWebhookUrl } from '../../domain/webhooks/target.ts';
import { BATCH_EVENTS_MAX } from '../../domain/webhooks/types.ts';
import { askOptions } from '../accounts/account.ts';
import { originOf, requireId } from '../accounts/login-parts.ts';
import type { ApiKeyCipher } from '../apps/api-keys.ts';
import {
  appAccessSchema,
  appItem,
  appSchema,
  getApp,
  grantAppAccess,
  listAppAccess,
  listApps,
  revokeAppAccess,
} from '../apps/apps.ts';
import { type AnyRoute, defineRoute } from '../http/table/route.ts';
import { accountCall } from './sessions.ts';

const appIdSchema = int64('Application id: decimal string');
const rotation = object({
  appId: appIdSchema,
  /** Creates no key; the former key of the last rotation ends now. */
  finish: optional(boolean()),
});
const appIdBody = object({ appId: appIdSchema });
const sessionsEnded = named('AppSessionsEnded', object({ appId: idText(), sessionsClosed: integer() }));
const withKey = named(
  'AppWithKey',
  object({
    ...appSchema.properties,
    apiKey: optional(text({ description: 'Shown in this answer alone', examples: ['gk_0jTcPzqZ3v8Wm1Yx'] })),
  }),
);

const currencyCode = text({
  pattern: '^[A-Za-z0-9_-]{1,16}$',
  form: 'a currency code of up to 16 letters and digits',
  examples: ['EUR'],
});
/** Null and missing fields stay unchanged. An empty `webhookUrl` ends webhooks, an empty list ends its filter. */
const registration = object({
  appId: optional(nullable(appIdSchema)),
  name: optional(nullable(nameText(APP_NAME_LENGTH_MAX))),
  url: optional(nullable(text({ maxLength: APP_URL_LENGTH_MAX, examples: ['https://tea.example'] }))),
  webhookUrl: optional(
    nullable(text({ maxLength: APP_URL_LENGTH_MAX, examples: ['https://tea.example/events'] })),
  ),
  currencies: optional(nullable(array(currencyCode, { maxItems: CURRENCIES_MAX }))),
  netTypes: optional(nullable(array(integer({ minimum: 0, maximum: 255 }), { maxItems: NET_TYPES_MAX }))),
  /** Events of one webhook delivery; 1 disables batches. */
  maxBatch: optional(nullable(integer({ minimum: 1, maximum: BATCH_EVENTS_MAX }))),
  /** Redirect URIs of a host that connects with OAuth; another list takes the approval back. */
  redirectUris: optional(
    nullable(
      array(text({ maxLength: REDIRECT_LENGTH_MAX, examples: ['https://tea.example/callback'] }), {
        maxItems: REDIRECTS_MAX,
      }),
    ),
  ),
});

export function createAppRoutes(cipher: ApiKeyCipher): AnyRoute[] {
  return [
    upsertRoute(cipher),
    listRoute,
    removeRoute,
    rotateRoute(cipher),
    infoRoute,
    accessRoute,
    grantRoute,
    revokeRoute,
  ];
}

function upsertRoute(cipher: ApiKeyCipher): AnyRoute {
  return defineRoute({
    method: 'POST',
    path: '/auth/v1/app/upsert_usr_app',
    summary: 'Register an application or change one; the API key is shown once, when it is created',
    spec: '4.5',
    description:
      'Without `appId` the application of the account with the same `url` is changed; where there is none, a new one is registered. What is null or left out stays as it is. `apiKey` is in the answer that created it, and for an hour in that of a repeat with the same `Idempotency-Key`.',
    docs: {
      examples: {
        register: {
          body: {
            name: 'Tea house',
            url: 'https://tea.example',
            webhookUrl: 'https://tea.example/events',
            currencies: ['EUR'],
            netTypes: [1],
          },
        },
        change: { body: { appId: ID_EXAMPLE, name: 'Tea and cake' } },
      },
    },
    group: 'apps',
    auth: 'session',
    body: registration,
    formerNames: APP_NAMES,
    result: withKey,
    errors: ['NotFound', 'AppLimitReached'],
    idempotent: true,
    async handle(context) {
      const { actors, session, body, site, settings } = context;
      const patch = readPatch(body, site, settings);
      const appId =
        typeof body.appId === 'string' || typeof body.appId === 'number'
          ? requireId(body.appId, 'appId')
          : undefined;
      const issued = cipher.issue();
      const options = askOptions('upsert_usr_app', context);
      const { idempotencyKey: key, fingerprint = '' } = options;
      const command = {
        type: 'upsertApp' as const,
        ...(appId === undefined ? {} : { appId }),
        patch,
        key: issued.sealed,
        ...(key === undefined ? {} : { request: { key, fingerprint } }),
        origin: originOf(context),
      };
      const settled = await actors.ask(user, session.userId, command, options);
      const item = appItem(settled.app);
      if (settled.keyId === issued.sealed.keyId) return { ...item, apiKey: issued.apiKey };
      // An existing application shows no key, unless this is a repeat of its registration.
      const first =
        key === undefined ? undefined : await actors.query(user, session.userId, { type: 'issuedKey', key });
      const apiKey = first === undefined ? undefined : cipher.tryOpen(first);
      return { ...item, ...(apiKey === undefined ? {} : { apiKey }) };
    },
  });
}

const listRoute = defineRoute({
  method: 'GET',
  path: '/auth/v1/app/list',
  summary: 'Applications that the account registered',
  description: 'With the state of each webhook and the ids of the API keys, never the keys themselves.',
  group: 'apps',
  auth: 'session',
  result: array(appSchema),
  handle: (context) => listApps(accountCall(context)),
});

const removeRoute = defineRoute({
  method: 'POST',
  path: '/auth/v1/app/remove',
  summary: 'Remove an application and end its sessions',
  description: 'Events that wait for it are dropped. There is no way back.',
  group: 'apps',
  auth: 'session',
  body: appIdBody,
  formerNames: APP_NAMES,
  result: sessionsEnded,
  errors: ['NotFound'],
  idempotent: true,
  handle(context) {
    const { actors, session, body } = context;
    const command = {
      type: 'removeApp' as const,
      appId: requireId(body.appId, 'appId'),
      origin: originOf(context),
    };
    return actors.ask(user, session.userId, command, askOptions('app_remove', context));
  },
});

function rotateRoute(cipher: ApiKeyCipher): AnyRoute {
  return defineRoute({
    method: 'POST',
    path: '/auth/v1/app/rotate_key',
    summary:
      'Give an application a new API key, shown once; `X-API-Key` stays the former one for 24 hours, or until `finish`',
    description:
      'Signatures carry both keys while both are valid. With `finish` no key is made; the former one ends now.',
    docs: {
      examples: {
        rotate: { body: { appId: ID_EXAMPLE } },
        finish: { body: { appId: ID_EXAMPLE, finish: true } },
      },
    },
    group: 'apps',
    auth: 'session',
    body: rotation,
    formerNames: APP_NAMES,
    result: withKey,
    errors: ['NotFound'],
    async handle(context) {
      const { actors, session, body } = context;
      const appId = requireId(body.appId, 'appId');
      if (body.finish === true) {
        const command = { type: 'endKeyOverlap' as const, userId: session.userId, origin: originOf(context) };
        return appItem(await actors.ask(app, appId, command));
      }
      const issued = cipher.issue();
      const command = {
        type: 'rotateKey' as const,
        userId: session.userId,
        key: issued.sealed,
        origin: originOf(context),
      };
      const view = await actors.ask(app, appId, command);
      return { ...appItem(view), apiKey: issued.apiKey };
    },
  });
}

const infoRoute = defineRoute({
  method: 'GET',
  path: '/auth/v1/app/info',
  summary: 'One application that the account registered',
  description: 'Applications of other accounts are 404, as unknown ones are.',
  group: 'apps',
  auth: 'session',
  query: appIdBody,
  formerNames: APP_NAMES,
  result: appSchema,
  errors: ['NotFound'],
  handle: (context) => getApp(accountCall(context), requireId(context.query.appId, 'appId')),
});

const accessRoute = defineRoute({
  method: 'GET',
  path: '/auth/v1/app/access',
  summary: 'Applications that may act for the account',
  description:
    '`source` says how the access came about: the account registered it, granted it, or logged in for it.',
  group: 'apps',
  auth: 'session',
  result: array(appAccessSchema),
  handle: (context) => listAppAccess(accountCall(context)),
});

const grantRoute = defineRoute({
  method: 'POST',
  path: '/auth/v1/app/grant_access',
  summary: 'Let an application act for the account',
  description:
    'Keys of the account may then log in with `X-App-Id`. The application has to be approved and open for agents.',
  group: 'apps',
  auth: 'session',
  body: appIdBody,
  result: appAccessSchema,
  errors: ['NotFound', 'AppLimitReached'],
  idempotent: true,
  handle: (context) => grantAppAccess(accountCall(context), requireId(context.body.appId, 'appId')),
});

const revokeRoute = defineRoute({
  method: 'POST',
  path: '/auth/v1/app/revoke_access',
  summary: 'Take the access of an application back and end its sessions',
  description: 'Its sessions of this account end at once.',
  group: 'apps',
  auth: 'session',
  body: appIdBody,
  result: sessionsEnded,
  errors: ['NotFound'],
  idempotent: true,
  handle: (context) => revokeAppAccess(accountCall(context), requireId(context.body.appId, 'appId')),
});

/** Throws `InvalidInput` that names the field. */
function readPatch(body: Static<typeof registration>, site: Site, settings: SettingsReader): AppPatch {
  const { name, url, webhookUrl, currencies, netTypes, maxBatch, redirectUris } = body;
  for (const uri of redirectUris ?? []) {
    const result = judgeRedirect(uri, APPLICATION_REDIRECTS);
    if (!result.ok) throw new GatewayError('InvalidInput', `redirectUris: ${uri} ${result.reason}`);
  }
  if (typeof url === 'string' && !isWebUrl(url))
    throw new GatewayError('InvalidInput', 'url: expected an http or https address');
  if (typeof webhookUrl === 'string' && webhookUrl !== '') {
    const { production, webhookAllow: allow } = site;
    const result = judgeWebhookUrl(webhookUrl, { production, allow, ports: settings.get('WebhookPorts') });
    if (!result.ok) throw new GatewayError('InvalidInput', `webhookUrl: ${result.reason}`);
  }
  return {
    ...(typeof name === 'string' ? { name } : {}),
    ...(typeof url === 'string' ? { url } : {}),
    ...(typeof webhookUrl === 'string' ? { webhookUrl: webhookUrl === '' ? null : webhookUrl } : {}),
    ...(Array.isArray(currencies) ? { currencies } : {}),
    ...(Array.isArray(netTypes) ? { netTypes } : {}),
    ...(typeof maxBatch === 'number' ? { maxBatch } : {}),
    ...(Array.isArray(redirectUris) ? { redirectUris } : {}),
  };
}
