/** The kernel's receive buffer over real sockets: uWebSockets.js reads until a read is short. */
import { once } from 'node:events';
import { connect } from 'node:net';
import t, { type Test } from 'tap';
import { closeAfter } from '../../../../kit/close-after.ts';
import { pickPort } from '../../../../kit/free-port.ts';
import { boundReceiveBuffer } from '../../../../src/io/http/listen/receive-buffer.ts';
import { createServer, type RequestHandler, type Server } from '../../../../src/io/http/listen/server.ts';

const BODY_BYTES = 64 * 1024 * 1024;
/** Bytes that uWebSockets.js requests with each read. */
const READ_BYTES = 512 * 1024;

async function startServer(t: Test, handler: RequestHandler): Promise<Server> {
  const port = await pickPort();
  const server = closeAfter(t, createServer({ host: '127.0.0.1', port, connectionsMax: () => 10 }));
  server.serve(handler);
  return server;
}

t.test(
  'receive buffer: of a paused client one read arrives in an event-loop tick, never megabytes',
  async (t) => {
    let pieces = 0;
    let pieceBytesMax = 0;
    let afterPause = 0;
    const server = await startServer(t, (response) => {
      let paused = false;
      response.onAborted(() => undefined);
      response.onData((chunk, isLast) => {
        pieces += 1;
        pieceBytesMax = Math.max(pieceBytesMax, chunk.byteLength);
        if (paused) afterPause += 1;
        if (isLast) {
          if (paused) response.resume();
          response.end('ok');
          return;
        }
        if (paused) return;
        paused = true;
        response.pause();
        setImmediate(() => {
          paused = false;
          response.resume();
        });
      });
    });
    t.equal(await boundReceiveBuffer(server.port, 128 * 1024), undefined);
    const client = connect({ host: '127.0.0.1', port: server.port });
    client.write(`POST / HTTP/1.1\r\nHost: a\r\nContent-Length: ${BODY_BYTES}\r\n\r\n`);
    client.write(Buffer.alloc(BODY_BYTES));
    await once(client, 'data');
    client.destroy();
    t.ok(pieces > BODY_BYTES / READ_BYTES, `${pieces} pieces`);
    t.ok(pieceBytesMax < READ_BYTES, `${pieceBytesMax} bytes at most`);
    t.equal(afterPause, 0);
  },
);

t.test('receive buffer: a port without a listener of this process is reported', async (t) => {
  const port = await pickPort();
  t.match(await boundReceiveBuffer(port, 128 * 1024), new RegExp(`port ${port}`));
  const server = await startServer(t, (response) => response.end());
  server.stopListening();
  t.match(await boundReceiveBuffer(server.port, 128 * 1024), new RegExp(`port ${server.port}`));
});
