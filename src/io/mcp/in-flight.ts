/**
 * The calls that are under way, so that `notifications/cancelled` finds the one it names. A call is found only by the
 * bearer session that made it (mcp.md); clients that share a bearer are told apart by the `Mcp-Session-Id` they send,
 * because each of them counts its ids from zero.
 */

export class CallsInFlight {
  readonly #stops = new Map<string, () => void>();

  /** Call `done` with the same arguments when the call is over. */
  begin(scope: string, id: string, stop: () => void): void {
    this.#stops.set(keyOf(scope, id), stop);
  }

  done(scope: string, id: string, stop: () => void): void {
    const key = keyOf(scope, id);
    // A client that used an id twice at once: the later call has the place.
    if (this.#stops.get(key) === stop) this.#stops.delete(key);
  }

  /** Stops the call of that scope and id; nothing happens when there is none. `id` is JSON text. */
  cancel(scope: string, id: string): void {
    this.#stops.get(keyOf(scope, id))?.();
  }

  get size(): number {
    return this.#stops.size;
  }
}

/** Scope of a session: nobody else's calls can be named with it. */
export function cancelScope(sessionId: string, mcpSessionId: string | undefined): string {
  return `${sessionId} ${mcpSessionId ?? ''}`;
}

/** Scope of a code: a chat code may be public, so the device counts too where there is one. */
export function capabilityScope(
  { code, deviceGuid }: { readonly code: string; readonly deviceGuid?: string },
  mcpSessionId: string | undefined,
): string {
  return `code ${code} ${deviceGuid ?? ''} ${mcpSessionId ?? ''}`;
}

/** A string id is the same however it is escaped; a number is the same when it is written the same. */
function keyOf(scope: string, id: string): string {
  return `${scope} ${id.includes('\\') ? JSON.stringify(JSON.parse(id)) : id}`;
}
