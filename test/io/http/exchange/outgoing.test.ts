/** Streamed answers to clients that stop reading, against a model of the socket of uWebSockets.js and its clock. */
import { randomBytes } from 'node:crypto';
import { mock } from 'node:test';
import t, { type Test } from 'tap';
import { type OutgoingLimits, OutgoingStream } from '../../../../src/io/http/exchange/outgoing.ts';
import type { HttpResponse } from '../../../../src/io/http/listen/server.ts';

const CORK_BYTES = 16 * 1024;
const UWS_TIMEOUT_MS = 10_000;
const SECOND_MS = 1_000;

/** Takes `roomBytes`, then nothing. A short write of a cork goes into a buffer of its own and counts as sent, as in uWS. */
class ModelSocket {
  readonly got: Buffer[] = [];
  #buffered: Uint8Array = new Uint8Array(0);
  #offset = 0;
  #writable: ((offset: number) => boolean) | undefined;
  #aborted: () => void = () => undefined;
  roomBytes: number;
  lastArmedMs = 0;
  nowMs = 0;
  closed = false;

  constructor(roomBytes: number) {
    this.roomBytes = roomBytes;
  }

  get response(): HttpResponse {
    const response: Partial<HttpResponse> = {
      onWritable: (handler) => {
        this.#writable = handler;
        return response as HttpResponse;
      },
      cork: (run) => {
        run();
        return response as HttpResponse;
      },
      getWriteOffset: () => this.#offset,
      tryEnd: (bytes, totalBytes) => this.#tryEnd(Buffer.from(bytes as Uint8Array), totalBytes),
      close: () => {
        this.closed = true;
        this.#aborted();
        return response as HttpResponse;
      },
    };
    return response as HttpResponse;
  }

  onAborted(listener: () => void): void {
    this.#aborted = listener;
  }

  /** The clock of uWS: closes a connection that nothing armed for 10 s. */
  advance(): void {
    this.nowMs += SECOND_MS;
    mock.timers.tick(SECOND_MS);
    if (!this.closed && this.nowMs - this.lastArmedMs > UWS_TIMEOUT_MS) {
      this.closed = true;
      this.#aborted();
    }
  }

  /** The client reads: what was buffered leaves first. */
  read(bytes: number): void {
    this.roomBytes += bytes;
    this.#flush();
    if (this.#buffered.length === 0) this.#writable?.(this.#offset);
  }

  body(): Buffer {
    return Buffer.concat(this.got);
  }

  #flush(): void {
    this.#buffered = this.#buffered.subarray(this.#take(this.#buffered));
  }

  #take(bytes: Uint8Array): number {
    const taken = Math.min(bytes.length, this.roomBytes);
    if (taken > 0) this.got.push(Buffer.from(bytes.subarray(0, taken)));
    this.roomBytes -= taken;
    return taken;
  }

  #tryEnd(bytes: Buffer, totalBytes: number): [boolean, boolean] {
    this.#flush();
    const wasBuffered = this.#buffered.length > 0;
    const isShort = bytes.length <= CORK_BYTES;
    const written = wasBuffered ? 0 : isShort ? bytes.length : this.#take(bytes);
    if (!wasBuffered && isShort) this.#buffered = bytes.subarray(this.#take(bytes));
    this.#offset += written;
    const hasRoom = written === bytes.length;
    if (!hasRoom || this.#offset === totalBytes) this.lastArmedMs = this.nowMs;
    return [hasRoom, this.#offset === totalBytes];
  }
}

function start(t: Test, limits: OutgoingLimits, roomBytes: number) {
  mock.timers.enable({ apis: ['setTimeout'] });
  t.teardown(() => mock.timers.reset());
  const socket = new ModelSocket(roomBytes);
  const bytes = randomBytes(limits.lengthBytes ?? 0);
  const seen = { drained: 0, lost: 0, ended: 0 };
  const stream = new OutgoingStream(
    socket.response,
    {
      start: (out) => out.send(bytes),
      drained: () => {
        seen.drained += 1;
      },
      lost: () => {
        seen.lost += 1;
      },
    },
    limits,
    {
      finishing: () => undefined,
      ended: () => {
        seen.ended += 1;
      },
      failed: (error) => {
        throw error;
      },
      cut: () => undefined,
      progress: () => undefined,
    },
  );
  socket.onAborted(() => stream.lost());
  stream.start();
  return { socket, bytes, seen };
}

// covers P6
t.test('outgoing: a client that reads nothing is kept for its time and then gets the rest', async (t) => {
  const lengthBytes = 300_000;
  const { socket, bytes, seen } = start(t, { lengthBytes, unreadMs: 60_000 }, 100_000);
  for (let second = 0; second < 59; second += 1) socket.advance();
  t.equal(socket.closed, false);
  socket.read(lengthBytes);
  t.ok(socket.body().equals(bytes));
  t.match(seen, { ended: 1, lost: 0 });
});

t.test('outgoing: a client that reads nothing for longer is disconnected', async (t) => {
  const { socket, seen } = start(t, { lengthBytes: 300_000, unreadMs: 60_000 }, 100_000);
  let second = 0;
  for (; !socket.closed && second < 100; second += 1) socket.advance();
  t.ok(second >= 60 && second <= 68, `after ${second} s`);
  t.match(seen, { ended: 1, lost: 1 });
});

t.test('outgoing: each byte that the client reads starts its time again', async (t) => {
  const { socket, bytes } = start(t, { lengthBytes: 300_000, unreadMs: 20_000 }, 100_000);
  for (let round = 0; round < 10; round += 1) {
    for (let second = 0; second < 15; second += 1) socket.advance();
    socket.read(100);
  }
  t.equal(socket.closed, false, 'after 150 s');
  socket.read(300_000);
  t.ok(socket.body().equals(bytes));
});

t.test('outgoing: the last bytes, which uWS would buffer, wait as long', async (t) => {
  for (const tailBytes of [2, 100, CORK_BYTES - 1, CORK_BYTES, CORK_BYTES + 1])
    await t.test(`${tailBytes} bytes`, async (t) => {
      const { socket, bytes, seen } = start(
        t,
        { lengthBytes: 100_000 + tailBytes, unreadMs: 60_000 },
        100_000,
      );
      for (let second = 0; second < 50; second += 1) socket.advance();
      t.equal(socket.closed, false);
      for (let round = 0; round < 2; round += 1) socket.read(CORK_BYTES * 2);
      t.ok(socket.body().equals(bytes));
      t.match(seen, { ended: 1, lost: 0 });
    });
});

t.test('outgoing: without a time of its own the transport closes the connection', async (t) => {
  const { socket, seen } = start(t, { lengthBytes: 300_000 }, 100_000);
  let second = 0;
  for (; !socket.closed && second < 100; second += 1) socket.advance();
  t.ok(second <= 12, `after ${second} s`);
  t.match(seen, { lost: 1 });
});
