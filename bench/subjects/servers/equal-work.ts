/**
 * The floor of small answers: a uWebSockets.js handler that does what each of them needs and nothing else. The same bytes
 * and header fields, the hash of the token, a request id, a log line. `equal-work HEAD BODY`: an answer of the gateway.
 */
import { mkdtempSync, openSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { hashToken } from '../../../src/domain/ids.ts';
import { openLineSink } from '../../../src/io/observability/log.ts';
import { newRequestId } from '../../../src/io/observability/request-ids.ts';
import { requestLine } from '../../../src/io/observability/request-log.ts';
import { listen } from './listen.ts';

/** Written by the server itself, or anew for each answer. */
const OWN_FIELDS = /^(content-length|date|x-request-id|connection|keep-alive)$/;

const [head = '', body = ''] = process.argv.slice(2);
const fields = head
  .split('\r\n')
  .slice(1)
  .map((line) => line.split(': ', 2) as [string, string])
  .filter(([name, value]) => value !== undefined && !OWN_FIELDS.test(name));
const folder = mkdtempSync(join(tmpdir(), 'gatehouse-floor-'));
const sink = openLineSink(openSync(join(folder, 'log'), 'w'));
// Its name is not needed, and the folder must not outlive a kill.
rmSync(folder, { recursive: true });

await listen((app) =>
  app.any('/*', (response, request) => {
    const startedMs = performance.now();
    const token = request.getHeader('cookie').slice('sid='.length);
    if (hashToken(token) === undefined) throw new Error('no token');
    const path = request.getUrl();
    const requestId = newRequestId();
    response.cork(() => {
      for (const [name, value] of fields) response.writeHeader(name, value);
      response.writeHeader('x-request-id', requestId).end(body);
    });
    const record = {
      method: 'GET',
      route: path,
      path,
      status: 200,
      error: undefined,
      durationMs: performance.now() - startedMs,
      finishedMs: Date.now(),
      responseBytes: body.length,
      clientAddress: '127.0.0.1',
      userAgent: request.getHeader('user-agent'),
      userId: undefined,
      requestId,
      clientRequestId: undefined,
      traceparent: undefined,
    };
    sink.write(requestLine(record));
  }),
);
