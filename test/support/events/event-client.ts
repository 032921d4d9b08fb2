/** A client of event streams on a raw socket: it reads on demand and sees every byte. */
import net from 'node:net';
import { type Dispatched, EventReader } from './streams.ts';

/** Waiting longer than this for something that should come is a failure. Milliseconds. */
const TIMEOUT_MS = 20_000;

export interface EventClientOptions {
  readonly sid?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly path?: string;
  readonly method?: string;
  /** Room in the kernel for what is not read; small, so that a stalled client is felt soon. */
  readonly receiveBytes?: number;
}

export class EventClient {
  readonly reader = new EventReader();
  status = 0;
  head = '';
  /** The answer has ended with its last chunk. */
  complete = false;
  closed = false;
  /** Bytes that came in. */
  receivedBytes = 0;
  readonly socket: net.Socket;
  #rest = Buffer.alloc(0);
  #looks: (() => void)[] = [];
  /** Those of the first events, which `until` asks for with each piece that arrives. */
  readonly #numbers: unknown[] = [];
  #numbered = 0;

  constructor(port: number, options: EventClientOptions = {}) {
    this.socket = net.connect({ port, host: '127.0.0.1', noDelay: true });
    this.socket.on('data', (bytes) => this.#take(bytes));
    const over = () => {
      this.closed = true;
      this.#look();
    };
    this.socket.on('close', over).on('error', over);
    const headers: Record<string, string> = { Host: 'localhost', ...options.headers };
    if (options.sid !== undefined) headers['Cookie'] = `sid=${options.sid}`;
    const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`);
    this.socket.write(
      `${options.method ?? 'GET'} ${options.path ?? '/auth/v1/events'} HTTP/1.1\r\n${lines.join('')}\r\n`,
    );
  }

  /** Resolves when `ready` holds; rejects with what is there when it never does. */
  async until(ready: (client: EventClient) => boolean): Promise<this> {
    const deadlineMs = Date.now() + TIMEOUT_MS;
    while (!ready(this)) {
      if (this.closed || Date.now() > deadlineMs) {
        if (ready(this)) break;
        const { status, closed, reader } = this;
        throw new Error(
          `it never came: ${JSON.stringify({ status, closed, last: reader.events.slice(-3), id: reader.lastEventId })}`,
        );
      }
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, TIMEOUT_MS);
        this.#looks.push(() => {
          clearTimeout(timer);
          resolve();
        });
      });
    }
    return this;
  }

  /** The first bytes are here. */
  opened(): Promise<this> {
    return this.until((client) => client.reader.lastEventId !== '' || client.complete || client.status > 200);
  }

  /** Ends when the answer or the connection does; with the `data` of the last `bye`. */
  async ended(): Promise<{ reason?: string }> {
    const deadlineMs = Date.now() + TIMEOUT_MS;
    while (!this.closed && !this.complete && Date.now() < deadlineMs) {
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, TIMEOUT_MS);
        this.#looks.push(() => {
          clearTimeout(timer);
          resolve();
        });
      });
    }
    if (!this.closed && !this.complete) throw new Error('it never ended');
    const bye = this.reader.events.findLast(({ type }) => type === 'bye');
    return bye === undefined ? {} : (JSON.parse(bye.data) as { reason: string });
  }

  /** Data of the events of the modules, as numbers or texts of their field `n`. */
  numbers(): unknown[] {
    const { events } = this.reader;
    for (; this.#numbered < events.length; this.#numbered += 1) {
      const { type, data } = events[this.#numbered] as Dispatched;
      if (type === 'bye' || type === 'reset') continue;
      this.#numbers.push((JSON.parse(data) as { data: { n?: unknown } }).data.n);
    }
    return [...this.#numbers];
  }

  close(): void {
    this.socket.destroy();
  }

  #look(): void {
    const looks = this.#looks;
    this.#looks = [];
    for (const look of looks) look();
  }

  #take(bytes: Buffer): void {
    this.receivedBytes += bytes.length;
    this.#rest = Buffer.concat([this.#rest, bytes]);
    if (this.head === '') {
      const end = this.#rest.indexOf('\r\n\r\n');
      if (end < 0) return;
      this.head = this.#rest.subarray(0, end).toString('latin1');
      this.status = Number(this.head.split(' ')[1]);
      this.#rest = this.#rest.subarray(end + 4);
    }
    if (/transfer-encoding: chunked/i.test(this.head)) this.#chunks();
    else this.#plain();
    this.#look();
  }

  #plain(): void {
    this.reader.push(this.#rest.toString());
    this.#rest = Buffer.alloc(0);
    this.complete = true;
  }

  /** The line break after a chunk comes with the next one: what is in it counts before that. */
  #chunks(): void {
    while (!this.complete) {
      if (this.#rest.length >= 2 && this.#rest[0] === 13) this.#rest = this.#rest.subarray(2);
      const end = this.#rest.indexOf('\r\n');
      if (end <= 0) return;
      const sizeBytes = Number.parseInt(this.#rest.subarray(0, end).toString('latin1'), 16);
      if (Number.isNaN(sizeBytes)) throw new Error('no chunk');
      if (this.#rest.length < end + 2 + sizeBytes) return;
      this.reader.push(this.#rest.subarray(end + 2, end + 2 + sizeBytes).toString());
      this.#rest = this.#rest.subarray(end + 2 + sizeBytes);
      this.complete = sizeBytes === 0;
    }
  }
}

/** Opens a stream and waits for its first bytes. */
export function openEvents(port: number, options: EventClientOptions = {}): Promise<EventClient> {
  return new EventClient(port, options).opened();
}
