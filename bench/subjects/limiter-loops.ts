/**
 * Checks of the limiter in a loop, beside what they are compared with. Every check must let the caller pass: the quota
 * is larger than any loop, so that a check does its whole work, counting included.
 */
import { Limiter } from '../../src/actors/limits/limiter.ts';
import { LiveSettings } from '../../src/domain/settings/settings.ts';
import type { LoopPart } from '../scenario.ts';

export const LOOPS = ['address', 'map'] as const;
export type LoopName = (typeof LOOPS)[number];

export interface FillReport {
  readonly counters: number;
  readonly heapBytes: number;
  /** Nanoseconds of each check beyond the bound of its counters. */
  readonly nsPerCheckBeyond: number;
}

/** Checks between two looks at the clock. */
const SLICE = 1_000;
/** More than a processor can check in a window. */
const RAISED_MAX = 1_000_000_000;

/** Makes so many different IPv4 addresses, at most 2^24. */
export function addressesOf(count: number): string[] {
  return Array.from({ length: count }, (_, index) => addressAt(index));
}

function addressAt(index: number): string {
  return `10.${(index >> 16) & 255}.${(index >> 8) & 255}.${index & 255}`;
}

export function makeLimiter(keysMax?: number): Limiter {
  const settings = new LiveSettings({ ApiRPSLimit: RAISED_MAX, IpRPSLimit: RAISED_MAX });
  const bound = keysMax === undefined ? {} : { keysMax };
  return new Limiter({ settings, clock: Date.now, connectionsOpen: () => 1, ...bound });
}

/** One step of a loop: one check of the address scope, or a look-up and a write of a plain Map without a window. */
export function stepOf(name: LoopName): (address: string, nowMs: number) => boolean {
  if (name === 'map') {
    const used = new Map<string, number>();
    return (address) => {
      used.set(address, (used.get(address) ?? 0) + 1);
      return true;
    };
  }
  const limiter = makeLimiter();
  return (address, nowMs) => limiter.chargeAddress(address, 1, nowMs)?.allowed === true;
}

/**
 * Steps over all addresses, again and again, for as long as each call says; a call begins where the last one ended. The
 * clock stands still between calls, as if no address had been silent. Throws
 * when a step is refused: then it was not the whole work.
 */
export function loopOf(
  step: (address: string, nowMs: number) => boolean,
  addresses: readonly string[],
): (durationMs: number) => LoopPart {
  let place = 0;
  let clockMs = Date.now();
  return (durationMs) => {
    const startedMs = performance.now();
    let count = 0;
    for (let elapsedMs = 0; elapsedMs < durationMs; elapsedMs = performance.now() - startedMs) {
      const nowMs = clockMs + elapsedMs;
      for (let left = SLICE; left > 0; left -= 1) {
        if (!step(addresses[place] ?? '', nowMs)) throw new Error(`refused after ${count} checks`);
        place = place + 1 === addresses.length ? 0 : place + 1;
      }
      count += SLICE;
    }
    const elapsedMs = performance.now() - startedMs;
    clockMs += elapsedMs;
    return { count, elapsedMs };
  };
}

/** So many addresses within one window: what the limiter holds of them, and what a check costs beyond its bound. */
export function fill(limiter: Limiter, callers: number, heapBytes: () => number): FillReport {
  const nowMs = Date.now();
  const before = heapBytes();
  let beyondMs = 0;
  let beyond = 0;
  for (let from = 0; from < callers; from += SLICE) {
    const slice = Array.from({ length: Math.min(SLICE, callers - from) }, (_, at) => addressAt(from + at));
    // Every address has a counter of its own while there is room.
    const isFull = limiter.keys() < from;
    const startedMs = performance.now();
    for (const address of slice) limiter.chargeAddress(address, 1, nowMs);
    if (!isFull) continue;
    beyondMs += performance.now() - startedMs;
    beyond += slice.length;
  }
  return {
    counters: limiter.keys(),
    heapBytes: heapBytes() - before,
    nsPerCheckBeyond: beyond === 0 ? Number.NaN : (beyondMs * 1e6) / beyond,
  };
}
