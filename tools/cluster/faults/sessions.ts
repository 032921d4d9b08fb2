/** Sessions that a client of a faulty cluster was given, and how a node must answer to them. */
import type { Answer } from '../../../kit/agent.ts';
import type { Judge, NodeRequest } from './calls.ts';

export interface HeldSession {
  readonly kind: 'browser' | 'mcp';
  /** The header `Cookie`, or the bearer. */
  readonly token: string;
  readonly keyId: string;
  /** Between live and closed an end is under way. */
  state: 'live' | 'closing' | 'closed';
  /** Time of the last change of state, by `performance.now`. */
  sinceMs: number;
}

/** `Unauthorized` of MCP. */
const RPC_UNAUTHORIZED = -32_001;
const LIST = { jsonrpc: '2.0', id: 1, method: 'tools/list' };

/** Returns the request that a session opens: the keys of its account, or the tools of MCP. */
export function entryOf({ kind, token }: HeldSession): NodeRequest {
  return kind === 'browser'
    ? { path: '/auth/v1/keys/user_keys', headers: { Cookie: token } }
    : { path: '/mcp', headers: { Authorization: `Bearer ${token}` }, body: LIST };
}

function isAdmitted({ status, json }: Answer): boolean | undefined {
  if (status === 401 || Number(json['error']?.['code']) === RPC_UNAUTHORIZED) return false;
  return json['result'] === undefined ? undefined : true;
}

/** Undefined: right, or no verdict. `session.state` counts as it is when the answer is judged. */
export const judgeSession =
  (session: HeldSession): Judge =>
  (answer) => {
    const admitted = isAdmitted(answer);
    if (admitted === true && session.state === 'closed')
      return `a closed ${session.kind} session is admitted`;
    if (admitted === false && session.state === 'live') return `a live ${session.kind} session is refused`;
    return undefined;
  };
