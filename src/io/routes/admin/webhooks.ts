/** Admin JSON of webhook deliveries: attempts of an application, and the resend of one webhook. */
import { GatewayError } from '../../../domain/errors.ts';
import { int64, integer, object, optional, text } from '../../../domain/schema.ts';
import type { SessionContext } from '../../../domain/sessions.ts';
import type { AccountCall } from '../../accounts/account.ts';
import { requireId } from '../../accounts/login-parts.ts';
import { requireFresh } from '../../admin/pagination.ts';
import { viewApp } from '../../apps/apps.ts';
import { type AnyRoute, adminRoute, type RouteContext } from '../../http/table/route.ts';
import {
  deliveriesSchema,
  payloadSchema,
  resendSchema,
  type WebhookOwnerApi,
} from '../../webhooks/owner-api.ts';
import { accountCall } from '../sessions.ts';

const appIdSchema = int64('Application id: decimal string');
const webhookIdSchema = text({
  minLength: 1,
  maxLength: 64,
  examples: ['msg_2KWPBgLlAfxdpx2AI54pPJ85f4W'],
});
const PAGE_LINES = 100;

export interface AdminWebhookDeps {
  readonly webhooks: Pick<WebhookOwnerApi, 'deliveries' | 'payload' | 'resend'>;
}

export function createAdminWebhookRoutes({ webhooks }: AdminWebhookDeps): AnyRoute[] {
  return [
    adminRoute({
      method: 'GET',
      path: '/ProxyAdmin/api/deliveries',
      summary: 'Webhook attempts of any application; without `after` the newest',
      description: 'Ascending by `number`, 100 a page; `before` goes back.',
      feature: 'webhooks',
      query: object({
        appId: appIdSchema,
        after: optional(
          integer({ minimum: 0, description: 'Number of the last attempt of the page before' }),
        ),
        before: optional(integer({ minimum: 1, description: 'The newest attempts before this number' })),
      }),
      result: deliveriesSchema,
      errors: ['NotFound'],
      async handle(context) {
        const appId = requireId(context.query.appId, 'appId');
        const { after, before } = context.query;
        const page = { after, before, limit: PAGE_LINES };
        return webhooks.deliveries(await ownerCall(context, appId), appId, page);
      },
    }),
    adminRoute({
      method: 'GET',
      path: '/ProxyAdmin/api/delivery',
      summary: 'The body of one webhook of any application, as it was sent',
      description:
        'While all of its events are kept. Each look is in the audit log. Of a test there is none.',
      feature: 'webhooks',
      role: 'support',
      query: object({ appId: appIdSchema, webhookId: webhookIdSchema }),
      result: payloadSchema,
      errors: ['NotFound'],
      async handle(context) {
        const appId = requireId(context.query.appId, 'appId');
        const call = await ownerCall(context, appId);
        await auditAct(context, 'payload_read', appId, context.query.webhookId);
        return webhooks.payload(call, appId, context.query.webhookId);
      },
    }),
    adminRoute({
      method: 'POST',
      path: '/ProxyAdmin/api/resend',
      summary: 'Send one webhook of any application again',
      description:
        'Counted and recorded as the owner’s own resend, with the admin in the audit log. Needs a recent login.',
      feature: 'webhooks',
      role: 'support',
      body: object({
        appId: appIdSchema,
        webhookId: webhookIdSchema,
      }),
      result: resendSchema,
      errors: ['FreshLoginRequired', 'NotFound', 'AppLimitReached', 'WebhookDisabled'],
      async handle(context) {
        requireFresh(context);
        const { body } = context;
        const appId = requireId(body.appId, 'appId');
        const call = await ownerCall(context, appId);
        await auditAct(context, 'admin_resend', appId, body.webhookId);
        return webhooks.resend(call, appId, { webhookId: body.webhookId });
      },
    }),
  ];
}

/** Writes what an admin does to a webhook before it is done. */
function auditAct(
  { actors, client, nowMs, session }: RouteContext<unknown, unknown, SessionContext>,
  event: 'admin_resend' | 'payload_read',
  appId: string,
  webhookId: string,
): Promise<void> {
  const fields = { appId, webhookId, address: client.address };
  return actors.auditFirst({ utcMs: nowMs, event, userId: session.userId, fields });
}

/** A call in the name of the owner; the audit log names the admin. Throws `NotFound`. */
async function ownerCall(
  context: RouteContext<unknown, unknown, SessionContext>,
  appId: string,
): Promise<AccountCall> {
  const view = await viewApp(context.actors, appId);
  if (view === undefined) throw new GatewayError('NotFound', 'no such application');
  const call = accountCall(context);
  return { ...call, session: { ...call.session, userId: view.ownerId } };
}
