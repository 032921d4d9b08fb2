/**
 * Thousands of readers of one event stream on bare sockets, with one buffer for all of them: counts the messages by a
 * mark that each of them holds, takes the time from publication to arrival, and asks for something small meanwhile.
 */
import { createConnection, type Socket } from 'node:net';
import { performance } from 'node:perf_hooks';
import { Latencies } from '../../load/latency.ts';
import type { Latency } from '../../load/plan.ts';

/** Appears in every message once, before the moment of its publication in microseconds of the monotonic clock. */
export const MARK = '"atUs":';
const MARK_BYTES = Buffer.from(MARK);
const BUFFER_BYTES = 256 * 1024;
/** Connections under way at once: a listener's queue is short. */
const CONNECTS = 64;
const PROBE_EVERY_MS = 5;
const CONNECT_TIMEOUT_MS = 60_000;

export interface FanoutPlan {
  readonly port: number;
  /** Whole HTTP/1.1 requests; connection `c` sends the one at `c` modulo their number. */
  readonly requests: readonly string[];
  readonly clients: number;
  /** A small request that is asked for while messages arrive; absent where none is. */
  readonly probe?: string;
}

export interface FanoutReport {
  readonly messages: number;
  /** The most streams at a time that had not as many messages as each was due. */
  readonly uneven: number;
  /** From publication to arrival, one sample a read. */
  readonly latencyUs: Latency;
  readonly probeUs: Latency;
  readonly generatorBusy: number;
  readonly closed: number;
}

/** Microseconds of a clock that all processes of this machine share. */
export function nowUs(): number {
  return Number(process.hrtime.bigint() / 1_000n);
}

export class FanoutLoad {
  readonly #plan: FanoutPlan;
  readonly #buffer = Buffer.allocUnsafe(BUFFER_BYTES);
  readonly #sockets: Socket[] = [];
  /** Messages of each stream since the last report. */
  #received: number[] = [];
  #messages = 0;
  #uneven = 0;
  #closed = 0;
  #latency = new Latencies();
  #probes = new Latencies();
  #expected = Number.POSITIVE_INFINITY;
  #onReached: () => void = () => undefined;
  #utilization = performance.eventLoopUtilization();

  constructor(plan: FanoutPlan) {
    this.#plan = plan;
  }

  /** Resolves when that many are connected in all and the first bytes of each are there. */
  async connect(clients: number): Promise<void> {
    const stream = async () => {
      while (this.#sockets.length < clients) await this.#open(this.#sockets.length);
    };
    await Promise.all(Array.from({ length: CONNECTS }, stream));
  }

  /** Resolves when so many messages came in since the last report. */
  until(messages: number): Promise<void> {
    this.#expected = messages;
    return new Promise((resolve) => {
      this.#onReached = resolve;
      this.#compare();
    });
  }

  /** Asks for the small thing again and again until the returned function is called. */
  probe(): () => Promise<void> {
    const { port, probe } = this.#plan;
    if (probe === undefined) return async () => undefined;
    const socket = createConnection({ port, host: '127.0.0.1', noDelay: true });
    let stopped = false;
    let answered: () => void = () => undefined;
    socket.on('data', () => answered());
    socket.on('error', () => {
      stopped = true;
      answered();
    });
    const loop = async () => {
      while (!stopped) {
        const startedUs = nowUs();
        await new Promise<void>((resolve) => {
          answered = resolve;
          socket.write(probe);
        });
        this.#probes.record(nowUs() - startedUs);
        await new Promise((resolve) => setTimeout(resolve, PROBE_EVERY_MS));
      }
      socket.destroy();
    };
    const done = loop();
    return async () => {
      stopped = true;
      await done;
    };
  }

  /** Reports the messages since the last report. */
  report(): FanoutReport {
    const { utilization } = performance.eventLoopUtilization(this.#utilization);
    this.#utilization = performance.eventLoopUtilization();
    const report = {
      messages: this.#messages,
      uneven: this.#uneven,
      latencyUs: this.#latency.summary(),
      probeUs: this.#probes.summary(),
      generatorBusy: utilization,
      closed: this.#closed,
    };
    this.#messages = 0;
    this.#uneven = 0;
    this.#received = [];
    this.#latency = new Latencies();
    this.#probes = new Latencies();
    return report;
  }

  #open(index: number): Promise<void> {
    const { port, requests } = this.#plan;
    return new Promise((resolve, reject) => {
      const timer = setTimeout(
        () => reject(new Error(`connection ${index} got no answer`)),
        CONNECT_TIMEOUT_MS,
      );
      let matched = 0;
      let first = true;
      const socket = createConnection({
        port,
        host: '127.0.0.1',
        onread: {
          buffer: this.#buffer,
          callback: (sizeBytes) => {
            if (first) {
              first = false;
              clearTimeout(timer);
              resolve();
            }
            matched = this.#take(index, sizeBytes, matched);
            return true;
          },
        },
      });
      this.#sockets.push(socket);
      socket.on('error', reject);
      socket.on('close', () => {
        this.#closed += 1;
      });
      socket.write(requests[index % requests.length] ?? '');
    });
  }

  /** Counts the marks of a stream; returns how much of one the bytes end with. */
  #take(index: number, sizeBytes: number, matched: number): number {
    const bytes = this.#buffer.subarray(0, sizeBytes);
    let count = matched > 0 && bytes.indexOf(MARK_BYTES.subarray(matched)) === 0 ? 1 : 0;
    let last = -1;
    for (
      let at = bytes.indexOf(MARK_BYTES);
      at >= 0;
      at = bytes.indexOf(MARK_BYTES, at + MARK_BYTES.length)
    ) {
      count += 1;
      last = at;
    }
    if (last >= 0) this.#time(bytes, last + MARK_BYTES.length);
    this.#messages += count;
    this.#received[index] = (this.#received[index] ?? 0) + count;
    this.#compare();
    for (let length = Math.min(MARK_BYTES.length - 1, sizeBytes); length > 0; length -= 1) {
      if (bytes.subarray(sizeBytes - length).equals(MARK_BYTES.subarray(0, length))) return length;
    }
    return 0;
  }

  /**
   * Compares when all messages are there: in the total, a missing message of one stream and a repeated one of another
   * cancel out.
   */
  #compare(): void {
    if (this.#messages < this.#expected) return;
    const each = this.#expected / this.#sockets.length;
    this.#expected = Number.POSITIVE_INFINITY;
    const uneven = this.#sockets.filter((_socket, index) => (this.#received[index] ?? 0) !== each).length;
    this.#uneven = Math.max(this.#uneven, uneven);
    this.#onReached();
  }

  #time(bytes: Buffer, from: number): void {
    let sentUs = 0;
    let at = from;
    for (; at < bytes.length; at += 1) {
      const digit = (bytes[at] ?? 0) - 48;
      if (digit < 0 || digit > 9) break;
      sentUs = sentUs * 10 + digit;
    }
    if (at < bytes.length) this.#latency.record(nowUs() - sentUs);
  }
}
