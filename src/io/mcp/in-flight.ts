/**
 * The calls that are under way, so that `notifications/cancelled` finds the one it names. A call is found only by the
 * bearer session that made it (mcp.md); clients that share a bearer are told apart by the `Mcp-Session-Id` they send,
 * because each of them counts its ids from zero.
 */
import type { RequestContext } from './audit.ts';

/** One of them. */
export interface CallInFlight {
  readonly key: string;
  /** Undefined when it is over. */
  stop: (() => void) | undefined;
}

export class CallsInFlight {
  readonly #calls = new Map<string, CallInFlight>();

  /** Give what it returns to `done` when the call is over. */
  begin(scope: string, id: string, stop: () => void): CallInFlight {
    const call = { key: keyOf(scope, id), stop };
    this.#calls.set(call.key, call);
    return call;
  }

  done(call: CallInFlight): void {
    // A Map that entries come to and leave is copied again and again, and V8 chains the copies: one that grew old keeps
    // alive what it held, and the next one, until a full collection. So nothing large hangs on an entry that is over.
    call.stop = undefined;
    // A client that used an id twice at once: the later call has the place.
    if (this.#calls.get(call.key) === call) this.#calls.delete(call.key);
  }

  /** Stops the call of that scope and id; nothing happens when there is none. `id` is JSON text. */
  cancel(scope: string, id: string): void {
    this.#calls.get(keyOf(scope, id))?.stop?.();
  }

  get size(): number {
    return this.#calls.size;
  }
}

/** Scope of a session: only its own calls can be named with it. */
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

/** The calls that a cancellation of this caller can name. */
export function callScope({ context, caller, capability }: RequestContext): string | undefined {
  const mcpSessionId = context.header('mcp-session-id');
  if (caller.kind === 'session') return cancelScope(caller.session.id, mcpSessionId);
  return capability === undefined ? undefined : capabilityScope(capability, mcpSessionId);
}
