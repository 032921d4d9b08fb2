/**
 * Chooses the events that an application gets: about its owner, about accounts that allowed it, those that name it, and
 * those for all users. Pure: the caller reads what accounts allowed.
 */
import { OWN_MODULE, type StoredEvent } from '../events/events.ts';

/** Facts about an application that routing needs. */
export interface Subscriber {
  readonly appId: string;
  readonly ownerId: string;
  /** Events about other people need an approved application. */
  readonly approved: boolean;
  readonly currencies: readonly string[];
  readonly netTypes: readonly number[];
  /** Events that were accepted before are not its business. */
  readonly sinceMs: number;
}

export type RoutedEvent = Pick<
  StoredEvent,
  'module' | 'userId' | 'appId' | 'currency' | 'netType' | 'acceptedMs'
>;

/** A person's decision about an application. */
export interface Consent {
  /** Time of the consent in Unix milliseconds (events from before stay out); null where there is none. */
  readonly grantedMs: number | null;
  /** The person took the access back: not even events that name the application. */
  readonly revoked: boolean;
}

/**
 * `consent`: it depends on what the person of the event decided; ask, then `allowedBy`.
 */
export function routeOf(event: RoutedEvent, app: Subscriber): 'yes' | 'no' | 'consent' {
  if (event.acceptedMs < app.sinceMs || !passesFilters(event, app)) return 'no';
  // The gateway's own events are for browsers, but for those about the application itself.
  if (event.module === OWN_MODULE) return event.appId === app.appId ? 'yes' : 'no';
  if (event.userId === undefined || event.userId === app.ownerId) return 'yes';
  return app.approved ? 'consent' : 'no';
}

/** True if the consent allows an event about a user other than the owner. */
export function allowedBy(consent: Consent, event: RoutedEvent, app: Subscriber): boolean {
  if (consent.revoked) return false;
  if (event.appId === app.appId) return true;
  return consent.grantedMs !== null && event.acceptedMs >= consent.grantedMs;
}

/** An event without the field passes; an empty list filters nothing. Currency codes compare without case. */
function passesFilters({ currency, netType }: RoutedEvent, { currencies, netTypes }: Subscriber): boolean {
  if (currency !== undefined && currencies.length > 0 && !includesCode(currencies, currency)) return false;
  return netType === undefined || netTypes.length === 0 || netTypes.includes(netType);
}

function includesCode(codes: readonly string[], code: string): boolean {
  const wanted = code.toLowerCase();
  return codes.some((each) => each.toLowerCase() === wanted);
}
