/**
 * Work of the node that delivers to an application for its owner: it has the backlog and the delivery log, and makes
 * the attempts. Of a cluster that is the owner of the application; results are plain data, which travel.
 */
import { randomBytes } from 'node:crypto';
import { app } from '../../actors/apps/app.ts';
import { deliveryLog, type LogLine, logPageId, PAGES } from '../../actors/apps/delivery-log.ts';
import type { ActorSystem } from '../../actors/runtime/actor.ts';
import { GatewayError } from '../../domain/errors.ts';
import { type EventLog, OWN_MODULE } from '../../domain/events/events.ts';
import { type Clock, toIso } from '../../domain/time.ts';
import { bodyOf, webhookIdOf } from '../../domain/webhooks/batch.ts';
import { classify } from '../../domain/webhooks/outcome.ts';
import { type FailureClass, RESEND_EVENTS_MAX, type Resend } from '../../domain/webhooks/types.ts';
import type { TraceSpan } from '../tracing/span.ts';
import { numberOf, textOf } from '../verb-arguments.ts';
import type { AttemptLog } from './attempt-log.ts';
import type { WebhookDispatcher } from './dispatcher.ts';
import type { Subscription } from './subscriptions.ts';

/** Tests under way at one node. */
const PINGS_MAX = 8;

/** The events of a resend, without those that have left the log. */
type ResendTarget = Pick<Resend, 'after' | 'until' | 'sequences' | 'events'>;

/** The attempts that are listed, by the numbers of the neighbours of the page; null for none. */
interface LinesPage {
  readonly after: number | null;
  readonly before: number | null;
  readonly limit: number;
}

/** An attempt with the type of its first event. */
export interface ShownLine extends LogLine {
  readonly type: string | null;
}

interface PingResult {
  readonly webhookId: string;
  readonly delivered: boolean;
  readonly status: number | null;
  readonly class: FailureClass | null;
  readonly milliseconds: number;
  readonly answer: string;
}

interface OwnerWorkDeps {
  readonly dispatcher: WebhookDispatcher;
  /** The actors of this node. */
  readonly actors: Pick<ActorSystem, 'ask' | 'query'>;
  readonly log: EventLog;
  readonly attemptLog: AttemptLog | undefined;
  readonly clock: Clock;
}

export class WebhookOwnerWork {
  readonly #deps: OwnerWorkDeps;
  #pings = 0;
  #counting = false;

  constructor(deps: OwnerWorkDeps) {
    this.#deps = deps;
  }

  /** Returns the time at which the oldest undelivered event was accepted, Unix milliseconds; null without a backlog. */
  waitingSinceMs(appId: string): number | null {
    return this.#deps.dispatcher.oldestUndeliveredMs(appId) ?? null;
  }

