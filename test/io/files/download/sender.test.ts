/**
 * The sender of file bodies: pieces, buffers, bandwidth, slow and leaving clients, and storages that fail during a body.
 * With a fake socket first, then over the real HTTP server.
 */

import { randomBytes, randomInt } from 'node:crypto';
import { once } from 'node:events';
import { connect } from 'node:net';
import fc from 'fast-check';
import t from 'tap';
import { nodeSchedule } from '../../../../src/actors/runtime/runtime-context.ts';
import { GatewayError } from '../../../../src/domain/errors.ts';
import type { BodyPiece } from '../../../../src/domain/files/ranges.ts';
import { LiveSettings } from '../../../../src/domain/settings/settings.ts';
import { LARGE_BYTES, SendBuffers, SMALL_BYTES } from '../../../../src/io/files/download/buffers.ts';
import {
  createFileSource,
  type Pace,
  readWhole,
  WHOLE_BODY_BYTES,
} from '../../../../src/io/files/download/sender.ts';
import type { FileStorage, StoredFile } from '../../../../src/io/files/storage/port.ts';
import { Throttle } from '../../../../src/io/files/throttle.ts';
import type { OutgoingBody, OutgoingSource } from '../../../../src/io/http/exchange/stream.ts';
import { count, runs } from '../../../support/depth.ts';
import { FREE_PACE, SID, startDownloads } from '../../../support/files/downloads.ts';
import { connectRaw, promiseOf, requestText } from '../../../support/http.ts';

t.setTimeout(120_000);

const COOKIE = { Cookie: `sid=${SID}` };
const MIB = 1024 * 1024;
/** After it uWebSockets.js alone has closed the connection. */
const UWS_ENDED_MS = 13_000;

function stored(bytes: Uint8Array, changes: Partial<StoredFile> = {}) {
  const counts = { closed: 0, reads: 0 };
  const readNow = (target: Uint8Array, position: number) => {
    counts.reads += 1;
    const part = bytes.subarray(position, position + target.length);
    target.set(part);
    return part.length;
  };
  const file: StoredFile = {
    sizeBytes: bytes.length,
    read: async (target, position) => readNow(target, position),
    readNow,
    close: () => {
      counts.closed += 1;
    },
    ...changes,
  };
  return { file, counts };
}

/** A socket that takes `room` pieces and then waits; `take` gives it room for another one. */
function socket(source: OutgoingSource, lengthBytes: number, room = Number.POSITIVE_INFINITY) {
  const got: Buffer[] = [];
  const state = { cut: false, sent: 0, left: room };
  let wake: () => void = () => undefined;
  const out: OutgoingBody = {
    send(bytes) {
      const copy = Buffer.from(bytes as Uint8Array);
      got.push(copy);
      state.sent += copy.length;
      state.left -= 1;
      wake();
      return state.left > 0;
    },
    end: () => undefined,
    cut() {
      state.cut = true;
      wake();
      source.lost();
    },
  };
  source.start(out);
  const until = async (ready: () => boolean) => {
    while (!ready())
      await new Promise<void>((resolve) => {
        wake = resolve;
      });
  };
  return {
    state,
    body: () => Buffer.concat(got),
    largest: () => Math.max(0, ...got.map(({ length }) => length)),
    done: () => until(() => state.sent === lengthBytes || state.cut),
    sentAtLeast: (bytes: number) => until(() => state.sent >= bytes || state.cut),
    take() {
      state.left = 1;
      source.drained();
    },
  };
}

const NOTHING_LENT = { large: 0, small: 0, answers: 0, refused: 0 };

const noFault = (error: unknown) => {
  throw error;
};

function textOf(pieces: readonly BodyPiece[], bytes: Buffer): Buffer {
  return Buffer.concat(
    pieces.map((piece) =>
      piece.kind === 'text'
        ? Buffer.from(piece.text)
        : bytes.subarray(piece.first, piece.first + piece.lengthBytes),
    ),
  );
}

