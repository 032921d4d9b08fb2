/**
 * Client of one HTTP file server: PUT, GET with Range, HEAD and DELETE, as nginx with its DAV module understands them.
 * Files are streamed in both directions. A request without progress is aborted. Every failure names the server.
 */
import type { FileHandle } from 'node:fs/promises';
import { Readable } from 'node:stream';
import type { Dispatcher, Pool } from 'undici';
import { systemCode } from '../../../domain/disk-faults.ts';
import { withoutTrailing } from '../../../domain/host-port.ts';
import { pageMemory } from '../../../domain/page-memory.ts';
import { SECOND_MS } from '../../../domain/time.ts';

/** A request without a byte in either direction for this time is aborted. */
const STALLED_MS = 30 * SECOND_MS;
const CONNECT_TIMEOUT_MS = 5 * SECOND_MS;
const CONNECTIONS = 64;
const PIECE_BYTES = 512 * 1024;
/** Of an answer that is not read; a longer one closes the connection. */
const IGNORED_BYTES_MAX = 64 * 1024;
/** Of a kept connection that the server has closed. The request is repeated: every method is idempotent. */
const CONNECTION_LOST: ReadonlySet<string> = new Set(['ECONNRESET', 'EPIPE', 'UND_ERR_SOCKET']);

interface StorageServerOptions {
  /** Base address; paths are appended to it. */
  readonly host: string;
  readonly stalledMs?: number;
}

type Answer = Dispatcher.ResponseData;
type Method = 'GET' | 'HEAD' | 'PUT' | 'DELETE';

export class StorageServer {
  readonly host: string;
  readonly #origin: string;
  readonly #basePath: string;
  #pool: Promise<Pool> | undefined;
  readonly #stalledMs: number;

  constructor({ host, stalledMs = STALLED_MS }: StorageServerOptions) {
    this.host = host;
    const { origin, pathname } = new URL(host);
    this.#basePath = withoutTrailing(pathname, '/');
    this.#stalledMs = stalledMs;
    this.#origin = origin;
  }

  /** Loaded by the first request: most gateways store files locally and never need the library. */
  #opened(): Promise<Pool> {
    this.#pool ??= import('undici').then(
      ({ Pool }) =>
        new Pool(this.#origin, {
          connections: CONNECTIONS,
          pipelining: 1,
          headersTimeout: 0,
          bodyTimeout: 0,
          connect: { timeout: CONNECT_TIMEOUT_MS },
        }),
    );
    return this.#pool;
  }

  /** Bytes of a file; undefined when there is none. */
  async sizeOf(path: string): Promise<number | undefined> {
    return this.#ask('HEAD', path, {}, async (answer) => {
      if (answer.statusCode === 404) return undefined;
      const length = answer.headers['content-length'];
      const size = typeof length === 'string' ? Number(length) : Number.NaN;
      if (answer.statusCode !== 200 || !Number.isSafeInteger(size))
        throw new Error(`answered ${answer.statusCode} with Content-Length ${String(length)}`);
      return size;
    });
  }

  /** Fills `target`, which is not empty and lies within the file. */
  async read(path: string, target: Uint8Array, position: number): Promise<void> {
    const last = position + target.length - 1;
    const headers = { range: `bytes=${position}-${last}` };
    await this.#ask('GET', path, { headers }, async (answer, progress) => {
      const range = String(answer.headers['content-range']);
      if (answer.statusCode !== 206 || !range.startsWith(`bytes ${position}-${last}/`))
        throw new Error(`answered ${answer.statusCode} with Content-Range ${range}`);
      await fill(target, answer, progress);
    });
  }

  /** Stores the first `sizeBytes` bytes of an open file. */
  async put(path: string, file: FileHandle, sizeBytes: number): Promise<void> {
    const headers = { 'content-length': String(sizeBytes), 'content-type': 'application/octet-stream' };
    await this.#ask('PUT', path, { headers, body: { file, sizeBytes } }, async ({ statusCode }) => {
      if (statusCode === 507) throw new StorageServerFull();
      if (statusCode < 200 || statusCode > 299) throw new Error(`answered ${statusCode}`);
    });
  }

  /** False when the file did not exist. */
  async remove(path: string): Promise<boolean> {
    return this.#ask('DELETE', path, {}, async ({ statusCode }) => {
      if (statusCode === 404) return false;
      if (statusCode < 200 || statusCode > 299) throw new Error(`answered ${statusCode}`);
      return true;
    });
  }

  async close(): Promise<void> {
    await (await this.#pool)?.destroy();
  }

  /** One request, repeated once when its connection was closed. */
  async #ask<T>(
    method: Method,
    path: string,
    options: RequestOptions,
    take: (answer: Answer, progress: () => void) => Promise<T>,
  ): Promise<T> {
    try {
      return await this.#askOnce(method, path, options, take).catch((error: unknown) => {
        if (!CONNECTION_LOST.has(systemCode(error) ?? '')) throw error;
        return this.#askOnce(method, path, options, take);
      });
    } catch (error) {
      const reason = error instanceof Error ? error.message : String(error);
      throw new StorageServerFault(`${method} at ${this.host}: ${reason}`, systemCode(error));
    }
  }

  async #askOnce<T>(
    method: Method,
    filePath: string,
    { headers = {}, body }: RequestOptions,
    take: (answer: Answer, progress: () => void) => Promise<T>,
  ): Promise<T> {
    // Before the timer starts: loading is no stall of the server.
    const pool = await this.#opened();
    const stallTimer = new StallTimer(this.#stalledMs);
    const progress = () => stallTimer.progress();
    const source = body === undefined ? null : streamOf(body, progress);
    try {
      const path = `${this.#basePath}${filePath}`;
      const answer = await pool.request({ method, path, headers, signal: stallTimer.signal, body: source });
      answer.body.on('error', ignore);
      try {
        const taken = await take(answer, progress);
        await answer.body.dump({ limit: IGNORED_BYTES_MAX });
        return taken;
      } catch (error) {
        answer.body.destroy();
        throw error;
      }
    } finally {
      stallTimer.stop();
      source?.destroy();
    }
  }
}

