/**
 * Delivers the event log to the webhooks of applications (spec 6.2). Reads the log once for all of them, schedules those
 * that an event may be for, and manages slots, retry timers and the checkpoint. An idle application costs no work.
 */
import type { Administration } from '../../actors/runtime/administration.ts';
import { OWNS_ALL } from '../../actors/runtime/ownership.ts';
import type { Schedule } from '../../actors/runtime/runtime-context.ts';
import { GatewayError } from '../../domain/errors.ts';
import { partitionOf } from '../../domain/ids.ts';
import { HOUR_MS, MINUTE_MS, SECOND_MS } from '../../domain/time.ts';
import { routeOf } from '../../domain/webhooks/routing.ts';
import { Checkpoint } from './checkpoint.ts';
import { CONCURRENCY_LIMITS, type ConcurrencyLimits, HostConcurrency } from './concurrency.ts';
import { DeliveryWorker, type DeliveryWorkerOptions } from './delivery-worker.ts';
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
  /** Other nodes deliver too. */
  readonly #isNode: boolean;
  readonly #statistics = new WebhookStatistics();
  #position = 0;
  #routing = false;
  #stopped = false;
  #started = false;
  #unsubscribe: (() => void) | undefined;
  #running = 0;

  constructor(options: DispatcherOptions) {
    this.#options = options;
    const { actors, log, onBug, concurrency = CONCURRENCY_LIMITS, ownership = OWNS_ALL } = options;
    this.#isNode = ownership !== OWNS_ALL;
    this.scanner = new LogScanner(log, actors);
    this.#concurrency = new HostConcurrency(concurrency, (appId, release) => this.#run(appId, release));
    this.worker = new DeliveryWorker({
      ...options,
      subscriptions: this.subscriptions,
      scanner: this.scanner,
      position: () => this.#position,
      checkpoint: (appId) => this.#checkpoint.positionOf(appId) ?? 0,
      onAttempt: (result, events) => this.#statistics.attempted(result, events),
    });
    this.#loader = new SubscriptionLoader({
      ...options,
      subscriptions: this.subscriptions,
      scanner: this.scanner,
      checkpoint: (appId) => this.#checkpoint.positionOf(appId) ?? 0,
      onLoaded: (entry) => {
        if (this.#started) this.#schedule(entry);
      },
    });
    this.#checkpoint = new Checkpoint({
      ...options,
      subscriptions: this.subscriptions,
      partitionOf: this.#isNode ? partitionOf : undefined,
      routed: () => this.#position,
      isHeld: () => this.#loader.unread > 0 || this.#loader.isReading,
      onError: (error) => {
        if (!(error instanceof GatewayError)) onBug(error, '');
      },
    });
  }

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
    while (this.#running > 0 && !over) await new Promise<void>((resolve) => schedule.timer(10, resolve));
    cancel();
    if (this.#started) await this.#checkpoint.write();
  }

  /** The application's state has changed. */
  changed(appId: string): void {
    this.#loader.changed(appId);
  }

  /** Call it when the applications that this node delivers to may be others. */
  ownershipChanged(): Promise<void> {
    this.#checkpoint.ownershipChanged();
    return this.#loader.ownershipChanged();
  }

  /** Runs a test delivery of the owner while no other delivery of the application is in flight. */
  async exclusively<T>(appId: string, work: (entry: Subscription) => Promise<T>): Promise<T> {
    const entry = this.subscriptions.get(appId);
    if (entry === undefined || this.#stopped) throw new GatewayError('WebhookDisabled');
    if (entry.busy) await new Promise<void>((resolve) => entry.waiters.push(resolve));
    if (this.#stopped) throw new GatewayError('Stopping');
    entry.busy = true;
    this.#running += 1;
    try {
      return await work(entry);
    } finally {
      this.#running -= 1;
      this.#finishRun(entry);
    }
  }

  /** When the oldest undelivered event was accepted, Unix milliseconds; undefined without a backlog. */
  oldestUndeliveredMs(appId: string): number | undefined {
    return oldestUndeliveredMs(this.subscriptions.get(appId), this.#options.log);
  }

  counters(): WebhookCounters {
    const { log, clock } = this.#options;
    return this.#statistics.counters(this.subscriptions, this.#concurrency, log, clock());
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
      this.scanner.remember(event);
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
    if (entry === undefined || this.#stopped) {
      if (entry !== undefined) entry.busy = false;
      release();
      return;
    }
    this.#running += 1;
    this.worker
      .run(entry)
      .then(
        () => {
          entry.deferrals = 0;
          return undefined;
        },
        (error: unknown) => {
          this.#statistics.deferred();
          if (!(error instanceof GatewayError)) this.#options.onBug(error, appId);
          entry.deferrals += 1;
          return Math.min(DEFERRED_MS * 2 ** (entry.deferrals - 1), DEFERRED_MAX_MS);
        },
      )
      .then((waitMs) => {
        this.#running -= 1;
        release();
        this.#finishRun(entry, waitMs);
      })
      .catch((error: unknown) => this.#options.onBug(error, appId));
  }

  /** Ends a run. Waiting test deliveries come first, then the rest of the backlog. */
  #finishRun(entry: Subscription, waitMs?: number): void {
    const waiter = entry.waiters.shift();
    if (waiter !== undefined) {
      waiter();
      return;
    }
    entry.busy = false;
    this.#checkpoint.moved();
    if (this.subscriptions.get(entry.view.appId) !== entry) return;
    if (waitMs === undefined) this.#schedule(entry);
    else this.#scheduleIn(entry, waitMs);
  }
}