t.test(
  'sender: any pieces are sent byte for byte, streamed and whole, and all buffers are returned',
  async (t) => {
    const bytes = randomBytes(300_000);
    const buffers = new SendBuffers();
    const piece: fc.Arbitrary<BodyPiece> = fc.oneof(
      fc.record({ kind: fc.constant('text' as const), text: fc.stringMatching(/^[ -~]{0,80}$/) }),
      fc.tuple(fc.nat(bytes.length), fc.nat(200_000)).map(([first, most]) => ({
        kind: 'file' as const,
        first,
        lengthBytes: Math.min(most, bytes.length - first),
      })),
    );
    await fc.assert(
      fc.asyncProperty(
        fc.array(piece, { maxLength: 9 }),
        fc.integer({ min: 2_000, max: 70_000 }),
        async (pieces, most) => {
          const expected = textOf(pieces, bytes);
          const { file, counts } = stored(bytes);
          const pace: Pace = { ...FREE_PACE, ask: (wanted, go) => go(Math.min(wanted, most)) };
          const source = createFileSource({
            file,
            pieces,
            lengthBytes: expected.length,
            pace,
            buffers,
            onFault: noFault,
          });
          const peer = socket(source, expected.length);
          await peer.done();
          if (!peer.body().equals(expected)) return false;
          if (!readWhole(file, pieces, expected.length).equals(expected)) return false;
          return counts.closed === 1 && peer.largest() <= most;
        },
      ),
      runs(300),
    );
    t.same(buffers.counters(), NOTHING_LENT);
  },
);

t.test('sender: a client that stops reading keeps its buffers, and nothing more is read', async (t) => {
  for (const largeMax of [2, 64]) {
    const ahead = largeMax === 64 ? 1 : 0;
    const bytes = randomBytes(3 * MIB);
    const buffers = new SendBuffers({ largeMax });
    const { file, counts } = stored(bytes);
    const pieces: BodyPiece[] = [{ kind: 'file', first: 0, lengthBytes: bytes.length }];
    const sending = { file, pieces, lengthBytes: bytes.length, pace: FREE_PACE, buffers, onFault: noFault };
    const source = createFileSource(sending);
    const peer = socket(source, bytes.length, 1);
    await peer.sentAtLeast(1);
    await new Promise((resolve) => setImmediate(resolve));
    t.same([peer.state.sent, counts.reads], [LARGE_BYTES, 1 + ahead]);
    t.equal(buffers.counters().large, 1 + ahead);
    for (let piece = 1; piece < 6; piece += 1) {
      peer.take();
      await peer.sentAtLeast((piece + 1) * LARGE_BYTES);
    }
    t.ok(peer.body().equals(bytes));
    t.equal(counts.closed, 0, 'the last piece has not left yet');
    source.drained();
    t.same([counts.closed, buffers.counters()], [1, NOTHING_LENT]);
    source.lost();
    t.same([counts.closed, buffers.counters()], [1, NOTHING_LENT], 'once');
  }
});

t.test('sender: the next piece is read while one is sent, and never two at once', async (t) => {
  const bytes = randomBytes(5 * LARGE_BYTES + 7);
  const buffers = new SendBuffers();
  const open = { reads: 0, most: 0 };
  const seen: number[] = [];
  const { file } = stored(bytes, {
    read: async (target, position) => {
      open.reads += 1;
      open.most = Math.max(open.most, open.reads);
      await new Promise((resolve) => setImmediate(resolve));
      target.set(bytes.subarray(position, position + target.length));
      open.reads -= 1;
      return target.length;
    },
  });
  const pieces: BodyPiece[] = [{ kind: 'file', first: 0, lengthBytes: bytes.length }];
  const sending = { file, pieces, lengthBytes: bytes.length, pace: FREE_PACE, buffers, onFault: noFault };
  const source = createFileSource(sending);
  const got: Buffer[] = [];
  await new Promise<void>((resolve) => {
    source.start({
      send(piece) {
        seen.push(open.reads);
        got.push(Buffer.from(piece as Uint8Array));
        if (got.length === 6) resolve();
        return true;
      },
      end: () => undefined,
      cut: () => undefined,
    });
  });
  t.same(seen, [1, 1, 1, 1, 1, 0]);
  t.equal(open.most, 1);
  t.ok(Buffer.concat(got).equals(bytes));
});

