/**
 * The applications that get webhooks, in memory: what they want, whom they may hear of, and from where on events wait
 * for them. A new event finds its applications here without asking any of them, so that idle ones cost nothing.
 */
import type { WebhookView } from '../../actors/apps/app-state.ts';
import { PARTICIPANTS_MAX } from '../../domain/apps.ts';
import type { StoredEvent } from '../../domain/events/events.ts';
import type { Subscriber } from '../../domain/webhooks/routing.ts';
import { Backlog } from './backlog.ts';

export interface Subscription {
  view: WebhookView;
  subscriber: Subscriber;
  /** `host:port`, the lane it waits in. */
  host: string;
  participants: ReadonlySet<string>;
  readonly backlog: Backlog;
  /** It waits for a place or has one. */
  busy: boolean;
  /** Turns in a row that an actor refused. */
  deferrals: number;
  /** Live deliveries and resends take turns. */
  lastSource: 'live' | 'resend';
  cancelTimer: (() => void) | undefined;
  /** Tests of the owner that wait for their turn. */
  readonly waiters: (() => void)[];
}

export class Subscriptions {
  readonly #all = new Map<string, Subscription>();
  readonly #byOwner = new Map<string, Set<Subscription>>();
  readonly #byParticipant = new Map<string, Set<Subscription>>();
  /** Too many people for a list: any event about a person may be theirs. */
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

  /** Adds the application or takes over what changed. */
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

  /** The end: nothing waits any more. The places of the applications stay, for the checkpoint. */
  release(): void {
    for (const entry of this.#all.values()) release(entry);
  }

  /** Every application that the event may be for; whether it is, routing says. */
  *candidates(event: StoredEvent): Iterable<Subscription> {
    const { userId, appId } = event;
    if (userId === undefined) {
      yield* this.#all.values();
      return;
    }
    const named = appId === undefined ? undefined : this.#all.get(appId);
    if (named !== undefined) yield named;
    yield* this.#byOwner.get(userId) ?? [];
    yield* this.#byParticipant.get(userId) ?? [];
    yield* this.#unlisted;
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

/** Who waited finds out for themselves. */
function release(entry: Subscription): void {
  entry.cancelTimer?.();
  for (const wake of entry.waiters.splice(0)) wake();
}

/** The list of participants ends somewhere: from then on it says of nobody that they did not join. */
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
