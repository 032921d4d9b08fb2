/**
 * Reads the event log for one application: selects its events, checks the consent of users, and maps a time to a
 * position. Consent is checked at each read, so that a revocation takes effect with the next delivery.
 */

import { user } from '../../actors/accounts/user.ts';
import type { ActorSystem } from '../../actors/runtime/actor.ts';
import type { EventLog, StoredEvent } from '../../domain/events/events.ts';
import { SECOND_MS } from '../../domain/time.ts';
import { batchLength } from '../../domain/webhooks/batch.ts';
import { allowedBy, type Consent, routeOf } from '../../domain/webhooks/routing.ts';
import { isParticipantListFull, type Subscription } from './subscriptions.ts';

/** Events examined in one run; the next run continues. */
const SCAN_EVENTS_MAX = 2_000;
const PAGE_EVENTS = 100;
/** The intake's reorder window stores events slightly out of the order of acceptance. */
const ORDER_SLACK_MS = 60 * SECOND_MS;

export interface ScanResult {
  readonly events: readonly StoredEvent[];
  /** `events` holds all events of the application up to here. */
  readonly scanned: number;
  /** Tick of the event at `scanned`; undefined when none was examined. */
  readonly tick: string | undefined;
}

export class LogScanner {
  readonly #log: EventLog;
  readonly #actors: ActorSystem;

  constructor(log: EventLog, actors: ActorSystem) {
    this.#log = log;
    this.#actors = actors;
  }

  /** The next delivery: events after a position and up to `until`, at most `limit`, within the size of a body. */
  async scan(entry: Subscription, after: number, until: number, limit: number): Promise<ScanResult> {
    const found: StoredEvent[] = [];
    let scanned = after;
    let tick: string | undefined;
    let readCount = 0;
    while (scanned < until && readCount < SCAN_EVENTS_MAX) {
      const page = this.#log.page(scanned, PAGE_EVENTS);
      if (page.length === 0) return { events: found, scanned: Math.max(scanned, until), tick };
      for (const event of page) {
        if (event.sequence > until) return { events: found, scanned: until, tick };
        if (await this.allows(entry, event)) {
          found.push(event);
          // The first event that does not fit starts the next delivery.
          if (batchLength(found, limit) < found.length) {
            found.pop();
            return { events: found, scanned, tick };
          }
        }
        scanned = event.sequence;
        tick = event.tick;
        readCount += 1;
        if (found.length >= limit) return { events: found, scanned, tick };
      }
    }
    return { events: found, scanned, tick };
  }

  /** The events at these positions; undefined when one has left the log or may not be sent any more. */
  async load(entry: Subscription, sequences: readonly number[]): Promise<readonly StoredEvent[] | undefined> {
    const events: StoredEvent[] = [];
    for (const sequence of sequences) {
      const event = this.#at(sequence);
      if (event === undefined || !(await this.allows(entry, event))) return undefined;
      events.push(event);
    }
    return events;
  }

  /** Scans like `scan`, but these events only; `scanned` is `end` when all of them were examined. */
  async pick(
    entry: Subscription,
    sequences: readonly number[],
    limit: number,
    end: number,
  ): Promise<ScanResult> {
    const found: StoredEvent[] = [];
    for (const sequence of sequences) {
      const event = this.#at(sequence);
      if (event === undefined || !(await this.allows(entry, event))) continue;
      found.push(event);
      if (batchLength(found, limit) < found.length) {
        found.pop();
        return { events: found, scanned: found.at(-1)?.sequence ?? 0, tick: found.at(-1)?.tick };
      }
    }
    return { events: found, scanned: end, tick: found.at(-1)?.tick };
  }

  #at(sequence: number): StoredEvent | undefined {
    const [event] = this.#log.page(sequence - 1, 1);
    return event?.sequence === sequence ? event : undefined;
  }

  /**
   * First, last and number of the application's events accepted in a time range, up to position `until`. Counting stops
   * at `max`. Undefined when there are none.
   */
  async between(
    entry: Subscription,
    { fromMs, toMs }: { readonly fromMs: number; readonly toMs: number },
    until: number,
    max: number,
  ): Promise<{ first: number; last: number; events: number } | undefined> {
    let found: { first: number; last: number; events: number } | undefined;
    let after = this.positionAt(fromMs);
    for (;;) {
      const page = this.#log.page(after, PAGE_EVENTS);
      for (const event of page) {
        const { sequence, acceptedMs } = event;
        if (sequence > until || acceptedMs > toMs + ORDER_SLACK_MS) return found;
        after = sequence;
        if (acceptedMs < fromMs || acceptedMs > toMs || !(await this.allows(entry, event))) continue;
        found = { first: found?.first ?? sequence, last: sequence, events: (found?.events ?? 0) + 1 };
        if (found.events >= max) return found;
      }
      if (page.length < PAGE_EVENTS) return found;
      await new Promise((resolve) => setImmediate(resolve));
    }
  }

  async allows(entry: Subscription, event: StoredEvent): Promise<boolean> {
    const { subscriber } = entry;
    const route = routeOf(event, subscriber);
    if (route !== 'consent' || event.userId === undefined) return route === 'yes';
    const named = event.appId === subscriber.appId;
    if (!named && !isParticipantListFull(entry) && !entry.participants.has(event.userId)) return false;
    return allowedBy(await this.#consent(event.userId, subscriber.appId), event, subscriber);
  }

  async #consent(userId: string, appId: string): Promise<Consent> {
    const query = { type: 'appAccess' as const, appId };
    const access = await this.#actors.query(user, userId, query);
    if (access === undefined) return { grantedMs: null, revoked: false };
    const { source, grantedMs, revokedMs } = access;
    if (revokedMs !== null) return { grantedMs: null, revoked: true };
    // A login with a delegated key is not the user's consent to receive events.
    return { grantedMs: source === 'login' ? null : grantedMs, revoked: false };
  }

  /** A position before all events that were accepted at `sinceMs` or later, and after most earlier ones. */
  positionAt(sinceMs: number): number {
    let low = Math.max(0, this.#log.oldest - 1);
    let high = this.#log.newest;
    while (high - low > 1) {
      const middle = Math.floor((low + high) / 2);
      const [event] = this.#log.page(middle, 1);
      if (event !== undefined && event.acceptedMs < sinceMs - ORDER_SLACK_MS) low = middle;
      else high = middle;
    }
    return low;
  }
}
