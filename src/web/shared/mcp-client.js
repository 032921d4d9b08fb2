/** MCP client of the page: the agent session of this tab, and JSON-RPC calls with it. */
import { ApiError, call, refusalOf, send } from './api.js';
import { loginHeaders } from './ed25519.js';

const KEPT = 'gatehouse-agent';
const OWNER = 'gatehouse-agent-owner';
let requests = 0;

/** The session of this tab; undefined when there is none or it is over. */
export function agentSession() {
  const text = sessionStorage.getItem(KEPT);
  if (text === null) return undefined;
  const session = JSON.parse(text);
  return Date.parse(session.expiresUtc) > Date.now() ? session : undefined;
}

/** Logs a pair in as McpVerified; the session is kept until the tab closes. */
export async function logInAgent(pair) {
  const session = await call('POST', '/auth/v1/mcp_login', { headers: await loginHeaders(pair) });
  sessionStorage.setItem(KEPT, JSON.stringify(session));
  return session;
}

/** Forgets an agent of another account. An empty id is no account. */
export function keepAgentOf(userId) {
  if (sessionStorage.getItem(OWNER) === userId) return;
  sessionStorage.removeItem(KEPT);
  sessionStorage.setItem(OWNER, userId);
}

/** The `result` of a JSON-RPC call; refusals as `ApiError`, whether of HTTP or of JSON-RPC. */
export async function rpc(method, params = {}) {
  requests += 1;
  const session = agentSession();
  const answer = await send('POST', '/mcp', {
    headers: {
      'Content-Type': 'application/json',
      ...(session === undefined ? {} : { Authorization: `Bearer ${session.sessionId}` }),
    },
    body: JSON.stringify({ jsonrpc: '2.0', id: requests, method, params }),
  });
  const value = await answer.json().catch(() => undefined);
  if (!answer.ok) throw refusalOf(answer, value);
  if (value?.error !== undefined)
    throw new ApiError(answer.status, value.error.code, value.error.message, undefined);
  return value.result;
}

export function pretty(text) {
  try {
    return JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    return text;
  }
}
