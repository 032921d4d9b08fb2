/**
 * One keep-alive HTTP/1.1 connection of the load generator on a bare socket, one request at a time. Reads answers
 * with Content-Length or chunked coding; anything else ends the connection with an error.
 */
import { connect, type Socket } from 'node:net';

/** Larger answers are not what these scenarios measure. */
const ANSWER_MAX_BYTES = 1024 * 1024;
/** One for all connections: what was read is dealt with, or copied, before the next read. */
const READ_BUFFER = Buffer.allocUnsafe(64 * 1024);
const HEAD_END = Buffer.from('\r\n\r\n');
const LAST_CHUNK = Buffer.from('0\r\n\r\n');

export interface ConnectionEvents {
  /** A whole answer. `body` is valid only during the call. */
  answered(status: number, body: Buffer): void;
  /** The connection is gone; `kind` is `connect`, `closed` or `protocol`. */
  ended(kind: string): void;
  connected(): void;
}

export class HttpConnection {
  readonly #socket: Socket;
  readonly #events: ConnectionEvents;
  #held: Buffer | undefined;
  #open = false;
  #ended = false;

  constructor(host: string, port: number, events: ConnectionEvents) {
    this.#events = events;
    this.#socket = connect({
      host,
      port,
      noDelay: true,
      onread: {
        buffer: READ_BUFFER,
        callback: (length, buffer) => {
          this.#read((buffer as Buffer).subarray(0, length));
          return true;
        },
      },
    });
    this.#socket.on('connect', () => {
      this.#open = true;
      events.connected();
    });
    this.#socket.on('error', () => this.#end(this.#open ? 'closed' : 'connect'));
    this.#socket.on('close', () => this.#end('closed'));
  }

  send(request: string): void {
    this.#socket.write(request, 'latin1');
  }

  /** No `ended` follows. */
  close(): void {
    this.#ended = true;
    this.#socket.destroy();
  }

  #end(kind: string): void {
    if (this.#ended) return;
    this.close();
    this.#events.ended(kind);
  }

  #read(piece: Buffer): void {
    const bytes = this.#held === undefined ? piece : Buffer.concat([this.#held, piece]);
    const answer = readAnswer(bytes);
    if (answer === 'incomplete' && bytes.length <= ANSWER_MAX_BYTES) {
      // The read buffer is used again for the next piece.
      this.#held = this.#held === undefined ? Buffer.from(bytes) : bytes;
    } else if (answer === 'incomplete' || answer === 'unreadable') {
      this.#end('protocol');
    } else {
      this.#held = undefined;
      this.#events.answered(answer.status, answer.body);
    }
  }
}

export interface HttpAnswer {
  readonly status: number;
  readonly body: Buffer;
}

/** One answer that fills `bytes` exactly, as it must when one request is under way. */
export function readAnswer(bytes: Buffer): HttpAnswer | 'incomplete' | 'unreadable' {
  const headEnd = bytes.indexOf(HEAD_END);
  if (headEnd < 0) return 'incomplete';
  const head = bytes.toString('latin1', 0, headEnd + 2);
  const status = Number(head.slice(9, 12));
  if (!head.startsWith('HTTP/1.1 ') || !(status >= 200 && status < 600)) return 'unreadable';
  const body = bytes.subarray(headEnd + HEAD_END.length);
  const length = /\r\ncontent-length: *(\d+)\r\n/i.exec(head)?.[1];
  if (length !== undefined) {
    if (body.length < Number(length)) return 'incomplete';
    return body.length === Number(length) ? { status, body } : 'unreadable';
  }
  if (status === 204) return { status, body };
  if (!/\r\ntransfer-encoding: *chunked\r\n/i.test(head)) return 'unreadable';
  // The end of the body shows that it is whole; the chunk headers stay in the body, which is only searched for a text.
  return body.subarray(-LAST_CHUNK.length).equals(LAST_CHUNK) ? { status, body } : 'incomplete';
}
