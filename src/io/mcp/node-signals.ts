/**
 * Running calls and ended sessions of /mcp, and what nodes of a cluster say to each other about them: a client may send its
 * next message to another node. Nothing of it is stored.
 */
import { textOf } from '../verb-arguments.ts';
import { CallsInFlight } from './calls/in-flight.ts';
import { EndedSessions } from './session-ids.ts';

/** Calls a verb of every other node. Resolves when each has answered or will not; never rejects. */
export type CallOthers = (verb: McpVerb, ...args: readonly string[]) => Promise<unknown>;

export const MCP_VERBS = ['cancelCall', 'endMcpSession'] as const;
type McpVerb = (typeof MCP_VERBS)[number];

export class NodeSignals {
  readonly calls = new CallsInFlight();
  readonly ended = new EndedSessions();
  readonly #callOthers: CallOthers;

  /** `callOthers`: absent where there is one node. */
  constructor(callOthers: CallOthers = async () => undefined) {
    this.#callOthers = callOthers;
  }

  /** Verbs that other nodes may call. Throws TypeError for arguments that no node of this version sends. */
  get verbs(): Readonly<Record<McpVerb, (...args: readonly unknown[]) => unknown>> {
    return {
      cancelCall: (scope, id) => this.calls.cancel(textOf(scope), textOf(id)),
      endMcpSession: (id) => this.ended.end(textOf(id)),
    };
  }

  /** Stops a call of that scope and id, here or at the node where it runs. That may be after this returns. */
  cancel(scope: string, id: string): void {
    if (!this.calls.cancel(scope, id)) void this.#callOthers('cancelCall', scope, id);
  }

  /** Resolves when all nodes that answer refuse the id, which is one of the gateway. */
  async end(mcpSessionId: string): Promise<void> {
    this.ended.end(mcpSessionId);
    await this.#callOthers('endMcpSession', mcpSessionId);
  }
}
