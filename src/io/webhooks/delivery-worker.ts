/**
 * Performs one delivery of one application: selects the events, sends the POST, stores the result. The delivery is
 * stored before it is sent and its result before the next one begins, so a crash repeats at most one delivery.
 */
import { app } from '../../actors/apps/app.ts';
import type { WebhookView } from '../../actors/apps/app-state.ts';
import type { WorkerCommand } from '../../actors/apps/delivery.ts';
import type { ActorSystem } from '../../actors/runtime/actor.ts';
import { OWNS_ALL, type Ownership } from '../../actors/runtime/ownership.ts';
import { GatewayError } from '../../domain/errors.ts';
import type { EventLog, StoredEvent } from '../../domain/events/events.ts';
import type { Clock } from '../../domain/time.ts';
import { bodyOf, webhookIdOf } from '../../domain/webhooks/batch.ts';
import { classify } from '../../domain/webhooks/outcome.ts';
import type { AttemptResult, OpenDelivery, Resend } from '../../domain/webhooks/types.ts';
import type { ApiKeyCipher } from '../apps/api-keys.ts';
import type { TraceSpan } from '../tracing/span.ts';
import { actorsBelow } from '../tracing/traced-actors.ts';
import type { Tracing } from '../tracing/tracing.ts';
import type { AttemptLog } from './attempt-log.ts';
import { type LeasedAttempts, LeaseOver } from './lease.ts';
import type { LogScanner, ScanResult } from './log-scanner.ts';
import type { OutgoingDelivery, WebhookSender } from './sender.ts';
import { type DeliveryKeys, openKeys } from './signature.ts';
import type { Subscription, Subscriptions } from './subscriptions.ts';

export interface DeliveryWorkerOptions {
  /** The actors of this node: its applications are here, and those of others are not asked to settle a late attempt. */
  readonly actors: ActorSystem;
  readonly log: EventLog;
  readonly subscriptions: Subscriptions;
  readonly scanner: LogScanner;
  readonly sender: WebhookSender;
  readonly cipher: ApiKeyCipher;
  readonly clock: Clock;
  /** Events up to this position have been routed. */
  readonly position: () => number;
  /** The stored checkpoint of an application: one that is not behind has no backlog before it. */
  readonly checkpoint: (appId: string) => number;
  readonly onAttempt: (result: AttemptResult, events: number) => void;
  /** Undefined: attempts are not logged. */
  readonly attemptLog: AttemptLog | undefined;
  /** Undefined: no attempt has a span. */
  readonly tracing: Pick<Tracing, 'beginWork'> | undefined;
  /** Applications that this node delivers to; all unless given. */
  readonly ownership?: Ownership;
  readonly attempts: LeasedAttempts;
}

interface Plan {
  readonly delivery: OpenDelivery;
  readonly events: readonly StoredEvent[];
  /** After this delivery the application has all its events up to here. */
  readonly scanned: number;
  /** It was open already, so it may have been sent before. */
  readonly reopened: boolean;
}

export class DeliveryWorker {
  readonly #options: DeliveryWorkerOptions;

  constructor(options: DeliveryWorkerOptions) {
    this.#options = options;
  }

  /** Performs at most one delivery. Rejects when an actor refuses; no state is lost and the run may be repeated. */
  async run(entry: Subscription): Promise<void> {
    const { clock } = this.#options;
    const view = await this.refresh(entry);
    if (view === undefined || view.state === 'disabled') return;
    if (view.retryAtMs !== null && view.retryAtMs > clock()) return;
    const plan = await this.#prepare(entry);
    if (plan !== undefined) await this.#deliver(entry, plan);
  }

  /** Reads the current state; undefined when the application has no webhook any more. */
  async refresh(entry: Subscription): Promise<WebhookView | undefined> {
    const { actors } = this.#options;
    const { appId } = entry.view;
    return this.#applyView(entry, await actors.query(app, appId, { type: 'webhook' }));
  }

  /** The keys that are valid now; undefined when the application was removed. */
  async apiKeys(appId: string): Promise<DeliveryKeys | undefined> {
    const { actors, cipher } = this.#options;
    const keys = await actors.query(app, appId, { type: 'keys' });
    return openKeys(keys, cipher);
  }

