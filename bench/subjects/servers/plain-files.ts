/** Files over node:http with streams: GET, PUT and Range, nothing else. `plain-files FOLDER`. */
import { createReadStream, createWriteStream, statSync } from 'node:fs';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join, normalize } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { tellParent } from './listen.ts';

const [root = ''] = process.argv.slice(2);

async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
  const path = join(root, normalize(`/${request.url ?? ''}`));
  if (request.method === 'PUT') {
    await pipeline(request, createWriteStream(path));
    response.writeHead(201).end();
    return;
  }
  const { size } = statSync(path);
  const range = /^bytes=(\d+)-(\d+)$/.exec(request.headers.range ?? '');
  const first = Number(range?.[1] ?? 0);
  const last = Number(range?.[2] ?? size - 1);
  response.writeHead(range === null ? 200 : 206, {
    'Content-Length': last - first + 1,
    ...(range === null ? {} : { 'Content-Range': `bytes ${first}-${last}/${size}` }),
  });
  await pipeline(createReadStream(path, { start: first, end: last }), response);
}

const server = createServer((request, response) => {
  answer(request, response).catch((error: NodeJS.ErrnoException) => {
    response.destroy();
    // The client ends its connections when a round is over.
    if (error.code === 'ERR_STREAM_PREMATURE_CLOSE') return;
    process.stderr.write(`plain files: ${String(error)}\n`);
  });
});
server.listen(0, '127.0.0.1', () => tellParent(`http://127.0.0.1:${(server.address() as AddressInfo).port}`));
