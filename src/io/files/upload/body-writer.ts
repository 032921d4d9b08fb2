/**
 * Writes one body into a part through shared buffers and worker threads; pauses the client for them, for saves and the limiter.
 * A paused client still delivers what is in flight. Without a free buffer these bytes are written at once, hashed later.
 */
import { createHash, type Hash } from 'node:crypto';
import { writeSync } from 'node:fs';
import type { WorkerPort } from '../../../actors/runtime/ports.ts';
import { type ErrorName, GatewayError } from '../../../domain/errors.ts';
import { type ChunkEntry, packChunkEntry } from '../../../domain/files/chunk-entry.ts';
import { combineCrc32 } from '../../../domain/files/crc32-combine.ts';
import type { WriteBufferResult, WriteBufferTask } from '../../../workers/crc32.ts';
import type { TaskInput, TaskOutput } from '../../../workers/tasks.ts';
import type { IncomingBody, IncomingSink } from '../../http/body/incoming-body.ts';
import type { TraceSpan } from '../../tracing/span.ts';
import { type LeaseAnswer, runOnLease } from '../storage/file-tasks.ts';
import type { PartLease } from '../storage/port.ts';
import type { ThrottledStream } from '../throttle.ts';
import type { SharedBuffer, SharedBuffers } from './buffers.ts';
import { type ProgressOptions, UploadProgress } from './upload-progress.ts';

/** Tasks of one upload at the worker threads; then its client is paused. Fewer while many upload. */
const TASKS_MAX = 4;
/** Bound on the buffers of one upload, with what a paused client still delivers: 6 MiB. */
const TASKS_BURST_MAX = 12;
/** Bytes that were written without a buffer are read again for the hash, in runs of this size. */
const OVERFLOW_HASH_BYTES = 2 * 1024 * 1024;

export interface ReceiveOptions {
  readonly body: IncomingBody;
  /** The caller releases it after `receive` has settled. `send`: its descriptor is not used. */
  readonly lease: Pick<PartLease, 'fd' | 'keepFor' | 'failure'>;
  /** Position of the first byte in the part. */
  readonly positionBytes: number;
  /** `receive` rejects with `tooLong` when more is declared or sent. */
  readonly maxBytes: number;
  readonly tooLong: ErrorName;
  /** A body that fits into one buffer is written only if it has this CRC-32; otherwise compare `crc32` of the result. */
  readonly expectedCrc32?: number;
  /** Entry of a chunk: written once all `maxBytes` bytes are in the part and have `expectedCrc32`. */
  readonly entry?: ChunkEntry;
  /**
   * Another node may have stored the same chunk by then: nothing is written but a whole body of `maxBytes` bytes with
   * `expectedCrc32`, and one that finds no free buffer is `Overloaded`.
   */
  readonly writesWhole?: boolean;
  /**
   * Called for bytes that replace others: `receive` waits for it once the body has all `maxBytes` bytes and
   * `expectedCrc32`, and writes afterwards. Any other body writes nothing, and one that finds no free buffer is
   * `Overloaded`.
   */
  readonly beforeWrite?: (() => Promise<void>) | undefined;
  /** Takes the bytes of a whole body in place of the part. They stay as they are until it has settled. */
  readonly send?: ((bytes: Uint8Array) => Promise<void>) | undefined;
  /** The caller calls `leave`. */
  readonly throttled?: ThrottledStream;
  /** Computes the SHA-256 of the body too: on the main thread, 0.8 ms for 512 KB, so only on request. */
  readonly sha256?: boolean;
  /** The progress is saved while the body arrives. */
  readonly checkpoint?: ProgressOptions | undefined;
  /** Span of a sampled request. */
  readonly span?: TraceSpan | undefined;
  /** Stops the upload; bytes that arrived until then are in the part. */
  readonly signal?: AbortSignal;
}