  /** Throws `LeaseOver` when this node may not deliver, or may not any more: the receiver may have got it all the same. */
  async send(
    entry: Subscription,
    delivery: Omit<OutgoingDelivery, 'url' | 'leased'>,
  ): Promise<AttemptResult> {
    const { sender, attempts } = this.#options;
    const { appId, url } = entry.view;
    if (!this.#isPresent(entry)) throw new LeaseOver();
    const leased = attempts.begin(appId);
    try {
      const result = await sender.send({ ...delivery, url, leased });
      if (leased.signal.aborted) throw new LeaseOver();
      return result;
    } finally {
      leased.end();
    }
  }

  /** Undefined ends the run: also of an application that has moved, or was removed, and is loaded again since then. */
  #applyView(entry: Subscription, view: WebhookView | null | undefined): WebhookView | undefined {
    const { subscriptions, ownership = OWNS_ALL } = this.#options;
    if (!this.#isPresent(entry)) return undefined;
    if (view === null || view === undefined || !ownership.owns(app.kind, entry.view.appId)) {
      subscriptions.delete(entry.view.appId);
      return undefined;
    }
    subscriptions.set(view);
    return view;
  }

  #isPresent(entry: Subscription): boolean {
    return this.#options.subscriptions.get(entry.view.appId) === entry;
  }