t.test(
  'sender: a failed read ahead does not harm bytes under way, then the connection is closed',
  async (t) => {
    const bytes = randomBytes(3 * LARGE_BYTES);
    const buffers = new SendBuffers();
    const faults: unknown[] = [];
    const { file, counts } = stored(bytes, {
      read: async (target, position) => {
        if (position > 0) throw new GatewayError('FileStorageFailed');
        target.set(bytes.subarray(0, target.length));
        return target.length;
      },
    });
    const pieces: BodyPiece[] = [{ kind: 'file', first: 0, lengthBytes: bytes.length }];
    const onFault = (error: unknown) => faults.push(error);
    const source = createFileSource({
      file,
      pieces,
      lengthBytes: bytes.length,
      pace: FREE_PACE,
      buffers,
      onFault,
    });
    const peer = socket(source, bytes.length);
    await peer.done();
    t.ok(peer.body().equals(bytes.subarray(0, LARGE_BYTES)));
    t.same([peer.state.cut, faults.length, counts.closed], [true, 1, 1]);
    t.same(buffers.counters(), NOTHING_LENT);
  },
);

t.test('sender: a client that takes too long for a buffer is disconnected', async (t) => {
  const bytes = randomBytes(2 * LARGE_BYTES);
  const buffers = new SendBuffers();
  const { file, counts } = stored(bytes);
  const pieces: BodyPiece[] = [{ kind: 'file', first: 0, lengthBytes: bytes.length }];
  const sending = { file, pieces, lengthBytes: bytes.length, pace: FREE_PACE, buffers, onFault: noFault };
  const peer = socket(createFileSource({ ...sending, takeMs: 5 }), bytes.length, 1);
  await peer.done();
  t.ok(peer.state.cut);
  t.same([counts.closed, buffers.counters().large], [1, 0]);
});

t.test(
  'sender: a client that leaves during a read causes no further one; the buffers wait for it',
  async (t) => {
    const buffers = new SendBuffers();
    let settle: (bytes: number) => void = () => undefined;
    const { file, counts } = stored(randomBytes(MIB), {
      read: () =>
        new Promise((resolve) => {
          settle = resolve;
        }),
    });
    let left = 0;
    const pace: Pace = { ...FREE_PACE, leave: () => (left += 1) };
    const pieces: BodyPiece[] = [{ kind: 'file', first: 0, lengthBytes: MIB }];
    const source = createFileSource({ file, pieces, lengthBytes: MIB, pace, buffers, onFault: noFault });
    const peer = socket(source, MIB);
    source.lost();
    t.ok(left > 0, 'leaves the limiter at once');
    t.same([counts.closed, buffers.counters().large], [0, 2], 'the read still writes into one');
    settle(LARGE_BYTES);
    await new Promise((resolve) => setImmediate(resolve));
    t.same([counts.closed, buffers.counters().large, peer.state.sent], [1, 0, 0]);
  },
);

// covers S177
t.test(
  'sender: a read that is late closes the connection; file and buffers are taken until it settles',
  async (t) => {
    const buffers = new SendBuffers();
    const reads: { settle: (bytes: number) => void; late: () => void }[] = [];
    const { file, counts } = stored(randomBytes(MIB), {
      read: (_target, _position, late = () => undefined) =>
        new Promise((settle) => {
          reads.push({ settle, late });
        }),
    });
    const faults: unknown[] = [];
    const onFault = (error: unknown) => faults.push(error);
    const pieces: BodyPiece[] = [{ kind: 'file', first: 0, lengthBytes: MIB }];
    const source = createFileSource({ file, pieces, lengthBytes: MIB, pace: FREE_PACE, buffers, onFault });
    const peer = socket(source, MIB);
    reads[0]?.late();
    t.match(faults, [{ row: 'TaskTimedOut' }]);
    t.same([peer.state.cut, counts.closed, buffers.counters().large], [true, 0, 2]);
    reads[0]?.settle(LARGE_BYTES);
    await new Promise((resolve) => setImmediate(resolve));
    t.same([counts.closed, buffers.counters().large, peer.state.sent, reads.length], [1, 0, 0, 1]);
  },
);

