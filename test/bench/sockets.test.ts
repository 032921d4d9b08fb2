/** WebSockets of the bench: every byte of an echo is compared, faults end the measurement, and the gateway counts none at the end. */
import { createHash } from 'node:crypto';
import { createServer, type IncomingMessage } from 'node:http';
import type { Duplex } from 'node:stream';
import t from 'tap';
import { startServer } from '../../bench/measure/children.ts';
import { generatorBusy, loadOf } from '../../bench/report/report.ts';
import { EchoSocket, echoFrames, handshakeOf } from '../../bench/scenarios/sockets/echo-socket.ts';
import { wsProxy } from '../../bench/scenarios/ws-proxy.ts';
import { listenFor } from '../../kit/http.ts';
import { benchOf } from './fixtures/bench.ts';

/** RFC 6455 1.3. */
const GUID = '258EAFA5-E914-47DA-95CA-C5AB0DC85B11';

interface Teardown {
  teardown(run: () => unknown): void;
}

async function serverOf(t: Teardown, onUpgrade: (request: IncomingMessage, stream: Duplex) => void) {
  const server = createServer().on('upgrade', onUpgrade);
  return (await listenFor(t, server)).port;
}

const openAt = (port: number) => EchoSocket.open(port, handshakeOf(`http://127.0.0.1:${port}/any`));

t.test('echo of the bench: frames of all sizes come back over one socket, and it closes', async (t) => {
  const server = await startServer('echo');
  t.teardown(() => server.stop());
  const socket = await openAt(Number(new URL(server.url).port));
  for (const sizeBytes of [0, 125, 126, 16 * 1024, 65_535]) {
    await socket.echo(echoFrames(sizeBytes));
    t.pass(`${sizeBytes} bytes`);
  }
  await socket.close();
});

t.test('echo of the bench: an answer with other bytes is a fault', async (t) => {
  const { answer } = echoFrames(64);
  const wrong = Buffer.concat([answer.subarray(0, 63), Buffer.from('?'), answer.subarray(64)]);
  const port = await serverOf(t, (request, stream) => {
    const key = `${request.headers['sec-websocket-key']}${GUID}`;
    const accept = createHash('sha1').update(key).digest('base64');
    stream.write(`HTTP/1.1 101 Switching Protocols\r\nSec-WebSocket-Accept: ${accept}\r\n\r\n`);
    stream.once('data', () => stream.end(wrong));
  });
  const socket = await openAt(port);
  await t.rejects(socket.echo(echoFrames(64)), /other bytes/);
});

t.test(
  'echo of the bench: a refused handshake, and a wrong accept value, are faults with the answer',
  async (t) => {
    for (const head of ['HTTP/1.1 429 Too Many Requests', 'HTTP/1.1 101 Switching Protocols']) {
      const port = await serverOf(t, (_request, stream) => stream.end(`${head}\r\n\r\n`));
      await t.rejects(openAt(port), { message: new RegExp(head) });
    }
  },
);

t.test(
  'ws-proxy: each row counts echoes or openings, and the gateway counts no socket at the end',
  async (t) => {
    const bench = benchOf(t, { connections: 20, durationMs: 20, warmupMs: 1, rounds: 1, roundsMax: 1 });
    const { comparison, notes } = await wsProxy.run(bench);
    const rows = comparison.subjects.filter(({ name }) => name.startsWith('gatehouse, '));
    t.equal(rows.length, 5);
    for (const { name, rounds } of rows) {
      t.ok((loadOf(rounds[0])?.answers ?? 0) > 0, name);
      t.ok((generatorBusy(rounds[0]) ?? 0) > 0);
    }
    const closed = notes.filter((note) => /time [123]: 20 sockets .+ it counts 0\.$/.test(note));
    t.equal(closed.length, 3);
  },
);
