/** Sockets of tests that speak to a node's link listener byte by byte, and a proxy that records and cuts. */

import { once } from 'node:events';
import { connect, createServer, type Socket } from 'node:net';
import { listenOnLoopback } from '../../../kit/http.ts';
import type { HostPort } from '../../../src/domain/host-port.ts';

interface Teardown {
  teardown(handler: () => unknown): void;
}

export interface RawClient {
  readonly socket: Socket;
  /** The next frame, without its length. Rejects when the connection ends first. */
  frame(): Promise<Buffer>;
  send(text: string | Buffer): void;
  /** Resolves when the other side has closed. */
  readonly closed: Promise<unknown>;
}

export function framed(content: string | Buffer): Buffer {
  const bytes = Buffer.from(content);
  const header = Buffer.alloc(4);
  header.writeUInt32LE(bytes.length);
  return Buffer.concat([header, bytes]);
}

export async function openRaw(t: Teardown, { host, port }: HostPort): Promise<RawClient> {
  const socket = connect({ host, port });
  t.teardown(() => socket.destroy());
  socket.on('error', () => undefined);
  const closed = new Promise((resolve) => socket.once('close', resolve));
  await Promise.race([once(socket, 'connect'), closed]);
  let received: Buffer = Buffer.alloc(0);
  let onData = () => {};
  socket.on('data', (chunk) => {
    received = Buffer.concat([received, chunk]);
    onData();
  });
  const frame = () =>
    new Promise<Buffer>((resolve, reject) => {
      onData = () => {
        if (received.length < 4) return;
        const end = 4 + received.readUInt32LE(0);
        if (received.length < end) return;
        const content = received.subarray(4, end);
        received = received.subarray(end);
        onData = () => {};
        resolve(content);
      };
      void closed.then(() => reject(new Error('the connection was closed')));
      onData();
    });
  return { socket, frame, closed, send: (content) => void socket.write(framed(content)) };
}

export interface Proxy {
  readonly address: HostPort;
  /** All bytes that clients have sent, of each connection. */
  readonly sent: Buffer[][];
  /** Ends every connection. */
  cut(): void;
  /** From now on nothing passes, and nothing is closed. */
  stall(): void;
}

/** Stands between a node and the one that it dials. */
export async function startProxy(t: Teardown, target: HostPort): Promise<Proxy> {
  const sockets = new Set<Socket>();
  const sent: Buffer[][] = [];
  const server = createServer((client) => {
    const upstream = connect(target);
    const bytes: Buffer[] = [];
    sent.push(bytes);
    for (const [from, to] of [
      [client, upstream],
      [upstream, client],
    ] as const) {
      sockets.add(from);
      from.on('error', () => undefined);
      from.on('close', () => to.destroy());
      from.on('data', (chunk) => {
        if (from === client) bytes.push(chunk);
        to.write(chunk);
      });
    }
  });
  const { port } = await listenOnLoopback(server);
  const end = () => {
    for (const socket of sockets) socket.destroy();
    sockets.clear();
  };
  t.teardown(() => {
    end();
    return new Promise((resolve) => server.close(resolve));
  });
  return {
    address: { host: '127.0.0.1', port },
    sent,
    cut: end,
    stall() {
      for (const socket of sockets) socket.pause().removeAllListeners('data');
    },
  };
}
