/** Reads the events of a long text in several event-loop ticks, for modules that push and modules that are polled. */
import { setImmediate } from 'node:timers/promises';
import type { IncomingEvent } from '../../domain/events/intake.ts';
import { TICK_BYTES_MAX } from '../http/exchange/json.ts';

/** Events that are read in a tick from a body above `TICK_BYTES_MAX`. */
const SLICE_EVENTS = 50;

/** `events` reads an event whenever the next one is taken; what it throws is passed on. */
export async function inSlices(events: Iterable<IncomingEvent>, bodyBytes: number): Promise<IncomingEvent[]> {
  if (bodyBytes <= TICK_BYTES_MAX) return [...events];
  // The parser has used this tick.
  await setImmediate();
  const all: IncomingEvent[] = [];
  for (const event of events) {
    all.push(event);
    if (all.length % SLICE_EVENTS === 0) await setImmediate();
  }
  return all;
}
