/**
 * Operations of owners and admins on webhooks: list deliveries, resend, ping, re-enable. One implementation and one set
 * of schemas for REST, MCP tools and the admin panel.
 */
import { randomBytes } from 'node:crypto';
import { app } from '../../actors/apps/app.ts';
import { deliveryLog, type LogLine, logPageId, PAGES } from '../../actors/apps/delivery-log.ts';
import type { AppView } from '../../domain/apps.ts';
import { GatewayError } from '../../domain/errors.ts';
import { type EventLog, OWN_MODULE } from '../../domain/events/events.ts';
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
import { classify } from '../../domain/webhooks/outcome.ts';
import { RESEND_EVENTS_MAX, RESEND_SPAN_MAX_MS } from '../../domain/webhooks/types.ts';
import { type AccountCall, askOptions } from '../accounts/account.ts';
import { type AppItem, appItem, requireOwnApp } from '../apps/apps.ts';
import type { AttemptLog } from './attempt-log.ts';
import type { WebhookDispatcher } from './dispatcher.ts';
import type { WebhookSender } from './sender.ts';

const failureClasses = ['blocked_address', 'unresolved', 'unreachable', 'timed_out', 'broken'] as const;

/** One attempt. `class` where there was no answer, `status` where there was one. */
const deliverySchema = named(
  'Delivery',
  object({
    number: integer(),
    webhookId: idText('Of one attempt and its repeats', 'msg_2KWPBgLlAfxdpx2AI54pPJ85f4W'),
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
  }),
);

export const deliveriesSchema = named(
  'DeliveryPage',
  object({
    items: array(deliverySchema),
    parked: array(
      object({
        webhookId: idText('Of one attempt and its repeats', 'msg_2KWPBgLlAfxdpx2AI54pPJ85f4W'),
        tick: text({ examples: ['1795167000000123'] }),
        utc: utcText(),
        status: nullable(integer()),
      }),
    ),
    resends: array(object({ resendId: idText('Of the marked repeats', 'resend-1'), events: integer() })),
    /** Of the oldest event that waits; null when none does. */
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
    webhookId: idText('Of one attempt and its repeats', 'msg_2KWPBgLlAfxdpx2AI54pPJ85f4W'),
    delivered: boolean(),
    status: nullable(integer()),
    class: nullable(oneOf(failureClasses)),
    milliseconds: integer(),
    answer: text({ examples: ['ok'] }),
  }),
);

type DeliveryList = Static<typeof deliveriesSchema>;
type PingResult = Static<typeof pingSchema>;

/** Selects what is sent again. */
export type ResendRequest =
  | { readonly webhookId: string }
  | { readonly fromMs: number; readonly toMs: number };

const PINGS_MAX = 8;

export class WebhookOwnerApi {
  readonly #dispatcher: WebhookDispatcher;
  readonly #log: EventLog;
  readonly #sender: WebhookSender;
  readonly #attemptLog: AttemptLog | undefined;
  #pings = 0;
  #counting = false;

  constructor(
    dispatcher: WebhookDispatcher,
    log: EventLog,
    sender: WebhookSender,
    attemptLog: AttemptLog | undefined,
  ) {
    this.#dispatcher = dispatcher;
    this.#log = log;
    this.#sender = sender;
    this.#attemptLog = attemptLog;
  }

  /** Age of the oldest undelivered event in whole seconds; null without a backlog. */
  oldestUndeliveredSeconds(appId: string, nowMs: number): number | null {
    const sinceMs = this.#dispatcher.oldestUndeliveredMs(appId);
    return sinceMs === undefined ? null : Math.max(0, Math.round((nowMs - sinceMs) / SECOND_MS));
  }

  /** Attempts after number `after`, or the newest ones without it. Ascending. */
  async deliveries(
    call: AccountCall,
    appId: string,
    after: number | undefined,
    limit: number,
  ): Promise<DeliveryList> {
    const { webhook } = await requireOwnApp(call, appId);
    const lines = await this.#lines(call, appId);
    const page =
      after === undefined
        ? lines.slice(-limit)
        : lines.filter(({ number }) => number > after).slice(0, limit);
    return {
      items: page.map(deliveryItem),
      parked: webhook.parked.map(({ webhookId, tick, utcMs, status }) => ({
        webhookId,
        tick,
        utc: toIso(utcMs),
        status,
      })),
      resends: webhook.resends.map(({ resendId, events }) => ({ resendId, events })),
      oldestUndeliveredSeconds: this.oldestUndeliveredSeconds(appId, call.nowMs),
    };
  }

