/**
 * Uploads at all nodes of a cluster while one after the other is paused until it is expelled: what was acknowledged is never
 * missing afterwards, and each complete file has the same bytes at every node.
 */
import { randomBytes } from 'node:crypto';
import { setTimeout as wait } from 'node:timers/promises';
import { crc32 } from 'node:zlib';
import { type Person, signUp, untilAvailable } from '../agent.ts';
import { NO_FILE_LIMITS } from '../launch.ts';
import { seededNumbers } from '../seeded-numbers.ts';
import type { MemoryS3 } from '../storage/memory-s3.ts';
import { type NodeProcess, type Nodes, startNodes } from './nodes.ts';
import type { Postgres } from './postgres.ts';

export interface FileTakeoverOptions {
  readonly postgres: Postgres;
  readonly nodes: number;
  /** Files are in its bucket; in a folder that all nodes share unless given. */
  readonly objectStorage?: MemoryS3;
  /** File server that gets the files from the folder that the nodes share; undefined: they stay there. */
  readonly fileServer?: string | undefined;
  readonly seed: number;
  /** Nodes that are paused, one after the other. */
  readonly takeovers: number;
  /** Complete uploads of each kind, at least. */
  readonly uploads: number;
}

export interface FileTakeoverReport {
  readonly takeovers: number;
  /** Complete uploads of chunks, of one body, and of bodies that continue after they broke off. */
  readonly chunked: number;
  readonly whole: number;
  readonly resumed: number;
  /** Requests that got no answer, or a refusal that passes. */
  readonly repeated: number;
  /** Bodies that a pause met between their first and their last byte. */
  readonly midBody: number;
  readonly faults: readonly string[];
  /** Last errors that each node has logged, after a fault; those of requests left out. */
  readonly errors: readonly string[];
}

interface Uploader {
  readonly person: Person;
  readonly random: () => number;
}

type Kind = 'chunked' | 'whole' | 'resumed';

const LEASE_MS = 1_000;
const PAUSED_MS = 2 * LEASE_MS;
const AT_ONCE_SHARE = 1 / 2;
const WRITERS: Readonly<Record<Kind, number>> = { chunked: 2, whole: 2, resumed: 3 };
const CHUNK_BYTES = 256 * 1024;
const CHUNKS_MAX = 6;
const BODY_BYTES_MAX = 1024 * 1024;
/** A bucket gets pieces of 8 MiB: a third of its bodies has two. */
const BUCKET_PIECE_BYTES = 8 * 1024 * 1024;
const TWO_PIECES_SHARE = 1 / 3;
const SLOW_PIECES = 12;
const SLOW_PIECE_MS = 80;
const REQUEST_MS = 8_000;
const RETRY_MS = 50;
/** An upload that does not come through by then hangs. */
const HANG_MS = 120_000;
const ERRORS_SHOWN = 20;

export async function runFileTakeovers(options: FileTakeoverOptions): Promise<FileTakeoverReport> {
  const { postgres, nodes: count, objectStorage, fileServer } = options;
  const nodes = await startNodes({
    ...{ postgres, nodes: count, objectStorage },
    ...(fileServer === undefined ? {} : { fileServer }),
    configuration: { Settings: NO_FILE_LIMITS },
    cluster: { leaseMilliseconds: LEASE_MS },
  });
  try {
    return await new Takeovers(options, nodes).run();
  } finally {
    await nodes.stop();
  }
}

class Takeovers {
  readonly #options: FileTakeoverOptions;
  readonly #nodes: Nodes;
  readonly #random: () => number;
  readonly #done: Record<Kind, number> = { chunked: 0, whole: 0, resumed: 0 };
  readonly #faults: string[] = [];
  #takeovers = 0;
  #repeated = 0;
  #midBody = 0;
  #bodies = 0;

  constructor(options: FileTakeoverOptions, nodes: Nodes) {
    this.#options = options;
    this.#nodes = nodes;
    this.#random = seededNumbers(options.seed);
  }

