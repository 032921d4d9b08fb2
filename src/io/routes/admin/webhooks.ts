/** Admin JSON of webhook deliveries: attempts of an application, and the resend of one webhook. */
import { GatewayError } from '../../../domain/errors.ts';
import { int64, integer, object, optional, text } from '../../../domain/schema.ts';
import type { SessionContext } from '../../../domain/sessions.ts';
import type { AccountCall } from '../../accounts/account.ts';
import { requireId } from '../../accounts/login-parts.ts';
import { requireFresh } from '../../admin/pagination.ts';
import { viewApp } from '../../apps/apps.ts';
import { type AnyRoute, defineRoute, type RouteContext } from '../../http/table/route.ts';
import { deliveriesSchema, resendSchema, type WebhookOwnerApi } from '../../webhooks/owner-api.ts';
import { accountCall } from '../sessions.ts';

const appIdSchema = int64('Application id: decimal string');
const PAGE_LINES = 100;

export interface AdminWebhookDeps {
  readonly webhooks: Pick<WebhookOwnerApi, 'deliveries' | 'resend'>;
}

export function createAdminWebhookRoutes({ webhooks }: AdminWebhookDeps): AnyRoute[] {
  return [
    defineRoute({
      method: 'GET',
      path: '/ProxyAdmin/api/deliveries',
      summary: 'Webhook attempts of any application; without `after` the newest',
      docs: { description: 'Ascending by `number`, 100 a page.' },
      group: 'admin',
      feature: 'webhooks',
      auth: 'admin',
      limits: [],
      query: object({
        appId: appIdSchema,
        after: optional(
          integer({ minimum: 0, description: 'Number of the last attempt of the page before' }),
        ),
      }),
      result: deliveriesSchema,
      errors: ['NotFound'],
      async handle(context) {
        const appId = requireId(context.query.appId, 'appId');
        return webhooks.deliveries(await ownerCall(context, appId), appId, context.query.after, PAGE_LINES);
      },
    }),
    defineRoute({
      method: 'POST',
      path: '/ProxyAdmin/api/resend',
      summary: 'Send one webhook of any application again',
      docs: {
        description:
          'Counted and recorded as the owner’s own resend, with the admin in the audit log. Needs a recent login.',
      },
      group: 'admin',
      feature: 'webhooks',
      auth: 'admin',
      role: 'support',
      limits: [],
      body: object({
        appId: appIdSchema,
        webhookId: text({ minLength: 1, maxLength: 64, examples: ['msg_2KWPBgLlAfxdpx2AI54pPJ85f4W'] }),
      }),
      result: resendSchema,
      errors: ['FreshLoginRequired', 'NotFound', 'AppLimitReached', 'WebhookDisabled'],
      async handle(context) {
        requireFresh(context);
        const { actors, body, client, nowMs, session } = context;
        const appId = requireId(body.appId, 'appId');
        const call = await ownerCall(context, appId);
        await actors.auditFirst({
          utcMs: nowMs,
          event: 'admin_resend',
          userId: session.userId,
          fields: { appId, webhookId: body.webhookId, address: client.address },
        });
        return webhooks.resend(call, appId, { webhookId: body.webhookId });
      },
    }),
  ];
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
