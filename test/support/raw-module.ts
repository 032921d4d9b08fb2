/** A module on bare sockets: the test sees every request as text and answers with any bytes. */
import { createServer, type Socket } from 'node:net';
import type { Test } from 'tap';
import { listenFor } from '../../kit/http.ts';

export interface RawModule {
  readonly url: string;
  /** `METHOD path` of everything that arrived, in order. */
  readonly seen: string[];
  /** All connections that were ever made, in order. */
  readonly sockets: readonly Socket[];
}

/** `handle` gets whatever comes in one piece, and which connection it came on, counted from 0. */
export async function startRawModule(
  test: Test,
  handle: (request: string, socket: Socket, connection: number) => void,
): Promise<RawModule> {
  const seen: string[] = [];
  const sockets: Socket[] = [];
  const server = createServer((socket) => {
    const connection = sockets.push(socket) - 1;
    socket.on('error', () => socket.destroy());
    socket.on('data', (bytes) => {
      const text = bytes.toString('latin1');
      seen.push(text.slice(0, text.indexOf(' HTTP/')));
      handle(text, socket, connection);
    });
  });
  const { url } = await listenFor(test, server);
  return { url, seen, sockets };
}
