/** The hub with a world that the test moves: heartbeats, lives, slices, coalescing, replay in short steps. */
import t from 'tap';
import { SharedBounds } from '../../../src/domain/limits/shared-bounds.ts';
import { LiveSettings } from '../../../src/domain/settings/settings.ts';
import { WRITE_BYTES_MAX } from '../../../src/io/sse/frames.ts';
import { type HubOptions, StreamHub } from '../../../src/io/sse/hub.ts';
import type { StreamOrigin } from '../../../src/io/sse/stream.ts';
import { FakeSocket, ManualWorld, MemoryLog } from '../../support/events/streams.ts';

const ROOM = 100_000_000;

function start(options: Partial<HubOptions> = {}, log = new MemoryLog()) {
  const world = new ManualWorld();
  const numbers = { next: 0.5 };
  const dead = new Set<string>();
  const settings = new LiveSettings({ SseStreamsMax: 100_000, SseStreamsPerAddress: 100_000 });
  const bounds = new SharedBounds(settings);
  const hub = new StreamHub({
    log,
    settings,
    bounds,
    clock: world.clock,
    schedule: world.schedule,
    random: () => numbers.next,
    isSessionValid: ({ sessionId }) => !dead.has(sessionId),
    ...options,
  });
  let sessions = 0;
  const tryConnect = (origin: Partial<StreamOrigin> = {}, roomBytes = ROOM): FakeSocket | undefined => {
    sessions += 1;
    const whole = {
      userId: '1',
      sessionId: `s${sessions}`,
      // Each of another network: these tests are of no bound.
      holder: bounds.holders.of(`s${sessions}`),
      lastEventId: undefined,
      ...origin,
    };
    const stream = hub.admit(whole);
    return stream && new FakeSocket(stream, roomBytes, whole.lastEventId ?? '');
  };
  const connect = (...given: Parameters<typeof tryConnect>): FakeSocket => {
    const socket = tryConnect(...given);
    if (socket === undefined) throw new Error('refused');
    return socket;
  };
  return { world, numbers, dead, log, hub, settings, connect, tryConnect };
}

const idsOf = ({ reader }: FakeSocket) => reader.events.map(({ id }) => id);

t.test('heartbeat: every 20 s ± 20 %, with the position reached', async (t) => {
  const { world, numbers, log, connect } = start();
  numbers.next = 0;
  const early = connect();
  numbers.next = 0.999;
  const late = connect();
  world.advance(16_000);
  t.same([early.reader.comments.length, late.reader.comments.length], [2, 1], 'after 16 s the first one');
  world.advance(8_000);
  t.equal(late.reader.comments.length, 2, 'after 24 s the other');
  log.append('2');
  world.settle();
  t.same(late.reader.events, []);
  world.advance(24_000);
  t.equal(late.reader.lastEventId, 'e1-1', 'events of others do not leave a quiet client behind');
  const sends = early.sends;
  world.advance(200_000);
  t.ok(early.sends - sends >= 8 && early.sends - sends <= 13, `${early.sends - sends} in 200 s`);
});

t.test('heartbeat: an ended session ends its stream, the maximum age ends with a bye event', async (t) => {
  const { world, dead, hub, connect } = start();
  const [first, second] = [connect({ sessionId: 'a' }), connect({ sessionId: 'b' })];
  dead.add('a');
  world.advance(21_000);
  t.match(first.reader.events, [{ type: 'bye', data: '{"reason":"session"}' }]);
  t.ok(first.ended);
  t.notOk(second.closed);
  world.advance(600_000);
  t.match(second.reader.events, [{ type: 'bye', data: '{"reason":"lifetime"}' }]);
  t.ok(second.reader.retryMs <= 1_000, 'it comes back at once');
  t.same(hub.counters().ended, { evicted: 0, session: 1, lifetime: 1, drain: 0 });
  t.equal(hub.counters().streams, 0);
});

t.test('heartbeat: a blocked stream is not written to, and its end is counted as a stall', async (t) => {
  const { world, log, hub, connect } = start();
  const socket = connect({}, 60);
  log.append(undefined);
  world.settle();
  t.ok(socket.waiting);
  const { sends } = socket;
  world.advance(60_000);
  t.equal(socket.sends, sends);
  socket.disconnect();
  t.equal(hub.counters().stall, 1);
  const other = connect({}, 60);
  log.append(undefined);
  world.settle();
  other.disconnect();
  t.equal(hub.counters().stall, 1, 'one that left by itself is none');
});

