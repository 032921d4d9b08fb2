/** A stdio MCP server that passes each message on to the gateway's MCP endpoint, and writes the answers as lines. */
import type { Readable, Writable } from 'node:stream';
import { LoginRefused } from './login.ts';
import { causeOf, type Fetch, type SendOptions, send } from './send.ts';

/** Requests at once; the next one is refused. */
const IN_FLIGHT_MAX = 100;
/** They need a session. All others are sent without one while the key is not allowed yet. */
const NEEDS_SESSION = new Set(['tools/call', 'resources/read']);
/** Members of `_meta` of the revision 2026-07-28, which has no `initialize`. */
const VERSION_MEMBER = 'io.modelcontextprotocol/protocolVersion';

export interface StdioServerOptions {
  readonly mcp: string;
  /** Sends with the bearer of the agent. */
  readonly fetch: Fetch;
  /** Sends without it. */
  readonly plain: SendOptions;
  readonly input: Readable;
  readonly output: Writable;
  /** Writes a line that a person may need. */
  readonly log: (line: string) => void;
  /** Returns the text that the caller of a tool reads when the gateway refuses the login. */
  readonly explain: (refused: LoginRefused) => Promise<string>;
}

interface Message {
  readonly id?: string | number;
  readonly method?: string;
  readonly params?: {
    readonly name?: unknown;
    readonly uri?: unknown;
    readonly requestId?: string | number;
    readonly _meta?: { readonly [VERSION_MEMBER]?: unknown };
  };
}

/** Resolves when the input has ended and every request is answered. */
export async function serveStdio(options: StdioServerOptions): Promise<void> {
  const server = new StdioServer(options);
  const running = new Set<Promise<void>>();
  for await (const line of readLines(options.input)) {
    const work = server.take(line).finally(() => running.delete(work));
    running.add(work);
  }
  await Promise.all(running);
}

class StdioServer {
  readonly #options: StdioServerOptions;
  readonly #inFlight = new Map<string, AbortController>();
  #refused = 0;
  #mcpSessionId: string | undefined;
  #protocolVersion: string | undefined;

  constructor(options: StdioServerOptions) {
    this.#options = options;
  }

  /** Never rejects: what goes wrong is an answer. */
  async take(line: string | undefined): Promise<void> {
    if (line?.trim() === '') return;
    const message = line === undefined ? undefined : parse(line);
    if (line === undefined || message === undefined) {
      const reason = line === undefined ? 'the line is too long' : 'the line is no JSON object or array';
      this.#options.log(`${reason}, it is skipped`);
      this.#write(
        JSON.stringify({ jsonrpc: '2.0', error: { code: -32700, message: `Parse error: ${reason}` } }),
      );
    } else if (Array.isArray(message)) {
      const answers = await Promise.all(
        message.map((one: Message) => this.#answer(one, JSON.stringify(one))),
      );
      const texts = answers.filter((text) => text !== undefined);
      if (texts.length > 0) this.#write(`[${texts.join(',')}]`);
    } else {
      const text = await this.#answer(message, line);
      if (text !== undefined) this.#write(text);
    }
  }

  /** The answer of a request. `body` is what the host sent: an id keeps its digits. */
  async #answer(message: Message, body: string): Promise<string | undefined> {
    const { id, method, params } = message;
    if (method === 'notifications/cancelled') {
      // The gateway cancels a call whose connection is closed.
      this.#inFlight.get(keyOf(params?.requestId))?.abort();
      return undefined;
    }
    const isRequest = id !== undefined && method !== undefined;
    if (isRequest && this.#inFlight.size >= IN_FLIGHT_MAX) return this.#overloaded(id);
    const abort = new AbortController();
    if (isRequest) this.#inFlight.set(keyOf(id), abort);
    try {
      const text = await this.#exchange(message, body, abort.signal);
      return isRequest ? text : undefined;
    } catch (error) {
      if (abort.signal.aborted) return undefined;
      const { code, reason } = await this.#failure(error);
      this.#options.log(reason);
      return isRequest ? failure(id, code, reason) : undefined;
    } finally {
      if (isRequest) this.#inFlight.delete(keyOf(id));
    }
  }

  async #exchange(message: Message, body: string, signal: AbortSignal): Promise<string | undefined> {
    const init = { method: 'POST', headers: this.#headersOf(message), body, signal };
    const response = await this.#send(message, init);
    const sessionId = response.headers.get('mcp-session-id');
    if (message.method === 'initialize' && sessionId !== null) this.#mcpSessionId = sessionId;
    const type = response.headers.get('content-type') ?? '';
    if (type.startsWith('text/event-stream') && response.body !== null) {
      for await (const data of readEvents(response.body)) this.#write(oneLine(data));
      return undefined;
    }
    const text = await response.text();
    if (message.id === undefined) return undefined;
    if (!type.startsWith('application/json'))
      return failure(message.id, -32000, `the gateway answered HTTP ${response.status} without JSON`);
    const line = oneLine(text);
    if (message.method === 'initialize') this.#noteVersion(line);
    return withEnvelope(line, message.id);
  }

