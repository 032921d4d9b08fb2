/**
 * Circuit breakers of module endpoints (docs/modules.md): after a run of failures calls are refused for 10 s, then a
 * single probe decides. Only failing endpoints are stored.
 */
import { keepNewest } from '../../domain/limits/newest.ts';
import type { Clock } from '../../domain/time.ts';
import type { ModuleError } from './types.ts';

/** Consecutive failures that open a breaker (docs/modules.md). */
export const BREAKER_FAILURES_MAX = 5;
/** Consecutive calls without an answer that open a breaker, for any failure and any caller. */
export const BREAKER_UNANSWERED_MAX = 20;
/** Milliseconds that an open breaker refuses calls before it allows one probe (docs/modules.md). */
export const BREAKER_OPEN_MS = 10_000;
/** Upper bound on the time-out of a probe. */
export const PROBE_MS = 5_000;
/** Failing endpoints stored; beyond it the oldest entry is dropped. */
const ENDPOINTS_MAX = 10_000;

/**
 * `failed`: the module refused, reset or cut the call. `timedOut`: no answer in time, which a caller can provoke.
 * `released`: the call says nothing about the endpoint (the caller left, or it was never sent).
 */
export type CallResult = 'worked' | 'failed' | 'timedOut' | 'released';

/**
 * Any complete answer counts as success, including an error status and an answer over the cap. `isSent`: the call had a
 * connection; time in the gateway's own queue is no failure of the module.
 */
export function callResultOf(error: ModuleError | undefined, isSent: boolean): CallResult {
  if (error === undefined || error === 'ModuleAnswerTooLarge') return 'worked';
  if (error === 'ModuleFailed') return 'failed';
  return error === 'ModuleTimedOut' && isSent ? 'timedOut' : 'released';
}

/** Permission to call an endpoint. Must be returned with `Breakers.settle`, once. */
interface Permit {
  readonly endpoint: string;
  /** Network of the caller, to which a time-out is attributed; '' for the gateway itself. */
  readonly network: string;
  readonly probe: boolean;
  /** Failures of calls that began before the breaker last opened do not open it again. */
  readonly epoch: number;
}

interface Failing {
  /** Consecutive failures of the module itself. */
  failures: number;
  timeouts: number;
  /** Network of the first time-out; undefined without one, null with several networks. */
  network: string | null | undefined;
  isOpen: boolean;
  openUntilMs: number;
  probing: boolean;
  epoch: number;
}

export interface Breakers {
  /** Undefined while the endpoint's breaker is open. `isWhole`: the request is complete, so it may be a probe. */
  enter(endpoint: string, network: string, isWhole: boolean): Permit | undefined;
  settle(permit: Permit, result: CallResult): void;
  /** True while every call would be refused. */
  refuses(endpoint: string): boolean;
  open(): string[];
}

export function createBreakers(clock: Clock): Breakers {
  const failing = new Map<string, Failing>();
  let epochs = 0;

  function note(endpoint: string): Failing {
    const known = failing.get(endpoint);
    if (known !== undefined) return known;
    const entry: Failing = {
      failures: 0,
      timeouts: 0,
      network: undefined,
      isOpen: false,
      openUntilMs: 0,
      probing: false,
      epoch: epochs,
    };
    keepNewest(failing, ENDPOINTS_MAX, endpoint, entry);
    return entry;
  }

  const isClosedTo = (entry: Failing) => entry.isOpen && (entry.probing || clock() < entry.openUntilMs);

  return {
    enter(endpoint, network, isWhole) {
      const entry = failing.get(endpoint);
      if (entry === undefined) return { endpoint, network, probe: false, epoch: epochs };
      if (!entry.isOpen) return { endpoint, network, probe: false, epoch: entry.epoch };
      if (!isWhole || isClosedTo(entry)) return undefined;
      entry.probing = true;
      return { endpoint, network, probe: true, epoch: entry.epoch };
    },

    settle(permit, result) {
      const entry = failing.get(permit.endpoint);
      if (permit.probe && entry !== undefined) entry.probing = false;
      if (result === 'released') return;
      if (result === 'worked') {
        // An answer to a call from before the breaker opened does not close it; a probe does.
        if (entry !== undefined && (permit.probe || permit.epoch === entry.epoch))
          failing.delete(permit.endpoint);
        return;
      }
      const failed = note(permit.endpoint);
      if (!permit.probe && permit.epoch < failed.epoch) return;
      count(failed, permit.network, result);
      if (!permit.probe && !isRunOver(failed)) return;
      failed.isOpen = true;
      failed.openUntilMs = clock() + BREAKER_OPEN_MS;
      epochs += 1;
      failed.epoch = epochs;
    },

    refuses(endpoint) {
      const entry = failing.get(endpoint);
      return entry !== undefined && isClosedTo(entry);
    },

    open() {
      const nowMs = clock();
      return [...failing]
        .filter(([, entry]) => entry.isOpen && nowMs < entry.openUntilMs)
        .map(([endpoint]) => endpoint);
    },
  };
}

function count(entry: Failing, network: string, result: 'failed' | 'timedOut'): void {
  if (result === 'failed') {
    entry.failures += 1;
    return;
  }
  entry.timeouts += 1;
  if (entry.network === undefined) entry.network = network;
  else if (entry.network !== network) entry.network = null;
}

/** Time-outs of a single network need the higher threshold, because one caller may provoke them. */
function isRunOver({ failures, timeouts, network }: Failing): boolean {
  const ofModule = failures + (network === null ? timeouts : 0);
  return ofModule >= BREAKER_FAILURES_MAX || failures + timeouts >= BREAKER_UNANSWERED_MAX;
}