  /** Attempts after number `after`, or the newest ones before `before`, or of all. Ascending. */
  async lines(appId: string, { after, before, limit }: LinesPage): Promise<readonly ShownLine[]> {
    const lines = await this.#lines(appId);
    const page =
      after === null
        ? lines.filter(({ number }) => before === null || number < before).slice(-limit)
        : lines.filter(({ number }) => number > after).slice(0, limit);
    const types = new Map<string, string | null>();
    for (const { webhookId, sequences } of page)
      if (!types.has(webhookId)) types.set(webhookId, this.#typeOf(appId, webhookId, sequences));
    return page.map((line) => ({ ...line, type: types.get(line.webhookId) ?? null }));
  }

  /** The body that was sent, made of its events again. Rejects with `NotFound`, also where the log lacks one of them. */
  async payload(appId: string, webhookId: string): Promise<string> {
    const { log } = this.#deps;
    const sequences = await this.#sequencesOf(appId, webhookId);
    const events = sequences.flatMap((sequence) => log.page(sequence - 1, 1));
    const isWhole = sequences.every((sequence, index) => events[index]?.sequence === sequence);
    if (!isWhole || webhookIdOf(log.epoch, appId, sequences) !== webhookId)
      throw new GatewayError('NotFound', 'its events are no longer kept');
    return bodyOf(events);
  }

  /** The events of one delivery. Rejects with `NotFound`. */
  async delivered(appId: string, webhookId: string): Promise<ResendTarget> {
    const { log } = this.#deps;
    const all = await this.#sequencesOf(appId, webhookId);
    const sequences = all.filter((sequence) => log.page(sequence - 1, 1)[0]?.sequence === sequence);
    const [first] = sequences;
    if (first === undefined) throw new GatewayError('NotFound', 'its events are no longer kept');
    return { after: first - 1, until: sequences.at(-1) ?? first, sequences, events: sequences.length };
  }

  /** Those accepted in a range of time, up to the cursor: later ones are delivered anyway. Rejects with `NotFound`, `InvalidInput`. */
  async deliveredBetween(appId: string, fromMs: number, toMs: number): Promise<ResendTarget> {
    const { dispatcher } = this.#deps;
    const entry = await dispatcher.subscription(appId);
    if (this.#counting) throw new GatewayError('Overloaded', 'another range is being counted');
    this.#counting = true;
    try {
      const until = entry.view.cursor?.sequence ?? 0;
      const range = { fromMs, toMs };
      const found = await dispatcher.scanner.between(entry, range, until, RESEND_EVENTS_MAX + 1);
      if (found === undefined) throw new GatewayError('NotFound', 'nothing was delivered in this range');
      if (found.events > RESEND_EVENTS_MAX)
        throw new GatewayError('InvalidInput', `from, to: more than ${RESEND_EVENTS_MAX} events`);
      return { after: found.first - 1, until: found.last, sequences: null, events: found.events };
    } finally {
      this.#counting = false;
    }
  }

  /** Sends a test event now. `span`: of a sampled request, where that came to this node. */
  async ping(appId: string, span?: TraceSpan): Promise<PingResult> {
    if (this.#pings >= PINGS_MAX) throw new GatewayError('Overloaded');
    this.#pings += 1;
    try {
      return await this.#deps.dispatcher.exclusively(appId, (entry) => this.#send(entry, span));
    } finally {
      this.#pings -= 1;
    }
  }

  async #send(entry: Subscription, span: TraceSpan | undefined): Promise<PingResult> {
    const { actors, attemptLog, clock, dispatcher } = this.#deps;
    const { appId, state } = entry.view;
    const nowMs = clock();
    const webhookId = `ping_${randomBytes(20).toString('base64url')}`;
    const tick = String(BigInt(nowMs) << 20n);
    const event = { module: OWN_MODULE, tick, type: 'ping', data: { appId, utc: toIso(nowMs) } };
    const apiKeys = await dispatcher.worker.apiKeys(appId);
    if (apiKeys === undefined) throw new GatewayError('NotFound', 'no such application');
    const body = JSON.stringify(event);
    const result = await dispatcher.worker.send(entry, { webhookId, body, apiKeys, resent: false, span });
    attemptLog?.({
      ...{ appId, webhookId, source: 'ping', attempt: 1, eventIds: undefined, events: 1 },
      ...{ host: entry.host, result, state, retryAtMs: null },
    });
    await actors.ask(app, appId, { type: 'logPing', webhookId, tick, result });
    const { status, failure, elapsedMs, answer } = result;
    const delivered = classify(result) === 'delivered';
    return { webhookId, delivered, status, class: failure, milliseconds: elapsedMs, answer };
  }

  /** Positions of the events of one delivery. Rejects with `NotFound`: a test has none. */
  async #sequencesOf(appId: string, webhookId: string): Promise<readonly number[]> {
    const line = (await this.#lines(appId)).find((each) => each.webhookId === webhookId);
    const view = await this.#deps.actors.query(app, appId, { type: 'view' });
    const parked = view?.webhook.parked.find((each) => each.webhookId === webhookId);
    const all = line?.sequences ?? (parked === undefined ? [] : [parked.sequence]);
    if (all.length === 0) throw new GatewayError('NotFound', 'no such delivery');
    return all;
  }

  /** The type of the first event; null where it has left the log, or a restored log has another one there. */
  #typeOf(appId: string, webhookId: string, sequences: readonly number[]): string | null {
    const { log } = this.#deps;
    const [first] = sequences;
    if (first === undefined || webhookIdOf(log.epoch, appId, sequences) !== webhookId) return null;
    const [event] = log.page(first - 1, 1);
    return event?.sequence === first ? event.type : null;
  }

  async #lines(appId: string): Promise<LogLine[]> {
    const pages = Array.from({ length: PAGES }, (_, page) =>
      this.#deps.actors.query(deliveryLog, logPageId(appId, page), { type: 'lines' }),
    );
    return (await Promise.all(pages)).flat().toSorted((one, other) => one.number - other.number);
  }
}

export const WEBHOOK_VERBS = [
  'webhookWaiting',
  'webhookLines',
  'webhookDelivered',
  'webhookDeliveredBetween',
  'webhookPayload',
  'webhookPing',
] as const;
export type WebhookVerb = (typeof WEBHOOK_VERBS)[number];

/**
 * Verbs that other nodes may call, each with the application first. `admit` throws where this node does not deliver to
 * it. Throws TypeError for arguments that no node of this version sends.
 */
export function webhookVerbs(
  work: WebhookOwnerWork,
  admit: (appId: string) => void,
): Record<WebhookVerb, (...args: readonly unknown[]) => unknown> {
  const admitted = (value: unknown): string => {
    const appId = textOf(value);
    admit(appId);
    return appId;
  };
  return {
    webhookWaiting: (appId) => work.waitingSinceMs(admitted(appId)),
    webhookLines: (appId, after, limit, before) =>
      work.lines(admitted(appId), {
        after: numberOrNull(after),
        before: numberOrNull(before),
        limit: numberOf(limit),
      }),
    webhookDelivered: (appId, webhookId) => work.delivered(admitted(appId), textOf(webhookId)),
    webhookDeliveredBetween: (appId, fromMs, toMs) =>
      work.deliveredBetween(admitted(appId), numberOf(fromMs), numberOf(toMs)),
    webhookPayload: (appId, webhookId) => work.payload(admitted(appId), textOf(webhookId)),
    webhookPing: (appId) => work.ping(admitted(appId)),
  };
}

const numberOrNull = (value: unknown) => (value === null ? null : numberOf(value));

/** Runs `here` where this node delivers to the application, otherwise calls the verb at the node that does. */
export type AtDeliverer = <Result>(
  verb: WebhookVerb,
  appId: string,
  here: () => Promise<Result>,
  ...args: readonly unknown[]
) => Promise<Result>;