t.test('sender: bandwidth that is granted after the client left reads nothing', async (t) => {
  const buffers = new SendBuffers();
  const { file, counts } = stored(randomBytes(MIB));
  let go: (bytes: number) => void = () => undefined;
  const pace: Pace = {
    ...FREE_PACE,
    ask: (_wanted, given) => {
      go = given;
    },
  };
  const pieces: BodyPiece[] = [{ kind: 'file', first: 0, lengthBytes: MIB }];
  const source = createFileSource({ file, pieces, lengthBytes: MIB, pace, buffers, onFault: noFault });
  socket(source, MIB);
  source.lost();
  go(10);
  t.same([counts.reads, counts.closed], [0, 1]);
});

t.test(
  'sender: a file that ends early or cannot be read is aborted and reported, never padded',
  async (t) => {
    const buffers = new SendBuffers();
    const pieces: BodyPiece[] = [{ kind: 'file', first: 0, lengthBytes: MIB }];
    const failing: Partial<StoredFile>[] = [
      { read: async () => 5 },
      { read: async () => Promise.reject(new GatewayError('FileStorageFailed')) },
    ];
    for (const changes of failing) {
      const { file, counts } = stored(randomBytes(MIB), changes);
      const faults: unknown[] = [];
      const source = createFileSource({
        file,
        pieces,
        lengthBytes: MIB,
        pace: FREE_PACE,
        buffers,
        onFault: (error) => faults.push(error),
      });
      const peer = socket(source, MIB);
      await peer.done();
      t.same([peer.state.cut, peer.state.sent, faults.length, counts.closed], [true, 0, 1, 1]);
    }
    t.throws(() => readWhole(stored(randomBytes(5)).file, [{ kind: 'file', first: 0, lengthBytes: 6 }], 6));
    t.equal(buffers.counters().large, 0);
  },
);

t.test('buffers: two large ones while many are free, then one, a small one, then a refusal', async (t) => {
  const buffers = new SendBuffers({ largeMax: 4, smallMax: 1 });
  const lent = [MIB, LARGE_BYTES, MIB, MIB, 10].map((lengthBytes) => buffers.lend(lengthBytes));
  t.same(
    lent.map((some) => some?.map(({ length }) => length)),
    [[LARGE_BYTES, LARGE_BYTES], [LARGE_BYTES], [LARGE_BYTES], [SMALL_BYTES], undefined],
  );
  t.same(buffers.counters(), { large: 4, small: 1, answers: 4, refused: 1 });
  const [first = [], second = [], third = [], fourth = []] = lent;
  buffers.giveBack(fourth);
  t.same(buffers.lend(10), fourth, 'used again');
  buffers.giveBack(fourth);
  for (const some of [first, second, third]) buffers.giveBack(some);
  t.same(buffers.counters(), { large: 0, small: 0, answers: 0, refused: 1 });
  t.same(buffers.lend(LARGE_BYTES)?.length, 1, 'what fits one gets no second');
});