  /** The cursor does not move; repeated requests carry `webhook-resend: true`. */
  async resend(
    call: AccountCall,
    appId: string,
    request: ResendRequest,
  ): Promise<Static<typeof resendSchema>> {
    const view = await requireOwnApp(call, appId);
    const target =
      'webhookId' in request
        ? await this.#eventsOf(call, view, request.webhookId)
        : await this.#eventsBetween(view, request);
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
    if (this.#pings >= PINGS_MAX) throw new GatewayError('Overloaded');
    this.#pings += 1;
    try {
      return await this.#dispatcher.exclusively(appId, async ({ view: { url, state }, host }) => {
        const webhookId = `ping_${randomBytes(20).toString('base64url')}`;
        const tick = String(BigInt(call.nowMs) << 20n);
        const event = { module: OWN_MODULE, tick, type: 'ping', data: { appId, utc: toIso(call.nowMs) } };
        const apiKeys = await this.#dispatcher.worker.apiKeys(appId);
        if (apiKeys === undefined) throw new GatewayError('NotFound', 'no such application');
        const body = JSON.stringify(event);
        const { span } = call;
        const result = await this.#sender.send({ url, webhookId, body, apiKeys, resent: false, span });
        this.#attemptLog?.({
          appId,
          webhookId,
          source: 'ping',
          attempt: 1,
          eventIds: undefined,
          events: 1,
          host,
          result,
          state,
          retryAtMs: null,
        });
        await call.actors.ask(app, appId, { type: 'logPing', webhookId, tick, result });
        const { status, failure, elapsedMs, answer } = result;
        const delivered = classify(result) === 'delivered';
        return { webhookId, delivered, status, class: failure, milliseconds: elapsedMs, answer };
      });
    } finally {
      this.#pings -= 1;
    }
  }

  /** Resumes at the cursor at once. `dropParked` empties the list of parked events. */
  async enable(call: AccountCall, appId: string, dropParked: boolean): Promise<AppItem> {
    await requireOwnApp(call, appId);
    const { userId } = call.session;
    const command = { type: 'enableWebhook' as const, userId, dropParked, origin: call.origin };
    return appItem(await call.actors.ask(app, appId, command, askOptions('app_enable', call)));
  }

  async #lines({ actors }: AccountCall, appId: string): Promise<LogLine[]> {
    const pages = Array.from({ length: PAGES }, (_, page) =>
      actors.query(deliveryLog, logPageId(appId, page), { type: 'lines' }),
    );
    return (await Promise.all(pages)).flat().toSorted((one, other) => one.number - other.number);
  }

  async #eventsOf(
    call: AccountCall,
    { id, webhook }: AppView,
    webhookId: string,
  ): Promise<{ after: number; until: number; sequences: readonly number[]; events: number }> {
    const line = (await this.#lines(call, id)).find((each) => each.webhookId === webhookId);
    const parked = webhook.parked.find((each) => each.webhookId === webhookId);
    const all = line?.sequences ?? (parked === undefined ? [] : [parked.sequence]);
    if (all.length === 0) throw new GatewayError('NotFound', 'no such delivery');
    const sequences = all.filter((sequence) => this.#log.page(sequence - 1, 1)[0]?.sequence === sequence);
    const [first] = sequences;
    if (first === undefined) throw new GatewayError('NotFound', 'its events are no longer kept');
    return { after: first - 1, until: sequences.at(-1) ?? first, sequences, events: sequences.length };
  }

  /** Selects events up to the cursor only; later ones are delivered anyway. */
  async #eventsBetween(
    { id }: AppView,
    { fromMs, toMs }: { fromMs: number; toMs: number },
  ): Promise<{ after: number; until: number; sequences: null; events: number }> {
    if (fromMs > toMs || toMs - fromMs > RESEND_SPAN_MAX_MS)
      throw new GatewayError('InvalidInput', 'from, to: expected a range of at most 14 days');
    const { subscriptions, scanner } = this.#dispatcher;
    const entry = subscriptions.get(id);
    if (entry === undefined) throw new GatewayError('WebhookDisabled');
    if (this.#counting) throw new GatewayError('Overloaded', 'another range is being counted');
    this.#counting = true;
    try {
      const until = entry.view.cursor?.sequence ?? 0;
      const found = await scanner.between(entry, { fromMs, toMs }, until, RESEND_EVENTS_MAX + 1);
      if (found === undefined) throw new GatewayError('NotFound', 'nothing was delivered in this range');
      if (found.events > RESEND_EVENTS_MAX)
        throw new GatewayError('InvalidInput', `from, to: more than ${RESEND_EVENTS_MAX} events`);
      return { after: found.first - 1, until: found.last, sequences: null, events: found.events };
    } finally {
      this.#counting = false;
    }
  }
}

function deliveryItem(line: LogLine): Static<typeof deliverySchema> {
  const { number, webhookId, source, attempt, outcome, status, answer, firstTick, lastTick } = line;
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
  };
}
