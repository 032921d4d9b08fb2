/**
 * Clients of event streams at the nodes of a simulated cluster: each holds a stream, moves by chance, and comes back with
 * its position after every end. Each event for its user must come once, in the order of the log, and no reset without a loss.
 */
import { SharedBounds } from '../../../src/domain/limits/shared-bounds.ts';
import { LiveSettings } from '../../../src/domain/settings/settings.ts';
import { StreamHub } from '../../../src/io/sse/hub.ts';
import { LEASE_MS, type ProcessTools, type SimulatedProcess } from '../actors/simulated-cluster.ts';
import type { EventProcess } from './event-process.ts';
import { FakeSocket } from './streams.ts';

const ROOM = Number.MAX_SAFE_INTEGER;
/** A client that finds no node, or no answer there, tries again so much later. */
const RETRY_MS = 500;
/** Share of the clients that leave their node at a move. */
const MOVED = 0.2;
/** Users of the clients; events of the gateway itself are for the first one. */
const USERS = ['7', '8'];

type Process = SimulatedProcess<EventProcess>;

interface Client {
  readonly userId: string;
  readonly sessionId: string;
  process: Process | undefined;
  socket: FakeSocket | undefined;
  /** Events of the socket that were looked at. */
  seen: number;
  lastEventId: string;
  /** Position of the first stream; undefined before it. */
  from: number | undefined;
  readonly received: number[];
  retryAtMs: number;
}

interface StreamClientsOptions {
  readonly count: number;
  readonly random: () => number;
  /** Those that run. */
  readonly processes: () => readonly Process[];
  readonly toolsOf: (app: EventProcess) => ProcessTools;
  readonly nowMs: () => number;
  readonly broken: (promise: string) => void;
  /** The event that a client got under a number. */
  readonly onEvent: (sequence: number, jsonText: string, node: string) => void;
  /** A planted fault: a node does not wait for positions that it has not applied. */
  readonly waitsForNothing?: boolean;
}

export class StreamClients {
  readonly #options: StreamClientsOptions;
  readonly #clients: readonly Client[];
  readonly #hubs = new WeakMap<EventProcess, StreamHub>();
  readonly #settings = new LiveSettings({ SseStreamsMax: 100_000, SseStreamsPerAddress: 100_000 });
  readonly #bounds = new SharedBounds(this.#settings);
  /** Streams that were opened with a position. */
  resumed = 0;

  constructor(options: StreamClientsOptions) {
    this.#options = options;
    this.#clients = Array.from({ length: options.count }, (_, index) => ({
      userId: USERS[index % USERS.length] ?? '',
      sessionId: `s${index}`,
      ...{ process: undefined, socket: undefined, seen: 0, lastEventId: '', from: undefined },
      ...{ received: [], retryAtMs: 0 },
    }));
  }

  /** Must be called after every step of the simulation. */
  step(): void {
    for (const client of this.#clients) {
      this.#read(client);
      if (client.socket === undefined && this.#options.nowMs() >= client.retryAtMs) this.#connect(client);
    }
  }

  /** Some clients leave their nodes: of a proxy in front, for example. */
  move(): void {
    for (const client of this.#clients) {
      if (client.socket === undefined || this.#options.random() >= MOVED) continue;
      this.#read(client);
      client.socket?.disconnect();
      this.#leave(client, 0);
    }
  }

  /** Every client has what its user was to get, up to the newest event. */
  isUpToDate(newest: number): boolean {
    return this.#clients.every(({ socket, from, lastEventId, userId, received }) => {
      if (socket === undefined || from === undefined) return false;
      const last = Math.max(positionOf(lastEventId), received.at(-1) ?? 0);
      return last >= newest || this.#expected(userId, last).length === 0;
    });
  }

  /** Each event for its user came once and in order. */
  verdict(): void {
    for (const { sessionId, userId, from = 0, received } of this.#clients) {
      const expected = this.#expected(userId, from);
      if (received.join() !== expected.join())
        this.#options.broken(`${sessionId} got ${received.join(' ')} after ${from} of ${expected.join(' ')}`);
    }
  }

  #expected(userId: string, after: number): number[] {
    const log = this.#options.processes()[0]?.app.events?.log;
    const events = log?.page(after, Number.MAX_SAFE_INTEGER) ?? [];
    return events.flatMap((event) =>
      event.userId === undefined || event.userId === userId ? [event.sequence] : [],
    );
  }

  #connect(client: Client): void {
    const { random, processes, nowMs } = this.#options;
    const all = processes();
    const process = all[Math.floor(random() * all.length)];
    const hub = process?.paused === undefined && process?.app.node.admits ? this.#hubOf(process) : undefined;
    const { userId, sessionId, lastEventId } = client;
    const stream = hub?.admit({
      ...{ userId, sessionId, holder: this.#bounds.holders.of(sessionId) },
      lastEventId: lastEventId === '' ? undefined : lastEventId,
    });
    if (stream === undefined) {
      client.retryAtMs = nowMs() + RETRY_MS * (0.5 + random());
      return;
    }
    if (lastEventId !== '') this.resumed += 1;
    client.process = process;
    client.seen = 0;
    client.socket = new FakeSocket(stream, ROOM, lastEventId);
    this.#read(client);
    client.from ??= positionOf(client.lastEventId);
  }

  #hubOf({ app }: Process): StreamHub | undefined {
    const known = this.#hubs.get(app);
    if (known !== undefined || app.events === undefined) return known;
    const { toolsOf, random, waitsForNothing = false } = this.#options;
    const { schedule, clock } = toolsOf(app);
    const hub = new StreamHub({
      log: app.events.log,
      settings: this.#settings,
      // Each node has bounds of its own.
      bounds: new SharedBounds(this.#settings),
      ...{ schedule, clock, random },
      isSessionValid: () => true,
      node: waitsForNothing ? undefined : { admits: () => app.node.admits, leaseMs: LEASE_MS },
    });
    this.#hubs.set(app, hub);
    return hub;
  }

  #read(client: Client): void {
    const { socket, process } = client;
    if (socket === undefined || process === undefined) return;
    const { reader } = socket;
    for (; client.seen < reader.events.length; client.seen += 1) {
      const event = reader.events[client.seen];
      if (event === undefined || event.type === 'bye') continue;
      if (event.type === 'reset')
        this.#options.broken(
          `${client.sessionId} got a reset at ${process.name} after ${client.lastEventId}`,
        );
      else this.#take(client, positionOf(event.id), event.data, process.name);
    }
    client.lastEventId = reader.lastEventId;
    const isGone = !this.#options.processes().includes(process);
    if (socket.closed || isGone) this.#leave(client, isGone ? RETRY_MS : reader.retryMs);
  }

  #take(client: Client, sequence: number, jsonText: string, node: string): void {
    const last = client.received.at(-1) ?? client.from ?? 0;
    if (sequence <= last)
      this.#options.broken(`${client.sessionId} got ${sequence} after ${last} at ${node}`);
    client.received.push(sequence);
    this.#options.onEvent(sequence, jsonText, node);
  }

  #leave(client: Client, retryMs: number): void {
    client.socket = undefined;
    client.process = undefined;
    client.retryAtMs = this.#options.nowMs() + retryMs;
  }
}

function positionOf(id: string): number {
  return Number(id.slice(id.lastIndexOf('-') + 1));
}
