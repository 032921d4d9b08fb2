/**
 * Circuit breakers of the backend endpoints (mcp.md "Calls to the backends"): after 5 failures in a row an endpoint
 * answers at once for 10 s, then a single probe decides. Only endpoints that fail are held, so that memory does not
 * grow with the number of healthy ones.
 */
import type { Clock } from '../../domain/time.ts';

/** Failures in a row that open a breaker. Source: mcp.md. */
export const BREAKER_FAILURES_MAX = 5;
/** How long an open breaker answers by itself before it lets one probe through. Source: mcp.md. */
export const BREAKER_OPEN_MS = 10_000;
/** Failing endpoints held at once; the one that failed first is forgotten when there are more. */
const ENDPOINTS_MAX = 10_000;

/** `released`: the call ended without telling anything about the endpoint (the caller went away). */
export type CallVerdict = 'worked' | 'failed' | 'released';

/** Leave to call an endpoint. Hand it back with `Breakers.settle`, once. */
export interface Permit {
  readonly endpoint: string;
  readonly probe: boolean;
  /** Failures of calls that began before the breaker last opened do not open it again. */
  readonly epoch: number;
}

interface Failing {
  failures: number;
  openUntilMs: number;
  probing: boolean;
  epoch: number;
}

export interface Breakers {
  /** Undefined while the endpoint's breaker is open. */
  enter(endpoint: string): Permit | undefined;
  settle(permit: Permit, verdict: CallVerdict): void;
  /** Endpoints that are answered without a call now. */
  open(): string[];
}

export function createBreakers(clock: Clock): Breakers {
  const failing = new Map<string, Failing>();
  let epochs = 0;

  function note(endpoint: string): Failing {
    const known = failing.get(endpoint);
    if (known !== undefined) return known;
    if (failing.size >= ENDPOINTS_MAX) {
      const oldest = failing.keys().next();
      if (oldest.done !== true) failing.delete(oldest.value);
    }
    const entry: Failing = { failures: 0, openUntilMs: 0, probing: false, epoch: epochs };
    failing.set(endpoint, entry);
    return entry;
  }

  return {
    enter(endpoint) {
      const entry = failing.get(endpoint);
      if (entry === undefined) return { endpoint, probe: false, epoch: epochs };
      if (entry.failures < BREAKER_FAILURES_MAX) return { endpoint, probe: false, epoch: entry.epoch };
      if (entry.probing || clock() < entry.openUntilMs) return undefined;
      entry.probing = true;
      return { endpoint, probe: true, epoch: entry.epoch };
    },

    settle(permit, verdict) {
      const entry = failing.get(permit.endpoint);
      if (permit.probe && entry !== undefined) entry.probing = false;
      if (verdict === 'released') return;
      if (verdict === 'worked') {
        // An answer that left before the breaker opened says nothing about now; the probe does.
        if (entry !== undefined && (permit.probe || permit.epoch === entry.epoch))
          failing.delete(permit.endpoint);
        return;
      }
      const failed = note(permit.endpoint);
      if (!permit.probe && permit.epoch < failed.epoch) return;
      failed.failures += 1;
      if (failed.failures >= BREAKER_FAILURES_MAX) {
        failed.openUntilMs = clock() + BREAKER_OPEN_MS;
        epochs += 1;
        failed.epoch = epochs;
      }
    },

    open() {
      const nowMs = clock();
      return [...failing]
        .filter(([, entry]) => entry.failures >= BREAKER_FAILURES_MAX && nowMs < entry.openUntilMs)
        .map(([endpoint]) => endpoint);
    },
  };
}
