/**
 * Running calls, for `notifications/cancelled`. Only the session or code of a call can cancel it. Clients with the same
 * bearer differ by `Mcp-Session-Id`, because each of them counts its ids from zero.
 */
import type { RequestContext } from '../audit.ts';

/** A running call. */
export interface CallInFlight {
  readonly key: string;
  /** Undefined when the call is over. */
  stop: (() => void) | undefined;
}

export class CallsInFlight {
  readonly #calls = new Map<string, CallInFlight>();

  /** Pass the returned entry to `done` when the call is over. */
  begin(scope: string, id: string, stop: () => void): CallInFlight {
    const call = { key: keyOf(scope, id), stop };
    this.#calls.set(call.key, call);
    return call;
  }

  done(call: CallInFlight): void {
    // V8 chains the copies of a Map that grows and shrinks, and an old copy keeps its entries alive until a full garbage
    // collection. So a finished entry must not refer to anything large.
    call.stop = undefined;
    // When a client uses an id twice at once, the later call replaces the earlier one.
    if (this.#calls.get(call.key) === call) this.#calls.delete(call.key);
  }

  /** Stops the call of that scope and id; false when there is none. `id` is JSON text. */
  cancel(scope: string, id: string): boolean {
    const stop = this.#calls.get(keyOf(scope, id))?.stop;
    stop?.();
    return stop !== undefined;
  }

  get size(): number {
    return this.#calls.size;
  }
}

/** The scope of a session: it contains only calls of that session. */
export function cancelScope(sessionId: string, mcpSessionId: string | undefined): string {
  return `${sessionId} ${mcpSessionId ?? ''}`;
}

/** The scope of a code, and of its device where there is one, because a chat code may be public. */
export function capabilityScope(
  { code, deviceGuid }: { readonly code: string; readonly deviceGuid?: string },
  mcpSessionId: string | undefined,
): string {
  return `code ${code} ${deviceGuid ?? ''} ${mcpSessionId ?? ''}`;
}

/** String ids are compared without their escapes, numbers by their text. */
function keyOf(scope: string, id: string): string {
  return `${scope} ${id.includes('\\') ? JSON.stringify(JSON.parse(id)) : id}`;
}

/** The scope of the calls that this caller can cancel. */
export function callScope({ context, caller, capability }: RequestContext): string | undefined {
  const mcpSessionId = context.header('mcp-session-id');
  if (caller.kind === 'session') return cancelScope(caller.session.id, mcpSessionId);
  return capability === undefined ? undefined : capabilityScope(capability, mcpSessionId);
}
