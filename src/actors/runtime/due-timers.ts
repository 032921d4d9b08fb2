/**
 * The timers of one actor that are set: names and when they are due, in turn, in one short array. Nearly every account
 * has a single one, for which a Map takes three times the memory.
 */
import type { TimerChange } from './journal-port.ts';
import { shared } from './shared-texts.ts';

/** `[name, dueMs, name, dueMs, …]`, each name once. */
export type DueTimers = readonly (string | number)[];

/** When a timer is due, in Unix milliseconds; undefined for one that is not set. */
export function dueOf(timers: DueTimers | undefined, name: string): number | undefined {
  const place = placeOf(timers, name);
  return timers === undefined || place < 0 ? undefined : (timers[place + 1] as number);
}

/** With one of them changed, null removes it; undefined when none is left. */
export function withTimer(timers: DueTimers | undefined, [name, dueMs]: TimerChange): DueTimers | undefined {
  const place = placeOf(timers, name);
  if (timers === undefined || place < 0) {
    if (dueMs === null) return timers;
    return timers === undefined ? [shared(name), dueMs] : timers.concat([shared(name), dueMs]);
  }
  if (dueMs !== null) return timers.with(place + 1, dueMs);
  return timers.length === 2 ? undefined : timers.toSpliced(place, 2);
}

/** As a snapshot keeps them. */
export function timerPairs(timers: DueTimers | undefined): [string, number][] {
  const pairs: [string, number][] = [];
  for (let place = 0; timers !== undefined && place < timers.length; place += 2) {
    pairs.push([timers[place] as string, timers[place + 1] as number]);
  }
  return pairs;
}

function placeOf(timers: DueTimers | undefined, name: string): number {
  for (let place = 0; timers !== undefined && place < timers.length; place += 2) {
    if (timers[place] === name) return place;
  }
  return -1;
}
