/**
 * Loads subscriptions from the application actors: all at the start, one after a change. A quarantined application is
 * retried each minute without delaying the others; until it is loaded the checkpoint does not advance.
 */
import { app } from '../../actors/apps/app.ts';
import type { WebhookView } from '../../actors/apps/app-state.ts';
import type { ActorSystem } from '../../actors/runtime/actor.ts';
import type { Administration } from '../../actors/runtime/administration.ts';
import type { Schedule } from '../../actors/runtime/runtime-context.ts';
import { GatewayError } from '../../domain/errors.ts';
import { MINUTE_MS } from '../../domain/time.ts';
import type { LogScanner } from './log-scanner.ts';
import type { Subscription, Subscriptions } from './subscriptions.ts';

/** Applications loaded in one event-loop tick. */
const APPS_PER_TICK = 200;

interface LoaderOptions {
  readonly actors: ActorSystem;
  readonly administration: Pick<Administration, 'ids'>;
  readonly schedule: Schedule;
  readonly subscriptions: Subscriptions;
  readonly scanner: LogScanner;
  readonly onLoaded: (entry: Subscription) => void;
  readonly onBug: (error: unknown, appId: string) => void;
}

export class SubscriptionLoader {
  readonly #options: LoaderOptions;
  readonly #unread = new Set<string>();
  #stopped = false;

  constructor(options: LoaderOptions) {
    this.#options = options;
  }

  /** Applications that are not loaded yet. */
  get unread(): number {
    return this.#unread.size;
  }

  stop(): void {
    this.#stopped = true;
  }

  async readAll(): Promise<void> {
    const { administration, schedule } = this.#options;
    for (let after = '', more = true; more && !this.#stopped; ) {
      const ids = administration.ids('app', after, APPS_PER_TICK);
      for (const appId of ids) await this.#read(appId);
      more = ids.length === APPS_PER_TICK;
      after = ids.at(-1) ?? '';
      await new Promise<void>((resolve) => schedule.immediate(resolve));
    }
  }

  /** The application's state has changed. */
  changed(appId: string): void {
    if (!this.#stopped) this.#read(appId).catch((error: unknown) => this.#options.onBug(error, appId));
  }

  async #read(appId: string): Promise<void> {
    const { actors, subscriptions, schedule } = this.#options;
    let view: WebhookView | undefined;
    try {
      view = await actors.query(app, appId, { type: 'webhook' });
    } catch (error) {
      if (!(error instanceof GatewayError)) throw error;
      this.#unread.add(appId);
      schedule.timer(MINUTE_MS, () => this.changed(appId));
      return;
    }
    const late = this.#unread.delete(appId);
    if (view === undefined) subscriptions.delete(appId);
    else this.#add(view, late);
  }

  /** Events were not routed to an application while it was not loaded, so its backlog starts at its cursor. */
  #add(view: WebhookView, late: boolean): void {
    const { subscriptions, scanner, onLoaded } = this.#options;
    const entry = subscriptions.set(view);
    if ((view.behind || late) && entry.backlog.from === null) {
      entry.backlog.readFrom(view.cursor?.sequence ?? scanner.positionAt(view.sinceMs));
    }
    onLoaded(entry);
  }
}
