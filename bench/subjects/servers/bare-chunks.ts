/**
 * The floor of chunk uploads: a uWebSockets.js handler that copies a chunk into shared memory, has a worker thread hash and
 * write it, and answers. No session, no journal, nothing synced. `bare-chunks FOLDER`; POST /FILE?NUMBER, in order.
 */
import { closeSync, openSync } from 'node:fs';
import { join } from 'node:path';
import { createWorkerPool } from '../../../src/workers/pool.ts';
import { listen } from './listen.ts';

const CHUNK_BYTES = 256 * 1024;
const [folder = ''] = process.argv.slice(2);
const pool = createWorkerPool({ threads: 1, queueMax: 100 });
const idle: SharedArrayBuffer[] = [];
let file: number | undefined;

await listen((app) =>
  app.post('/*', (response, request) => {
    const number = Number(request.getQuery());
    if (number === 0) {
      if (file !== undefined) closeSync(file);
      file = openSync(join(folder, request.getUrl().slice(1)), 'w');
    }
    const fd = file ?? -1;
    const sharedBuffer = idle.pop() ?? new SharedArrayBuffer(CHUNK_BYTES);
    const bytes = Buffer.from(sharedBuffer);
    let length = 0;
    let aborted = false;
    response.onAborted(() => {
      aborted = true;
    });
    response.onData((piece, isLast) => {
      bytes.fill(new Uint8Array(piece), length, length + piece.byteLength);
      length += piece.byteLength;
      if (!isLast) return;
      void pool
        .run('writeBuffer', { sharedBuffer, length, fd, position: number * CHUNK_BYTES })
        .then((result) => {
          idle.push(sharedBuffer);
          if (!aborted) response.cork(() => response.writeStatus(result.ok ? '200 OK' : '500').end('{}'));
        });
    });
  }),
);
