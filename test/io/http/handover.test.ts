/** Two listeners on one port: connections that arrive while the second takes over from the first. */
import { once } from 'node:events';
import { Worker } from 'node:worker_threads';
import t, { type Test } from 'tap';
import { closeAfter } from '../../../kit/close-after.ts';
import { pickPort } from '../../../kit/free-port.ts';
import { setReceiveBuffer, steerToNewest } from '../../../src/io/http/listen/listening-sockets.ts';
import { createServer, type Server } from '../../../src/io/http/listen/server.ts';
import { requestText, sendRaw } from '../../support/http.ts';

const CONNECTIONS = 64;
/** Longer than a replaced listener keeps accepting. */
const BLOCKED_MS = 1_500;

async function startServer(t: Test): Promise<Server> {
  const port = await pickPort();
  const server = closeAfter(t, createServer({ host: '127.0.0.1', port, connectionsMax: () => 1_000 }));
  server.serve((response) => response.end('ok', true));
  return server;
}

/** Opens connections from another thread on demand, and counts those that were answered. */
const CLIENT = `
  const { connect } = require('node:net');
  const { parentPort, workerData: { port, shared, count } } = require('node:worker_threads');
  const state = new Int32Array(shared);
  Atomics.wait(state, 0, 0);
  let answered = 0, over = 0, open = 0;
  for (let index = 0; index < count; index += 1) {
    const socket = connect(port, '127.0.0.1', () => {
      socket.write('GET / HTTP/1.1\\r\\nHost: localhost\\r\\n\\r\\n');
      open += 1;
      if (open === count) { Atomics.store(state, 1, 1); Atomics.notify(state, 1); }
    });
    socket.once('data', () => { answered += 1; });
    socket.on('error', () => undefined);
    socket.on('close', () => { over += 1; if (over === count) parentPort.postMessage(answered); });
  }
`;

// covers S129
t.test(
  'handover: connections that wait to be accepted when the first listener stops are served',
  async (t) => {
    const server = await startServer(t);
    const shared = new SharedArrayBuffer(8);
    const state = new Int32Array(shared);
    const worker = new Worker(CLIENT, {
      eval: true,
      workerData: { port: server.port, shared, count: CONNECTIONS },
    });
    t.teardown(() => worker.terminate());
    await once(worker, 'online');
    const answers = once(worker, 'message');
    await server.renew(async () => {
      t.equal(await steerToNewest(server.port), undefined);
      // This thread accepts nothing while they connect, and the first listener stops before it accepts again.
      setImmediate(() => {
        Atomics.store(state, 0, 1);
        Atomics.notify(state, 0);
        Atomics.wait(state, 1, 0);
        Atomics.wait(state, 0, 1, BLOCKED_MS);
      });
    });
    t.same(await answers, [CONNECTIONS]);
    t.equal((await sendRaw(server.port, requestText('GET', '/'))).status, 200);
    t.equal(server.counters().openedTotal, CONNECTIONS + 1, 'both listeners count as one');
  },
);

t.test('handover: repeated handovers go to the newest listener; after a stop there is none', async (t) => {
  const server = await startServer(t);
  for (let times = 0; times < 2; times += 1) {
    await server.renew(async () => {
      t.equal(await steerToNewest(server.port), undefined);
      t.equal(await setReceiveBuffer(server.port, 64 * 1024), undefined, 'options are set on both');
    });
    t.equal((await sendRaw(server.port, requestText('GET', '/'))).status, 200);
  }
  server.stopListening();
  await server.renew(() => Promise.reject(new Error('not asked')));
  t.match(await steerToNewest(server.port), new RegExp(`port ${server.port}`), 'nothing listens any more');
});
