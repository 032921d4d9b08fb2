/**
 * Sends a request and repeats it while it was certainly not executed: a limit refused it (429), or no connection was made.
 * Everything else is answered as it is.
 */
import { setTimeout as timeout } from 'node:timers/promises';

export type Fetch = (url: string | URL, init?: RequestInit) => Promise<Response>;

export interface SendOptions {
  readonly fetch: Fetch;
  /** Milliseconds since 1970. */
  readonly now: () => number;
  readonly wait: (ms: number, signal?: AbortSignal) => Promise<void>;
}

/** Values for what a caller leaves out of {@link SendOptions}. */
export const SYSTEM: SendOptions = {
  fetch: (url, init) => fetch(url, init),
  now: Date.now,
  wait: (ms, signal) => timeout(ms, undefined, signal === undefined ? {} : { signal }),
};

/** Clients give a request up after 60 s. */
const RETRY_TIMEOUT_MS = 50_000;
const FIRST_DELAY_MS = 250;
const DELAY_MAX_MS = 5_000;

export async function send(url: string | URL, init: RequestInit, options: SendOptions): Promise<Response> {
  const signal = init.signal ?? undefined;
  let waitedMs = 0;
  let delayMs = FIRST_DELAY_MS;
  const pause = async (ms: number) => {
    waitedMs += ms;
    await options.wait(ms, signal);
  };
  for (;;) {
    try {
      const response = await options.fetch(url, init);
      const retryAfterMs = retryAfterOf(response);
      if (retryAfterMs === undefined || waitedMs + retryAfterMs > RETRY_TIMEOUT_MS) return response;
      await response.body?.cancel();
      await pause(retryAfterMs);
    } catch (error) {
      if (!wasNothingSent(error) || waitedMs + delayMs > RETRY_TIMEOUT_MS) throw error;
      await pause(delayMs);
      delayMs = Math.min(delayMs * 2, DELAY_MAX_MS);
    }
  }
}

/** Returns the seconds of a refusal by a limit; whole seconds (RFC 9110 10.2.3). */
function retryAfterOf({ status, headers }: Response): number | undefined {
  if (status !== 429) return undefined;
  const seconds = Number(headers.get('retry-after') ?? '1');
  return Number.isFinite(seconds) ? Math.max(seconds, 1) * 1000 : 1000;
}

/** Did the request fail before its first byte? `fetch` keeps what happened in `cause`. */
function wasNothingSent(error: unknown): boolean {
  const cause = causeOf(error);
  if (cause instanceof AggregateError) return cause.errors.length > 0 && cause.errors.every(isUnconnected);
  return isUnconnected(cause);
}

/** The error below the one that `fetch` throws. */
export function causeOf(error: unknown): unknown {
  return error instanceof Error && error.cause !== undefined ? error.cause : error;
}

function isUnconnected(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  const { syscall, code } = error as NodeJS.ErrnoException;
  return syscall === 'connect' || code === 'EAI_AGAIN' || code === 'UND_ERR_CONNECT_TIMEOUT';
}
