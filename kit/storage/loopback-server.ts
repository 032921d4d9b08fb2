/** A server on a free port of loopback whose connections end without an answer, as those of one that was restarted. */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

export abstract class LoopbackServer {
  readonly #server = createServer((request, response) => void this.serve(request, response));

  protected abstract serve(request: IncomingMessage, response: ServerResponse): Promise<void>;

  protected listen(): Promise<void> {
    return new Promise((resolve) => this.#server.listen(0, '127.0.0.1', resolve));
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  /** Idle ones included. */
  dropConnections(): void {
    this.#server.closeAllConnections();
  }

  stop(): void {
    this.#server.close();
    this.#server.closeAllConnections();
  }
}
