/** Webhooks of the account's applications (docs/APPLICATIONS.md): deliveries, resend, ping, enable. */

import { APP_NAMES } from '../../domain/apps.ts';
import { GatewayError } from '../../domain/errors.ts';
import { ID_EXAMPLE } from '../../domain/examples.ts';
import { boolean, int64, integer, object, optional, text } from '../../domain/schema.ts';
import { requireId } from '../accounts/login-parts.ts';
import { appSchema } from '../apps/apps.ts';
import { readTime, timeText } from '../http/checks/query-time.ts';
import { type AnyRoute, defineRoute } from '../http/table/route.ts';
import {
  deliveriesSchema,
  pingSchema,
  type ResendRequest,
  resendSchema,
  type WebhookOwnerApi,
} from '../webhooks/owner-api.ts';
import { accountCall } from './sessions.ts';

const appIdSchema = int64('Application id: decimal string');
const PAGE_LINES = 100;
const PAGE_LINES_MAX = 1_000;

export function createAppWebhookRoutes(ownerApi: WebhookOwnerApi): AnyRoute[] {
  return [deliveriesRoute(ownerApi), resendRoute(ownerApi), pingRoute(ownerApi), enableRoute(ownerApi)];
}

function deliveriesRoute(ownerApi: WebhookOwnerApi): AnyRoute {
  return defineRoute({
    method: 'GET',
    path: '/auth/v1/app/deliveries',
    summary: 'Webhook attempts of an application, with parked events and resends; without `after` the newest',
    description:
      'Ascending by `number`. `parked` are events that the receiver refused for good, `resends` those under way.',
    group: 'apps',
    feature: 'webhooks',
    auth: 'session',
    formerNames: APP_NAMES,
    query: object({
      appId: appIdSchema,
      after: optional(integer({ minimum: 0, description: 'Number of the last attempt of the page before' })),
      before: optional(integer({ minimum: 1, description: 'The newest attempts before this number' })),
      limit: optional(integer({ minimum: 1, maximum: PAGE_LINES_MAX })),
    }),
    result: deliveriesSchema,
    errors: ['NotFound'],
    handle(context) {
      const { appId, after, before, limit = PAGE_LINES } = context.query;
      const page = { after, before, limit };
      return ownerApi.deliveries(accountCall(context), requireId(appId, 'appId'), page);
    },
  });
}

function resendRoute(ownerApi: WebhookOwnerApi): AnyRoute {
  return defineRoute({
    method: 'POST',
    path: '/auth/v1/app/resend',
    summary: 'Send one webhook again, or all events that were accepted in a range of time',
    description:
      'Either `webhookId` or `from`, with `to` now unless given. Repeats are marked and do not move `last_tick`.',
    docs: {
      examples: {
        one: { body: { appId: ID_EXAMPLE, webhookId: 'msg_2KWPBgLlAfxdpx2AI54pPJ85f4W' } },
        range: {
          body: { appId: ID_EXAMPLE, from: '2026-11-19T00:00:00Z', to: '2026-11-20T00:00:00Z' },
        },
      },
    },
    group: 'apps',
    feature: 'webhooks',
    auth: 'session',
    formerNames: APP_NAMES,
    body: object({
      appId: appIdSchema,
      webhookId: optional(
        text({ minLength: 1, maxLength: 64, examples: ['msg_2KWPBgLlAfxdpx2AI54pPJ85f4W'] }),
      ),
      from: optional(timeText('ISO 8601; at most 14 days before `to`')),
      to: optional(timeText('ISO 8601; left out: now')),
    }),
    result: resendSchema,
    errors: ['NotFound', 'AppLimitReached', 'WebhookDisabled'],
    idempotent: true,
    handle(context) {
      const { body, nowMs } = context;
      return ownerApi.resend(accountCall(context), requireId(body.appId, 'appId'), readRequest(body, nowMs));
    },
  });
}

function pingRoute(ownerApi: WebhookOwnerApi): AnyRoute {
  return defineRoute({
    method: 'POST',
    path: '/auth/v1/app/ping',
    summary: 'Send a test event to the webhook now and tell what the receiver answered',
    description: 'Waits for the answer of the receiver. Neither counters nor the cursor change.',
    group: 'apps',
    feature: 'webhooks',
    auth: 'session',
    formerNames: APP_NAMES,
    body: object({ appId: appIdSchema }),
    result: pingSchema,
    errors: ['NotFound', 'WebhookDisabled'],
    handle: (context) => ownerApi.ping(accountCall(context), requireId(context.body.appId, 'appId')),
  });
}

function enableRoute(ownerApi: WebhookOwnerApi): AnyRoute {
  return defineRoute({
    method: 'POST',
    path: '/auth/v1/app/enable',
    summary: 'Put a disabled webhook back to work from where it stopped, and try a failing one at once',
    description: '`dropParked` forgets the events that were parked.',
    group: 'apps',
    feature: 'webhooks',
    auth: 'session',
    formerNames: APP_NAMES,
    body: object({ appId: appIdSchema, dropParked: optional(boolean()) }),
    result: appSchema,
    errors: ['NotFound', 'WebhookDisabled'],
    idempotent: true,
    handle(context) {
      const { appId, dropParked = false } = context.body;
      return ownerApi.enable(accountCall(context), requireId(appId, 'appId'), dropParked);
    },
  });
}

/** Throws `InvalidInput` that names the field. */
function readRequest(
  { webhookId, from, to }: { webhookId?: string; from?: string; to?: string },
  nowMs: number,
): ResendRequest {
  if (webhookId !== undefined) {
    if (from !== undefined || to !== undefined)
      throw new GatewayError('InvalidInput', 'webhookId: not together with from or to');
    return { webhookId };
  }
  if (from === undefined) throw new GatewayError('InvalidInput', 'webhookId or from: expected one of them');
  return { fromMs: readTime(from, 'from'), toMs: to === undefined ? nowMs : readTime(to, 'to') };
}