  async #send(message: Message, init: RequestInit): Promise<Response> {
    const { mcp, fetch, plain } = this.#options;
    try {
      return await fetch(mcp, init);
    } catch (error) {
      if (!(error instanceof LoginRefused) || NEEDS_SESSION.has(message.method ?? '')) throw error;
      return send(mcp, init, plain);
    }
  }

  #headersOf({ method, params }: Message): Record<string, string> {
    const headers: Record<string, string> = {
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
    };
    const version = params?._meta?.[VERSION_MEMBER];
    if (typeof version === 'string') {
      headers['mcp-protocol-version'] = headerValue(version);
      if (method !== undefined) headers['mcp-method'] = headerValue(method);
      const name = params?.name ?? params?.uri;
      if (typeof name === 'string') headers['mcp-name'] = headerValue(name);
      return headers;
    }
    if (this.#mcpSessionId !== undefined && method !== 'initialize')
      headers['mcp-session-id'] = this.#mcpSessionId;
    if (this.#protocolVersion !== undefined && method !== 'initialize')
      headers['mcp-protocol-version'] = this.#protocolVersion;
    return headers;
  }

  #noteVersion(line: string): void {
    const { result } = JSON.parse(line) as { result?: { protocolVersion?: unknown } };
    if (typeof result?.protocolVersion === 'string') this.#protocolVersion = result.protocolVersion;
  }

  #overloaded(id: string | number): string {
    this.#refused += 1;
    this.#options.log(`${this.#refused} requests refused so far: ${IN_FLIGHT_MAX} are in flight`);
    return failure(id, -32000, `Overloaded: ${IN_FLIGHT_MAX} requests are in flight, send it again later`);
  }

  async #failure(error: unknown): Promise<{ code: number; reason: string }> {
    if (error instanceof LoginRefused) return { code: -32001, reason: await this.#options.explain(error) };
    const cause = causeOf(error);
    const { code, message } = (
      cause instanceof AggregateError ? cause.errors[0] : cause
    ) as NodeJS.ErrnoException;
    return {
      code: -32000,
      reason: `no answer from the gateway (${code ?? message}); a call may have been carried out, it is not repeated`,
    };
  }

  #write(line: string): void {
    this.#options.output.write(`${line}\n`);
  }
}

function parse(line: string): Message | Message[] | undefined {
  try {
    const message: unknown = JSON.parse(line);
    return typeof message === 'object' && message !== null ? message : undefined;
  } catch (error) {
    if (error instanceof SyntaxError) return undefined;
    throw error;
  }
}

/** 1 and "1" are two ids. */
function keyOf(id: string | number | undefined): string {
  return JSON.stringify(id ?? null);
}

function failure(id: string | number, code: number, message: string): string {
  return JSON.stringify({ jsonrpc: '2.0', id, error: { code, message } });
}

/** A message is one line, however the gateway or a proxy wrote it. */
function oneLine(text: string): string {
  return /[\r\n]/.test(text) ? JSON.stringify(JSON.parse(text)) : text;
}

/** Errors of HTTP alone have no `jsonrpc`: they become one. */
function withEnvelope(line: string, id: string | number): string {
  if (line.includes('"jsonrpc"')) return line;
  const { error } = JSON.parse(line) as { error?: { code?: unknown; message?: unknown } };
  return failure(
    id,
    -32000,
    `the gateway refused: ${String(error?.code ?? '')} ${String(error?.message ?? line)}`,
  );
}

/** Values of other than visible ASCII are sent as the revision 2026-07-28 says. */
function headerValue(value: string): string {
  if (/^[\x21-\x7e]([\x20-\x7e]*[\x21-\x7e])?$/.test(value) && !value.startsWith('=?base64?')) return value;
  return `=?base64?${Buffer.from(value, 'utf8').toString('base64')}?=`;
}

/** A line that is longer is skipped to its end. */
const LINE_BYTES_MAX = 8 * 1024 * 1024;

/** Each line without its end; `undefined` for one that is too long. The rest without an end counts as a line. */
async function* readLines(input: AsyncIterable<Uint8Array | string>): AsyncGenerator<string | undefined> {
  let pieces: Buffer[] = [];
  let size = 0;
  const take = (): string | undefined => {
    const line =
      size > LINE_BYTES_MAX ? undefined : Buffer.concat(pieces).toString('utf8').replace(/\r$/, '');
    pieces = [];
    size = 0;
    return line;
  };
  const add = (piece: Buffer) => {
    size += piece.length;
    if (size > LINE_BYTES_MAX) pieces = [];
    else pieces.push(piece);
  };
  for await (const chunk of input) {
    let rest = Buffer.from(chunk as Uint8Array);
    for (let end = rest.indexOf(10); end !== -1; end = rest.indexOf(10)) {
      add(rest.subarray(0, end));
      yield take();
      rest = rest.subarray(end + 1);
    }
    if (rest.length > 0) add(rest);
  }
  if (size > 0) yield take();
}

/** The data of each event; lines of one event are joined as the HTML standard says. */
async function* readEvents(input: AsyncIterable<Uint8Array>): AsyncGenerator<string> {
  let data: string[] = [];
  for await (const line of readLines(input)) {
    if (line === undefined) data = [];
    else if (line === '') {
      if (data.length > 0) yield data.join('\n');
      data = [];
    } else if (line.startsWith('data:')) data.push(line.slice(5).replace(/^ /, ''));
  }
}
