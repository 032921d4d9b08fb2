/**
 * Delivers the event log to the webhooks of applications (spec 6.2). Reads the log once for all of them, schedules those
 * that an event may be for, and manages slots, retry timers and the checkpoint. An idle application costs no work.
 */
import { app } from '../../actors/apps/app.ts';
import type { Administration } from '../../actors/runtime/administration.ts';
import { NotOwner } from '../../actors/runtime/not-owner.ts';
import { OWNS_ALL } from '../../actors/runtime/ownership.ts';
import type { Schedule } from '../../actors/runtime/runtime-context.ts';
import { GatewayError } from '../../domain/errors.ts';
import { partitionOf } from '../../domain/ids.ts';
import { HOUR_MS, MINUTE_MS, SECOND_MS } from '../../domain/time.ts';
import { routeOf } from '../../domain/webhooks/routing.ts';
import { Checkpoint } from './checkpoint.ts';
import { CONCURRENCY_LIMITS, type ConcurrencyLimits, HostConcurrency } from './concurrency.ts';
import { DeliveryWorker, type DeliveryWorkerOptions } from './delivery-worker.ts';
import { type DeliveryLease, ENDLESS, LeasedAttempts, LeaseOver, NO_LEASE_MS } from './lease.ts';
import { SubscriptionLoader } from './loader.ts';
import { LogScanner } from './log-scanner.ts';
import { oldestUndeliveredMs, type WebhookCounters, WebhookStatistics } from './metrics.ts';
import { type Subscription, Subscriptions } from './subscriptions.ts';

interface DispatcherOptions
  extends Pick<
    DeliveryWorkerOptions,
    'actors' | 'log' | 'sender' | 'cipher' | 'clock' | 'attemptLog' | 'tracing' | 'ownership'
  > {
  readonly administration: Pick<Administration, 'ids' | 'metaGet' | 'metaPut'>;
  readonly schedule: Schedule;
  readonly concurrency?: ConcurrencyLimits;
  /** Lease of a node of a cluster; endless unless given. */
  readonly lease?: DeliveryLease;
  readonly onBug: (error: unknown, appId: string) => void;
}

const PAGE_EVENTS = 500;
/** Delay after a run that an actor refused (overload, quarantine, full disk); doubled each further time. */
const DEFERRED_MS = 5 * SECOND_MS;
const DEFERRED_MAX_MS = MINUTE_MS;

export class WebhookDispatcher {
  readonly subscriptions = new Subscriptions();
  readonly scanner: LogScanner;
  readonly worker: DeliveryWorker;
  readonly #options: DispatcherOptions;
  readonly #concurrency: HostConcurrency;
  readonly #checkpoint: Checkpoint;
  readonly #loader: SubscriptionLoader;
  readonly #attempts: LeasedAttempts;
  /** Other nodes deliver too. */
  readonly #isNode: boolean;
  /** Applications with a run under way, one each, also of those that have moved to another node meanwhile. */
  readonly #active = new Set<string>();
  readonly #statistics = new WebhookStatistics();
  #position = 0;
  #routing = false;
  #stopped = false;
  #started = false;
  #unsubscribe: (() => void) | undefined;

