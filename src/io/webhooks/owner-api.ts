/**
 * Operations of owners and admins on webhooks: list deliveries, resend, ping, re-enable. One implementation and one set
 * of schemas for REST, MCP tools and the admin panel.
 */
import { app } from '../../actors/apps/app.ts';
import { GatewayError } from '../../domain/errors.ts';
import {
  array,
  boolean,
  idText,
  integer,
  named,
  nullable,
  object,
  oneOf,
  type Static,
  text,
  utcText,
} from '../../domain/schema.ts';
import { SECOND_MS, toIso } from '../../domain/time.ts';
import { RESEND_SPAN_MAX_MS } from '../../domain/webhooks/types.ts';
import { type AccountCall, askOptions } from '../accounts/account.ts';
import { type AppItem, appItem, requireOwnApp } from '../apps/apps.ts';
import type { AtDeliverer, ShownLine, WebhookOwnerWork } from './owner-work.ts';

const webhookIdSchema = idText('Of one attempt and its repeats', 'msg_2KWPBgLlAfxdpx2AI54pPJ85f4W');
const failureClasses = ['blocked_address', 'unresolved', 'unreachable', 'timed_out', 'broken'] as const;

/** One attempt. `class` where there was no answer, `status` where there was one. */
const deliverySchema = named(
  'Delivery',
  object({
    number: integer(),
    webhookId: webhookIdSchema,
    source: oneOf(['live', 'resend', 'ping']),
    utc: utcText(),
    attempt: integer(),
    outcome: oneOf(['delivered', 'failed', 'split', 'parked', 'dropped']),
    status: nullable(integer()),
    class: nullable(oneOf(failureClasses)),
    milliseconds: integer(),
    events: integer(),
    firstTick: text({ examples: ['1795167000000123'] }),
    lastTick: text({ examples: ['1795167000000456'] }),
    answer: text({ description: 'The beginning of what the receiver said', examples: ['ok'] }),
    type: nullable(text({ description: 'Of the first event, while it is kept', examples: ['OrderCreated'] })),
    signed: nullable(
      object({
        timestamp: integer({ description: 'The header webhook-timestamp as it was sent' }),
        signature: text({
          description: 'The header webhook-signature as it was sent',
          examples: ['v1,K5oZfzN95Z9UVu1EsfQmfVNQhnkZ2pj9o9NDN/H/pI4='],
        }),
      }),
    ),
  }),
);

export const payloadSchema = named(
  'DeliveryPayload',
  object({ webhookId: webhookIdSchema, payload: text({ examples: ['{"module":"core"}'] }) }),
);

export const deliveriesSchema = named(
  'DeliveryPage',
  object({
    items: array(deliverySchema),
    parked: array(
      object({
        webhookId: webhookIdSchema,
        tick: text({ examples: ['1795167000000123'] }),
        utc: utcText(),
        status: nullable(integer()),
      }),
    ),
    resends: array(object({ resendId: idText('Of the marked repeats', 'resend-1'), events: integer() })),
    /** Age of the oldest event that waits; null when none does. */
    oldestUndeliveredSeconds: nullable(integer()),
  }),
);

export const resendSchema = named(
  'Resend',
  object({ resendId: idText('Of the marked repeats', 'resend-1'), events: integer() }),
);
export const pingSchema = named(
  'Ping',
  object({
    webhookId: webhookIdSchema,
    delivered: boolean(),
    status: nullable(integer()),
    class: nullable(oneOf(failureClasses)),
    milliseconds: integer(),
    answer: text({ examples: ['ok'] }),
  }),
);

type DeliveryList = Static<typeof deliveriesSchema>;
type PingResult = Static<typeof pingSchema>;

interface DeliveriesPage {
  readonly after?: number | undefined;
  readonly before?: number | undefined;
  readonly limit: number;
}

/** Selects what is sent again. */
export type ResendRequest =
  | { readonly webhookId: string }
  | { readonly fromMs: number; readonly toMs: number };

interface OwnerApiOptions {
  /** Work of this node. */
  readonly work: WebhookOwnerWork;
  readonly atDeliverer: AtDeliverer;
  /** False while webhooks wait for nodes of another version. */
  readonly isOffered: () => boolean;
}

export class WebhookOwnerApi {
  readonly #work: WebhookOwnerWork;
  readonly #at: AtDeliverer;
  readonly #isOffered: () => boolean;

  constructor({ work, atDeliverer, isOffered }: OwnerApiOptions) {
    this.#work = work;
    this.#at = atDeliverer;
    this.#isOffered = isOffered;
  }

