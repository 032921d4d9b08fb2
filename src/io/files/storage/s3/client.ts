/**
 * Signed requests to one bucket. What passes by itself (`SlowDown`, a broken connection) is tried again, a few times, with
 * growing waits; each attempt is signed anew.
 */
import { withoutTrailing } from '../../../../domain/host-port.ts';
import type { Clock } from '../../../../domain/time.ts';
import type { OutboundReader } from '../../../http-client/outbound-request.ts';
import type { Method } from '../../../http-client/request-head.ts';
import type { ResponseHead } from '../../../http-client/response-head.ts';
import type { ReadableFile } from '../file-body.ts';
import { ServerRequests, type ServerTransport } from '../server-requests.ts';
import { type RangeTarget, rangeFault, rangeOf, StorageServerFault } from '../storage-server.ts';
import { canonicalQuery, Signer, sha256Hex, UNSIGNED_PAYLOAD } from './signature.ts';
import { textOf } from './xml.ts';

const ATTEMPTS_MAX = 5;
/** Wait before the second attempt; doubled for each further one: 3 s in all. */
const RETRY_MS = 200;
/** Passing states of an object storage. 409: another conditional write of the object is under way. */
const PASSING = new Set([408, 409, 429, 500, 502, 503, 504]);
/** A page of a list has 200 rows of at most 2 KB. */
const TEXT_MAX_BYTES = 512 * 1024;

interface BucketAddress {
  readonly endpoint: string;
  readonly bucket: string;
  readonly pathStyle: boolean;
  readonly region: string;
  readonly accessKeyId: string;
  readonly secretAccessKey: string;
}

export interface BucketRequest {
  readonly method: Method;
  /** Begins with `/`; the bucket itself is `/`. */
  readonly path: string;
  readonly query?: Readonly<Record<string, string>>;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string | ReadableFile;
  /** Filled by the answer, which has to be exactly this range. */
  readonly target?: RangeTarget;
  readonly signal?: AbortSignal;
}

/** An answer that is no passing failure. */
export interface BucketAnswer {
  readonly status: number;
  /** '' where it was not sent. */
  header(name: string): string;
  /** The body, unless it went into the target. */
  readonly text: string;
}

export interface ClientOptions {
  readonly clock: Clock;
  readonly stalledMs?: number | undefined;
  /** Wait before the second attempt. */
  readonly retryMs?: number | undefined;
  /** Carries requests to this origin; connections of its own unless given. */
  readonly transport?: ((origin: string) => ServerTransport) | undefined;
}

/** The storage answered, and not as the gateway needs. */
export class BucketRefusal extends StorageServerFault {}

export class BucketClient {
  /** Name for messages: endpoint and bucket. */
  readonly name: string;
  readonly #origin: string;
  readonly #basePath: string;
  readonly #requests: ServerTransport;
  readonly #signer: Signer;
  readonly #clock: Clock;
  readonly #retryMs: number;

  constructor(address: BucketAddress, { clock, stalledMs, retryMs = RETRY_MS, transport }: ClientOptions) {
    const { endpoint, bucket, pathStyle } = address;
    const url = new URL(endpoint);
    const path = withoutTrailing(url.pathname, '/');
    if (!pathStyle) url.hostname = `${bucket}.${url.hostname}`;
    this.name = `${bucket} at ${withoutTrailing(endpoint, '/')}`;
    this.#origin = url.origin;
    this.#basePath = pathStyle ? `${path}/${bucket}` : path;
    this.#requests = transport?.(url.origin) ?? new ServerRequests(url.origin, stalledMs);
    this.#signer = new Signer(address);
    this.#clock = clock;
    this.#retryMs = retryMs;
  }

  /** Rejects with `StorageServerFault` when every attempt failed, and with the reason of the signal. */
  async ask(request: BucketRequest): Promise<BucketAnswer> {
    let needsNew = false;
    for (let attempt = 1; ; attempt += 1) {
      const reader = new AnswerReader(request.target);
      const broken = await this.#attempt(request, reader, needsNew);
      const failure = broken?.reason ?? reader.passingFailure();
      if (failure === undefined) return reader.answer(request.method, this.name);
      if (attempt === ATTEMPTS_MAX) throw this.#fault(request.method, failure);
      // The other side had closed a kept connection: no reason to wait.
      const isFresh = broken?.wasClosed === true && !needsNew;
      needsNew = broken !== undefined;
      if (!isFresh) await this.#requests.wait(this.#retryMs * 2 ** (attempt - 1), request.signal);
    }
  }

  /** An address that needs no header. `query` is signed with it. */
  linkTo(path: string, query: Readonly<Record<string, string>>, seconds: number): string {
    const pathname = this.#basePath + path;
    const request = { method: 'GET', host: this.#requests.host, pathname, query, headers: {} };
    return `${this.#origin}${pathname}?${this.#signer.linkQuery(request, seconds, this.#clock())}`;
  }

  #fault(method: Method, reason: string): StorageServerFault {
    return new StorageServerFault(`${method} at ${this.name}: ${reason}`);
  }

