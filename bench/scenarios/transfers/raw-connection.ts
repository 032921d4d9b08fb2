/**
 * One keep-alive HTTP/1.1 connection for large bodies in both directions on a bare socket: a body that is sent is one
 * piece of memory again and again, one that is received is counted and forgotten, so that the client costs little.
 */
import { connect, type Socket } from 'node:net';
import { pageMemory } from '../../../src/domain/page-memory.ts';

/** One for all connections: what was read is counted, or copied, before the next read. */
const READ_BUFFER = pageMemory(1024 * 1024);
/** Answers up to this are kept as text. */
const TEXT_BYTES_MAX = 64 * 1024;
const HEAD_END = '\r\n\r\n';

export interface RawAnswer {
  readonly status: number;
  /** Field lines with lower-case names. */
  readonly head: string;
  readonly bodyBytes: number;
  /** Text of a body of at most 64 KB; '' of a longer one. */
  readonly text: string;
}

interface Waiting {
  head: string | undefined;
  lengthBytes: number;
  bodyBytes: number;
  pieces: Buffer[];
  resolve(answer: RawAnswer): void;
  reject(error: Error): void;
}

export class RawConnection {
  readonly #socket: Socket;
  readonly #host: string;
  #waiting: Waiting | undefined;
  #closed = false;

  private constructor(socket: Socket, host: string) {
    this.#socket = socket;
    this.#host = host;
  }

  static open(url: string): Promise<RawConnection> {
    const { hostname, port, host } = new URL(url);
    return new Promise((resolve, reject) => {
      let connection: RawConnection | undefined;
      const socket = connect({
        host: hostname,
        port: Number(port),
        noDelay: true,
        onread: {
          buffer: READ_BUFFER,
          callback: (length, buffer) => {
            connection?.read((buffer as Buffer).subarray(0, length));
            return true;
          },
        },
      });
      socket.once('error', reject);
      socket.once('connect', () => {
        connection = new RawConnection(socket, host);
        socket.on('error', (error) => connection?.fail(error));
        socket.on('close', () => connection?.fail(new Error('the connection was closed')));
        resolve(connection);
      });
    });
  }

  /** The other side ended it, or it was closed: nothing can be asked any more. */
  get closed(): boolean {
    return this.#closed;
  }

  /** `body` is sent over and over, cut at `bodyBytes`. */
  async ask(
    method: string,
    path: string,
    headers: Readonly<Record<string, string>> = {},
    body: Uint8Array = new Uint8Array(0),
    bodyBytes: number = body.length,
  ): Promise<RawAnswer> {
    if (this.#waiting !== undefined) throw new Error('one request at a time');
    if (this.#closed) throw new Error('the connection was closed');
    const lines = [`${method} ${path} HTTP/1.1`, `Host: ${this.#host}`];
    for (const [name, value] of Object.entries(headers)) lines.push(`${name}: ${value}`);
    if (method !== 'GET' && method !== 'HEAD') lines.push(`Content-Length: ${bodyBytes}`);
    const answered = new Promise<RawAnswer>((resolve, reject) => {
      this.#waiting = { head: undefined, lengthBytes: 0, bodyBytes: 0, pieces: [], resolve, reject };
    });
    this.#socket.write(`${lines.join('\r\n')}${HEAD_END}`, 'latin1');
    for (let left = bodyBytes; left > 0 && this.#waiting !== undefined; left -= Math.min(left, body.length)) {
      const piece = left < body.length ? body.subarray(0, left) : body;
      if (!this.#socket.write(piece)) await Promise.race([this.#drained(), answered]);
    }
    return answered;
  }

  close(): void {
    this.#closed = true;
    this.#socket.removeAllListeners('close');
    this.#socket.destroy();
  }

  read(bytes: Buffer): void {
    const waiting = this.#waiting;
    if (waiting === undefined) return;
    let body = bytes;
    if (waiting.head === undefined) {
      const soFar = Buffer.concat([...waiting.pieces, bytes]);
      const end = soFar.indexOf(HEAD_END);
      if (end < 0) {
        waiting.pieces = [Buffer.from(soFar)];
        return;
      }
      const head = soFar.toString('latin1', 0, end + 2);
      waiting.head = head.replace(/\r\n[^:\r]+:/g, (name) => name.toLowerCase());
      waiting.lengthBytes = Number(/\r\ncontent-length: *(\d+)\r\n/.exec(waiting.head)?.[1] ?? 0);
      waiting.pieces = [];
      body = soFar.subarray(end + HEAD_END.length);
    }
    waiting.bodyBytes += body.length;
    if (waiting.lengthBytes <= TEXT_BYTES_MAX) waiting.pieces.push(Buffer.from(body));
    if (waiting.bodyBytes >= waiting.lengthBytes) this.#answer(waiting);
  }

  fail(error: Error): void {
    this.#closed = true;
    this.#waiting?.reject(error);
    this.#waiting = undefined;
  }

  #answer({ head = '', bodyBytes, pieces, resolve }: Waiting): void {
    this.#waiting = undefined;
    if (/\r\nconnection: *close\r\n/i.test(head)) this.close();
    resolve({ status: Number(head.slice(9, 12)), head, bodyBytes, text: Buffer.concat(pieces).toString() });
  }

  #drained(): Promise<void> {
    return new Promise((resolve) => this.#socket.once('drain', resolve));
  }
}
