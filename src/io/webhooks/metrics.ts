/** Counters and gauges of webhooks, for metrics, the health page and the admin panel. */
import type { EventLog } from '../../domain/events/events.ts';
import { SECOND_MS } from '../../domain/time.ts';
import { classify } from '../../domain/webhooks/outcome.ts';
import type { AttemptResult } from '../../domain/webhooks/types.ts';
import type { HostConcurrency } from './concurrency.ts';
import type { LeasedAttempts } from './lease.ts';
import type { Subscription, Subscriptions } from './subscriptions.ts';

export interface WebhookCounters {
  readonly applications: number;
  /** Applications with a backlog. */
  readonly pending: number;
  readonly failing: number;
  readonly disabled: number;
  readonly inFlight: number;
  readonly waiting: number;
  readonly delivered: number;
  readonly deliveredEvents: number;
  readonly failed: number;
  /** Ended with the lease of the node, or because another one owns the application; repeated. */
  readonly ended: number;
  /** Runs that an actor refused; they are repeated. */
  readonly deferred: number;
  /** Age of the oldest undelivered event over all applications; 0 without one. */
  readonly oldestUndeliveredSeconds: number;
}

export class WebhookStatistics {
  #delivered = 0;
  #deliveredEvents = 0;
  #failed = 0;
  #deferred = 0;

  attempted(result: AttemptResult, events: number): void {
    if (classify(result) !== 'delivered') {
      this.#failed += 1;
      return;
    }
    this.#delivered += 1;
    this.#deliveredEvents += events;
  }

  deferred(): void {
    this.#deferred += 1;
  }

  counters(
    subscriptions: Subscriptions,
    concurrency: HostConcurrency,
    log: EventLog,
    { ended }: Pick<LeasedAttempts, 'ended'>,
    nowMs: number,
  ): WebhookCounters {
    let pending = 0;
    let failing = 0;
    let disabled = 0;
    let oldestMs = nowMs;
    for (const entry of subscriptions.all()) {
      if (entry.view.state === 'failing') failing += 1;
      if (entry.view.state === 'disabled') disabled += 1;
      if (entry.backlog.from === null) continue;
      pending += 1;
      oldestMs = Math.min(oldestMs, oldestUndeliveredMs(entry, log) ?? nowMs);
    }
    return {
      applications: subscriptions.size,
      pending,
      failing,
      disabled,
      inFlight: concurrency.inFlight,
      waiting: concurrency.waiting,
      delivered: this.#delivered,
      deliveredEvents: this.#deliveredEvents,
      failed: this.#failed,
      ended,
      deferred: this.#deferred,
      oldestUndeliveredSeconds: Math.round((nowMs - oldestMs) / SECOND_MS),
    };
  }
}

/**
 * Returns the time at which the oldest undelivered event was accepted, Unix milliseconds; undefined without a backlog.
 */
export function oldestUndeliveredMs(entry: Subscription | undefined, log: EventLog): number | undefined {
  if (entry === undefined || entry.backlog.from === null) return undefined;
  const [listed] = entry.backlog.after(entry.backlog.from);
  return log.page(listed === undefined ? entry.backlog.from : listed - 1, 1)[0]?.acceptedMs;
}