  /** Age of the oldest undelivered event in whole seconds; null without a backlog. */
  async oldestUndeliveredSeconds(appId: string, nowMs: number): Promise<number | null> {
    if (!this.#isOffered()) return null;
    const here = async () => this.#work.waitingSinceMs(appId);
    const sinceMs = await this.#at('webhookWaiting', appId, here);
    return sinceMs === null ? null : Math.max(0, Math.round((nowMs - sinceMs) / SECOND_MS));
  }

  /** Attempts after number `after`, or the newest ones before `before`, or of all. Ascending. */
  async deliveries(call: AccountCall, appId: string, page: DeliveriesPage): Promise<DeliveryList> {
    const { webhook } = await requireOwnApp(call, appId);
    const { after = null, before = null, limit } = page;
    const here = () => this.#work.lines(appId, { after, before, limit });
    const lines = await this.#at('webhookLines', appId, here, after, limit, before);
    return {
      items: lines.map(deliveryItem),
      parked: webhook.parked.map(({ webhookId, tick, utcMs, status }) => ({
        webhookId,
        tick,
        utc: toIso(utcMs),
        status,
      })),
      resends: webhook.resends.map(({ resendId, events }) => ({ resendId, events })),
      oldestUndeliveredSeconds: await this.oldestUndeliveredSeconds(appId, call.nowMs),
    };
  }

  /** The body of one delivery as it was sent, while all of its events are kept. */
  async payload(call: AccountCall, appId: string, webhookId: string): Promise<Static<typeof payloadSchema>> {
    await requireOwnApp(call, appId);
    const here = () => this.#work.payload(appId, webhookId);
    return { webhookId, payload: await this.#at('webhookPayload', appId, here, webhookId) };
  }

  /** The cursor does not move; repeated requests carry `webhook-resend: true`. */
  async resend(
    call: AccountCall,
    appId: string,
    request: ResendRequest,
  ): Promise<Static<typeof resendSchema>> {
    await requireOwnApp(call, appId);
    const target =
      'webhookId' in request
        ? await this.#delivered(appId, request.webhookId)
        : await this.#deliveredBetween(appId, request);
    const command = {
      type: 'resendEvents' as const,
      userId: call.session.userId,
      ...target,
      origin: call.origin,
    };
    const resend = await call.actors.ask(app, appId, command, askOptions('app_resend', call));
    return { resendId: resend.resendId, events: resend.events };
  }

  /** Sends a test event now and returns the receiver's answer. Changes no state and no counter. */
  async ping(call: AccountCall, appId: string): Promise<PingResult> {
    const { webhookUrl } = await requireOwnApp(call, appId);
    if (webhookUrl === null) throw new GatewayError('WebhookDisabled', 'it has no webhookUrl');
    return this.#at('webhookPing', appId, () => this.#work.ping(appId, call.span));
  }

  /** Resumes at the cursor at once. `dropParked` empties the list of parked events. */
  async enable(call: AccountCall, appId: string, dropParked: boolean): Promise<AppItem> {
    await requireOwnApp(call, appId);
    const { userId } = call.session;
    const command = { type: 'enableWebhook' as const, userId, dropParked, origin: call.origin };
    return appItem(await call.actors.ask(app, appId, command, askOptions('app_enable', call)));
  }

  #delivered(appId: string, webhookId: string) {
    const here = () => this.#work.delivered(appId, webhookId);
    return this.#at('webhookDelivered', appId, here, webhookId);
  }

  #deliveredBetween(appId: string, { fromMs, toMs }: { fromMs: number; toMs: number }) {
    if (fromMs > toMs || toMs - fromMs > RESEND_SPAN_MAX_MS)
      throw new GatewayError('InvalidInput', 'from, to: expected a range of at most 14 days');
    const here = () => this.#work.deliveredBetween(appId, fromMs, toMs);
    return this.#at('webhookDeliveredBetween', appId, here, fromMs, toMs);
  }
}

function deliveryItem(line: ShownLine): Static<typeof deliverySchema> {
  const { number, webhookId, source, attempt, outcome, status, answer, firstTick, lastTick, type } = line;
  return {
    number,
    webhookId,
    source,
    utc: toIso(line.utcMs),
    attempt,
    outcome,
    status,
    class: line.failure,
    milliseconds: line.elapsedMs,
    events: source === 'ping' ? 1 : line.sequences.length,
    firstTick,
    lastTick,
    answer,
    type,
    signed: line.signed ?? null,
  };
}
