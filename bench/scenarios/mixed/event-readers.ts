/** Event streams of a mixed load: read what is pushed, time it from its push, come back when a stream ends. */
import { connect, type Socket } from 'node:net';
import { Latencies } from '../../load/latency.ts';
import type { Latency } from '../../load/plan.ts';
import { rawRequest } from '../../scenario.ts';
import { nowMs } from './kinds.ts';

/** The moment of an event's push, as kinds.ts writes it, at the end of its data. */
const SENT = /"sentMs":([0-9.]+)\}/g;
/** Longer than what could be the beginning of a mark. */
const REST_CHARACTERS = 64;
const COME_BACK_MS = 1_000;

export interface EventReport {
  readonly events: number;
  /** Streams that were opened again after an end. */
  readonly cameBack: number;
  readonly latencyUs: Latency;
}

export class EventReaders {
  readonly #url: string;
  readonly #sockets = new Set<Socket>();
  #latencies = new Latencies();
  #events = 0;
  #cameBack = 0;
  #stopped = false;

  /** One stream for each cookie. */
  constructor(url: string, cookies: readonly string[]) {
    this.#url = url;
    for (const cookie of cookies) this.#open(cookie);
  }

  /** That came since the beginning. */
  get events(): number {
    return this.#events;
  }

  begin(): void {
    this.#latencies = new Latencies();
    this.#events = 0;
  }

  end(): EventReport {
    this.#stopped = true;
    for (const socket of this.#sockets) socket.destroy();
    return { events: this.#events, cameBack: this.#cameBack, latencyUs: this.#latencies.summary() };
  }

  #open(cookie: string): void {
    const { hostname, port } = new URL(this.#url);
    const socket = connect({ host: hostname, port: Number(port), noDelay: true });
    this.#sockets.add(socket);
    let rest = '';
    socket.setEncoding('latin1');
    socket.on('data', (piece: string) => {
      rest = this.#take(rest + piece);
    });
    socket.on('error', () => socket.destroy());
    socket.on('close', () => {
      this.#sockets.delete(socket);
      if (this.#stopped) return;
      this.#cameBack += 1;
      setTimeout(() => this.#stopped || this.#open(cookie), COME_BACK_MS);
    });
    socket.write(rawRequest('GET', `${this.#url}/auth/v1/events`, { Cookie: cookie }));
  }

  /** Counts whole marks; returns what may be the beginning of the next. */
  #take(text: string): string {
    let end = 0;
    for (const match of text.matchAll(SENT)) {
      this.#events += 1;
      this.#latencies.record((nowMs() - Number(match[1])) * 1_000);
      end = match.index + match[0].length;
    }
    return text.slice(Math.max(end, text.length - REST_CHARACTERS));
  }
}