t.test('buffers: no mix of answers exceeds the bounds, and all buffers are returned', async () => {
  fc.assert(
    fc.property(
      fc.array(fc.oneof(fc.nat(3 * MIB), fc.constant('back' as const)), { maxLength: 60 }),
      fc.nat(6),
      fc.nat(3),
      (steps, largeMax, smallMax) => {
        const buffers = new SendBuffers({ largeMax, smallMax });
        const out: (readonly Buffer[])[] = [];
        for (const step of steps) {
          if (step === 'back') {
            const oldest = out.shift();
            if (oldest !== undefined) buffers.giveBack(oldest);
          } else {
            const lent = buffers.lend(step);
            if (lent !== undefined) out.push(lent);
          }
          const { large, small, answers } = buffers.counters();
          const all = out.flat();
          if (large > largeMax || small > smallMax || answers !== out.length) return false;
          if (large + small !== all.length || new Set(all).size !== all.length) return false;
        }
        for (const lent of out) buffers.giveBack(lent);
        const { large, small, answers } = buffers.counters();
        return large === 0 && small === 0 && answers === 0;
      },
    ),
    runs(),
  );
});

t.test('front: 8 large files at once arrive whole, on connections that are kept', async (t) => {
  const { http, codes, put, downloads } = await startDownloads(t);
  const bytes = randomBytes(3 * MIB + 7);
  await put('7', bytes);
  const path = `/auth/v2/file/${codes.encode('7')}`;
  const same: boolean[] = [];
  await Promise.all(
    Array.from({ length: 8 }, async () => {
      for (let round = 0; round < 3; round += 1) {
        const response = await fetch(http.url + path);
        same.push(Buffer.from(await response.arrayBuffer()).equals(bytes));
      }
    }),
  );
  t.same(same, new Array(24).fill(true));
  const connection = connectRaw(http.port);
  connection.send(requestText('GET', path, { Range: 'bytes=1-' }));
  const long = await connection.answer();
  t.ok(Buffer.from(long.body, 'latin1').equals(bytes.subarray(1)));
  connection.send(requestText('GET', path, { Range: 'bytes=-3' }));
  t.equal((await connection.answer()).body, bytes.subarray(-3).toString('latin1'), 'on the same connection');
  t.same(downloads.counters().buffers, NOTHING_LENT);
  t.same([http.bugs, downloads.counters().broken], [[], 0]);
  connection.close();
});

// covers S11
t.test('front: any mix of downloads at once, some given up: every byte is the right one', async (t) => {
  const { http, codes, put, downloads } = await startDownloads(t);
  const contents = [1, 4_096, 20_000, 32_768, 32_769, 300_000, 1_000_000].map((size) => randomBytes(size));
  for (const [index, bytes] of contents.entries()) await put(String(index), bytes);
  const turns = count(40);
  const client = async () => {
    for (let turn = 0; turn < turns; turn += 1) {
      const id = randomInt(contents.length);
      const bytes = contents[id] ?? Buffer.alloc(0);
      const first = randomInt(bytes.length);
      const last = first + randomInt(bytes.length - first);
      const whole = randomInt(3) === 0;
      const path = randomInt(2) === 0 ? `/auth/v1/file/${id}` : `/auth/v2/file/${codes.encode(String(id))}`;
      // The file cache forgets: the next ones have to wait for the chat module.
      if (randomInt(5) === 0) http.time.nowMs += 2_000;
      const leaving = new AbortController();
      const headers = { ...COOKIE, ...(whole ? {} : { range: `bytes=${first}-${last}` }) };
      const response = await fetch(http.url + path, { headers, signal: leaving.signal });
      if (randomInt(10) === 0) {
        leaving.abort();
        continue;
      }
      const got = Buffer.from(await response.arrayBuffer());
      if (!got.equals(whole ? bytes : bytes.subarray(first, last + 1)))
        throw new Error(`${path} ${first}-${last} of ${bytes.length}: other bytes`);
    }
  };
  await Promise.all(Array.from({ length: 32 }, client));
  while (downloads.counters().buffers.answers > 0) await new Promise((resolve) => setImmediate(resolve));
  t.same([http.bugs, downloads.counters().broken], [[], 0]);
});