  constructor(options: DispatcherOptions) {
    this.#options = options;
    const { actors, log, schedule, concurrency = CONCURRENCY_LIMITS } = options;
    const { ownership = OWNS_ALL, lease = ENDLESS } = options;
    this.#isNode = ownership !== OWNS_ALL;
    this.#attempts = new LeasedAttempts(lease, (appId) => ownership.owns(app.kind, appId), schedule);
    this.scanner = new LogScanner(log, actors);
    this.#concurrency = new HostConcurrency(concurrency, (appId, release) => this.#run(appId, release));
    this.worker = new DeliveryWorker({
      ...options,
      subscriptions: this.subscriptions,
      scanner: this.scanner,
      position: () => this.#position,
      checkpoint: (appId) => this.#checkpoint.positionOf(appId) ?? 0,
      attempts: this.#attempts,
      onAttempt: (result, events) => this.#statistics.attempted(result, events),
    });
    this.#loader = new SubscriptionLoader({
      ...options,
      subscriptions: this.subscriptions,
      scanner: this.scanner,
      checkpoint: (appId) => this.#checkpoint.positionOf(appId) ?? 0,
      hasLease: () => this.#attempts.runs,
      onLoaded: (entry) => {
        if (this.#started) this.#schedule(entry);
      },
    });
    this.#checkpoint = new Checkpoint({
      ...options,
      subscriptions: this.subscriptions,
      partitionOf: this.#isNode ? partitionOf : undefined,
      routed: () => this.#position,
      isHeld: () => this.#loader.unread > 0 || this.#loader.isReading || !this.#attempts.runs,
      onError: this.#onCheckpointError,
    });
  }

  readonly #onCheckpointError = (error: unknown): void => {
    if (!(error instanceof GatewayError)) this.#options.onBug(error, '');
  };

  /** Loads all applications and resumes at the stored checkpoint. */
  async start(): Promise<void> {
    const { log } = this.#options;
    // A node reads what came before from the log: its applications were another's.
    this.#position = (this.#isNode ? undefined : this.#checkpoint.position) ?? log.newest;
    // Stored before any application relies on it.
    await this.#checkpoint.write();
    await this.#loader.readAll();
    if (this.#stopped) return;
    this.#started = true;
    this.#unsubscribe = log.subscribe(() => this.#wake());
    for (const entry of this.subscriptions.all()) this.#schedule(entry);
    this.#wake();
  }

  /** Starts no new delivery; resolves when none is in flight or the time is over. */
  async stop(withinMs: number): Promise<void> {
    const { schedule } = this.#options;
    this.#stopped = true;
    this.#unsubscribe?.();
    this.#checkpoint.stop();
    this.#loader.stop();
    this.subscriptions.release();
    let over = false;
    const cancel = schedule.timer(withinMs, () => {
      over = true;
    });
    while (this.#active.size > 0 && !over) await new Promise<void>((resolve) => schedule.timer(10, resolve));
    cancel();
    this.#attempts.stop();
    // The next owner of a node that is out by now continues from the checkpoint before.
    if (this.#started) await this.#checkpoint.write().catch(this.#onCheckpointError);
  }

  changed(appId: string): void {
    this.#loader.changed(appId);
  }

  /** Call it when the applications that this node delivers to may be others. */
  ownershipChanged(): Promise<void> {
    this.#checkpoint.ownershipChanged();
    this.#attempts.look();
    return this.#loader.ownershipChanged();
  }

  /** The application as it is delivered to. Throws `WebhookDisabled`, `Stopping`, and `NotOwner` where another node delivers. */
  async subscription(appId: string): Promise<Subscription> {
    const { ownership = OWNS_ALL } = this.#options;
    if (this.#stopped) throw new GatewayError('Stopping');
    if (!ownership.owns(app.kind, appId)) throw new NotOwner();
    // A node that has just taken over may not have come to it.
    if (this.subscriptions.get(appId) === undefined) await this.#loader.load(appId);
    const entry = this.subscriptions.get(appId);
    if (entry === undefined) throw new GatewayError('WebhookDisabled');
    return entry;
  }

  /** Runs a test delivery of the owner while no other delivery of the application is in flight. */
  async exclusively<T>(appId: string, work: (entry: Subscription) => Promise<T>): Promise<T> {
    let entry = await this.subscription(appId);
    if (entry.busy) {
      const { waiters } = entry;
      await new Promise<void>((resolve) => waiters.push(resolve));
      entry = await this.subscription(appId);
    }
    if (this.#active.has(appId)) throw new GatewayError('Overloaded');
    this.#begin(entry);
    try {
      return await work(entry);
    } finally {
      this.#finishRun(entry);
    }
  }

  /**
   * Returns the time at which the oldest undelivered event was accepted, Unix milliseconds; undefined without a
   * backlog.
   */
  oldestUndeliveredMs(appId: string): number | undefined {
    return oldestUndeliveredMs(this.subscriptions.get(appId), this.#options.log);
  }

  counters(): WebhookCounters {
    const { log, clock } = this.#options;
    return this.#statistics.counters(this.subscriptions, this.#concurrency, log, this.#attempts, clock());
  }

  /** Schedules routing once for all events that arrive in this event-loop tick. */
  #wake(): void {
    if (this.#routing || this.#stopped) return;
    this.#routing = true;
    this.#options.schedule.immediate(() => this.#route());
  }

  #route(): void {
    this.#routing = false;
    if (this.#stopped) return;
    const page = this.#options.log.page(this.#position, PAGE_EVENTS);
    for (const event of page) {
      const { sequence } = event;
      this.#position = sequence;
      for (const entry of this.subscriptions.candidates(event)) {
        if (routeOf(event, entry.subscriber) === 'no') continue;
        if (sequence <= (entry.view.cursor?.sequence ?? 0)) continue;
        if (entry.backlog.offer(sequence)) this.#schedule(entry);
      }
    }
    if (page.length === 0) return;
    this.#checkpoint.moved();
    this.#wake();
  }

  /** Queues the application for a slot or sets its retry timer; does nothing while it has a slot. */
  #schedule(entry: Subscription): void {
    const { view } = entry;
    const work = entry.backlog.from !== null || view.open !== null || view.resends.length > 0;
    if (entry.busy || this.#stopped || !work || view.state === 'disabled') return;
    if (this.#active.has(view.appId)) return;
    entry.cancelTimer?.();
    entry.cancelTimer = undefined;
    const waitMs = (view.retryAtMs ?? 0) - this.#options.clock();
    if (waitMs > 0) {
      this.#scheduleIn(entry, waitMs);
      return;
    }
    entry.busy = true;
    this.#concurrency.add(view.appId, entry.host, view.state === 'failing');
  }

  #scheduleIn(entry: Subscription, waitMs: number): void {
    entry.cancelTimer?.();
    entry.cancelTimer = this.#options.schedule.timer(Math.min(waitMs, HOUR_MS), () => {
      entry.cancelTimer = undefined;
      if (this.subscriptions.get(entry.view.appId) === entry) this.#schedule(entry);
    });
  }

  #run(appId: string, release: () => void): void {
    const entry = this.subscriptions.get(appId);
    // It may have queued twice: for a run before it was removed or has moved, and for one since it is back.
    if (entry === undefined || this.#stopped || this.#active.has(appId)) {
      if (entry !== undefined && this.#stopped) entry.busy = false;
      release();
      return;
    }
    this.#begin(entry);
    this.worker
      .run(entry)
      .then(
        () => {
          entry.deferrals = 0;
          return undefined;
        },
        (error: unknown) => this.#deferral(entry, error),
      )
      .then((waitMs) => {
        release();
        this.#finishRun(entry, waitMs);
      })
      .catch((error: unknown) => this.#options.onBug(error, appId));
  }

  #begin(entry: Subscription): void {
    entry.busy = true;
    this.#active.add(entry.view.appId);
  }

  /** Milliseconds until a run that was refused is repeated. */
  #deferral(entry: Subscription, error: unknown): number {
    this.#statistics.deferred();
    if (!(error instanceof GatewayError)) this.#options.onBug(error, entry.view.appId);
    else if (error instanceof LeaseOver || !this.#attempts.runs) return NO_LEASE_MS;
    entry.deferrals += 1;
    return Math.min(DEFERRED_MS * 2 ** (entry.deferrals - 1), DEFERRED_MAX_MS);
  }

  /** Ends a run. Waiting test deliveries come first, then the rest of the backlog. */
  #finishRun(entry: Subscription, waitMs?: number): void {
    const { appId } = entry.view;
    this.#active.delete(appId);
    const waiter = entry.waiters.shift();
    if (waiter !== undefined) {
      waiter();
      return;
    }
    entry.busy = false;
    this.#checkpoint.moved();
    const present = this.subscriptions.get(appId);
    if (present === undefined) return;
    if (waitMs === undefined || present !== entry) this.#schedule(present);
    else this.#scheduleIn(entry, waitMs);
  }
}
