/**
 * The body of a delivery (spec 6.2 rule 2): one event as the object it is, several as an array of
 * such objects in their order. The same events always give the same bytes and the same id.
 */
import { hash } from 'node:crypto';
import type { StoredEvent } from '../events/events.ts';
import { BATCH_BYTES_MAX } from './types.ts';

type Sent = Pick<StoredEvent, 'jsonText'>;

/** Brackets of the array, and the comma before each further event. */
const BRACKETS_BYTES = 2;

/** Counts the events, from the first, that make one delivery: at most `eventsMax` or 256 KB, but at least one. */
export function batchLength(events: readonly Sent[], eventsMax: number): number {
  let sizeBytes = BRACKETS_BYTES;
  for (const [index, { jsonText }] of events.entries()) {
    if (index >= Math.max(1, eventsMax)) return index;
    sizeBytes += Buffer.byteLength(jsonText) + (index === 0 ? 0 : 1);
    if (index > 0 && sizeBytes > BATCH_BYTES_MAX) return index;
  }
  return events.length;
}

export function bodyOf(events: readonly Sent[]): string {
  const [first] = events;
  if (first === undefined) throw new RangeError('a delivery has at least one event');
  return events.length === 1 ? first.jsonText : `[${events.map(({ jsonText }) => jsonText).join(',')}]`;
}

/**
 * Stable over retries and resends: it follows from the application and the events. Positions are those of one log: a
 * restored one may give them to other events, so its epoch is in the id.
 */
export function webhookIdOf(epoch: string, appId: string, sequences: readonly number[]): string {
  return `msg_${hash('sha256', `${epoch}:${appId}:${sequences.join(',')}`, 'base64url').slice(0, 27)}`;
}
