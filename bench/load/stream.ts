/** One connection of the load generator and its share of the requests. */
import { performance } from 'node:perf_hooks';
import { SECOND_MS } from '../../src/domain/time.ts';
import { HttpConnection } from './http-connection.ts';
import type { Pace, Sender } from './pacer.ts';
import type { LoadPlan } from './plan.ts';

/** A server that closes connections is given this long before the next attempt. */
const RECONNECT_MS = 20;

/** Callbacks of a connection loop with the results of its requests. */
export interface ConnectionLoopEvents {
  sent(): void;
  /** `sinceMs`: when it was sent, or was due. `body` is valid only during the call. */
  answered(status: number, body: Buffer, sinceMs: number): void;
  /** The connection is gone: `asked` when it owed an answer, `rested` when it was without a request for long. */
  lost(kind: string, how: { readonly asked: boolean; readonly rested: boolean }): void;
}

export class ConnectionLoop implements Sender {
  readonly #plan: LoadPlan;
  readonly #events: ConnectionLoopEvents;
  #requests: readonly string[];
  #next: number;
  #connection: HttpConnection | undefined;
  #pace: Pace | undefined;
  /** Time of the request under way. */
  #sinceMs: number | undefined;
  #sentMs = 0;
  /** Since then it has been without a request; undefined before it was connected. */
  #idleMs: number | undefined;
  #connected = false;
  #stopped = false;
  #onTried: () => void = () => undefined;

  constructor(plan: LoadPlan, index: number, events: ConnectionLoopEvents) {
    this.#plan = plan;
    this.#events = events;
    this.#requests = plan.requests;
    this.#next = index % plan.requests.length;
  }

  /** Resolves when it is connected, or could not be for the first time. */
  open(): Promise<void> {
    return new Promise((resolve) => {
      this.#onTried = resolve;
      this.#connect();
    });
  }

  /** Other requests from now on; `index` is that of the loop. */
  use(requests: readonly string[], index: number): void {
    this.#requests = requests;
    this.#next = index % requests.length;
  }

  /** Sends whenever `pace` says so. */
  begin(pace: Pace): void {
    this.#pace = pace;
    if (this.#connected) pace.free(this);
  }

  /** Sends nothing more; the answer to what is under way still counts. */
  pause(): void {
    this.#pace = undefined;
  }

  close(): void {
    this.#stopped = true;
    this.#connection?.close();
  }

  /** Sends the next request; its latency counts from `sinceMs`. */
  send(sinceMs: number): void {
    this.#sinceMs = sinceMs;
    this.#sentMs = performance.now();
    this.#events.sent();
    this.#connection?.send(this.#requests[this.#next] ?? '');
    this.#next = (this.#next + this.#plan.connections) % this.#requests.length;
  }

  checkTimeout(nowMs: number): void {
    if (this.#sinceMs === undefined || nowMs - this.#sentMs < this.#plan.timeoutMs) return;
    this.#connection?.close();
    this.#lost('timeout');
  }

  #connect(): void {
    this.#connection = new HttpConnection(this.#plan.host, this.#plan.port, {
      connected: () => {
        this.#connected = true;
        this.#idleMs = performance.now();
        this.#onTried();
        this.#pace?.free(this);
      },
      answered: (status, body) => {
        const sinceMs = this.#sinceMs ?? performance.now();
        this.#sinceMs = undefined;
        this.#idleMs = performance.now();
        this.#events.answered(status, body, sinceMs);
        this.#pace?.free(this);
      },
      ended: (kind) => this.#lost(kind),
    });
  }

  #lost(kind: string): void {
    const asked = this.#sinceMs !== undefined;
    const restedMs = performance.now() - (this.#idleMs ?? Number.NaN);
    const rested = !asked && restedMs >= (this.#plan.restMs ?? SECOND_MS);
    this.#idleMs = undefined;
    this.#connected = false;
    this.#onTried();
    this.#sinceMs = undefined;
    this.#pace?.gone(this);
    this.#events.lost(kind, { asked, rested });
    setTimeout(() => {
      if (!this.#stopped) this.#connect();
    }, RECONNECT_MS);
  }
}
