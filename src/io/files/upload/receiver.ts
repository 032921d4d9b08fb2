/**
 * Receives the bytes of uploads into parts, v1 chunks and v2 streams alike, within bounded memory (body-writer.ts). The
 * caller excludes other writers of the same position: bytes are in the part before their checksum is compared.
 */
import type { WorkerPort } from '../../../actors/runtime/ports.ts';
import { GatewayError } from '../../../domain/errors.ts';
import type { IncomingBody } from '../../http/body/incoming-body.ts';
import { workersBelow } from '../../tracing/traced-ports.ts';
import { BodyWriter, type Received, type ReceiveOptions } from './body-writer.ts';
import { type SharedBufferCounters, SharedBuffers } from './buffers.ts';
import { type PrebufferBounds, PrebufferedBody, type PrebufferTotals } from './prebuffered-body.ts';

/** Bytes of bodies that may not be read yet. With the shared buffers, the 64 MiB that 60 uploads may take. */
const PREBUFFER_MEMORY_BYTES_MAX = 8 * 1024 * 1024;
const PREBUFFER_FILE_BYTES_MAX = 2 * 1024 * 1024 * 1024;

interface ReceiverOptions {
  /** Folder for prebuffered bytes that do not fit into memory. */
  readonly folder: string;
  readonly sharedBuffers?: SharedBuffers;
  readonly prebuffer?: Partial<Omit<PrebufferBounds, 'folder' | 'standsStill'>>;
  /** The disk does not answer. Never unless given. */
  readonly standsStill?: () => boolean;
}

export interface ReceiverCounters {
  readonly active: number;
  readonly sharedBuffers: SharedBufferCounters;
  readonly receivedBytes: number;
  /** Written on the main thread because no buffer was free. */
  readonly overflowBytes: number;
  readonly lost: number;
  /** Totals of bodies that are not accepted yet. */
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
    {
      folder,
      sharedBuffers = new SharedBuffers(),
      prebuffer: prebuffered = {},
      standsStill = () => false,
    }: ReceiverOptions,
  ) {
    this.#workers = workers;
    this.#buffers = sharedBuffers;
    this.#bounds = {
      folder,
      memoryBytesMax: PREBUFFER_MEMORY_BYTES_MAX,
      fileBytesMax: PREBUFFER_FILE_BYTES_MAX,
      standsStill,
      ...prebuffered,
    };
  }

  /**
   * Keeps what arrives while `work` decides whether to accept the body, which it reads or does not. Rejects as `check`
   * of the body does. Call it in the event-loop tick of the request.
   */
  async prebuffer<T>(body: IncomingBody, work: (prebuffered: PrebufferedBody) => Promise<T>): Promise<T> {
    const prebuffered = new PrebufferedBody(body, this.#bounds, this.#prebuffered);
    try {
      const result = await work(prebuffered);
      prebuffered.checkRead();
      return result;
    } catch (error) {
      // The reader sees only an early end of such a body.
      prebuffered.checkRead();
      throw error;
    } finally {
      prebuffered.release();
    }
  }

  /**
   * Settles once nothing but late tasks, for which the lease is kept, uses the descriptor any more, and the bandwidth limiter is paid: then the caller may answer.
   * Rejects with `tooLong`, `StorageFull`, `FileStorageFailed`, `Overloaded`, `Stopping`, `TaskTimedOut`, and discards
   * the rest of the body.
   */
  async receive(options: ReceiveOptions): Promise<Received> {
    const { body, maxBytes, tooLong, throttled, span } = options;
    if ((body.declaredBytes ?? 0) > maxBytes) {
      body.discard();
      throw new GatewayError(tooLong);
    }
    this.#totals.active += 1;
    this.#buffers.join();
    try {
      const workers = workersBelow(this.#workers, span);
      const deps = {
        workers,
        buffers: this.#buffers,
        totals: this.#totals,
        standsStill: this.#bounds.standsStill,
      };
      const received = await new BodyWriter(options, deps).run();
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