  /** `span`: of a sampled attempt. */
  async #ask(
    entry: Subscription,
    command: WorkerCommand,
    span?: TraceSpan,
  ): Promise<WebhookView | undefined> {
    const actors = actorsBelow(this.#options.actors, span);
    return this.#applyView(entry, await actors.ask(app, entry.view.appId, command));
  }

  async #prepare(entry: Subscription): Promise<Plan | undefined> {
    const { open, resends } = entry.view;
    if (open !== null) return this.#reopen(entry, open);
    const [resend] = resends;
    const { from } = entry.backlog;
    const live = from !== null;
    if (resend !== undefined && (!live || entry.lastSource === 'live'))
      return this.#planResend(entry, resend);
    return live ? this.#planLive(entry, from) : undefined;
  }

  /** Repeats the same id and bytes while all of its events may still be sent. */
  async #reopen(entry: Subscription, open: OpenDelivery): Promise<Plan | undefined> {
    const events = await this.#options.scanner.load(entry, open.sequences);
    if (events !== undefined)
      return { delivery: open, events, scanned: open.sequences.at(-1) ?? 0, reopened: true };
    await this.#ask(entry, { type: 'dropDelivery', webhookId: open.webhookId });
    if (open.source === 'live') {
      const first = (open.sequences[0] ?? 1) - 1;
      entry.backlog.readFrom(Math.min(entry.backlog.from ?? first, entry.view.cursor?.sequence ?? first));
    }
    return undefined;
  }

  async #planLive(entry: Subscription, pendingFrom: number): Promise<Plan | undefined> {
    const { log, position } = this.#options;
    let from = Math.max(pendingFrom, entry.view.cursor?.sequence ?? 0);
    if (log.oldest > 0 && from < log.oldest - 1) {
      const until = log.oldest - 1;
      if ((await this.#ask(entry, { type: 'noteGap', after: from, until })) === undefined) return undefined;
      from = until;
    }
    const { events, scanned, tick } = await this.#next(entry, from, position());
    if (events.length > 0) {
      const delivery = await this.#open(entry, events, null);
      return delivery === undefined ? undefined : { delivery, events, scanned, reopened: false };
    }
    this.#advance(entry, scanned);
    if (entry.backlog.from !== null || !entry.view.behind) return undefined;
    const cursor = { tick: tick ?? entry.view.cursor?.tick ?? '0', sequence: scanned };
    await this.#ask(entry, { type: 'caughtUp', cursor });
    return undefined;
  }

  /** Reads from the backlog's list while it is complete, otherwise from the log. */
  async #next(entry: Subscription, from: number, position: number): Promise<ScanResult> {
    const { scanner } = this.#options;
    const { backlog, view } = entry;
    const listed = backlog.after(from);
    const { unread } = backlog;
    if (listed.length > 0) return scanner.pick(entry, listed, view.limit, unread ?? position);
    if (unread === undefined) return { events: [], scanned: position, tick: undefined };
    return scanner.scan(entry, Math.max(unread, from), position, view.limit);
  }

  /** All events of the application up to `scanned` are delivered. */
  #advance(entry: Subscription, scanned: number): void {
    const { backlog } = entry;
    if (backlog.unread !== undefined && scanned >= this.#options.position()) backlog.caughtUp();
    backlog.advance(scanned);
  }

  async #planResend(entry: Subscription, resend: Resend): Promise<Plan | undefined> {
    const { scanner } = this.#options;
    const limit = Math.min(resend.limit, entry.view.maxBatch);
    const { after, until, sequences, resendId } = resend;
    let events: readonly StoredEvent[] = [];
    if (sequences !== null) {
      const left = sequences.filter((sequence) => sequence > after);
      events = (await scanner.pick(entry, left, limit, until)).events;
    } else {
      let scanned = after;
      while (events.length === 0 && scanned < until) {
        const part = await scanner.scan(entry, scanned, until, limit);
        events = part.events;
        scanned = part.scanned;
        await new Promise((resolve) => setImmediate(resolve));
      }
    }
    if (events.length > 0) {
      const delivery = await this.#open(entry, events, resendId);
      return delivery === undefined ? undefined : { delivery, events, scanned: after, reopened: false };
    }
    await this.#ask(entry, { type: 'endResend', resendId });
    return undefined;
  }

  /** Undefined when the application does not accept the delivery any more. */
  async #open(
    entry: Subscription,
    events: readonly StoredEvent[],
    resendId: string | null,
  ): Promise<OpenDelivery | undefined> {
    const sequences = events.map(({ sequence }) => sequence);
    const webhookId = webhookIdOf(this.#options.log.epoch, entry.view.appId, sequences);
    const delivery: Omit<OpenDelivery, 'attempts'> = {
      webhookId,
      source: resendId === null ? 'live' : 'resend',
      sequences,
      firstTick: events[0]?.tick ?? '0',
      lastTick: events.at(-1)?.tick ?? '0',
      resendId,
    };
    const view = await this.#ask(entry, { type: 'openDelivery', delivery });
    return view?.open?.webhookId === webhookId ? view.open : undefined;
  }

  async #deliver(entry: Subscription, plan: Plan): Promise<void> {
    const span = this.#options.tracing?.beginWork('webhook attempt');
    if (span === undefined) {
      await this.#attempt(entry, plan, undefined);
      return;
    }
    describeAttempt(span, plan);
    let error: string | undefined = 'bug';
    try {
      const result = await this.#attempt(entry, plan, span);
      error = result === undefined ? undefined : errorOf(result);
    } catch (thrown) {
      if (thrown instanceof GatewayError) error = thrown.row;
      throw thrown;
    } finally {
      span.end(error);
    }
  }

  /** Undefined when nothing was sent. */
  async #attempt(
    entry: Subscription,
    { delivery, events, scanned, reopened }: Plan,
    span: TraceSpan | undefined,
  ): Promise<AttemptResult | undefined> {
    const { checkpoint, onAttempt } = this.#options;
    const { appId } = entry.view;
    const { webhookId, source, sequences } = delivery;
    const apiKeys = await this.apiKeys(appId);
    // The application was removed meanwhile.
    if (apiKeys === undefined) return undefined;
    entry.lastSource = source;
    const resent = source === 'resend';
    const result = await this.send(entry, { webhookId, body: bodyOf(events), apiKeys, resent, span });
    onAttempt(result, events.length);
    const behind = scanned < checkpoint(appId);
    let view: WebhookView | undefined;
    try {
      const command = { type: 'settleDelivery' as const, webhookId, result, behind, reopened };
      view = await this.#ask(entry, command, span);
    } finally {
      this.#log(entry, delivery, result, view);
    }
    const last = sequences.at(-1) ?? 0;
    if (view === undefined || source === 'resend' || (view.cursor?.sequence ?? 0) < last) return result;
    this.#advance(entry, scanned);
    // One more run stores that the backlog is empty.
    if (view.behind) entry.backlog.keep(scanned);
    return result;
  }

  /** `view`: after the attempt; undefined when its result could not be stored. */
  #log(
    entry: Subscription,
    delivery: OpenDelivery,
    result: AttemptResult,
    view: WebhookView | undefined,
  ): void {
    const { log, attemptLog } = this.#options;
    const { webhookId, source, sequences, attempts } = delivery;
    attemptLog?.({
      appId: entry.view.appId,
      webhookId,
      source,
      attempt: attempts + 1,
      eventIds: [`${log.epoch}-${sequences[0] ?? 0}`, `${log.epoch}-${sequences.at(-1) ?? 0}`],
      events: sequences.length,
      host: entry.host,
      result,
      state: view?.state,
      retryAtMs: view?.retryAtMs ?? null,
    });
  }
}

function describeAttempt(span: TraceSpan, { delivery, events }: Plan): void {
  const { webhookId, source, attempts } = delivery;
  span.set({
    'gatehouse.webhook.id': webhookId,
    'gatehouse.webhook.source': source,
    'gatehouse.webhook.attempt': attempts + 1,
    'gatehouse.webhook.events': events.length,
  });
}

/** `error.type` of an attempt that did not deliver: its class, or the status. */
function errorOf(result: AttemptResult): string | undefined {
  if (classify(result) === 'delivered') return undefined;
  return result.failure ?? String(result.status);
}