t.test('fan-out: frames of one tick leave in one write of at most 15 KB', async (t) => {
  const { world, log, hub, connect } = start();
  const sockets = [connect(), connect({ userId: '2' })];
  const before = hub.counters().writes;
  for (let n = 0; n < 10; n += 1) log.append(undefined);
  world.settle();
  t.equal(hub.counters().writes - before, 2, 'ten events, one write a client');
  t.equal(hub.counters().frames, 20);
  for (let n = 0; n < 200; n += 1) log.append(n % 2 === 0 ? '1' : undefined, JSON.stringify('x'.repeat(500)));
  world.settle();
  t.equal(sockets[0]?.reader.events.length, 210);
  t.equal(sockets[1]?.reader.events.length, 110);
  for (const { largestBytes } of sockets) t.ok(largestBytes <= WRITE_BYTES_MAX, `${largestBytes}`);
});

t.test('fan-out: 500 clients an event-loop tick, so that requests are served between', async (t) => {
  const { world, log, connect } = start();
  const sockets = Array.from({ length: 1_700 }, () => connect());
  world.settle();
  log.append(undefined);
  const reached: number[] = [];
  while (world.turn()) reached.push(sockets.filter(({ reader }) => reader.events.length > 0).length);
  t.same(reached.slice(0, 4), [500, 1_000, 1_500, 1_700]);
});

t.test('fan-out: an event of one user costs nothing for the others', async (t) => {
  const { world, log, hub, connect } = start();
  for (let user = 0; user < 300; user += 1) connect({ userId: String(user) });
  world.settle();
  const before = hub.counters().writes;
  log.append('7');
  log.append('9');
  log.append('none of them');
  world.settle();
  t.equal(hub.counters().writes - before, 2);
});

t.test('replay: short steps, one read for all clients that reconnect together', async (t) => {
  const log = new MemoryLog();
  for (let n = 0; n < 20_000; n += 1) log.add(n % 10 === 0 ? '1' : '2');
  const { world, connect, hub } = start({}, log);
  log.pages = 0;
  const sockets = Array.from({ length: 90 }, () => connect({ lastEventId: 'e1-1' }));
  t.ok(hub.counters().behind === 90);
  let turns = 0;
  while (hub.counters().behind > 0) {
    world.turn();
    turns += 1;
  }
  t.ok(turns > 100, `${turns} ticks: none of them was long`);
  t.ok(log.pages <= turns + 2, `${log.pages} readings for 90 clients`);
  world.settle();
  const all = <T>(value: T): T[] => sockets.map(() => value);
  t.same(
    sockets.map(({ reader }) => reader.events.length),
    all(1_999),
  );
  const live = log.append('1');
  world.settle();
  t.same(
    sockets.map(({ reader }) => reader.lastEventId),
    all(`e1-${live.sequence}`),
  );
});

t.test('replay: a session that requests the whole log repeatedly is refused for a while', async (t) => {
  const log = new MemoryLog();
  for (let n = 0; n < 6_000; n += 1) log.add('1');
  const { world, tryConnect } = start({}, log);
  const origin = { userId: '1', sessionId: 'greedy', lastEventId: 'e1-1' };
  let replays = 0;
  for (; replays < 100; replays += 1) {
    const socket = tryConnect(origin);
    if (socket === undefined) break;
    socket.disconnect();
  }
  t.equal(replays, 8);
  t.ok(tryConnect({ ...origin, sessionId: 'other' }));
  world.advance(10_000);
  t.ok(tryConnect(origin), 'and may again after a while');
});

t.test('restart: the ring holds the last events again, other epochs get a reset', async (t) => {
  const log = new MemoryLog('e2');
  for (let n = 0; n < 100; n += 1) log.add('1');
  const { world, connect } = start({}, log);
  log.pages = 0;
  const socket = connect({ lastEventId: 'e2-40' });
  const foreign = connect({ lastEventId: 'e1-40' });
  world.settle();
  t.equal(socket.reader.events.length, 60);
  t.equal(log.pages, 0, 'without a reading');
  t.match(foreign.reader.events, [{ type: 'reset', id: 'e2-100' }]);
});

t.test('drain: every stream gets its bye event, in slices, and none is opened', async (t) => {
  const { world, log, hub, connect, tryConnect } = start();
  const sockets = Array.from({ length: 1_200 }, () => connect());
  const stuck = connect({}, 0);
  let left: number | undefined;
  hub.drain().then(
    (count) => {
      left = count;
    },
    (error) => t.fail(String(error)),
  );
  t.equal(sockets.filter(({ ended }) => ended).length, 500);
  for (let turn = 0; turn < 6 && left === undefined; turn += 1) {
    world.turn();
    await Promise.resolve();
    await Promise.resolve();
  }
  t.equal(left, 0);
  for (const { reader, ended } of sockets) {
    if (!ended || reader.retryMs !== 3_000) t.fail('no goodbye');
  }
  t.ok(stuck.cutOff, 'one that reads nothing is cut');
  t.equal(tryConnect(), undefined);
  t.equal(hub.counters().refused.stopping, 1);
  log.append(undefined);
  t.notOk(world.turn());
});

