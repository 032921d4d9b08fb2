/** A storage server in memory: PUT, GET with Range, HEAD and DELETE, and the ways in which such a server fails. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { LoopbackServer } from './loopback-server.ts';

/**
 * - `error`: 500. `full`: 507. `silent`: takes the request and never answers. `cut`: ends the connection in mid-answer.
 * - `short`: loses the last byte of what is stored. `plain`: knows no ranges. `refuse`: 413 before the body is read.
 */
export type ServerFault = 'none' | 'error' | 'full' | 'silent' | 'cut' | 'short' | 'plain' | 'refuse';

export class MemoryStorageServer extends LoopbackServer {
  readonly files = new Map<string, Buffer>();
  readonly requests: string[] = [];
  fault: ServerFault = 'none';

  /** Ends with the test, where one is given. */
  static async start(test?: { teardown(end: () => void): void }): Promise<MemoryStorageServer> {
    const server = new MemoryStorageServer();
    await server.listen();
    test?.teardown(() => server.stop());
    return server;
  }

  protected override async serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    this.requests.push(`${request.method} ${request.url}`);
    const { fault } = this;
    const path = request.url ?? '';
    if (fault === 'refuse') {
      response.writeHead(413).end();
      return;
    }
    const body: Buffer[] = [];
    for await (const piece of request) body.push(piece as Buffer);
    if (fault === 'silent') return;
    if (fault === 'error' || fault === 'full') {
      response.writeHead(fault === 'full' ? 507 : 500).end('no');
      return;
    }
    const bytes = this.files.get(path);
    if (request.method === 'PUT') {
      const whole = Buffer.concat(body);
      this.files.set(path, fault === 'short' ? whole.subarray(0, -1) : whole);
      response.writeHead(bytes === undefined ? 201 : 204).end();
    } else if (bytes === undefined) response.writeHead(404).end('not here');
    else if (request.method === 'DELETE') {
      this.files.delete(path);
      response.writeHead(204).end();
    } else this.#send(request, response, bytes);
  }

  #send(request: IncomingMessage, response: ServerResponse, bytes: Buffer): void {
    const range = /^bytes=(\d+)-(\d+)$/.exec(request.headers.range ?? '');
    const isRange = range !== null && this.fault !== 'plain';
    const first = isRange ? Number(range[1]) : 0;
    const part = bytes.subarray(first, isRange ? Number(range[2]) + 1 : undefined);
    response.writeHead(isRange ? 206 : 200, {
      'content-length': part.length,
      ...(isRange ? { 'content-range': `bytes ${first}-${first + part.length - 1}/${bytes.length}` } : {}),
    });
    if (request.method === 'HEAD') response.end();
    else if (this.fault === 'cut') response.write(part.subarray(0, 1), () => response.destroy());
    else response.end(part);
  }
}
