/** The client of the WebSocket bench, a process of its own: takes orders from its parent, one at a time. */
import { Latencies } from '../../load/latency.ts';
import type { Latency } from '../../load/plan.ts';
import { EchoSocket, echoFrames } from './echo-socket.ts';

/** Handshakes under way at once: a listener's queue is short. */
const OPENINGS = 16;
const US_PER_MS = 1_000;

export interface SocketServer {
  readonly port: number;
  readonly handshake: string;
}

export type SocketOrder =
  /** The sockets stay open under this name. */
  | { readonly do: 'open'; readonly name: string; readonly server: SocketServer; readonly sockets: number }
  | { readonly do: 'close'; readonly name: string }
  /** Each socket sends when its echo is there. */
  | {
      readonly do: 'echo';
      readonly name: string;
      readonly sizeBytes: number;
      readonly durationMs: number;
    }
  /** Sockets are opened and closed, one after the other on each of `OPENINGS`. */
  | { readonly do: 'openings'; readonly server: SocketServer; readonly durationMs: number };

export interface SocketReport {
  /** Echoes, or sockets. */
  readonly count: number;
  readonly elapsedMs: number;
  readonly latencyUs: Latency;
  /** Share of the time that this process's thread was busy. */
  readonly generatorBusy: number;
}

const held = new Map<string, EchoSocket[]>();

async function obey(order: SocketOrder): Promise<SocketReport> {
  const latencies = new Latencies();
  const before = performance.eventLoopUtilization();
  const startedMs = performance.now();
  const elapsedMs = () => performance.now() - startedMs;
  let count = 0;
  const timed = async <Result>(work: () => Promise<Result>): Promise<Result> => {
    const sinceMs = performance.now();
    const result = await work();
    latencies.record((performance.now() - sinceMs) * US_PER_MS);
    count += 1;
    return result;
  };
  if (order.do === 'open') {
    const { name, server, sockets } = order;
    const opened: EchoSocket[] = [];
    held.set(name, opened);
    let begun = 0;
    await several(async () => {
      while (begun < sockets) {
        begun += 1;
        opened.push(await timed(() => EchoSocket.open(server.port, server.handshake)));
      }
    });
  } else if (order.do === 'echo') {
    const frames = echoFrames(order.sizeBytes);
    await Promise.all(
      socketsOf(order.name).map(async (socket) => {
        while (elapsedMs() < order.durationMs) await timed(() => socket.echo(frames));
      }),
    );
  } else if (order.do === 'openings') {
    const { port, handshake } = order.server;
    await several(async () => {
      while (elapsedMs() < order.durationMs)
        await timed(async () => (await EchoSocket.open(port, handshake)).close());
    });
  } else {
    await Promise.all(socketsOf(order.name).map((socket) => timed(() => socket.close())));
    held.delete(order.name);
  }
  return {
    count,
    elapsedMs: elapsedMs(),
    latencyUs: latencies.summary(),
    generatorBusy: performance.eventLoopUtilization(before).utilization,
  };
}

function several(work: () => Promise<void>): Promise<unknown> {
  return Promise.all(Array.from({ length: OPENINGS }, work));
}

function socketsOf(name: string): readonly EchoSocket[] {
  const sockets = held.get(name);
  if (sockets === undefined) throw new Error(`no sockets ${name}`);
  return sockets;
}

process.on('message', (order: SocketOrder) => {
  obey(order).then(
    (report) => process.send?.({ report }),
    (error: unknown) => process.send?.({ fault: error instanceof Error ? error.message : String(error) }),
  );
});
process.on('disconnect', () => process.exit(0));
process.send?.({ url: 'sockets' });
