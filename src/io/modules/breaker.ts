/**
 * Circuit breakers of the backend endpoints (docs/modules.md): after a run of failures an endpoint answers at once for
 * 10 s, then a single probe decides. Only endpoints that fail are held, so memory does not grow with healthy ones.
 */
import type { Clock } from '../../domain/time.ts';
import type { ModuleError } from '../http-client/types.ts';

/** Failures in a row that open a breaker. Source: mcp.md. */
export const BREAKER_FAILURES_MAX = 5;
/** Calls in a row without an answer that open a breaker whatever they failed of, and whoever made them. */
export const BREAKER_UNANSWERED_MAX = 20;
/** How long an open breaker answers by itself before it lets one probe through. Source: mcp.md. */
export const BREAKER_OPEN_MS = 10_000;
/** A probe ends after so long, whatever the time-out of its call. */
export const PROBE_MS = 5_000;
/** Failing endpoints held at once; the one that failed first is forgotten when there are more. */
const ENDPOINTS_MAX = 10_000;

/**
 * `failed`: the module refused, reset or cut the call. `timedOut`: it did not answer in time, which a caller can provoke.
 * `released`: the call ended without telling anything about the endpoint (the caller left, or it never went out).
 */
export type CallResult = 'worked' | 'failed' | 'timedOut' | 'released';

/**
 * Any whole answer shows that the endpoint lives, an error status and one that is too large too. `isSent`: the call had a
 * connection; time in a line of the gateway's own is no failure of the module.
 */
export function callResultOf(error: ModuleError | undefined, isSent: boolean): CallResult {
  if (error === undefined || error === 'ModuleAnswerTooLarge') return 'worked';
  if (error === 'ModuleFailed') return 'failed';
  return error === 'ModuleTimedOut' && isSent ? 'timedOut' : 'released';
}

/** Leave to call an endpoint. Hand it back with `Breakers.settle`, once. */
export interface Permit {
  readonly endpoint: string;
  /** Whose time-out it would be: the network of the caller; '' for the gateway itself. */
  readonly network: string;
  readonly probe: boolean;
  /** Failures of calls that began before the breaker last opened do not open it again. */
  readonly epoch: number;
}

interface Failing {
  /** In a row, of the module itself. */
  failures: number;
  timeouts: number;
  /** Of the first time-out; undefined without one, null when others had them too. */
  network: string | null | undefined;
  isOpen: boolean;
  openUntilMs: number;
  probing: boolean;
  epoch: number;
}

export interface Breakers {
  /** Undefined while the endpoint's breaker is open. `isWhole`: all of the request is here, so it may be a probe. */
  enter(endpoint: string, network: string, isWhole: boolean): Permit | undefined;
  settle(permit: Permit, result: CallResult): void;
  /** Would every call be refused now? */
  refuses(endpoint: string): boolean;
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
    const entry: Failing = {
      failures: 0,
      timeouts: 0,
      network: undefined,
      isOpen: false,
      openUntilMs: 0,
      probing: false,
      epoch: epochs,
    };
    failing.set(endpoint, entry);
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
        // An answer that left before the breaker opened says nothing about now; the probe does.
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

/** Time-outs of one network count alone only when nothing else was answered either: that caller may be their cause. */
function isRunOver({ failures, timeouts, network }: Failing): boolean {
  const ofModule = failures + (network === null ? timeouts : 0);
  return ofModule >= BREAKER_FAILURES_MAX || failures + timeouts >= BREAKER_UNANSWERED_MAX;
}