t.test('front: large ranges and many of them are exact', async (t) => {
  const { http, codes, put } = await startDownloads(t);
  const bytes = randomBytes(2 * MIB);
  await put('7', bytes, 'a.bin');
  const response = await fetch(`${http.url}/auth/v2/file/${codes.encode('7')}`, {
    headers: { range: 'bytes=5-1000004,-1000000' },
  });
  t.equal(response.status, 206);
  const body = Buffer.from(await response.arrayBuffer());
  t.equal(Number(response.headers.get('content-length')), body.length);
  const boundary = response.headers.get('content-type')?.split('boundary=')[1];
  const head = (range: string) =>
    `--${boundary}\r\nContent-Type: application/octet-stream\r\nContent-Range: bytes ${range}/2097152\r\n\r\n`;
  const expected = Buffer.concat([
    Buffer.from(head('5-1000004')),
    bytes.subarray(5, 1_000_005),
    Buffer.from(`\r\n${head('1097152-2097151')}`),
    bytes.subarray(-1_000_000),
    Buffer.from(`\r\n--${boundary}--\r\n`),
  ]);
  t.ok(body.equals(expected));
});

t.test('front: a client that leaves during a download frees all it used', async (t) => {
  const { http, put, downloads } = await startDownloads(t);
  await put('7', randomBytes(20 * MIB));
  const connections = Array.from({ length: 8 }, () => connectRaw(http.port));
  for (const connection of connections) connection.send(requestText('GET', '/auth/v1/file/7', COOKIE));
  while (http.finished.length + downloads.counters().buffers.answers < 8)
    await new Promise((resolve) => setImmediate(resolve));
  for (const connection of connections) connection.close();
  while (http.finished.length < 8) await new Promise((resolve) => setImmediate(resolve));
  while (downloads.counters().buffers.large > 0) await new Promise((resolve) => setImmediate(resolve));
  t.same(http.bugs, []);
  t.equal(downloads.counters().broken, 0, 'the client’s doing');
  const after = await fetch(`${http.url}/auth/v1/file/7`, { headers: { ...COOKIE, range: 'bytes=0-3' } });
  t.equal(after.status, 206);
});

t.test('front: one that reads after uWebSockets.js alone would have left gets every byte', async (t) => {
  const { http, put } = await startDownloads(t, { unreadMs: 2 * UWS_ENDED_MS });
  const bytes = randomBytes(20 * MIB);
  await put('7', bytes);
  const pieces: Buffer[] = [];
  const socket = connect({ port: http.port, host: '127.0.0.1' });
  socket.on('data', (piece) => pieces.push(piece)).pause();
  socket.write(requestText('GET', '/auth/v1/file/7', { ...COOKIE, Connection: 'close' }));
  setTimeout(() => socket.resume(), UWS_ENDED_MS);
  await once(socket, 'close');
  t.ok(Buffer.concat(pieces).subarray(-bytes.length).equals(bytes));
});

t.test(
  'front: when all buffers are lent an answer is 503 with Retry-After; short ones are still sent',
  async (t) => {
    const buffers = new SendBuffers({ largeMax: 0, smallMax: 1 });
    const held: (() => void)[] = [];
    const { http, put } = await startDownloads(t, {
      buffers,
      pace: () => ({ ...FREE_PACE, ask: (wanted, go) => held.push(() => go(wanted)) }),
    });
    const bytes = randomBytes(SMALL_BYTES);
    await put('7', bytes);
    const first = fetch(`${http.url}/auth/v1/file/7`, { headers: COOKIE });
    while (held.length === 0) await new Promise((resolve) => setImmediate(resolve));
    const refused = await fetch(`${http.url}/auth/v1/file/7`, { headers: COOKIE });
    t.same([refused.status, refused.headers.get('retry-after')], [503, '1']);
    const short = await fetch(`${http.url}/auth/v1/file/7`, { headers: { ...COOKIE, range: 'bytes=0-9' } });
    t.equal((await short.arrayBuffer()).byteLength, 10);
    held.shift()?.();
    t.ok(Buffer.from(await (await first).arrayBuffer()).equals(bytes));
    t.same(http.bugs, []);
  },
);

