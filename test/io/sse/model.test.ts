/**
 * The fan-out against a model: whatever order appends, disconnects, slow readers, overruns of the ring, retention and
 * restarts come in, every client receives exactly its events in order, or a reset event.
 */
import fc from 'fast-check';
import t from 'tap';
import { SharedBounds } from '../../../src/domain/limits/shared-bounds.ts';
import { LiveSettings } from '../../../src/domain/settings/settings.ts';
import { parseCursor } from '../../../src/io/sse/frames.ts';
import { StreamHub } from '../../../src/io/sse/hub.ts';
import { count, runs } from '../../support/depth.ts';
import { FakeSocket, ManualWorld, MemoryLog } from '../../support/events/streams.ts';

const USERS = ['1', '2', '3'];
const CLIENTS = 5;
/** The registry counts the connects of a session for as long. */
const CONNECTS_WINDOW_MS = 10_000;

/** Small, so that most runs overrun it. */
const RING = { framesMax: 6, sizeBytesMax: 2_000 };

type Step =
  | { do: 'append'; to: number; padding: number; quiet: boolean }
  | { do: 'turn'; times: number }
  | { do: 'read'; client: number; bytes: number }
  | { do: 'leave'; client: number }
  | { do: 'come'; client: number; roomBytes: number }
  | { do: 'trim'; count: number }
  | { do: 'restart' };

const clientArbitrary = fc.nat(CLIENTS - 1);
const appendArbitrary = fc.record({
  do: fc.constant('append' as const),
  to: fc.nat(USERS.length),
  padding: fc.oneof(
    { weight: 8, arbitrary: fc.nat(60) },
    { weight: 1, arbitrary: fc.constant(16_000) },
    { weight: 1, arbitrary: fc.constant(700) },
  ),
  quiet: fc.boolean(),
});
const stepArbitrary: fc.Arbitrary<Step> = fc.oneof(
  { weight: 10, arbitrary: appendArbitrary },
  { weight: 6, arbitrary: fc.record({ do: fc.constant('turn' as const), times: fc.nat(4) }) },
  {
    weight: 5,
    arbitrary: fc.record({ do: fc.constant('read' as const), client: clientArbitrary, bytes: fc.nat(3_000) }),
  },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('leave' as const), client: clientArbitrary }) },
  {
    weight: 4,
    arbitrary: fc.record({
      do: fc.constant('come' as const),
      client: clientArbitrary,
      roomBytes: fc.oneof(fc.constant(1_000_000), fc.nat(500)),
    }),
  },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('trim' as const), count: fc.nat(12) }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('restart' as const) }) },
);

interface Client {
  readonly userId: string;
  socket: FakeSocket | undefined;
  /** Last event id in the form that an EventSource keeps. */
  lastEventId: string;
  /** The place after which everything has to come. */
  place: number;
  resets: number;
}

class Gateway {
  readonly log = new MemoryLog();
  readonly world = new ManualWorld();
  readonly settings = new LiveSettings();
  readonly bounds = new SharedBounds(this.settings);
  readonly clients: Client[];
  hub: StreamHub;

  constructor() {
    this.clients = Array.from({ length: CLIENTS }, (_, index) => ({
      userId: USERS[index % USERS.length] ?? '',
      socket: undefined,
      lastEventId: '',
      place: 0,
      resets: 0,
    }));
    this.hub = this.#start();
  }

