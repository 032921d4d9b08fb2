/** A WebSocket that sends each message back: `/core/v1/echo`, to try proxied WebSockets with. */
import type { IncomingMessage } from 'node:http';
import { createRequire } from 'node:module';
import type { Duplex } from 'node:stream';
import type { WebSocketServer } from 'ws';
import { MESSAGE_MAX_BYTES } from '../domain/web-sockets.ts';

export const ECHO_PATH = '/core/v1/echo';

/** Bytes of answers that wait for a client; one that reads less is cut. */
const WAITING_MAX_BYTES = 4 * MESSAGE_MAX_BYTES;

export class Echo {
  #server: WebSocketServer | undefined;

  accept(request: IncomingMessage, stream: Duplex, head: Buffer): void {
    this.#server ??= openServer();
    this.#server.handleUpgrade(request, stream, head, (socket) => {
      // A faulty frame ends the socket, which is all that there is to do.
      socket.on('error', () => socket.terminate());
      socket.on('message', (bytes, isBinary) => {
        if (socket.bufferedAmount > WAITING_MAX_BYTES) socket.terminate();
        else socket.send(bytes, { binary: isBinary });
      });
    });
  }

  close(): void {
    for (const socket of this.#server?.clients ?? []) socket.terminate();
  }
}

/** The library is loaded with the first socket, so that a start does not wait for it. */
function openServer(): WebSocketServer {
  const { WebSocketServer } = createRequire(import.meta.url)('ws') as typeof import('ws');
  return new WebSocketServer({ noServer: true, maxPayload: MESSAGE_MAX_BYTES, perMessageDeflate: false });
}
