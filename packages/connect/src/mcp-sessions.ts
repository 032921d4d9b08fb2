/**
 * The `Mcp-Session-Id` of clients that keep one. For an id that the gateway ended (404) it is initialized again, and the
 * client's id stands for the new one from then on.
 */
import type { Fetch } from './send.ts';

/** Sessions remembered; the oldest is dropped beyond this number. */
const SESSIONS_MAX = 100;
const HEADER = 'mcp-session-id';

interface Opened {
  /** Request with which the client opened it. */
  readonly initialize: { readonly url: string; readonly headers: Headers; readonly body: string };
  /** The id that the gateway knows. */
  id: string;
}

export class McpSessions {
  /** Sessions by the id that the client knows. */
  readonly #opened = new Map<string, Opened>();

  async send(url: string | URL, init: RequestInit, fetch: Fetch): Promise<Response> {
    const headers = new Headers(init.headers);
    const opened = this.#opened.get(headers.get(HEADER) ?? '');
    if (opened === undefined) return this.#remember(url, init, await fetch(url, init));
    const response = await fetch(url, withId(init, headers, opened.id));
    if (response.status !== 404 || init.method === 'DELETE') return response;
    const id = await initializeAgain(opened, fetch);
    if (id === undefined) return response;
    await response.body?.cancel();
    opened.id = id;
    return fetch(url, withId(init, headers, id));
  }

  #remember(url: string | URL, { body, headers }: RequestInit, response: Response): Response {
    const id = response.headers.get(HEADER);
    if (id === null || typeof body !== 'string' || !isInitialize(body)) return response;
    if (this.#opened.size >= SESSIONS_MAX) {
      const oldest = this.#opened.keys().next();
      if (oldest.done !== true) this.#opened.delete(oldest.value);
    }
    this.#opened.set(id, { id, initialize: { url: String(url), headers: new Headers(headers), body } });
    return response;
  }
}

function withId(init: RequestInit, headers: Headers, id: string): RequestInit {
  headers.set(HEADER, id);
  return { ...init, headers };
}

async function initializeAgain({ initialize }: Opened, fetch: Fetch): Promise<string | undefined> {
  const { url, headers, body } = initialize;
  const response = await fetch(url, { method: 'POST', headers, body });
  await response.body?.cancel();
  const id = response.headers.get(HEADER);
  if (!response.ok || id === null) return undefined;
  const initialized = new Headers(headers);
  initialized.set(HEADER, id);
  const notice = JSON.stringify({ jsonrpc: '2.0', method: 'notifications/initialized' });
  const answer = await fetch(url, { method: 'POST', headers: initialized, body: notice });
  await answer.body?.cancel();
  return id;
}

function isInitialize(body: string): boolean {
  if (!body.includes('"initialize"')) return false;
  try {
    return (JSON.parse(body) as { method?: unknown }).method === 'initialize';
  } catch (error) {
    if (error instanceof SyntaxError) return false;
    throw error;
  }
}
