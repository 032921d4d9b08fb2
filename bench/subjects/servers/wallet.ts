/**
 * A wallet module that answers a balance at once, so that the way to it is what is measured, and a POST when its body is
 * whole. At /mcp it is an MCP server whose tools answer the same: `wallet FIRST COUNT`, tools of `toolOf`.
 */
import type { HttpResponse } from 'uWebSockets.js';
import { toolOf } from '../upstreams.ts';
import { listen } from './listen.ts';

const BALANCE = JSON.stringify({
  result: {
    balances: [
      { currency: 'DEMO', balance: '1000.00', available: '1000.00', locked: '0.00', precision: 2 },
      {
        currency: 'GATE',
        balance: '1000.00000000',
        available: '1000.00000000',
        locked: '0.00000000',
        precision: 8,
      },
    ],
  },
});

const [first = '0', count = '0'] = process.argv.slice(2);
const tools = Array.from({ length: Number(count) }, (_, index) => toolOf(Number(first) + index));
/** JSON of results by method. */
const RESULTS: Readonly<Record<string, string>> = {
  initialize: JSON.stringify({
    protocolVersion: '2025-11-25',
    capabilities: { tools: {} },
    serverInfo: { name: 'wallet', version: '1' },
  }),
  'tools/list': JSON.stringify({ tools }),
  'tools/call': JSON.stringify({ content: [{ type: 'text', text: BALANCE }] }),
};

/** Calls back with the whole body, unless the caller has gone. */
function readBody(response: HttpResponse, onBody: (text: string) => void): void {
  const pieces: Buffer[] = [];
  let isGone = false;
  response.onAborted(() => {
    isGone = true;
  });
  response.onData((piece, isLast) => {
    pieces.push(Buffer.from(piece.slice(0)));
    if (isLast && !isGone) response.cork(() => onBody(Buffer.concat(pieces).toString('utf8')));
  });
}

function answerMcp(response: HttpResponse, body: string): void {
  const { id, method } = JSON.parse(body) as { readonly id?: unknown; readonly method: string };
  const result = RESULTS[method];
  if (id === undefined) response.writeStatus('202 Accepted').end();
  else if (result === undefined) response.writeStatus('404 Not Found').end();
  else
    response
      .writeHeader('Content-Type', 'application/json')
      .writeHeader('Mcp-Session-Id', 'bench')
      .end(`{"jsonrpc":"2.0","id":${JSON.stringify(id)},"result":${result}}`);
}

await listen((app) =>
  app
    .get('/wallet/v1/balance/get', (response) => {
      response.cork(() => {
        response.writeHeader('Content-Type', 'application/json').end(BALANCE);
      });
    })
    .post('/mcp', (response) => readBody(response, (body) => answerMcp(response, body)))
    // No stream of notices.
    .get('/mcp', (response) => {
      response.writeStatus('405 Method Not Allowed').end();
    })
    .del('/mcp', (response) => {
      response.end();
    })
    .post('/*', (response) => readBody(response, () => response.end('{}'))),
);
