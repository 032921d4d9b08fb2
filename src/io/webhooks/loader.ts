/**
 * Loads subscriptions from the application actors: all at the start, one after a change. A quarantined application is
 * retried each minute without delaying the others; until it is loaded the checkpoint does not advance.
 */
import { app } from '../../actors/apps/app.ts';
import type { WebhookView } from '../../actors/apps/app-state.ts';
import type { ActorSystem } from '../../actors/runtime/actor.ts';
import type { Administration } from '../../actors/runtime/administration.ts';
import { OWNS_ALL, type Ownership } from '../../actors/runtime/ownership.ts';
import type { Schedule } from '../../actors/runtime/runtime-context.ts';
import { GatewayError } from '../../domain/errors.ts';
import { type Clock, MINUTE_MS } from '../../domain/time.ts';
import { NO_LEASE_MS } from './lease.ts';
import type { LogScanner } from './log-scanner.ts';
import type { Subscription, Subscriptions } from './subscriptions.ts';

/** Applications loaded in one event-loop tick. */
const APPS_PER_TICK = 200;
/** An application is loaded by then: its first state waits for other nodes, while a checkpoint may pass over its events. */
const NEW_MS = 5 * MINUTE_MS;

interface LoaderOptions {
  readonly actors: ActorSystem;
  readonly administration: Pick<Administration, 'ids'>;
  readonly schedule: Schedule;
  readonly clock: Clock;
  readonly subscriptions: Subscriptions;
  readonly scanner: LogScanner;
  /** The stored checkpoint of an application: one that is not behind has no backlog before it. */
  readonly checkpoint: (appId: string) => number;
  /** Without a lease nothing can be read. */
  readonly hasLease: () => boolean;
  readonly onLoaded: (entry: Subscription) => void;
  readonly onBug: (error: unknown, appId: string) => void;
  /** Applications of others are passed over, and removed where they were loaded. */
  readonly ownership?: Ownership;
}

export class SubscriptionLoader {
  readonly #options: LoaderOptions;
  readonly #unread = new Set<string>();
  /** Ends of the timers after which they are tried again, one each. */
  readonly #retries = new Map<string, () => void>();
  #stopped = false;
  #reading = 0;

  constructor(options: LoaderOptions) {
    this.#options = options;
  }

  get unread(): number {
    return this.#unread.size;
  }

  /** Some applications may not be loaded yet. */
  get isReading(): boolean {
    return this.#reading > 0;
  }

  stop(): void {
    this.#stopped = true;
    for (const cancel of this.#retries.values()) cancel();
  }

  /** `onlyNew`: those that were loaded before are not read again. */
  async readAll(onlyNew = false): Promise<void> {
    this.#reading += 1;
    try {
      await this.#readPages(onlyNew);
    } finally {
      this.#reading -= 1;
    }
  }

  async #readPages(onlyNew: boolean): Promise<void> {
    const { administration, schedule, subscriptions } = this.#options;
    for (let after = '', more = true; more && !this.#stopped; ) {
      const ids = administration.ids('app', after, APPS_PER_TICK);
      for (const appId of ids) {
        if (!onlyNew || subscriptions.get(appId) === undefined) await this.load(appId);
      }
      more = ids.length === APPS_PER_TICK;
      after = ids.at(-1) ?? '';
      await new Promise<void>((resolve) => schedule.immediate(resolve));
    }
  }

  /** Another node may own some of the applications now, and this node others. */
  async ownershipChanged(): Promise<void> {
    const { subscriptions, ownership = OWNS_ALL } = this.#options;
    for (const { view } of [...subscriptions.all()])
      if (!ownership.owns(app.kind, view.appId)) subscriptions.delete(view.appId);
    await this.readAll(true);
  }

  changed(appId: string): void {
    if (!this.#stopped) this.load(appId).catch((error: unknown) => this.#options.onBug(error, appId));
  }

  async load(appId: string): Promise<void> {
    const { actors, subscriptions, ownership = OWNS_ALL } = this.#options;
    if (this.#isOfAnother(appId)) return;
    let view: WebhookView | undefined;
    try {
      view = await actors.query(app, appId, { type: 'webhook' });
    } catch (error) {
      if (!(error instanceof GatewayError)) throw error;
      this.#unread.add(appId);
      this.#retry(appId);
      return;
    }
    // The answer may have waited for other nodes, and the application has moved meanwhile.
    if (this.#isOfAnother(appId)) return;
    const isTakenOver = ownership !== OWNS_ALL && subscriptions.get(appId) === undefined;
    const late = this.#unread.delete(appId);
    if (view === undefined) subscriptions.delete(appId);
    else this.#add(view, late, isTakenOver);
  }

  #isOfAnother(appId: string): boolean {
    const { subscriptions, ownership = OWNS_ALL } = this.#options;
    if (ownership.owns(app.kind, appId)) return false;
    this.#unread.delete(appId);
    subscriptions.delete(appId);
    return true;
  }

  #retry(appId: string): void {
    const { schedule, hasLease } = this.#options;
    if (this.#stopped) return;
    this.#retries.get(appId)?.();
    const cancel = schedule.timer(hasLease() ? MINUTE_MS : NO_LEASE_MS, () => {
      this.#retries.delete(appId);
      this.changed(appId);
    });
    this.#retries.set(appId, cancel);
  }

  /** Events were not routed to an application while it was not loaded here, so its backlog starts at its cursor. */
  #add(view: WebhookView, late: boolean, isTakenOver: boolean): void {
    const { clock, subscriptions, scanner, checkpoint, onLoaded } = this.#options;
    const entry = subscriptions.set(view);
    if ((view.behind || late || isTakenOver) && entry.backlog.from === null) {
      const cursor = view.cursor?.sequence ?? scanner.positionAt(view.sinceMs);
      const isDelivered = isTakenOver && !view.behind && clock() - view.sinceMs >= NEW_MS;
      entry.backlog.readFrom(isDelivered ? Math.max(cursor, checkpoint(view.appId)) : cursor);
    }
    onLoaded(entry);
  }
}