  /** An answer that another attempt would not change. */
  refusal(method: Method, { status, text }: BucketAnswer): BucketRefusal {
    const code = status === 507 ? 'ENOSPC' : undefined;
    return new BucketRefusal(`${method} at ${this.name}: ${answerText(status, text)}`, code);
  }

  close(): void {
    this.#requests.close();
  }

  /**
   * Bytes of an object; undefined when there is none. By a range: a connection that carried HEAD is not kept. An empty object
   * has no range. Some storages take 0 at the end of a range for none, and send everything.
   */
  async sizeOf(path: string): Promise<number | undefined> {
    const headers = { range: 'bytes=0-1' };
    const answer = await this.ask({ method: 'GET', path, headers });
    const { status } = answer;
    if (isMissing(answer)) return undefined;
    if (status === 416) return 0;
    const size = Number(/^bytes 0-[01]\/(\d{1,15})$/.exec(answer.header('content-range'))?.[1] ?? Number.NaN);
    if (status === 206 && !Number.isNaN(size)) return size;
    throw this.refusal('GET', answer);
  }

  async #attempt(request: BucketRequest, reader: OutboundReader, needsNew: boolean) {
    const { method, path, query = {}, headers = {}, body, target, signal } = request;
    // The bucket itself without a slash at its end, for storages that sign it so.
    const pathname = path === '/' && this.#basePath !== '' ? this.#basePath : this.#basePath + path;
    const payload = typeof body === 'object' ? UNSIGNED_PAYLOAD : sha256Hex(body ?? '');
    const own = target === undefined ? headers : { ...headers, range: `bytes=${rangeOf(target)}` };
    const signable = { method, host: this.#requests.host, pathname, query, headers: own };
    const search = Object.keys(query).length === 0 ? '' : `?${canonicalQuery(query)}`;
    const line = {
      method,
      url: { origin: this.#origin, pathname, search },
      headers: this.#signer.signed(signable, payload, this.#clock()),
    };
    try {
      return await this.#requests.send(line, reader, { body, needsNew, signal });
    } catch (error) {
      if (signal?.aborted === true) throw error;
      throw this.#fault(method, error instanceof Error ? error.message : String(error));
    }
  }
}

/** There is no such object, in a bucket that is there. */
export function isMissing({ status, text }: BucketAnswer): boolean {
  return status === 404 && textOf(text, 'Code') !== 'NoSuchBucket';
}

class AnswerReader implements OutboundReader {
  readonly #target: RangeTarget | undefined;
  readonly #pieces: Buffer[] = [];
  #head: ResponseHead | undefined;
  #fillsTarget = false;
  #sizeBytes = 0;
  #fault: string | undefined;

  constructor(target: RangeTarget | undefined) {
    this.#target = target;
  }

  head(head: ResponseHead): boolean {
    this.#head = head;
    if (this.#target === undefined || head.status > 299) return true;
    this.#fault = rangeFault(head, this.#target);
    this.#fillsTarget = this.#fault === undefined;
    return this.#fillsTarget;
  }

  data(bytes: Buffer): boolean {
    const from = this.#sizeBytes;
    this.#sizeBytes += bytes.length;
    const max = this.#fillsTarget ? (this.#target?.bytes.length ?? 0) : TEXT_MAX_BYTES;
    if (this.#sizeBytes > max) {
      this.#fault = 'more bytes came than were asked for';
      return false;
    }
    if (this.#fillsTarget) this.#target?.bytes.set(bytes, from);
    else this.#pieces.push(Buffer.from(bytes));
    return true;
  }

  /** A failure after which the same request may succeed. */
  passingFailure(): string | undefined {
    if (this.#head === undefined) return 'an answer without a head';
    const { status } = this.#head;
    return PASSING.has(status) ? answerText(status, this.#text) : undefined;
  }

  /** Throws for an answer without the whole range. */
  answer(method: Method, name: string): BucketAnswer {
    const failed = (reason: string) => new BucketRefusal(`${method} at ${name}: ${reason}`);
    const head = this.#head;
    if (head === undefined) throw failed('an answer without a head');
    if (this.#fault !== undefined) throw failed(this.#fault);
    const wanted = this.#fillsTarget ? (this.#target?.bytes.length ?? 0) : 0;
    if (this.#sizeBytes < wanted) throw failed(`only ${this.#sizeBytes} of ${wanted} bytes came`);
    const header = (field: string) => String(head.headers()[field] ?? '');
    return { status: head.status, header, text: this.#fillsTarget ? '' : this.#text };
  }

  get #text(): string {
    return Buffer.concat(this.#pieces).toString('utf8');
  }
}

/**
 * Returns the text for the log: status, code and message of an error. Never the whole text, which may repeat what was
 * signed.
 */
function answerText(status: number, xml: string): string {
  const said = [textOf(xml, 'Code'), textOf(xml, 'Message')].filter((text) => text !== undefined).join(': ');
  return `answered ${status}${said === '' ? '' : ` ${said.slice(0, 200)}`}`;
}