/** A node of a cluster; the lease is such that the world checks it each second. */
function startNode(log = new MemoryLog()) {
  const lease = { runs: true };
  return { lease, ...start({ node: { admits: () => lease.runs, leaseMs: 5_000 } }, log) };
}

// covers C23
t.test(
  'node: a client that has seen more than is applied here waits for it, and misses nothing',
  async (t) => {
    const { world, log, hub, connect } = startNode();
    log.append('1');
    const ahead = connect({ lastEventId: 'e1-3' });
    const stuck = connect({ lastEventId: 'e1-3' }, 10);
    world.advance(4_000);
    t.same([ahead.reader.lastEventId, hub.counters().behind], ['e1-3', 2], 'its own position');
    for (let n = 0; n < 3; n += 1) log.append('1');
    world.settle();
    stuck.makeRoom(ROOM);
    log.append('1');
    world.settle();
    t.same(
      [idsOf(ahead), idsOf(stuck)],
      [
        ['e1-4', 'e1-5'],
        ['e1-4', 'e1-5'],
      ],
    );
    t.match(hub.counters(), { behind: 0, resumed: 2, resets: 0 });
    world.advance(20_000);
    t.same(idsOf(ahead), ['e1-4', 'e1-5']);
  },
);

// covers C23
t.test('node: a position that is not reached within two leases gets a reset', async (t) => {
  const { world, log, hub, connect } = startNode();
  log.append('1');
  const [ahead, blocked] = [connect({ lastEventId: 'e1-3' }), connect({ lastEventId: 'e1-3' }, 10)];
  const gone = connect({ lastEventId: 'e1-3' });
  gone.disconnect();
  world.advance(9_000);
  t.same(idsOf(ahead), []);
  log.append('1');
  world.settle();
  world.advance(1_000);
  t.match(ahead.reader.events, [{ type: 'reset', id: 'e1-2', data: '{"oldest":"e1-1","newest":"e1-2"}' }]);
  log.append('1');
  blocked.makeRoom(ROOM);
  world.settle();
  t.same(idsOf(ahead), ['e1-2', 'e1-3'], 'what follows comes');
  t.match(blocked.reader.events, [{ type: 'reset', id: 'e1-2' }, { id: 'e1-3' }]);
  t.match(hub.counters(), { behind: 0, resumed: 0, resets: 2 });
});

// covers C23
t.test(
  'node: a position that is late at a node without its lease ends the stream, without a reset',
  async (t) => {
    const { world, lease, log, hub, connect } = startNode();
    log.append('1');
    const ahead = connect({ lastEventId: 'e1-3' });
    world.advance(6_000);
    lease.runs = false;
    world.advance(4_000);
    t.match(ahead.reader, { events: [{ type: 'bye', data: '{"reason":"drain"}' }], lastEventId: 'e1-3' });
    t.match(hub.counters(), { resets: 0, streams: 0, ended: { drain: 1 } });
  },
);

t.test('node: events that left the log while a client waited for them are a reset', async (t) => {
  const { world, log, connect } = startNode();
  log.append('1');
  const ahead = connect({ lastEventId: 'e1-3' });
  for (let n = 0; n < 9; n += 1) log.add('1');
  log.trim(8);
  log.tell();
  world.settle();
  t.match(ahead.reader.events, [{ type: 'reset' }]);
});

// covers C23
t.test('node: streams end once its lease has been over for a whole lease, with a random retry', async (t) => {
  const { world, lease, numbers, hub, connect } = startNode();
  const sockets = Array.from({ length: 1_200 }, () => connect());
  lease.runs = false;
  world.advance(4_000);
  lease.runs = true;
  world.advance(1_000);
  t.equal(hub.counters().streams, 1_200, 'a lease that is back in time ends nothing');
  lease.runs = false;
  numbers.next = 0.75;
  world.advance(4_000);
  t.equal(hub.counters().streams, 1_200);
  world.advance(1_000);
  for (let slice = 0; slice < 3; slice += 1) {
    await new Promise((resolve) => setImmediate(resolve));
    world.settle();
  }
  t.match(hub.counters(), { streams: 0, ended: { drain: 1_200 } });
  t.match(sockets[0]?.reader, { retryMs: 4_000, events: [{ type: 'bye', data: '{"reason":"drain"}' }] });
  lease.runs = true;
  t.notOk(connect().closed, 'new ones open once it is back');
  const drained = hub.drain();
  world.turn();
  t.equal(await drained, 0);
  t.notOk(world.turn(), 'nothing is left to run');
});
