/**
 * Takes the bytes of uploads from the network into parts, for v1 chunks and v2 streams alike, never with more in memory
 * than its slabs. How one body is taken: reception.ts.
 *
 * Whoever calls sees to it that nobody else writes the same place of the part meanwhile, and that nothing there was
 * acknowledged before: bytes are in the part before their checksum is judged.
 */
import type { WorkerPort } from '../../actors/runtime/ports.ts';
import { GatewayError } from '../../domain/errors.ts';
import { type Received, type ReceiveOptions, Reception } from './reception.ts';
import { type SlabCounters, Slabs } from './slabs.ts';

export interface ReceiverCounters {
  readonly active: number;
  readonly slabs: SlabCounters;
  readonly receivedBytes: number;
  /** Written on the main thread because no slab was free. */
  readonly surplusBytes: number;
  readonly lost: number;
}

export class Receiver {
  readonly #workers: WorkerPort;
  readonly #slabs: Slabs;
  readonly #totals = { active: 0, receivedBytes: 0, surplusBytes: 0, lost: 0 };

  constructor(workers: WorkerPort, slabs = new Slabs()) {
    this.#workers = workers;
    this.#slabs = slabs;
  }

  /**
   * Settles once nothing uses the descriptor any more, and the answer may be given: what the limiter is owed is paid.
   * Rejects with `tooLong`, `StorageFull`, `FileStorageFailed`, `Overloaded`, `Stopping`; the rest of the body is
   * then thrown away.
   */
  async receive(options: ReceiveOptions): Promise<Received> {
    const { body, maxBytes, tooLong, throttled } = options;
    if ((body.declaredBytes ?? 0) > maxBytes) {
      body.discard();
      throw new GatewayError(tooLong);
    }
    this.#totals.active += 1;
    try {
      const received = await new Reception(options, this.#workers, this.#slabs, this.#totals).run();
      if (received.ended === 'complete') await throttled?.paid();
      if (received.ended === 'lost') this.#totals.lost += 1;
      return received;
    } finally {
      this.#totals.active -= 1;
    }
  }

  counters(): ReceiverCounters {
    return { ...this.#totals, slabs: this.#slabs.counters() };
  }
}
