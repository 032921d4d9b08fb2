/** fetch for the control of another MCP server: no redirect, and a bound on what it sends. */

/** Bytes of all answers to one list, and of one stream of notices. */
export const CONTROL_BYTES_MAX = 4 * 1024 * 1024;

/** A stop waits at most so long for the end of a session. */
const END_MS = 1_000;

interface GuardedFetch {
  fetch(url: string | URL, init?: RequestInit): Promise<Response>;
  /** A list begins: its pages have the whole bound. */
  renew(): void;
}

export function guardedFetch(): GuardedFetch {
  let budget = { leftBytes: CONTROL_BYTES_MAX };
  return {
    async fetch(url, init) {
      const own = init?.method === 'GET' ? { leftBytes: CONTROL_BYTES_MAX } : budget;
      const limit = init?.method === 'DELETE' ? { signal: AbortSignal.timeout(END_MS) } : {};
      // A token in the headers must not follow to another address.
      return capped(await fetch(url, { ...init, ...limit, redirect: 'error' }), own);
    },
    renew() {
      budget = { leftBytes: CONTROL_BYTES_MAX };
    },
  };
}

function capped(response: Response, budget: { leftBytes: number }): Response {
  const { body, status, statusText, headers } = response;
  if (body === null) return response;
  const counting = new TransformStream<Uint8Array, Uint8Array>({
    transform(chunk, controller) {
      budget.leftBytes -= chunk.length;
      if (budget.leftBytes < 0)
        controller.error(new RangeError(`sends more than ${CONTROL_BYTES_MAX} bytes`));
      else controller.enqueue(chunk);
    },
  });
  return new Response(body.pipeThrough(counting), { status, statusText, headers });
}
