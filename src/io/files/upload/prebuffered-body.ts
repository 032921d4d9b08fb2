/**
 * The body of an upload while the gateway decides whether to accept it: the client is paused, and what arrives all the
 * same is kept in memory, then in a file without a name, and delivered in order (docs/optimizations.md).
 */
import { randomUUID } from 'node:crypto';
import { closeSync, openSync, readSync, unlinkSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { isNoRoom, systemCode } from '../../../domain/disk-faults.ts';
import { GatewayError } from '../../../domain/errors.ts';
import { pageMemory } from '../../../domain/page-memory.ts';
import type { IncomingBody, IncomingSink } from '../../http/body/incoming-body.ts';

/** Bytes of one body in memory: a chunk of v1 that arrived with its head needs no file. */
const MEMORY_BYTES = 512 * 1024;
/** Bytes of one read from the file. */
const STEP_BYTES = 512 * 1024;

export interface PrebufferBounds {
  /** Folder of the files, which lose their name at once. */
  readonly folder: string;
  readonly memoryBytesMax: number;
  readonly fileBytesMax: number;
  /** The disk does not answer: a call of it would hold the event loop, with all other requests. */
  readonly standsStill: () => boolean;
}

/** Bytes kept now for all bodies; `overflowBytes` counts since the start. */
export interface PrebufferTotals {
  memoryBytes: number;
  fileBytes: number;
  overflowBytes: number;
}

interface OverflowFile {
  readonly fd: number;
  writtenBytes: number;
  readBytes: number;
}

/** Delivered within the call, so one is enough for all bodies. */
const STEP = pageMemory(STEP_BYTES);

export class PrebufferedBody implements IncomingBody, IncomingSink {
  readonly declaredBytes: number | undefined;
  readonly #body: IncomingBody;
  readonly #bounds: PrebufferBounds;
  readonly #totals: PrebufferTotals;
  readonly #memory: Buffer[] = [];
  #memoryBytes = 0;
  #file: OverflowFile | undefined;
  #sink: IncomingSink | undefined;
  #paused = false;
  #delivering = false;
  #ended: 'complete' | 'lost' | undefined;
  #failure: GatewayError | undefined;
  #released = false;

  /** Takes what arrives from now on; the caller has to `release` it. */
  constructor(body: IncomingBody, bounds: PrebufferBounds, totals: PrebufferTotals) {
    this.declaredBytes = body.declaredBytes;
    this.#body = body;
    this.#bounds = bounds;
    this.#totals = totals;
    body.read(this, 'early');
  }

  /** Throws `StorageFull`, `Overloaded`, `TaskTimedOut` or `FileStorageFailed` when bytes that arrived could not be kept. */
  check(): void {
    if (this.#failure !== undefined) throw this.#failure;
  }

  /** Throws as `check` does where a reader received `lost`. A result that no byte decided stays. */
  checkRead(): void {
    if (!this.failedUnread) this.check();
  }

  /** Could bytes not be kept before anything read them? */
  get failedUnread(): boolean {
    return this.#failure !== undefined && this.#sink === undefined;
  }

  /** Throws as `check` does. */
  read(sink: IncomingSink): void {
    this.check();
    this.#sink = sink;
    this.sendContinue();
    this.#deliver();
  }

  sendContinue(): void {
    this.#body.sendContinue();
  }

  pause(): void {
    this.#paused = true;
    if (!this.#released) this.#body.pause();
  }

  resume(): void {
    this.#paused = false;
    this.#deliver();
  }

  discard(): void {
    if (this.#released) return;
    this.release();
    this.#body.discard();
  }

  /** Forgets what is kept; nothing is delivered any more. */
  release(): void {
    this.#released = true;
    this.#totals.memoryBytes -= this.#memoryBytes;
    this.#memoryBytes = 0;
    this.#memory.length = 0;
    this.#closeFile();
  }

  data(bytes: Uint8Array): void {
    if (this.#released) return;
    if (this.#sink !== undefined && !this.#hasStored) this.#sink.data(bytes);
    else this.#store(bytes);
  }

  end(): void {
    this.#ended = 'complete';
    this.#deliver();
  }

  lost(): void {
    this.#ended = 'lost';
    this.#deliver();
  }

  get #hasStored(): boolean {
    return this.#memory.length > 0 || this.#file !== undefined;
  }

  #store(bytes: Uint8Array): void {
    this.#body.pause();
    const { memoryBytes } = this.#totals;
    const fits = this.#memoryBytes + bytes.length <= MEMORY_BYTES;
    if (this.#file === undefined && fits && memoryBytes + bytes.length <= this.#bounds.memoryBytesMax) {
      this.#memory.push(Buffer.from(bytes));
      this.#memoryBytes += bytes.length;
      this.#totals.memoryBytes += bytes.length;
      return;
    }
    try {
      this.#writeOverflow(bytes);
    } catch (error) {
      this.#fail(isNoRoom(error) ? 'StorageFull' : 'FileStorageFailed');
    }
  }

  #writeOverflow(bytes: Uint8Array): void {
    if (this.#bounds.standsStill()) {
      this.#fail('TaskTimedOut');
      return;
    }
    if (this.#totals.fileBytes + bytes.length > this.#bounds.fileBytesMax) {
      this.#fail('Overloaded');
      return;
    }
    this.#file ??= { fd: openNameless(this.#bounds.folder), writtenBytes: 0, readBytes: 0 };
    const file = this.#file;
    for (let done = 0; done < bytes.length; )
      done += writeSync(file.fd, bytes, done, bytes.length - done, file.writtenBytes + done);
    file.writtenBytes += bytes.length;
    this.#totals.fileBytes += bytes.length;
    this.#totals.overflowBytes += bytes.length;
  }

  /** A sink that reads already receives `lost`; `check` has the error. */
  #fail(name: 'StorageFull' | 'Overloaded' | 'TaskTimedOut' | 'FileStorageFailed'): void {
    this.#failure = new GatewayError(name);
    this.discard();
    this.#sink?.lost();
  }

  /** Delivers until the sink pauses or nothing is kept any more; then the client is resumed. */
  #deliver(): void {
    const sink = this.#sink;
    if (sink === undefined || this.#delivering || this.#released) return;
    this.#delivering = true;
    while (!this.#paused && !this.#released && this.#hasStored) this.#deliverPiece(sink);
    this.#delivering = false;
    if (this.#released || this.#hasStored) return;
    if (this.#ended !== undefined) {
      this.#released = true;
      if (this.#ended === 'complete') sink.end();
      else sink.lost();
    } else if (!this.#paused) this.#body.resume();
  }

  #deliverPiece(sink: IncomingSink): void {
    const piece = this.#memory.shift();
    if (piece !== undefined) {
      this.#memoryBytes -= piece.length;
      this.#totals.memoryBytes -= piece.length;
      sink.data(piece);
      return;
    }
    const bytes = this.#readBack();
    if (bytes === undefined) this.#fail('FileStorageFailed');
    else sink.data(bytes);
  }

  /** Undefined when the file does not return what was written to it. */
  #readBack(): Uint8Array | undefined {
    const file = this.#file;
    if (file === undefined) return undefined;
    let got: number;
    try {
      got = readSync(file.fd, STEP, 0, STEP_BYTES, file.readBytes);
    } catch (error) {
      if (systemCode(error) === undefined) throw error;
      return undefined;
    }
    file.readBytes += got;
    if (file.readBytes >= file.writtenBytes) this.#closeFile();
    return got === 0 ? undefined : STEP.subarray(0, got);
  }

  #closeFile(): void {
    if (this.#file === undefined) return;
    this.#totals.fileBytes -= this.#file.writtenBytes;
    closeSync(this.#file.fd);
    this.#file = undefined;
  }
}

function openNameless(folder: string): number {
  const path = join(folder, `.prebuffered-${randomUUID()}`);
  const fd = openSync(path, 'wx+', 0o600);
  try {
    unlinkSync(path);
  } catch (error) {
    closeSync(fd);
    throw error;
  }
  return fd;
}