t.test('front: a short body waits for its bandwidth, unless the client left', async (t) => {
  const held: (() => void)[] = [];
  const { http, put, downloads } = await startDownloads(t, {
    pace: () => {
      const { promise: turn, resolve: wake } = promiseOf();
      return {
        ...FREE_PACE,
        charge: () => false,
        paid: () => {
          held.push(wake);
          return turn;
        },
        leave: wake,
      };
    },
  });
  await put('7', 'hello');
  const answer = fetch(`${http.url}/auth/v1/file/7`, { headers: COOKIE });
  while (held.length === 0) await new Promise((resolve) => setImmediate(resolve));
  t.equal(http.finished.length, 0);
  held[0]?.();
  t.equal(await (await answer).text(), 'hello');
  const gone = connectRaw(http.port);
  gone.send(requestText('GET', '/auth/v1/file/7', COOKIE));
  while (held.length === 1) await new Promise((resolve) => setImmediate(resolve));
  gone.close();
  while (http.finished.length < 2 || http.pipeline.counters().requestsInFlight > 0)
    await new Promise((resolve) => setImmediate(resolve));
  t.match(downloads.counters(), { whole: 2, streamed: 0 });
  t.same(http.bugs, []);
});

// covers R105
t.test('front: streams share a quota and end together; a removed quota applies at once', async (t) => {
  const settings = new LiveSettings({ FileDownloadBytesPerSecond: 4 * MIB });
  const throttle = new Throttle({ settings, elapsed: () => performance.now(), timer: nodeSchedule.timer });
  t.teardown(() => throttle.close());
  const { http, put } = await startDownloads(t, { pace: (owner) => throttle.open('download', owner) });
  await put('7', randomBytes(2 * MIB));
  const startMs = performance.now();
  const fetched = async () => {
    await (await fetch(`${http.url}/auth/v1/file/7`, { headers: COOKIE })).arrayBuffer();
    return performance.now() - startMs;
  };
  const ends = await Promise.all([fetched(), fetched()]);
  const [first = 0, last = 0] = ends.sort((a, b) => a - b);
  t.ok(last > 850, `4 MiB at 4 MiB/s took ${Math.round(last)} ms`);
  // One after the other the first would end after half of the time.
  t.ok(first > 0.7 * last, `${Math.round(first)} and ${Math.round(last)} ms`);
  settings.set('FileDownloadBytesPerSecond', 1_000);
  const slow = fetched();
  while (throttle.counters().waiting === 0) await new Promise((resolve) => setImmediate(resolve));
  settings.set('FileDownloadBytesPerSecond', 0);
  // With the former quota it would take 35 minutes.
  await slow;
  t.match(throttle.counters(), { streams: 0, waiting: 0 });
});

t.test('front: a remote storage serves short bodies too', async (t) => {
  const { http, put, downloads } = await startDownloads(t, { storage: fromAfar });
  const bytes = randomBytes(WHOLE_BODY_BYTES * 3);
  await put('7', bytes);
  const get = (range: string) => fetch(`${http.url}/auth/v1/file/7`, { headers: { ...COOKIE, range } });
  t.ok(Buffer.from(await (await get('bytes=10-19')).arrayBuffer()).equals(bytes.subarray(10, 20)));
  t.ok(Buffer.from(await (await get('bytes=0-')).arrayBuffer()).equals(bytes));
  t.match(downloads.counters(), { whole: 0, streamed: 2 });
});

/** The same storage without reads within the call. */
function fromAfar(inner: FileStorage): FileStorage {
  return new Proxy(inner, {
    get(target, name) {
      const value: unknown = Reflect.get(target, name);
      if (name !== 'open') return typeof value === 'function' ? value.bind(target) : value;
      return async (key: Parameters<FileStorage['open']>[0]) => {
        const file = await target.open(key);
        if (file === undefined) return undefined;
        const { sizeBytes } = file;
        const read: StoredFile['read'] = (into, position) => file.read(into, position);
        return { sizeBytes, read, close: () => file.close() };
      };
    },
  });
}
