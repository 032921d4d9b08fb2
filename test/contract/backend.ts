/** Peers of the gateway: a backend module and a webhook receiver that record their requests. */
import { createServer, type IncomingHttpHeaders, type Server } from 'node:http';
import { listenOnLoopback } from '../../kit/http.ts';

export interface Asked {
  readonly method: string;
  readonly url: string;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
}

export interface Given {
  readonly status?: number;
  readonly body?: string;
  /** Without an answer the connection stays open or is cut. */
  readonly none?: 'hang' | 'cut';
}

/** HTTP server on loopback that responds with `answer` and records every request. */
export class Backend {
  readonly asked: Asked[] = [];
  /** Replaceable default answer. */
  answer: (asked: Asked) => Given = () => ({ body: '{"result":"fine"}' });
  /** Answers to single paths, in place of `answer`. */
  readonly answersOf = new Map<string, (asked: Asked) => Given>();
  url = '';
  readonly #server: Server;
  readonly #waiting = new Set<() => void>();

  private constructor() {
    this.#server = createServer((request, response) => {
      const chunks: Buffer[] = [];
      request.on('data', (chunk: Buffer) => chunks.push(chunk));
      request.on('end', () => {
        const { method = '', url = '', headers } = request;
        const asked = { method, url, headers, body: Buffer.concat(chunks).toString('utf8') };
        const given = (this.answersOf.get(url) ?? this.answer)(asked);
        this.asked.push(asked);
        if (given.none === 'cut') response.destroy();
        if (given.none === undefined) {
          response.writeHead(given.status ?? 200, { 'content-type': 'application/json' });
          response.end(given.body ?? '{"result":"fine"}');
        }
        for (const look of this.#waiting) look();
      });
    });
  }

  static async start(): Promise<Backend> {
    const backend = new Backend();
    backend.url = (await listenOnLoopback(backend.#server)).url;
    return backend;
  }

  /** The first matching request, past or future. */
  until(fits: (asked: Asked) => boolean): Promise<Asked> {
    return new Promise((resolve) => {
      const look = () => {
        const found = this.asked.find(fits);
        if (found === undefined) return;
        this.#waiting.delete(look);
        resolve(found);
      };
      this.#waiting.add(look);
      look();
    });
  }

  /** The last request. */
  get last(): Asked {
    const asked = this.asked.at(-1);
    if (asked === undefined) throw new Error('the module was not asked');
    return asked;
  }

  async close(): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }
}
