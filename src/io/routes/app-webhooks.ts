/** Webhooks of the account's applications (config.md "App registration"): deliveries, resend, ping, enable. */
import { GatewayError } from '../../domain/errors.ts';
import { boolean, int64, integer, object, optional, text } from '../../domain/schema.ts';
import { appSchema } from '../apps.ts';
import { type AnyRoute, defineRoute } from '../http/route.ts';
import { requireId } from '../login-parts.ts';
import { readTime, timeText } from '../query-time.ts';
import {
  deliveriesSchema,
  pingSchema,
  type ResendRequest,
  resendSchema,
  type WebhookDesk,
} from '../webhooks-desk.ts';
import { accountCall } from './sessions.ts';

const idSchema = int64('Application id: decimal string');
/** Attempts of one page. */
const PAGE_LINES = 100;
const PAGE_LINES_MAX = 1_000;

export function createAppWebhookRoutes(desk: WebhookDesk): AnyRoute[] {
  return [deliveriesRoute(desk), resendRoute(desk), pingRoute(desk), enableRoute(desk)];
}

function deliveriesRoute(desk: WebhookDesk): AnyRoute {
  return defineRoute({
    method: 'GET',
    path: '/auth/v1/app/deliveries',
    summary: 'Webhook attempts of an application, with parked events and resends; without `after` the newest',
    group: 'apps',
    auth: 'session',
    limits: [],
    query: object({
      id: idSchema,
      after: optional(integer({ minimum: 0, description: 'Number of the last attempt of the page before' })),
      limit: optional(integer({ minimum: 1, maximum: PAGE_LINES_MAX })),
    }),
    result: deliveriesSchema,
    errors: ['InvalidInput', 'SessionNotFound', 'NotFound'],
    handle(context) {
      const { id, after, limit = PAGE_LINES } = context.query;
      return desk.deliveries(accountCall(context), requireId(id, 'id'), after, limit);
    },
  });
}

function resendRoute(desk: WebhookDesk): AnyRoute {
  return defineRoute({
    method: 'POST',
    path: '/auth/v1/app/resend',
    summary: 'Send one webhook again, or all events that were accepted in a range of time',
    group: 'apps',
    auth: 'session',
    limits: [],
    body: object({
      id: idSchema,
      webhookId: optional(text({ minLength: 1, maxLength: 64 })),
      from: optional(timeText('ISO 8601; at most 14 days before `to`')),
      to: optional(timeText('ISO 8601; left out: now')),
    }),
    result: resendSchema,
    errors: [
      'InvalidInput',
      'SessionNotFound',
      'NotFound',
      'AppLimitReached',
      'WebhookDisabled',
      'Overloaded',
    ],
    idempotent: true,
    handle(context) {
      const { body, nowMs } = context;
      return desk.resend(accountCall(context), requireId(body.id, 'id'), readRequest(body, nowMs));
    },
  });
}

function pingRoute(desk: WebhookDesk): AnyRoute {
  return defineRoute({
    method: 'POST',
    path: '/auth/v1/app/ping',
    summary: 'Send a test event to the webhook now and tell what the receiver answered',
    group: 'apps',
    auth: 'session',
    limits: [],
    body: object({ id: idSchema }),
    result: pingSchema,
    errors: ['InvalidInput', 'SessionNotFound', 'NotFound', 'WebhookDisabled', 'Overloaded'],
    handle: (context) => desk.ping(accountCall(context), requireId(context.body.id, 'id')),
  });
}

function enableRoute(desk: WebhookDesk): AnyRoute {
  return defineRoute({
    method: 'POST',
    path: '/auth/v1/app/enable',
    summary: 'Put a disabled webhook back to work from where it stopped, and try a failing one at once',
    group: 'apps',
    auth: 'session',
    limits: [],
    body: object({ id: idSchema, dropParked: optional(boolean()) }),
    result: appSchema,
    errors: ['InvalidInput', 'SessionNotFound', 'NotFound', 'WebhookDisabled'],
    idempotent: true,
    handle(context) {
      const { id, dropParked = false } = context.body;
      return desk.enable(accountCall(context), requireId(id, 'id'), dropParked);
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
