/**
 * A connection that is used again while it is fresh. Servers close one that idles (the gateway after 8 s at the earliest),
 * and what is sent at that moment is lost: clients of HTTP give up a connection before their server does.
 */
import { RawConnection } from '../transfers/raw-connection.ts';

/** Idle time of a connection as in the agent of Node's own client. */
const IDLE_MAX_MS = 5_000;

export class KeptConnection {
  readonly #url: string;
  readonly #nowMs: () => number;
  #connection: RawConnection | undefined;
  #usedMs = 0;

  constructor(url: string, nowMs: () => number = () => performance.now()) {
    this.#url = url;
    this.#nowMs = nowMs;
  }

  /** Calls with the connection, another one where it was closed or has idled for too long. Rejects as opening does. */
  async use<Outcome>(work: (connection: RawConnection) => Promise<Outcome>): Promise<Outcome> {
    if (this.#nowMs() - this.#usedMs > IDLE_MAX_MS) this.close();
    if (this.#connection === undefined || this.#connection.closed)
      this.#connection = await RawConnection.open(this.#url);
    try {
      return await work(this.#connection);
    } finally {
      this.#usedMs = this.#nowMs();
    }
  }

  close(): void {
    this.#connection?.close();
    this.#connection = undefined;
  }
}