/** The first bytes of an open file. */
interface FileBody {
  readonly file: FileHandle;
  readonly sizeBytes: number;
}

interface RequestOptions {
  readonly headers?: Record<string, string>;
  readonly body?: FileBody;
}

/** Has the code that distinguishes a full disk from other failures. */
class StorageServerFault extends Error {
  readonly code: string | undefined;

  constructor(message: string, code: string | undefined) {
    super(message);
    this.code = code;
  }
}

/** 507 Insufficient Storage (RFC 4918 11.5). */
class StorageServerFull extends Error {
  readonly code = 'ENOSPC';

  constructor() {
    super('answered 507');
  }
}

/** Aborts its signal when there was no progress for the given time. */
class StallTimer {
  readonly #abort = new AbortController();
  readonly #timer: NodeJS.Timeout;

  constructor(stalledMs: number) {
    const stalled = () => this.#abort.abort(new Error(`nothing moved for ${stalledMs} ms`));
    this.#timer = setTimeout(stalled, stalledMs);
  }

  get signal(): AbortSignal {
    return this.#abort.signal;
  }

  progress(): void {
    this.#timer.refresh();
  }

  stop(): void {
    clearTimeout(this.#timer);
  }
}

function streamOf({ file, sizeBytes }: FileBody, progress: () => void): Readable {
  const stream = Readable.from(piecesOf(file, sizeBytes, progress), { objectMode: false });
  // The request fails with the same error; without a listener it would end the process.
  stream.on('error', ignore);
  return stream;
}

function ignore(): void {
  // The promise of the request rejects with the same error.
}

/** Each piece is read when the one before it was sent. */
async function* piecesOf(file: FileHandle, sizeBytes: number, progress: () => void): AsyncGenerator<Buffer> {
  for (let position = 0; position < sizeBytes; ) {
    const piece = pageMemory(Math.min(PIECE_BYTES, sizeBytes - position));
    const { bytesRead } = await file.read(piece, 0, piece.length, position);
    if (bytesRead === 0) throw new Error(`the part ended at byte ${position} of ${sizeBytes}`);
    progress();
    yield piece.subarray(0, bytesRead);
    position += bytesRead;
  }
}

async function fill(target: Uint8Array, { body }: Answer, progress: () => void): Promise<void> {
  let done = 0;
  for await (const piece of body as AsyncIterable<Buffer>) {
    progress();
    if (done + piece.length > target.length) throw new Error('more bytes came than were asked for');
    target.set(piece, done);
    done += piece.length;
  }
  if (done < target.length) throw new Error(`only ${done} of ${target.length} bytes came`);
}
