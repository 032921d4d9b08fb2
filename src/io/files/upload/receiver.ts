/**
 * Takes the bytes of uploads from the network into parts, for v1 chunks and v2 streams alike, never with more in memory
 * than its slabs. How one body is taken: body-writer.ts.
 *
 * Whoever calls sees to it that nobody else writes the same place of the part meanwhile, and that nothing there was
 * acknowledged before: bytes are in the part before their checksum is judged.
 */
import type { WorkerPort } from '../../../actors/runtime/ports.ts';
import { GatewayError } from '../../../domain/errors.ts';
import type { IncomingBody } from '../../http/body/incoming-body.ts';
import { BodyWriter, type Received, type ReceiveOptions } from './body-writer.ts';
import { type SharedBufferCounters, SharedBuffers } from './buffers.ts';
import { type PrebufferBounds, PrebufferedBody, type PrebufferTotals } from './prebuffered-body.ts';

/** Of bodies that nobody may read yet: their share of the 64 MiB of buffers, and a bound on what goes to the disk. */
const PREBUFFER_MEMORY_BYTES_MAX = 8 * 1024 * 1024;
const PREBUFFER_FILE_BYTES_MAX = 2 * 1024 * 1024 * 1024;

interface ReceiverOptions {
  /** For bytes that arrive before they may come in. */
  readonly folder: string;
  readonly sharedBuffers?: SharedBuffers;
  readonly prebuffer?: Partial<Omit<PrebufferBounds, 'folder'>>;
}

export interface ReceiverCounters {
  readonly active: number;
  readonly sharedBuffers: SharedBufferCounters;
  readonly receivedBytes: number;
  /** Written on the main thread because no slab was free. */
  readonly overflowBytes: number;
  readonly lost: number;
  /** Of bodies that wait for leave to come in. */
  readonly prebuffered: Readonly<PrebufferTotals>;
}

export class BodyReceiver {
  readonly #workers: WorkerPort;
  readonly #buffers: SharedBuffers;
  readonly #bounds: PrebufferBounds;
  readonly #prebuffered: PrebufferTotals = { memoryBytes: 0, fileBytes: 0, overflowBytes: 0 };
  readonly #totals = { active: 0, receivedBytes: 0, overflowBytes: 0, lost: 0 };

  constructor(
    workers: WorkerPort,
    { folder, sharedBuffers = new SharedBuffers(), prebuffer: prebuffered = {} }: ReceiverOptions,
  ) {
    this.#workers = workers;
    this.#buffers = sharedBuffers;
    this.#bounds = {
      folder,
      memoryBytesMax: PREBUFFER_MEMORY_BYTES_MAX,
      fileBytesMax: PREBUFFER_FILE_BYTES_MAX,
      ...prebuffered,
    };
  }

  /**
   * Takes what arrives from now on, while `work` finds out whether it may come in; `work` reads the body that it is
   * given, or does not. Call it in the turn of the request.
   */
  async prebuffer<T>(body: IncomingBody, work: (prebuffered: IncomingBody) => Promise<T>): Promise<T> {
    const prebuffered = new PrebufferedBody(body, this.#bounds, this.#prebuffered);
    try {
      return await work(prebuffered);
    } finally {
      prebuffered.release();
    }
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
    this.#buffers.join();
    try {
      const received = await new BodyWriter(options, this.#workers, this.#buffers, this.#totals).run();
      if (received.ended === 'complete') await throttled?.paid();
      if (received.ended === 'lost') this.#totals.lost += 1;
      return received;
    } finally {
      this.#totals.active -= 1;
      this.#buffers.leave();
    }
  }

  counters(): ReceiverCounters {
    return {
      ...this.#totals,
      sharedBuffers: this.#buffers.counters(),
      prebuffered: { ...this.#prebuffered },
    };
  }
}
