/**
 * Running calls, for `notifications/cancelled`. Only the session or code of a call can cancel it. Clients with the same
 * bearer differ by `Mcp-Session-Id`, because each of them counts its ids from zero.
 */
import type { RequestContext } from '../audit.ts';

/** A running call, in the list of all. */
export interface CallInFlight {
  readonly scope: string;
  readonly id: string;
  readonly stop: () => void;
  older: CallInFlight | undefined;
  newer: CallInFlight | undefined;
}

/**
 * A list, searched by the few cancellations: V8 chains the copies of a Map that grows and shrinks, and an old copy keeps its
 * entries until a full garbage collection.
 */
export class CallsInFlight {
  #newest: CallInFlight | undefined;
  #size = 0;

  /** Pass the returned entry to `done` when the call is over. */
  begin(scope: string, id: string, stop: () => void): CallInFlight {
    const older = this.#newest;
    const call: CallInFlight = { scope, id: canonical(id), stop, older, newer: undefined };
    if (older !== undefined) older.newer = call;
    this.#newest = call;
    this.#size += 1;
    return call;
  }

  done(call: CallInFlight): void {
    const { older, newer } = call;
    if (older !== undefined) older.newer = newer;
    if (newer !== undefined) newer.older = older;
    else this.#newest = older;
    // Garbage that survived a collection would keep its neighbours.
    call.older = undefined;
    call.newer = undefined;
    this.#size -= 1;
  }

  /** Stops the newest call of that scope and id; false when there is none. `id` is JSON text. */
  cancel(scope: string, id: string): boolean {
    const wanted = canonical(id);
    let call = this.#newest;
    while (call !== undefined && (call.id !== wanted || call.scope !== scope)) call = call.older;
    call?.stop();
    return call !== undefined;
  }

  get size(): number {
    return this.#size;
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
function canonical(id: string): string {
  return id.includes('\\') ? JSON.stringify(JSON.parse(id)) : id;
}

/** The scope of the calls that this caller can cancel. */
export function callScope({ context, caller, capability }: RequestContext): string | undefined {
  const mcpSessionId = context.header('mcp-session-id');
  if (caller.kind === 'session') return cancelScope(caller.session.id, mcpSessionId);
  return capability === undefined ? undefined : capabilityScope(capability, mcpSessionId);
}
