/**
 * In-memory index of the applications with a webhook: filters, participants and backlog. A new event finds its candidate
 * applications here without a query to any actor, so idle applications cost nothing.
 */
import type { WebhookView } from '../../actors/apps/app-state.ts';
import { PARTICIPANTS_MAX } from '../../domain/apps.ts';
import type { StoredEvent } from '../../domain/events/events.ts';
import type { Subscriber } from '../../domain/webhooks/routing.ts';
import type { TroubledWebhook } from '../admin/node-work.ts';
import { Backlog } from './backlog.ts';

/** Webhooks that the admin panel shows, at most. */
const TROUBLED_MAX = 20;

export interface Subscription {
  view: WebhookView;
  subscriber: Subscriber;
  /** `host:port`, the key of its concurrency limit. */
  host: string;
  participants: ReadonlySet<string>;
  readonly backlog: Backlog;
  /** It waits for a slot or holds one. */
  busy: boolean;
  /** Consecutive runs that an actor refused. */
  deferrals: number;
  /** Live deliveries and resends alternate. */
  lastSource: 'live' | 'resend';
  cancelTimer: (() => void) | undefined;
  /** Test deliveries of the owner that wait for the current run. */
  readonly waiters: (() => void)[];
}

export class Subscriptions {
  readonly #all = new Map<string, Subscription>();
  readonly #byOwner = new Map<string, Set<Subscription>>();
  readonly #byParticipant = new Map<string, Set<Subscription>>();
  /** Applications whose list of participants is full: any event of a user may be theirs. */
  readonly #unlisted = new Set<Subscription>();

  get size(): number {
    return this.#all.size;
  }

  get(appId: string): Subscription | undefined {
    return this.#all.get(appId);
  }

  all(): Iterable<Subscription> {
    return this.#all.values();
  }

  /** Those that fail or are disabled, at most `TROUBLED_MAX`. */
  troubled(): TroubledWebhook[] {
    const found: TroubledWebhook[] = [];
    for (const { view, host } of this.#all.values()) {
      const { appId, state, stateMs: sinceMs } = view;
      if (state !== 'active') found.push({ appId, state, sinceMs, host });
      if (found.length >= TROUBLED_MAX) break;
    }
    return found;
  }

  /** Adds or updates the application. */
  set(view: WebhookView): Subscription {
    const known = this.#all.get(view.appId);
    const facts = factsOf(view, known);
    const entry: Subscription = known ?? {
      ...facts,
      backlog: new Backlog(),
      busy: false,
      deferrals: 0,
      lastSource: 'live',
      cancelTimer: undefined,
      waiters: [],
    };
    if (known !== undefined) {
      const moved = known.view.participants !== view.participants || known.view.ownerId !== view.ownerId;
      if (moved) this.#unlink(known);
      Object.assign(known, facts);
      if (moved) this.#link(known);
    } else {
      this.#all.set(view.appId, entry);
      this.#link(entry);
    }
    return entry;
  }

  delete(appId: string): void {
    const entry = this.#all.get(appId);
    if (entry === undefined) return;
    this.#all.delete(appId);
    this.#unlink(entry);
    release(entry);
  }

  /** Cancels all timers and wakes all waiters. Positions are kept for the checkpoint. */
  release(): void {
    for (const entry of this.#all.values()) release(entry);
  }

  /** Every application that the event may be for, once; `routeOf` decides. */
  candidates(event: StoredEvent): Iterable<Subscription> {
    const { userId, appId } = event;
    if (userId === undefined) return this.#all.values();
    // An event may name an application of its own user, or one that the user takes part in.
    const found = new Set(this.#byOwner.get(userId));
    for (const entry of this.#byParticipant.get(userId) ?? []) found.add(entry);
    for (const entry of this.#unlisted) found.add(entry);
    const named = appId === undefined ? undefined : this.#all.get(appId);
    if (named !== undefined) found.add(named);
    return found;
  }

  #link(entry: Subscription): void {
    add(this.#byOwner, entry.view.ownerId, entry);
    for (const userId of entry.participants) add(this.#byParticipant, userId, entry);
    if (isParticipantListFull(entry)) this.#unlisted.add(entry);
  }

  #unlink(entry: Subscription): void {
    remove(this.#byOwner, entry.view.ownerId, entry);
    for (const userId of entry.participants) remove(this.#byParticipant, userId, entry);
    this.#unlisted.delete(entry);
  }
}

/** Wakes all waiters; each checks the state again. */
function release(entry: Subscription): void {
  entry.cancelTimer?.();
  for (const wake of entry.waiters.splice(0)) wake();
}

/** A full list of participants is incomplete: absence from it proves nothing. */
export function isParticipantListFull({ participants }: Pick<Subscription, 'participants'>): boolean {
  return participants.size >= PARTICIPANTS_MAX;
}

function factsOf(
  view: WebhookView,
  known: Subscription | undefined,
): Pick<Subscription, 'view' | 'subscriber' | 'host' | 'participants'> {
  const { appId, ownerId, approved, currencies, netTypes, sinceMs } = view;
  const subscriber: Subscriber = { appId, ownerId, approved, currencies, netTypes, sinceMs };
  const host = URL.canParse(view.url) ? new URL(view.url).host : view.url;
  const same = known !== undefined && known.view.participants === view.participants;
  return { view, subscriber, host, participants: same ? known.participants : new Set(view.participants) };
}

function add(index: Map<string, Set<Subscription>>, key: string, entry: Subscription): void {
  const present = index.get(key);
  if (present === undefined) index.set(key, new Set([entry]));
  else present.add(entry);
}

function remove(index: Map<string, Set<Subscription>>, key: string, entry: Subscription): void {
  const present = index.get(key);
  present?.delete(entry);
  if (present?.size === 0) index.delete(key);
}
