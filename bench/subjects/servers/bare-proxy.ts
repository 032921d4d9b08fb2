/** The floor of mcp-call: reads the body, asks the backend through undici, hands the answer on. Nothing in between. */

import type { HttpResponse } from 'uWebSockets.js';
import { Pool } from 'undici';
import { listen } from './listen.ts';

/** Connections that the gateway keeps to one module, at most. */
const CONNECTIONS = 128;
const [backend = ''] = process.argv.slice(2);
const pool = new Pool(backend, { connections: CONNECTIONS, pipelining: 1 });

async function forward(response: HttpResponse, isAborted: () => boolean): Promise<void> {
  const { body } = await pool.request({ method: 'GET', path: '/wallet/v1/balance/get' });
  const text = await body.text();
  if (isAborted()) return;
  response.cork(() => {
    response.writeHeader('Content-Type', 'application/json').end(text);
  });
}

await listen((app) =>
  app.post('/mcp', (response) => {
    let aborted = false;
    response.onAborted(() => {
      aborted = true;
    });
    const pieces: Buffer[] = [];
    response.onData((piece, isLast) => {
      pieces.push(Buffer.from(piece.slice(0)));
      if (!isLast) return;
      forward(response, () => aborted).catch((error: unknown) => {
        process.stderr.write(`bare proxy: ${String(error)}\n`);
        process.exit(1);
      });
    });
  }),
);