  async run(): Promise<FileTakeoverReport> {
    const [first] = this.#nodes.nodes;
    if (first === undefined) throw new Error('no node was started');
    const writers: Promise<void>[] = [];
    for (const [kind, count] of Object.entries(WRITERS) as [Kind, number][])
      for (let at = 0; at < count; at += 1) {
        const person = await untilAvailable(() => signUp(first.url));
        writers.push(
          this.#write(kind, { person, random: seededNumbers(this.#options.seed + writers.length) }),
        );
      }
    await Promise.all([this.#pauseNodes(), ...writers]);
    return {
      takeovers: this.#takeovers,
      ...this.#done,
      repeated: this.#repeated,
      midBody: this.#midBody,
      faults: this.#faults,
      errors: this.#faults.length === 0 ? [] : this.#nodes.nodes.flatMap(errorsOf),
    };
  }

  get #isOver(): boolean {
    const { takeovers, uploads } = this.#options;
    const isEnough = Object.values(this.#done).every((done) => done >= uploads);
    return this.#faults.length > 0 || (isEnough && this.#takeovers >= takeovers);
  }

  async #pauseNodes(): Promise<void> {
    const { nodes } = this.#nodes;
    for (; this.#takeovers < this.#options.takeovers && this.#faults.length === 0; this.#takeovers += 1) {
      await wait(300 + this.#random() * 500);
      const node = nodes[Math.floor(this.#random() * nodes.length)];
      if (node === undefined) continue;
      if (this.#bodies > 0) this.#midBody += 1;
      node.gateway.process.kill('SIGSTOP');
      // Some continue as soon as another node has taken over, when both still do the same work.
      const pausedMs = this.#random() < AT_ONCE_SHARE ? 0 : PAUSED_MS;
      await Promise.all([wait(pausedMs), this.#nodes.isOut(node)]);
      node.gateway.process.kill('SIGCONT');
      await this.#nodes.allServe();
    }
  }

  async #write(kind: Kind, uploader: Uploader): Promise<void> {
    while (!this.#isOver) {
      try {
        const { fileId, bytes } = await this.#upload(kind, uploader);
        await this.#compare(kind, uploader, fileId, bytes);
        this.#done[kind] += 1;
      } catch (error) {
        this.#faults.push(`${kind} of ${uploader.person.userId}: ${String(error)}`);
      }
    }
  }

  #upload(kind: Kind, uploader: Uploader): Promise<{ readonly fileId: string; readonly bytes: Buffer }> {
    if (kind === 'chunked') return this.#uploadChunks(uploader);
    return kind === 'whole' ? this.#uploadWhole(uploader) : this.#uploadResumed(uploader);
  }

  /** Each chunk at any node; every acknowledged one is stored as any node tells it. */
  async #uploadChunks(uploader: Uploader): Promise<{ readonly fileId: string; readonly bytes: Buffer }> {
    const { random } = uploader;
    const bytes = randomBytes(
      CHUNK_BYTES * Math.floor(random() * CHUNKS_MAX) + 1 + Math.floor(random() * 9_999),
    );
    const uploadId = crc32(bytes);
    const body = JSON.stringify({ FileName: 'a.bin', FileSize: bytes.length, CRC32: uploadId });
    const headers = { 'Content-Type': 'application/json' };
    for (;;) {
      const init = { method: 'POST', body, headers };
      const opened = await this.#ask(uploader, '/auth/v1/file/init_upload', init, [200, 409]);
      if (opened.status === 200) break;
      // A repeat of an answer that was lost finds its own upload (1302), or one whose opening is being undone.
      const status = `/auth/v1/file/upload_status?uploadId=${uploadId}`;
      if ((await this.#ask(uploader, status, {}, [200, 404])).status === 200) break;
      await wait(RETRY_MS);
    }
    const acknowledged = new Set<number>();
    let fileId: string | null = null;
    const count = Math.ceil(bytes.length / CHUNK_BYTES);
    for (let at = 0; at < count; at += 1) {
      const chunk = bytes.subarray(at * CHUNK_BYTES, (at + 1) * CHUNK_BYTES);
      const query = `uploadId=${uploadId}&chunkNumber=${at}&chunkCrc32=${crc32(chunk)}`;
      const sent = await this.#ask(uploader, `/auth/v1/file/upload_part?${query}`, {
        method: 'POST',
        body: chunk,
      });
      acknowledged.add(at);
      fileId = (JSON.parse(sent.text) as { result: { fileId: string | null } }).result.fileId;
      if (at < count - 1 && random() < 0.3) await this.#checkChunks(uploader, uploadId, acknowledged);
    }
    if (fileId === null) throw new Error('no file after the last chunk');
    return { fileId, bytes };
  }

  async #checkChunks(uploader: Uploader, uploadId: number, acknowledged: ReadonlySet<number>): Promise<void> {
    const told = await this.#ask(uploader, `/auth/v1/file/upload_status?uploadId=${uploadId}`, {});
    const { missing } = (JSON.parse(told.text) as { result: { missing: number[] } }).result;
    const lost = missing.filter((at) => acknowledged.has(at));
    if (lost.length > 0) throw new Error(`acknowledged chunks are missing: ${lost.join(' ')}`);
  }

  async #draft(uploader: Uploader, sizeBytes: number): Promise<string> {
    const path = `/auth/v2/file/create_draft?fileName=a.bin&fileSize=${sizeBytes}`;
    const { text } = await this.#ask(uploader, path, { method: 'POST' });
    return (JSON.parse(text) as { result: string }).result.replace(/:.*/, '');
  }

  #bodyOf({ random }: Uploader): Buffer {
    const hasPieces = this.#options.objectStorage !== undefined && random() < TWO_PIECES_SHARE;
    return randomBytes((hasPieces ? BUCKET_PIECE_BYTES : 1) + Math.floor(random() * BODY_BYTES_MAX));
  }

  /** One body; where its answer does not come, the same draft once more, or a new one. */
  async #uploadWhole(uploader: Uploader): Promise<{ readonly fileId: string; readonly bytes: Buffer }> {
    const bytes = this.#bodyOf(uploader);
    const endMs = performance.now() + HANG_MS;
    for (;;) {
      const fileId = await this.#draft(uploader, bytes.length);
      while (performance.now() < endMs) {
        const status = await this.#body(uploader, fileId, bytes, {});
        if (status === 200) return { fileId, bytes };
        if (status === 404) break;
        await wait(RETRY_MS);
      }
      if (performance.now() >= endMs) throw new Error(`${fileId} does not come through`);
    }
  }

