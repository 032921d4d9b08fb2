/** A WebSocket of the load generator on a bare connection: handshake, echoes whose every byte is compared, close. */
import { createConnection, type Socket } from 'node:net';

/** RFC 6455 1.3: a key, and its accept value. */
const KEY = 'dGhlIHNhbXBsZSBub25jZQ==';
const ACCEPT = 's3pPLMBiTxaQ9kYGzzhZRbK+xOo=';
const END_OF_HEAD = '\r\n\r\n';
const BINARY = 0x82;
const CLOSE = 0x88;
const MASKED = 0x80;
/** A mask of zeros leaves the bytes as they are; servers unmask them all the same. */
const MASK_BYTES = 4;
/** Payloads up to it have their length in the second byte. */
const SHORT_MAX = 125;
/** Longest wait for the next bytes of an answer. */
const SILENCE_MS = 20_000;

/** Raw handshake of a socket. `fields` end with CRLF each. */
export function handshakeOf(url: string, fields = ''): string {
  const { host, pathname } = new URL(url);
  const own = `Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: ${KEY}`;
  return `GET ${pathname} HTTP/1.1\r\nHost: ${host}\r\n${fields}${own}${END_OF_HEAD}`;
}

/** The frame that a client sends, and the one that the echo answers. */
export interface EchoFrames {
  readonly sent: Buffer;
  readonly answer: Buffer;
}

export function echoFrames(sizeBytes: number): EchoFrames {
  const payload = Buffer.alloc(sizeBytes, 'bytes that come back; ');
  const mask = Buffer.alloc(MASK_BYTES);
  return {
    sent: Buffer.concat([headOf(BINARY, sizeBytes, MASKED), mask, payload]),
    answer: Buffer.concat([headOf(BINARY, sizeBytes, 0), payload]),
  };
}

function headOf(first: number, sizeBytes: number, masked: number): Buffer {
  if (sizeBytes <= SHORT_MAX) return Buffer.from([first, masked | sizeBytes]);
  const head = Buffer.from([first, masked | (SHORT_MAX + 1), 0, 0]);
  head.writeUInt16BE(sizeBytes, 2);
  return head;
}

const CLOSE_FRAME = Buffer.concat([headOf(CLOSE, 0, MASKED), Buffer.alloc(MASK_BYTES)]);

export class EchoSocket {
  readonly #socket: Socket;
  /** Takes the next bytes. */
  #take: (bytes: Buffer) => void = () => undefined;
  #failed: (error: Error) => void = () => undefined;
  #ended: (() => void) | undefined;
  #error: Error | undefined;

  private constructor(socket: Socket) {
    this.#socket = socket;
    socket.on('timeout', () => this.#fail(new Error('the server is silent')));
    socket.on('data', (bytes) => this.#take(bytes));
    socket.on('error', (error) => this.#fail(error));
    socket.on('close', () => {
      if (this.#ended === undefined) this.#fail(new Error('the connection ended'));
      else this.#ended();
    });
  }

  /** Resolves with the socket when the server has switched. */
  static async open(port: number, handshake: string): Promise<EchoSocket> {
    const opened = new EchoSocket(createConnection({ port, host: '127.0.0.1', noDelay: true }));
    opened.#socket.write(handshake);
    await opened.#answered((text) => {
      if (!text.endsWith(END_OF_HEAD)) return false;
      if (!text.startsWith('HTTP/1.1 101 ') || !text.includes(ACCEPT)) throw new Error(text);
      return true;
    });
    return opened;
  }

  /** Sends a frame and resolves when all bytes of the answer have come. */
  echo({ sent, answer }: EchoFrames): Promise<void> {
    let received = 0;
    return this.#exchange(sent, (bytes) => {
      if (bytes.compare(answer, received, received + bytes.length) !== 0)
        throw new Error('an echo has other bytes');
      received += bytes.length;
      return received === answer.length;
    });
  }

  /** Resolves when the server has ended the connection. */
  close(): Promise<void> {
    return new Promise((resolve) => {
      this.#ended = resolve;
      this.#take = () => undefined;
      if (this.#error !== undefined) resolve();
      else this.#socket.write(CLOSE_FRAME);
    });
  }

  #answered(isWhole: (text: string) => boolean): Promise<void> {
    let text = '';
    return this.#exchange('', (bytes) => {
      text += bytes.toString('latin1');
      return isWhole(text);
    });
  }

  #exchange(sent: Buffer | '', take: (bytes: Buffer) => boolean): Promise<void> {
    if (this.#error !== undefined) return Promise.reject(this.#error);
    return new Promise((resolve, reject) => {
      this.#failed = reject;
      this.#take = (bytes) => {
        try {
          if (!take(bytes)) return;
          this.#socket.setTimeout(0);
          resolve();
        } catch (error) {
          reject(error);
        }
      };
      this.#socket.setTimeout(SILENCE_MS);
      if (sent !== '') this.#socket.write(sent);
    });
  }

  #fail(error: Error): void {
    this.#error ??= error;
    this.#failed(this.#error);
    this.#socket.destroy();
  }
}
