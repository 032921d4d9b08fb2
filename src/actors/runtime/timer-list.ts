/**
 * The timers of one actor that are set: names and when they are due, in turn, in one short array. Nearly every account
 * has a single one, for which a Map takes three times the memory.
 */
import type { TimerChange } from './journal/port.ts';
import { shared } from './journal/shared-texts.ts';

/** `[name, dueMs, name, dueMs, …]`, each name once. */
export type TimerList = readonly (string | number)[];

/** Names up to this length are words of a kind, like `sweep`; longer ones contain an id and are unique. */
const WORD_MAX = 12;

/** Returns the time of a timer, in Unix milliseconds; undefined for one that is not set. */
export function dueOf(timers: TimerList | undefined, name: string): number | undefined {
  const position = positionOf(timers, name);
  return timers === undefined || position < 0 ? undefined : (timers[position + 1] as number);
}

/** With one of them changed, null removes it; undefined when none is left. */
export function withTimer(timers: TimerList | undefined, [name, dueMs]: TimerChange): TimerList | undefined {
  const position = positionOf(timers, name);
  if (timers === undefined || position < 0) {
    if (dueMs === null) return timers;
    const fresh = [name.length <= WORD_MAX ? shared(name) : name, dueMs];
    return timers === undefined ? fresh : timers.concat(fresh);
  }
  if (dueMs !== null) return timers.with(position + 1, dueMs);
  return timers.length === 2 ? undefined : timers.toSpliced(position, 2);
}

/** Those of a snapshot, however many: one by one each would copy the ones before it. */
export function restoredTimers(pairs: readonly TimerChange[]): TimerList | undefined {
  const timers: (string | number)[] = [];
  for (const [name, dueMs] of pairs) if (dueMs !== null) timers.push(name, dueMs);
  return timers.length === 0 ? undefined : timers.slice();
}

/** Timers in the form of a snapshot. */
export function timerPairs(timers: TimerList | undefined): [string, number][] {
  const pairs: [string, number][] = [];
  for (let position = 0; timers !== undefined && position < timers.length; position += 2) {
    pairs.push([timers[position] as string, timers[position + 1] as number]);
  }
  return pairs;
}

function positionOf(timers: TimerList | undefined, name: string): number {
  for (let position = 0; timers !== undefined && position < timers.length; position += 2) {
    if (timers[position] === name) return position;
  }
  return -1;
}