  /** A slow body that continues elsewhere from the offset that a node tells; never before the one that was told. */
  async #uploadResumed(uploader: Uploader): Promise<{ readonly fileId: string; readonly bytes: Buffer }> {
    const bytes = this.#bodyOf(uploader);
    const fileId = await this.#draft(uploader, bytes.length);
    const endMs = performance.now() + HANG_MS;
    let toldBytes = 0;
    while (performance.now() < endMs) {
      const { headers } = await this.#ask(
        uploader,
        `/auth/v2/file/stream_upload/${fileId}`,
        { method: 'HEAD' },
        [204],
      );
      if (headers.get('Upload-Complete') === '?1') return { fileId, bytes };
      const offset = Number(headers.get('Upload-Offset'));
      if (offset < toldBytes) throw new Error(`${fileId}: offset ${offset} after ${toldBytes}`);
      // Some requests keep a piece, the others end the file.
      const isPiece = uploader.random() < 0.5 && bytes.length - offset > 2;
      const end = isPiece
        ? offset + 1 + Math.floor(uploader.random() * (bytes.length - offset - 2))
        : bytes.length;
      const range = { 'Upload-Offset': String(offset), 'Upload-Complete': isPiece ? '?0' : '?1' };
      const status = await this.#body(uploader, fileId, bytes.subarray(offset, end), range);
      if (status === 200 && !isPiece) return { fileId, bytes };
      if (status === 200) toldBytes = end;
      else toldBytes = Math.max(toldBytes, offset);
    }
    throw new Error(`${fileId} does not come through`);
  }

  /** Sends a body slowly; its status, undefined where no answer comes. */
  async #body(
    uploader: Uploader,
    fileId: string,
    bytes: Buffer,
    headers: Readonly<Record<string, string>>,
  ): Promise<number | undefined> {
    this.#bodies += 1;
    const step = Math.max(1, Math.ceil(bytes.length / SLOW_PIECES));
    let at = 0;
    const body = new ReadableStream<Uint8Array>({
      async pull(controller) {
        if (at >= bytes.length) {
          controller.close();
          return;
        }
        controller.enqueue(bytes.subarray(at, at + step));
        at += step;
        await wait(SLOW_PIECE_MS);
      },
    });
    try {
      const answer = await fetch(`${this.#node(uploader).url}/auth/v2/file/stream_upload/${fileId}`, {
        method: headers['Upload-Offset'] === undefined || headers['Upload-Offset'] === '0' ? 'POST' : 'PATCH',
        headers: { Cookie: uploader.person.cookie, ...headers },
        body,
        duplex: 'half',
        signal: AbortSignal.timeout(REQUEST_MS),
      } as RequestInit);
      await answer.text();
      if (![200, 404, 409, 503].includes(answer.status)) throw new UnexpectedStatus(answer.status);
      return answer.status;
    } catch (error) {
      if (error instanceof UnexpectedStatus) throw error;
      return undefined;
    } finally {
      this.#bodies -= 1;
    }
  }

  #node({ random }: Uploader): NodeProcess {
    const { nodes } = this.#nodes;
    const node = nodes[Math.floor(random() * nodes.length)];
    if (node === undefined) throw new Error('no node was started');
    return node;
  }

  /** At any node, until one answers with a status that is expected. */
  async #ask(
    uploader: Uploader,
    path: string,
    init: {
      readonly method?: string;
      readonly body?: string | Buffer;
      readonly headers?: Record<string, string>;
    },
    expected: readonly number[] = [200],
  ): Promise<{ readonly status: number; readonly text: string; readonly headers: Headers }> {
    const endMs = performance.now() + HANG_MS;
    let last = '';
    while (performance.now() < endMs) {
      try {
        const answer = await fetch(`${this.#node(uploader).url}${path}`, {
          ...init,
          headers: { Cookie: uploader.person.cookie, ...init.headers },
          signal: AbortSignal.timeout(REQUEST_MS),
        } as RequestInit);
        const text = await answer.text();
        if (expected.includes(answer.status)) return { status: answer.status, text, headers: answer.headers };
        last = `${answer.status} ${text}`;
        if (![409, 503].includes(answer.status))
          throw new UnexpectedStatus(answer.status, `${path}: ${text}`);
      } catch (error) {
        if (error instanceof UnexpectedStatus) throw error;
        last = String(error);
      }
      this.#repeated += 1;
      await wait(RETRY_MS);
    }
    throw new Error(`${path}: no answer, last ${last}`);
  }

  async #compare(kind: Kind, uploader: Uploader, fileId: string, bytes: Buffer): Promise<void> {
    const version = kind === 'chunked' ? 'v1' : 'v2';
    const { nodes } = this.#nodes;
    for (const node of nodes) {
      const pinned = { ...uploader, random: () => nodes.indexOf(node) / nodes.length };
      const found = await this.#ask(pinned, `/auth/${version}/file/${fileId}`, { method: 'HEAD' });
      const length = String(found.headers.get('Content-Length'));
      if (length !== String(bytes.length))
        throw new Error(`${fileId} at ${node.name}: a length of ${length}`);
      const body = await this.#download(pinned, `/auth/${version}/file/${fileId}`);
      if (!body.equals(bytes))
        throw new Error(`${fileId} at ${node.name}: other bytes, CRC ${crc32(body)} for ${crc32(bytes)}`);
    }
  }

  async #download(uploader: Uploader, path: string): Promise<Buffer> {
    const endMs = performance.now() + HANG_MS;
    while (performance.now() < endMs) {
      try {
        const answer = await fetch(`${this.#node(uploader).url}${path}`, {
          headers: { Cookie: uploader.person.cookie },
          signal: AbortSignal.timeout(REQUEST_MS),
        });
        const body = Buffer.from(await answer.arrayBuffer());
        if (answer.status === 200) return body;
        if (answer.status !== 503) throw new UnexpectedStatus(answer.status, path);
      } catch (error) {
        if (error instanceof UnexpectedStatus) throw error;
      }
      await wait(RETRY_MS);
    }
    throw new Error(`${path}: no answer`);
  }
}

function errorsOf({ name, gateway }: NodeProcess): string[] {
  const lines = gateway.output().stderr.split('\n');
  const errors = lines.filter(
    (line) => line.includes('"level":"error"') && !line.includes('"msg":"request"'),
  );
  return errors.slice(-ERRORS_SHOWN).map((line) => `${name}: ${line}`);
}

class UnexpectedStatus extends Error {
  constructor(status: number, detail = '') {
    super(`HTTP ${status} ${detail}`);
  }
}
