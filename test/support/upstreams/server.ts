/** Another MCP server on a free loopback port, over node:http: its tools, sessions and answers are what a test says. */
import http from 'node:http';
import { listenOnLoopback } from '../../../kit/http.ts';

export interface UpstreamRequest {
  readonly method: string;
  readonly headers: http.IncomingHttpHeaders;
  readonly body: string;
  /** JSON text of `params.arguments` and of the id. */
  readonly values: string;
  readonly id: string;
  readonly name: string;
  /** Resolves when the gateway closed the connection. */
  readonly gone: Promise<void>;
}

type Respond = (call: UpstreamRequest, response: http.ServerResponse) => void;

export interface UpstreamFixture {
  readonly url: string;
  /** Listed as they stand. */
  tools: unknown[];
  /** Results of further methods that list; the capabilities follow from them when a session opens. */
  lists: Readonly<Record<string, object>>;
  /** Tools of one page. */
  pageSize: number;
  /** Answers tools/call; unless set, with the arguments as text. */
  respond: Respond;
  /** Answers tools/list in place of the list. */
  onList: ((response: http.ServerResponse, id: string) => void) | undefined;
  /** Opened so far. */
  connections: number;
  /** Answers a request itself, and says so. */
  onRequest:
    | ((request: http.IncomingMessage, response: http.ServerResponse, body: string) => boolean)
    | undefined;
  /** Called in place of the answer to initialize, which `open` gives. */
  onOpen: ((open: () => void) => void) | undefined;
  /** Statuses of requests with an unknown session. */
  lostStatus: number;
  /** Called for every request with a body. */
  onAsked: ((request: UpstreamRequest) => void) | undefined;
  /** Every request with a body, in order. */
  readonly asked: UpstreamRequest[];
  /** Sessions that were opened, and those that the gateway ended. */
  readonly sessions: { opened: number; ended: number };
  onEnded: (() => void) | undefined;
  /** Called when the stream of notices opens. */
  onStream: (() => void) | undefined;
  /** Streams of notices that are open. */
  readonly streams: Set<http.ServerResponse>;
  forgetSessions(): void;
  changed(): void;
  close(): Promise<void>;
}

export function json(response: http.ServerResponse, text: string, status = 200): void {
  response.writeHead(status, { 'content-type': 'application/json' });
  response.end(text);
}

export const resultOf = (id: string, result: string) => `{"jsonrpc":"2.0","id":${id},"result":${result}}`;

const echo: Respond = ({ id, values }, response) =>
  json(response, resultOf(id, `{"content":[{"type":"text","text":${JSON.stringify(values)}}]}`));

export async function startUpstream(tools: unknown[]): Promise<UpstreamFixture> {
  const known = new Set<string>();
  const server = http.createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => serve(fixture, known, request, response, Buffer.concat(chunks).toString('utf8')));
  });
  server.on('connection', () => {
    fixture.connections += 1;
  });
  const { url } = await listenOnLoopback(server);
  const fixture: UpstreamFixture = {
    url: `${url}/mcp`,
    tools,
    lists: {},
    pageSize: 100,
    respond: echo,
    onList: undefined,
    onOpen: undefined,
    onRequest: undefined,
    connections: 0,
    lostStatus: 404,
    onAsked: undefined,
    asked: [],
    sessions: { opened: 0, ended: 0 },
    onEnded: undefined,
    onStream: undefined,
    streams: new Set(),
    forgetSessions: () => known.clear(),
    changed() {
      const notice = '{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}';
      for (const stream of fixture.streams) stream.write(`data: ${notice}\n\n`);
    },
    async close() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
  return fixture;
}

function serve(
  fixture: UpstreamFixture,
  known: Set<string>,
  request: http.IncomingMessage,
  response: http.ServerResponse,
  body: string,
): void {
  if (fixture.onRequest?.(request, response, body) === true) return;
  const session = String(request.headers['mcp-session-id'] ?? '');
  if (request.method === 'DELETE') {
    if (known.delete(session)) fixture.sessions.ended += 1;
    response.end();
    fixture.onEnded?.();
    return;
  }
  if (request.method === 'GET') {
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    response.flushHeaders();
    fixture.streams.add(response);
    fixture.onStream?.();
    response.on('close', () => fixture.streams.delete(response));
    return;
  }
  const message = JSON.parse(body) as { id?: unknown; method?: string; params?: Record<string, unknown> };
  const id = JSON.stringify(message.id);
  const gone = new Promise<void>((resolve) => response.on('close', () => resolve()));
  const values = /"arguments":(.*?)(?:,"_meta"|\}\}$)/s.exec(body)?.[1] ?? '';
  const name = String(message.params?.['name'] ?? '');
  const asked: UpstreamRequest = {
    method: message.method ?? '',
    headers: request.headers,
    body,
    values,
    id,
    name,
    gone,
  };
  fixture.asked.push(asked);
  fixture.onAsked?.(asked);
  if (message.method === 'initialize') {
    const open = () => {
      fixture.sessions.opened += 1;
      const opened = `s${fixture.sessions.opened}`;
      known.add(opened);
      response.setHeader('mcp-session-id', opened);
      const offered = Object.keys(fixture.lists).map((method) => [method.split('/')[0], {}]);
      const capabilities = { tools: { listChanged: true }, ...Object.fromEntries(offered) };
      const facts = { capabilities, serverInfo: { name: 'other', version: '1' } };
      json(response, resultOf(id, JSON.stringify({ protocolVersion: '2025-11-25', ...facts })));
    };
    if (fixture.onOpen === undefined) open();
    else fixture.onOpen(open);
  } else if (!known.has(session)) {
    json(
      response,
      '{"jsonrpc":"2.0","error":{"code":-32001,"message":"no session"},"id":null}',
      fixture.lostStatus,
    );
  } else if (message.id === undefined || message.method === undefined) {
    response.statusCode = 202;
    response.end();
  } else if (message.method === 'tools/list') {
    if (fixture.onList === undefined)
      json(response, resultOf(id, pageOf(fixture, message.params?.['cursor'])));
    else fixture.onList(response, id);
  } else if (Object.hasOwn(fixture.lists, message.method))
    json(response, resultOf(id, JSON.stringify(fixture.lists[message.method])));
  else fixture.respond(asked, response);
}

function pageOf({ tools, pageSize }: UpstreamFixture, cursor: unknown): string {
  const from = Number(cursor ?? 0);
  const next = from + pageSize;
  const nextCursor = next < tools.length ? { nextCursor: String(next) } : {};
  return JSON.stringify({ tools: tools.slice(from, next), ...nextCursor });
}
