/**
 * A `fetch` for MCP clients: adds the bearer, logs in again when the session is gone, and repeats once what was refused for
 * its session. Other addresses than the gateway's never see the bearer.
 */
import { addressOf } from './address.ts';
import { keyOf } from './agent-key.ts';
import { AgentSession } from './agent-session.ts';
import { given, type LoginOptions } from './login.ts';
import { McpSessions } from './mcp-sessions.ts';
import { type Fetch, type SendOptions, SYSTEM, send } from './send.ts';

/** A refusal is a short answer; longer ones pass unread. */
const REFUSAL_BYTES_MAX = 4_096;

/** Returns a `fetch` for the option `fetch` of `StreamableHTTPClientTransport`, and for all that takes one. */
export function gatehouseFetch(options: LoginOptions): Fetch {
  const key = typeof options.key === 'string' ? keyOf(options.key) : options.key;
  return fetchOf(new AgentSession({ ...options, key }), options);
}

export function fetchOf(
  session: AgentSession,
  options: Pick<LoginOptions, 'url'> & Partial<SendOptions>,
): Fetch {
  const { origin } = addressOf(options.url);
  const system: SendOptions = { ...SYSTEM, ...given(options) };
  const sessions = new McpSessions();

  const withBearer: Fetch = async (url, init = {}) => {
    const token = await session.token();
    const response = await send(url, authorized(init, token), system);
    const refusal = await readRefusal(response);
    if (refusal === undefined) return response;
    if (!refusal.forSession) return refusal.response;
    session.forget(token);
    if (isStream(init.body)) return refusal.response;
    return send(url, authorized(init, await session.token()), system);
  };

  return async (url, init = {}) =>
    new URL(url).origin === origin ? sessions.send(url, init, withBearer) : system.fetch(url, init);
}

function authorized(init: RequestInit, token: string): RequestInit {
  const headers = new Headers(init.headers);
  headers.set('authorization', `Bearer ${token}`);
  return { ...init, headers };
}

/** Is the body gone once it was sent? */
function isStream(body: RequestInit['body']): boolean {
  return body !== undefined && body !== null && typeof body !== 'string' && !ArrayBuffer.isView(body);
}

/** Undefined for an answer that is no short JSON. Otherwise the answer, to be read again, and whether its session is gone. */
async function readRefusal(
  response: Response,
): Promise<{ response: Response; forSession: boolean } | undefined> {
  const { headers, status, statusText } = response;
  const length = headers.get('content-length');
  if (!headers.get('content-type')?.startsWith('application/json')) return undefined;
  if (length !== null && Number(length) > REFUSAL_BYTES_MAX) return undefined;
  const text = await response.text();
  const copy = new Response(text === '' ? null : text, { status, statusText, headers });
  return { response: copy, forSession: text.length <= REFUSAL_BYTES_MAX && isSessionGone(text) };
}

/** -32001 is also "not for this caller"; the message tells them apart. 1101 is the answer of routes other than /mcp. */
function isSessionGone(text: string): boolean {
  if (!/session not found/i.test(text)) return false;
  try {
    const { error } = JSON.parse(text) as { error?: { code?: unknown } };
    return error?.code === -32001 || error?.code === 1101;
  } catch (error) {
    if (error instanceof SyntaxError) return false;
    throw error;
  }
}
