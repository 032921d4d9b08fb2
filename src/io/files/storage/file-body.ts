/** Sends the first bytes of an open file as the body of a request. One piece is read while the one before it is sent. */
import { pageMemory } from '../../../domain/page-memory.ts';
import type { Write } from '../../http-client/connection.ts';
import type { SizedBody } from '../../http-client/outbound-request.ts';

const PIECE_BYTES = 512 * 1024;
/** Two for each of the eight bodies that go to buckets at once. */
const IDLE_MAX = 16;
/** The system gets memory that was let go of back late, so bodies use it again. */
const IDLE: Buffer[] = [];

/** The first bytes of an open file. */
export interface ReadableFile {
  readonly sizeBytes: number;
  /** One read into `target`. */
  read(target: Buffer, position: number): Promise<{ readonly bytesRead: number }>;
}

interface FileBodyEvents {
  /** A piece was read, or the connection drained. */
  progress(): void;
  /** The file could not be read: the request must be aborted. */
  failed(error: unknown): void;
}

export class FileBody implements SizedBody {
  readonly sizeBytes: number;
  isComplete = false;
  readonly #file: ReadableFile;
  readonly #events: FileBodyEvents;
  #isOver = false;
  #resume: (() => void) | undefined;

  constructor(file: ReadableFile, events: FileBodyEvents) {
    this.#file = file;
    this.sizeBytes = file.sizeBytes;
    this.#events = events;
  }

  start(write: Write): void {
    this.#send(write).catch((error: unknown) => {
      if (!this.#isOver) this.#events.failed(error);
    });
  }

  drained(): void {
    if (!this.#isOver) this.#events.progress();
    this.#resume?.();
  }

  discard(): void {
    this.#isOver = true;
    this.#resume?.();
  }

  async #send(write: Write): Promise<void> {
    if (this.sizeBytes === 0) return;
    let position = 0;
    let next = this.#read(position);
    while (position < this.sizeBytes) {
      const { memory, bytes } = await next;
      if (this.#isOver) return;
      position += bytes.length;
      this.isComplete = position === this.sizeBytes;
      if (!this.isComplete) next = this.#read(position);
      // Awaited by the next round; a request that ends before that leaves it unread.
      next.catch(() => undefined);
      const drained = new Promise<void>((resolve) => {
        this.#resume = resolve;
      });
      const isTaken = write(bytes);
      if (!isTaken) await drained;
      if (this.#isOver) return;
      if (!isTaken) giveBack(memory);
    }
  }

  async #read(position: number): Promise<{ readonly memory: Buffer; readonly bytes: Buffer }> {
    const memory = take(this.sizeBytes);
    const target = memory.subarray(0, Math.min(memory.length, this.sizeBytes - position));
    const { bytesRead } = await this.#file.read(target, position);
    if (bytesRead === 0) throw new Error(`the part ended at byte ${position} of ${this.sizeBytes}`);
    if (!this.#isOver) this.#events.progress();
    return { memory, bytes: target.subarray(0, bytesRead) };
  }
}

function take(bodyBytes: number): Buffer {
  return bodyBytes < PIECE_BYTES ? pageMemory(bodyBytes) : (IDLE.pop() ?? pageMemory(PIECE_BYTES));
}

/** Call it once nothing reads or fills the memory any more: its connection has drained. */
function giveBack(memory: Buffer): void {
  if (memory.length === PIECE_BYTES && IDLE.length < IDLE_MAX) IDLE.push(memory);
}
