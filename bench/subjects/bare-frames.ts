/** The floor of calls between nodes: the same frames on one TCP connection, without handshake, bounds, heartbeats or errors. */
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import { FRAME_BYTES_MAX, FrameReader, packFrame, unpackFrame } from '../../src/io/cluster/frames.ts';

const HOST = '127.0.0.1';

/** Frames of one event-loop tick leave in one write. */
function joining(socket: Socket): (value: unknown) => void {
  let joined: Buffer[] = [];
  return (value) => {
    if (joined.length === 0)
      setImmediate(() => {
        socket.write(Buffer.concat(joined));
        joined = [];
      });
    joined.push(packFrame(value));
  };
}

function reading(socket: Socket, onValue: (value: unknown[]) => void): void {
  const reader = new FrameReader(FRAME_BYTES_MAX);
  socket.setNoDelay(true);
  socket.on('data', (chunk: Buffer) =>
    reader.read(chunk, (frame) => onValue(unpackFrame(frame) as unknown[])),
  );
}

/** Answers each frame; the port. */
export function answerBare(answer: (...args: unknown[]) => unknown): Promise<number> {
  const server = createServer((socket) => {
    const send = joining(socket);
    socket.on('error', () => socket.destroy());
    reading(socket, ([id, ...args]) => send([id, answer(...args)]));
  });
  return new Promise((resolve) => {
    server.listen(0, HOST, () => resolve((server.address() as AddressInfo).port));
  });
}

export async function openBare(port: number): Promise<(...args: unknown[]) => Promise<unknown>> {
  const socket = connect({ host: HOST, port });
  await new Promise((resolve, reject) => socket.once('connect', resolve).once('error', reject));
  const waiting = new Map<unknown, (value: unknown) => void>();
  const send = joining(socket);
  reading(socket, ([id, value]) => {
    waiting.get(id)?.(value);
    waiting.delete(id);
  });
  let lastId = 0;
  return (...args) =>
    new Promise((resolve) => {
      lastId += 1;
      waiting.set(lastId, resolve);
      send([lastId, ...args]);
    });
}