export interface Received {
  /** `lost`: the client left. `stopped`: by `signal`. The bytes below are in the part in every case. */
  readonly ended: 'complete' | 'lost' | 'stopped';
  readonly sizeBytes: number;
  /** Unsigned, of these bytes only. */
  readonly crc32: number;
  readonly sha256: Buffer | undefined;
}

interface Piece {
  readonly sizeBytes: number;
  crc32: number;
  isWritten: boolean;
}

interface BodyWriterDeps {
  readonly workers: WorkerPort;
  readonly buffers: SharedBuffers;
  readonly totals: Record<'receivedBytes' | 'overflowBytes', number>;
  /** The disk does not answer: a call of it would hold the event loop. */
  readonly standsStill: () => boolean;
}

export class BodyWriter implements IncomingSink {
  readonly #options: ReceiveOptions;
  readonly #workers: WorkerPort;
  readonly #buffers: SharedBuffers;
  readonly #totals: BodyWriterDeps['totals'];
  readonly #standsStill: () => boolean;
  readonly #hash: Hash | undefined;
  readonly #pieces: Piece[] = [];
  #buffer: SharedBuffer | undefined;
  /** Written without a buffer since the last buffer; not hashed yet. */
  #overflowBytes = 0;
  #sizeBytes = 0;
  #tasks = 0;
  /** The task that writes the bytes writes the entry too. */
  #entrySubmitted = false;
  #ended: Received['ended'] | undefined;
  #failure: GatewayError | undefined;
  #onSettled: () => void = () => undefined;
  readonly #progress: UploadProgress | undefined;
  /** Pieces at the beginning that are all written, their bytes and checksum. */
  #written = { pieces: 0, sizeBytes: 0, crc32: 0 };

