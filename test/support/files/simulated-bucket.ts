/**
 * The bucket of a simulated cluster: requests reach it late, after their sender has given up, or not at all, and answers get
 * lost. Whatever is written is looked at: no name and no part number of a transfer ever gets other bytes.
 */
import { MemoryS3, type S3Answer, type S3Request } from '../../../kit/storage/memory-s3.ts';
import type { Schedule } from '../../../src/actors/runtime/runtime-context.ts';
import type { ReadableFile } from '../../../src/io/files/storage/file-body.ts';
import type { ServerTransport } from '../../../src/io/files/storage/server-requests.ts';
import type { RequestLine } from '../../../src/io/http-client/request-head.ts';
import { ResponseHead } from '../../../src/io/http-client/response-head.ts';

/** Ways to break a promise of uploads on purpose. */
export type BucketFault =
  | 'streams share names'
  | 'a piece is acknowledged before it is stored'
  | 'listed pieces are removed'
  | 'a former stream is heard'
  | 'a sweep takes what drafts list';

/** Bytes of a piece, and of each part of a transfer but the last one. */
export const SIMULATED_PIECE_BYTES = 64;
const LATENCY_MAX_MS = 60;
/** A sender gives up after so long; what it sent may arrive for so much longer. */
const GIVE_UP_MS = 300;
const LATE_MAX_MS = 4_000;
/** Shares of the requests. */
const LATE = 0.05;
const UNSENT = 0.03;
const SLOW_DOWN = 0.06;
const LOST_ANSWERS = 0.06;
const PAGE_ROWS = 3;

interface SimulatedBucketOptions {
  readonly random: () => number;
  readonly plan: (afterMs: number, run: () => void) => void;
  readonly nowMs: () => number;
  readonly fault: BucketFault | undefined;
  readonly onBroken: (promise: string) => void;
  readonly trace: (line: string) => void;
}

export class SimulatedBucket {
  readonly server = MemoryS3.inMemory({ partBytesMin: SIMULATED_PIECE_BYTES, pageRows: PAGE_ROWS });
  /** Nothing is late or lost any more. */
  isCalm = false;
  readonly counts = { requests: 0, late: 0, lost: 0 };
  readonly #options: SimulatedBucketOptions;
  /** Contents that each object of an upload, and each part of a transfer, has got. */
  readonly #written = new Map<string, string>();

  constructor(options: SimulatedBucketOptions) {
    this.#options = options;
    this.server.clock = options.nowMs;
  }

  /** Carries the requests of one process. Answers wait while the process is paused. */
  transport(schedule: Schedule): ServerTransport {
    return {
      host: 'bucket',
      send: async (line, reader, { body, signal }) => {
        signal?.throwIfAborted();
        const request = this.#requestOf(line, await bytesOf(body));
        const answer = await new Promise<S3Answer | undefined>((resolve) =>
          this.#carry(request, (each) => schedule.immediate(() => resolve(each))),
        );
        if (answer === undefined)
          return { kind: 'broken', reason: 'no answer', isSent: true, wasClosed: false };
        const head = new ResponseHead(answer.status, true);
        head.fields.push(...Object.entries(answer.headers ?? {}).flat());
        const bytes = Buffer.from(answer.body ?? '');
        if (reader.head(head) && bytes.length > 0) reader.data(bytes);
        return undefined;
      },
      wait: (delayMs) => new Promise((resolve) => void schedule.timer(delayMs, resolve)),
      close: () => undefined,
    };
  }

  #below(end: number): number {
    return Math.floor(this.#options.random() * end);
  }

  #requestOf({ method, url, headers }: RequestLine, body: Buffer): S3Request {
    const { fault } = this.#options;
    const named = (text: string) =>
      fault === 'streams share names' ? text.replace(/\.(piece|tail)\.\d+/, '.$1.1') : text;
    const source = headers['x-amz-copy-source'];
    return {
      method,
      key: named(url.pathname.split('/').slice(2).join('/')),
      query: new URLSearchParams(url.search),
      headers: source === undefined ? headers : { ...headers, 'x-amz-copy-source': named(source) },
      target: url.pathname + url.search,
      body,
    };
  }

  #carry(request: S3Request, answered: (answer: S3Answer | undefined) => void): void {
    const { random, plan, fault } = this.#options;
    this.counts.requests += 1;
    const isPiece = request.method === 'PUT' && isOfUpload(request);
    if (fault === 'a piece is acknowledged before it is stored' && isPiece && random() < 0.5) {
      plan(this.#below(LATE_MAX_MS), () => void this.#arrive(request));
      answered({ status: 200, headers: { etag: '"1"' } });
      return;
    }
    const dice = this.isCalm ? 1 : random();
    const latencyMs = this.#below(LATENCY_MAX_MS);
    if (dice < LATE + UNSENT) {
      this.counts.late += 1;
      plan(GIVE_UP_MS, () => answered(undefined));
      if (dice < LATE) plan(GIVE_UP_MS + this.#below(LATE_MAX_MS), () => void this.#arrive(request));
      return;
    }
    const isLost = !this.isCalm && random() < LOST_ANSWERS;
    if (isLost) this.counts.lost += 1;
    plan(latencyMs, () => {
      const isSlow = dice < LATE + UNSENT + SLOW_DOWN;
      const judged = isSlow
        ? this.server.answerTo(request, this.server.bucket, 'slow')
        : this.#arrive(request);
      void judged.then((answer) =>
        plan(this.#below(LATENCY_MAX_MS), () => answered(isLost ? undefined : answer)),
      );
    });
  }

  #arrive(request: S3Request): Promise<S3Answer> {
    const { method, key, query, body, headers } = request;
    this.#options.trace(`bucket: ${method} ${key} ${query}`);
    const part = query.get('partNumber');
    const name = part === null ? key : `part ${part} of ${query.get('uploadId')}`;
    if (method === 'PUT' && (part !== null || isOfUpload(request))) {
      const content = String(headers['x-amz-copy-source'] ?? body.toString('base64'));
      const former = this.#written.get(name);
      this.#written.set(name, content);
      if (former !== undefined && former !== content) this.#options.onBroken(`${name} was given twice`);
    }
    return this.server.answerTo(request);
  }
}

function isOfUpload({ key }: S3Request): boolean {
  return key.includes('/uploads/');
}

async function bytesOf(body: string | ReadableFile | undefined): Promise<Buffer> {
  if (typeof body !== 'object') return Buffer.from(body ?? '');
  const bytes = Buffer.alloc(body.sizeBytes);
  for (let at = 0; at < bytes.length; ) {
    const { bytesRead } = await body.read(bytes.subarray(at), at);
    if (bytesRead === 0) throw new Error(`the part ended at byte ${at} of ${bytes.length}`);
    at += bytesRead;
  }
  return bytes;
}
