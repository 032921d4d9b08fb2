/**
 * HTTP of tests, load tests and tools below `fetch`: a client that sends any header, from any loopback address and over
 * any connection, and servers on a free port of loopback.
 */
import http from 'node:http';
import https from 'node:https';
import type { AddressInfo, Server, Socket } from 'node:net';

export interface HttpAnswer {
  readonly status: number;
  readonly headers: http.IncomingHttpHeaders;
  readonly bytes: Buffer;
  readonly text: string;
  readonly socket: Socket;
}

/** Over a new connection unless `agent` has one, from `localAddress` where it is given. */
export interface HttpSending extends https.RequestOptions {
  readonly body?: string | Uint8Array | undefined;
}

/** Sends one request and reads the whole answer. Rejects when the connection breaks. */
export function sendHttp(url: string, { body, ...options }: HttpSending = {}): Promise<HttpAnswer> {
  const { request } = url.startsWith('https:') ? https : http;
  return new Promise((resolve, reject) => {
    const sent = request(url, { agent: false, ...options }, (response) => {
      const chunks: Buffer[] = [];
      const { socket } = response;
      response.on('data', (chunk: Buffer) => chunks.push(chunk)).on('error', reject);
      response.on('end', () => {
        const bytes = Buffer.concat(chunks);
        const { statusCode: status = 0, headers } = response;
        resolve({ status, headers, bytes, text: bytes.toString('utf8'), socket });
      });
    });
    sent.on('error', reject).end(body);
  });
}

/** An agent with one connection, which it keeps. */
export function oneConnection(): http.Agent {
  return new http.Agent({ keepAlive: true, maxSockets: 1 });
}

export interface Listening {
  readonly port: number;
  readonly url: string;
}

export async function listenOnLoopback(server: Server): Promise<Listening> {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  return { port, url: `http://127.0.0.1:${port}` };
}

/** For one test: it ends with its connections. */
export async function listenFor(
  t: { teardown(end: () => void): unknown },
  server: Server,
): Promise<Listening> {
  const sockets = new Set<Socket>();
  server.on('connection', (socket: Socket) => {
    sockets.add(socket);
    socket.once('close', () => sockets.delete(socket));
  });
  t.teardown(() => {
    server.close();
    for (const socket of sockets) socket.destroy();
  });
  return await listenOnLoopback(server);
}