  #start(): StreamHub {
    return new StreamHub({
      log: this.log,
      settings: this.settings,
      bounds: this.bounds,
      clock: this.world.clock,
      schedule: this.world.schedule,
      random: () => 0.5,
      isSessionValid: () => true,
      ring: RING,
    });
  }

  restart(): void {
    for (const client of this.clients) this.leave(client);
    this.hub.drain().catch(() => undefined);
    this.world.settle();
    this.hub = this.#start();
  }

  come(client: Client, roomBytes: number): void {
    this.leave(client);
    const { userId, lastEventId } = client;
    const holder = this.bounds.holders.of('127.0.0.1', userId);
    const origin = { userId, sessionId: `s${userId}`, holder };
    const asked = { ...origin, lastEventId: lastEventId === '' ? undefined : lastEventId };
    let stream = this.hub.admit(asked);
    if (stream === undefined) {
      // A session that connects and replays too often is refused; the client retries later.
      this.world.nowMs += CONNECTS_WINDOW_MS;
      stream = this.hub.admit(asked);
    }
    if (stream === undefined) throw new Error('refused');
    client.socket = new FakeSocket(stream, roomBytes, lastEventId);
    // A client that starts afresh misses nothing from the place on that the hub gave it.
    if (lastEventId === '') client.place = stream.through;
  }

  leave(client: Client): void {
    client.socket?.disconnect();
    this.check(client);
    client.socket = undefined;
  }

  /** Everything that this connection dispatched is what was due, in order; what follows a reset starts there. */
  check(client: Client): void {
    const { socket, userId } = client;
    if (socket === undefined) return;
    const { events, lastEventId } = socket.reader;
    for (const event of events.splice(0)) {
      const at = parseCursor(event.id)?.sequence ?? -1;
      if (event.type === 'bye') continue;
      if (event.type === 'reset') {
        client.resets += 1;
        if (at < client.place) throw new Error(`a reset back from ${client.place} to ${at}`);
        client.place = at;
        continue;
      }
      const due = this.dueAfter(userId, client.place);
      if (due !== at) throw new Error(`${userId} at ${client.place}: got ${at}, ${due} was due`);
      const { jsonText } = this.history[at - 1] ?? { jsonText: '' };
      if (event.data !== jsonText) throw new Error(`other bytes of ${at}`);
      client.place = at;
    }
    client.lastEventId = lastEventId;
  }

  /** Everything that was ever appended, retention or not. */
  readonly history: { userId: string | undefined; jsonText: string }[] = [];

  append(userId: string | undefined, padding: number, quiet: boolean): void {
    const { jsonText } = this.log.add(userId, JSON.stringify({ text: 'x'.repeat(padding) }));
    this.history.push({ userId, jsonText });
    if (!quiet) this.log.tell();
  }

  dueAfter(userId: string, place: number): number {
    const at = this.history.findIndex(
      (event, index) => index >= place && (event.userId === undefined || event.userId === userId),
    );
    return at + 1;
  }
}

function run(gateway: Gateway, step: Step): void {
  const client = 'client' in step ? gateway.clients[step.client] : undefined;
  if (step.do === 'append') gateway.append(USERS[step.to], step.padding, step.quiet);
  else if (step.do === 'turn') for (let turn = 0; turn < step.times; turn += 1) gateway.world.turn();
  else if (step.do === 'trim') gateway.log.trim(step.count);
  else if (step.do === 'restart') gateway.restart();
  else if (client !== undefined && step.do === 'read') client.socket?.makeRoom(step.bytes);
  else if (client !== undefined && step.do === 'leave') gateway.leave(client);
  else if (client !== undefined && step.do === 'come') gateway.come(client, step.roomBytes);
  for (const one of gateway.clients) gateway.check(one);
  const { ringFrames } = gateway.hub.counters();
  if (ringFrames > RING.framesMax) throw new Error(`${ringFrames} frames in the ring`);
}

// covers R86
t.test('fan-out: every client sees exactly its events in order, or a reset', async (t) => {
  let resets = 0;
  let lags = 0;
  let delivered = 0;
  fc.assert(
    fc.property(fc.array(stepArbitrary, { minLength: 10, maxLength: 120, size: 'max' }), (steps) => {
      const gateway = new Gateway();
      for (const step of steps) run(gateway, step);
      lags += gateway.hub.counters().lag;
      // At last everybody is there, reads, and comes again when cut.
      gateway.log.tell();
      for (let round = 0; round < 4; round += 1) {
        for (const client of gateway.clients) {
          client.socket?.makeRoom(10_000_000);
          gateway.world.settle();
          gateway.check(client);
          if (client.socket === undefined || client.socket.closed) gateway.come(client, 10_000_000);
          gateway.world.settle();
          gateway.check(client);
        }
      }
      for (const client of gateway.clients) {
        const due = gateway.dueAfter(client.userId, client.place);
        if (due !== 0) throw new Error(`${client.userId} at ${client.place} was never given ${due}`);
        resets += client.resets;
      }
      delivered += gateway.hub.counters().frames;
      const { blocked, behind } = gateway.hub.counters();
      if (blocked + behind !== 0) throw new Error('a stream still waits');
    }),
    runs(4_000),
  );
  t.ok(resets > count(50), `${resets} resets were met`);
  t.ok(lags > count(50), `${lags} clients were overrun`);
  t.ok(delivered > count(1_000), `${delivered} events after the last restarts`);
});