  constructor(options: ReceiveOptions, { workers, buffers, totals, standsStill }: BodyWriterDeps) {
    this.#options = options;
    this.#workers = workers;
    this.#buffers = buffers;
    this.#totals = totals;
    this.#standsStill = standsStill;
    this.#hash = options.sha256 === true ? createHash('sha256') : undefined;
    const { checkpoint } = options;
    if (checkpoint === undefined) return;
    this.#progress = new UploadProgress(checkpoint, {
      sizeBytes: () => this.#sizeBytes,
      flush: () => this.#flush(),
      flow: () => this.#flow(),
    });
  }

  async run(): Promise<Received> {
    const { body, signal, throttled } = this.#options;
    const stop = () => this.#stop();
    signal?.addEventListener('abort', stop, { once: true });
    if (throttled !== undefined) throttled.onClear = () => this.#flow();
    await new Promise<void>((resolve) => {
      this.#onSettled = resolve;
      if (signal?.aborted === true) stop();
      else body.read(this);
    });
    signal?.removeEventListener('abort', stop);
    this.#progress?.end();
    const received: Received = {
      ended: this.#ended ?? 'lost',
      sizeBytes: this.#sizeBytes,
      crc32: this.#pieces.reduce((crc, piece) => combineCrc32(crc, piece.crc32, piece.sizeBytes), 0),
      sha256: this.#hash?.digest(),
    };
    if (this.#failure === undefined) this.#writeEntry(received);
    if (this.#failure !== undefined) throw this.#failure;
    return received;
  }

  data(bytes: Uint8Array): void {
    if (this.#isOver) return;
    const { maxBytes, tooLong, throttled } = this.#options;
    if (this.#sizeBytes + bytes.length > maxBytes) {
      this.#fail(new GatewayError(tooLong));
      return;
    }
    this.#totals.receivedBytes += bytes.length;
    this.#hash?.update(bytes);
    this.#store(bytes);
    throttled?.charge(bytes.length);
    this.#flow();
  }

  end(): void {
    this.#finish('complete');
  }

  lost(): void {
    this.#finish('lost');
  }

  get #isOver(): boolean {
    return this.#ended !== undefined || this.#failure !== undefined;
  }

  #store(bytes: Uint8Array): void {
    let rest = bytes;
    while (rest.length > 0 && !this.#isOver) {
      const sharedBuffer = this.#takeBuffer();
      if (sharedBuffer === undefined) {
        const { beforeWrite, writesWhole, send } = this.#options;
        if (beforeWrite === undefined && writesWhole !== true && send === undefined)
          this.#writeOverflow(rest);
        else this.#fail(new GatewayError('Overloaded'));
        return;
      }
      const taken = sharedBuffer.fill(rest);
      this.#sizeBytes += taken;
      rest = rest.subarray(taken);
      if (sharedBuffer.isFull) this.#submitBuffer();
    }
  }

  #takeBuffer(): SharedBuffer | undefined {
    if (this.#buffer === undefined && this.#tasks < TASKS_BURST_MAX) {
      this.#buffer = this.#buffers.take();
      if (this.#buffer !== undefined) this.#submitOverflow();
    }
    return this.#buffer;
  }

  /** `expectedCrc32` is for a body that is whole in this buffer. */
  #submitBuffer(expectedCrc32?: number): void {
    const sharedBuffer = this.#buffer;
    if (sharedBuffer === undefined) return;
    this.#buffer = undefined;
    const { memory, filledBytes: length } = sharedBuffer;
    const { lease, positionBytes, beforeWrite, writesWhole, send, maxBytes } = this.#options;
    const position = positionBytes + this.#sizeBytes - length;
    const expected = expectedCrc32 === undefined ? {} : { expectedCrc32, ...this.#entryOfBody() };
    const mustNotWrite = writesWhole === true && (expectedCrc32 === undefined || length < maxBytes);
    const fd = mustNotWrite ? null : lease.fd;
    const input = { sharedBuffer: memory, length, fd, position, ...expected };
    const isPlain = beforeWrite === undefined && send === undefined;
    const task = isPlain ? this.#runOnLease('writeBuffer', input) : this.#writeWhole(input);
    this.#follow(length, task, () => this.#buffers.giveBack(sharedBuffer));
  }

  async #writeWhole(input: WriteBufferTask): Promise<LeaseAnswer<WriteBufferResult>> {
    const { beforeWrite, send } = this.#options;
    const hashed = await this.#runOnLease('writeBuffer', { ...input, fd: null });
    const isRight = hashed.ok && hashed.value === input.expectedCrc32 && input.entry !== undefined;
    if (!isRight) return hashed;
    try {
      await beforeWrite?.();
      await send?.(new Uint8Array(input.sharedBuffer, 0, input.length));
    } catch (error) {
      const failure = error instanceof GatewayError ? error : new GatewayError('InternalError');
      this.#fail(failure);
      return { ok: false, error: failure.row };
    }
    return send === undefined ? await this.#runOnLease('writeBuffer', input) : hashed;
  }

  #runOnLease<N extends 'writeBuffer' | 'hashRange'>(
    name: N,
    input: TaskInput<N>,
  ): Promise<LeaseAnswer<TaskOutput<N>>> {
    return runOnLease(this.#workers, this.#options.lease, name, input);
  }

  /** A body in this buffer alone: short of `maxBytes` it is no chunk. */
  #entryOfBody(): { readonly entry?: ChunkEntry } {
    const { entry, maxBytes } = this.#options;
    if (entry === undefined || this.#sizeBytes < maxBytes) return {};
    this.#entrySubmitted = true;
    return { entry };
  }

  /** Writes the entry of a chunk that found no free buffer, and so came in pieces. */
  #writeEntry({ ended, sizeBytes, crc32 }: Received): void {
    const { entry, expectedCrc32, maxBytes } = this.#options;
    if (entry === undefined || this.#entrySubmitted) return;
    if (ended === 'complete' && sizeBytes === maxBytes && crc32 === expectedCrc32)
      this.#write(packChunkEntry(entry, crc32), entry.position);
  }

  #write(bytes: Uint8Array, position: number): void {
    if (this.#standsStill()) {
      this.#fail(new GatewayError('TaskTimedOut'));
      return;
    }
    const { lease } = this.#options;
    try {
      for (let done = 0; done < bytes.length; )
        done += writeSync(lease.fd, bytes, done, bytes.length - done, position + done);
    } catch (error) {
      this.#fail(lease.failure(error));
    }
  }

  /** On this thread, because the bytes are valid during the call only. */
  #writeOverflow(bytes: Uint8Array): void {
    this.#write(bytes, this.#options.positionBytes + this.#sizeBytes);
    if (this.#failure !== undefined) return;
    this.#sizeBytes += bytes.length;
    this.#overflowBytes += bytes.length;
    this.#totals.overflowBytes += bytes.length;
    if (this.#overflowBytes >= OVERFLOW_HASH_BYTES) this.#submitOverflow();
  }

  #submitOverflow(): void {
    const length = this.#overflowBytes;
    if (length === 0) return;
    this.#overflowBytes = 0;
    const { lease, positionBytes } = this.#options;
    const position = positionBytes + this.#sizeBytes - length;
    const task = this.#runOnLease('hashRange', { fd: lease.fd, position, length });
    this.#follow(length, task, () => undefined);
  }

  /** `settled`: nothing uses the bytes any more. */
  #follow(
    sizeBytes: number,
    task: Promise<LeaseAnswer<WriteBufferResult | undefined>>,
    settled: () => void,
  ): void {
    const piece: Piece = { sizeBytes, crc32: 0, isWritten: false };
    this.#pieces.push(piece);
    this.#tasks += 1;
    void task.then((result) => {
      if (!result.ok && result.settled !== undefined) void result.settled.then(settled);
      else settled();
      this.#tasks -= 1;
      if (!result.ok) this.#fail(new GatewayError(result.error));
      else if (typeof result.value === 'number') this.#onWritten(piece, result.value);
      else this.#fail(this.#options.lease.failure(result.value ?? new Error('what was written is gone')));
      if (this.#isOver) this.#settle();
      else this.#flow();
    });
  }

  #onWritten(piece: Piece, crc32: number): void {
    piece.crc32 = crc32;
    piece.isWritten = true;
    if (this.#progress === undefined) return;
    let { pieces, sizeBytes, crc32: before } = this.#written;
    for (let next = this.#pieces[pieces]; next?.isWritten === true; next = this.#pieces[pieces]) {
      before = combineCrc32(before, next.crc32, next.sizeBytes);
      sizeBytes += next.sizeBytes;
      pieces += 1;
    }
    if (pieces === this.#written.pieces) return;
    this.#written = { pieces, sizeBytes, crc32: before };
    this.#progress.reached(sizeBytes, before);
  }

  /** Writes the bytes that wait for a full buffer. */
  #flush(): void {
    if (this.#isOver) return;
    this.#submitOverflow();
    this.#submitBuffer();
  }

  #flow(): void {
    if (this.#isOver) return;
    const { body, throttled } = this.#options;
    const isBusy = this.#tasks >= this.#buffers.share(TASKS_MAX) || this.#progress?.mustWait === true;
    if (isBusy || throttled?.owing === true) body.pause();
    else body.resume();
  }

  #finish(ended: Received['ended']): void {
    if (this.#isOver) return;
    const isWhole = this.#pieces.length === 0 && this.#overflowBytes === 0 && ended === 'complete';
    this.#submitOverflow();
    this.#submitBuffer(isWhole ? this.#options.expectedCrc32 : undefined);
    this.#ended = ended;
    this.#settle();
  }

  #stop(): void {
    if (this.#isOver) return;
    this.#options.body.discard();
    this.#finish('stopped');
  }

  #fail(failure: GatewayError): void {
    if (this.#failure !== undefined) return;
    const before = this.#isOver;
    this.#failure = failure;
    if (this.#buffer !== undefined) this.#buffers.giveBack(this.#buffer);
    this.#buffer = undefined;
    if (!before) this.#options.body.discard();
    this.#settle();
  }

  #settle(): void {
    if (this.#tasks === 0) this.#onSettled();
  }
}
