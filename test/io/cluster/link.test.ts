import { once } from 'node:events';
import { connect, createServer, type Socket } from 'node:net';
import t from 'tap';
import { listenOnLoopback } from '../../../kit/http.ts';
import { BadFrame, FRAME_BYTES_MAX } from '../../../src/io/cluster/frames.ts';
import { BEAT_MS, Link, QUEUED_BYTES_MAX, QUEUED_FRAMES_MAX } from '../../../src/io/cluster/link.ts';
import { ManualClock } from '../../support/actors/actors.ts';

const MIB = 1024 * 1024;

interface End {
  readonly link: Link;
  readonly socket: Socket;
  readonly clock: ManualClock;
  readonly frames: unknown[];
  pass(durationMs: number): void;
}

interface Teardown {
  teardown(handler: () => unknown): void;
}

const turn = () => new Promise<void>((resolve) => setImmediate(resolve));

/** Both ends of one open link: the one that calls, and the one that answers. */
async function openPair(t: Teardown): Promise<readonly [End, End]> {
  const server = createServer();
  const { port } = await listenOnLoopback(server);
  const accepted = once(server, 'connection') as Promise<[Socket]>;
  const client = connect(port, '127.0.0.1');
  const [[served]] = await Promise.all([accepted, once(client, 'connect')]);
  const ends = [client, served].map((socket, index) => {
    const clock = new ManualClock();
    const schedule = { immediate: (run: () => void) => void setImmediate(run), timer: clock.timer };
    const link = new Link({ socket, schedule, answers: index === 1 });
    const frames: unknown[] = [];
    link.open((frame) => frames.push(frame));
    const pass = (durationMs: number) => {
      const untilMs = clock.nowMs + durationMs;
      while (clock.fireNext(untilMs));
      clock.nowMs = untilMs;
    };
    return { link, socket, clock, frames, pass };
  });
  t.teardown(() => {
    for (const { link } of ends) link.close('stopped');
    return new Promise((resolve) => server.close(resolve));
  });
  return ends as unknown as readonly [End, End];
}

async function until(condition: () => boolean): Promise<void> {
  while (!condition()) await turn();
}

t.test('link: heartbeats alone keep it open', async (t) => {
  const [caller, answerer] = await openPair(t);
  for (let beat = 0; beat < 8; beat += 1) {
    const [read, answered] = [answerer.socket.bytesRead, caller.socket.bytesRead];
    caller.pass(BEAT_MS);
    answerer.pass(BEAT_MS);
    await until(() => answerer.socket.bytesRead > read && caller.socket.bytesRead > answered);
  }
  t.equal(caller.link.closed, undefined);
  t.equal(answerer.link.closed, undefined);
  t.same([caller.frames, answerer.frames], [[], []], 'their owners see none of them');
});

t.test('link: the third interval without a byte ends it', async (t) => {
  const [caller] = await openPair(t);
  caller.pass(2 * BEAT_MS);
  t.equal(caller.link.closed, undefined);
  caller.pass(BEAT_MS);
  t.equal(caller.link.closed, 'silent');
});

t.test('link: what was sent in one event-loop tick leaves in one write', async (t) => {
  const [caller, answerer] = await openPair(t);
  let chunks = 0;
  answerer.socket.on('data', () => {
    chunks += 1;
  });
  for (let count = 0; count < 1_000; count += 1) caller.link.send([count]);
  await until(() => answerer.frames.length === 1_000);
  t.equal(chunks, 1);
  t.same(
    answerer.frames,
    Array.from({ length: 1_000 }, (_, count) => [count]),
  );
});

t.test(
  'link: at 64 MiB that wait another frame is refused, and taken again when they have left',
  async (t) => {
    const [caller, answerer] = await openPair(t);
    answerer.socket.pause();
    const frame = Buffer.alloc(15 * MIB);
    let sent = 0;
    while (caller.link.send(frame)) sent += 1;
    t.equal(sent, 4);
    t.ok(caller.link.queuedBytes <= QUEUED_BYTES_MAX);
    t.ok(caller.link.send('small'), 'a small one fits');
    answerer.socket.resume();
    await until(() => answerer.frames.length === 5);
    t.equal(caller.link.queuedBytes, 0);
    t.ok(caller.link.send(frame));
  },
);

t.test('link: at 20,000 frames that wait another one is refused', async (t) => {
  const [caller, answerer] = await openPair(t);
  for (let count = 0; count < QUEUED_FRAMES_MAX; count += 1) caller.link.send(count);
  t.notOk(caller.link.send('one more'));
  await until(() => answerer.frames.length === QUEUED_FRAMES_MAX - 1 && caller.link.queuedBytes === 0);
  t.ok(caller.link.send('one more'));
});

t.test(
  'link: a side whose answers are not read reads no further calls, and reads again when they are',
  async (t) => {
    const [caller, answerer] = await openPair(t);
    const answer = Buffer.alloc(MIB);
    let answered = 0;
    answerer.link.open(() => {
      answered += 1;
      answerer.link.answer(answer);
    });
    caller.socket.pause();
    const calls = 64;
    for (let call = 0; call < calls; call += 1) {
      caller.link.send([call, Buffer.alloc(MIB / 4)]);
      await turn();
    }
    await until(() => answerer.socket.isPaused());
    const held = answerer.link.queuedBytes;
    t.ok(held < 16 * MIB, `${held} bytes are held`);
    t.ok(answered < calls);
    caller.socket.resume();
    await until(() => caller.frames.length === calls);
    t.equal(answered, calls);
    t.equal(answerer.link.closed, undefined);
  },
);

t.test('link: a frame over the bound, and bytes that are no frame, end it', async (t) => {
  const [caller, answerer] = await openPair(t);
  t.throws(() => caller.link.send(Buffer.alloc(FRAME_BYTES_MAX)), BadFrame);
  t.equal(caller.link.closed, undefined, 'not that of the sender');
  const header = Buffer.alloc(4);
  header.writeUInt32LE(FRAME_BYTES_MAX + 1);
  caller.socket.write(header);
  await until(() => answerer.link.closed !== undefined);
  t.equal(answerer.link.closed, 'frame');
  const [other, victim] = await openPair(t);
  other.socket.write(Buffer.from([2, 0, 0, 0, 0xff, 0xff]));
  await until(() => victim.link.closed !== undefined);
  t.equal(victim.link.closed, 'frame');
});

t.test('link: its end is reported once, also to later listeners', async (t) => {
  const [caller, answerer] = await openPair(t);
  const reasons: string[] = [];
  answerer.link.onClose((reason) => reasons.push(reason));
  caller.link.close('stopped');
  await until(() => answerer.link.closed !== undefined);
  answerer.link.close('silent');
  answerer.link.onClose((reason) => reasons.push(reason));
  t.same(reasons, ['closed', 'closed']);
  t.notOk(answerer.link.send('late'));
  t.equal(answerer.link.queuedBytes, 0);
});
