/** The form in which the journal keeps an event: an array, because a million of them are there. */

import { OWN_MODULE, type OwnEvent, type StoredEvent } from '../../domain/events/events.ts';
import type { IncomingEvent } from '../../domain/events/intake.ts';
import type { EventRow } from '../runtime/journal/port.ts';

export function rowOf(event: IncomingEvent, acceptedMs: number): EventRow {
  const { module, tick, type, jsonText, identity } = event;
  const { userId = null, appId = null, currency = null, netType = null } = event;
  return [module, tick, type, userId, appId, currency, netType, jsonText, acceptedMs, identity];
}

/** An event of the gateway itself, for one user and perhaps one application. It needs no identity, because it is never sent twice. */
export function ownRow(
  tick: string,
  { type, userId, appId = null }: Pick<OwnEvent, 'type' | 'userId'> & { readonly appId?: string | null },
  jsonText: string,
  nowMs: number,
): EventRow {
  return [OWN_MODULE, tick, type, userId, appId, null, null, jsonText, nowMs, null];
}

export function eventOf(sequence: number, row: EventRow): StoredEvent {
  const [module, tick, type, userId, appId, currency, netType, jsonText, acceptedMs] = row;
  return {
    sequence,
    module,
    tick,
    type,
    userId: userId ?? undefined,
    appId: appId ?? undefined,
    currency: currency ?? undefined,
    netType: netType ?? undefined,
    jsonText,
    acceptedMs,
  };
}
