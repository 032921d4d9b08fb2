/**
 * Client of one HTTP file server: PUT, GET with Range, HEAD and DELETE, as nginx with its DAV module understands them.
 * Files are streamed in both directions. A request without progress is aborted. Every failure names the server.
 */
import { systemCode } from '../../../domain/disk-faults.ts';
import { withoutTrailing } from '../../../domain/host-port.ts';
import type { OutboundReader } from '../../http-client/outbound-request.ts';
import type { Method, RequestLine } from '../../http-client/request-head.ts';
import type { ResponseHead } from '../../http-client/response-head.ts';
import type { ReadableFile } from './file-body.ts';
import type { FileServer } from './file-server.ts';
import { type Broken, ServerRequests } from './server-requests.ts';

/** Bytes of an answer that is not read; a longer one closes the connection. */
const IGNORED_BYTES_MAX = 64 * 1024;

interface StorageServerOptions {
  /** Base address; paths are appended to it. */
  readonly host: string;
  readonly stalledMs?: number | undefined;
}

export class StorageServer implements FileServer {
  readonly host: string;
  readonly #requests: ServerRequests;
  readonly #origin: string;
  readonly #basePath: string;

  constructor({ host, stalledMs }: StorageServerOptions) {
    this.host = host;
    const { origin, pathname } = new URL(host);
    this.#origin = origin;
    this.#basePath = withoutTrailing(pathname, '/');
    this.#requests = new ServerRequests(origin, stalledMs);
  }

  /** Bytes of a file; undefined when there is none. */
  async sizeOf(path: string): Promise<number | undefined> {
    const { status, contentLength } = await this.#ask('HEAD', path);
    if (status === 404) return undefined;
    if (status !== 200 || contentLength === undefined)
      throw this.#fault('HEAD', `answered ${status} with Content-Length ${String(contentLength)}`);
    return contentLength;
  }

  /** Fills `target`, which is not empty and lies within the file. */
  async read(path: string, target: Uint8Array, position: number): Promise<void> {
    const headers = { range: `bytes=${rangeOf({ bytes: target, position })}` };
    await this.#ask('GET', path, { headers, target: { bytes: target, position } });
  }

  async put(path: string, body: ReadableFile): Promise<void> {
    const headers = { 'content-type': 'application/octet-stream' };
    const { status } = await this.#ask('PUT', path, { headers, body });
    if (status === 507) throw this.#fault('PUT', 'answered 507', 'ENOSPC');
    if (!isSuccess(status)) throw this.#fault('PUT', `answered ${status}`);
  }

  /** False when the file did not exist. */
  async remove(path: string): Promise<boolean> {
    const { status } = await this.#ask('DELETE', path);
    if (status === 404) return false;
    if (!isSuccess(status)) throw this.#fault('DELETE', `answered ${status}`);
    return true;
  }

  close(): void {
    this.#requests.close();
  }

  /** One request, repeated once on a new connection when its connection broke: every method is idempotent. */
  async #ask(method: Method, filePath: string, options: RequestOptions = {}): Promise<ResponseHead> {
    const { headers = {} } = options;
    const url = { origin: this.#origin, pathname: this.#basePath + filePath, search: '' };
    const line: RequestLine = { method, url, headers };
    try {
      const first = await this.#askOnce(line, options, false);
      if (first instanceof AnswerReader) return first.result();
      if (!first.isSent) throw new Error(first.reason);
      const second = await this.#askOnce(line, options, true);
      if (second instanceof AnswerReader) return second.result();
      throw new Error(second.reason);
    } catch (error) {
      throw this.#fault(method, error instanceof Error ? error.message : String(error), systemCode(error));
    }
  }

  async #askOnce(
    line: RequestLine,
    { body, target }: RequestOptions,
    needsNew: boolean,
  ): Promise<AnswerReader | Broken> {
    const reader = new AnswerReader(target);
    return (await this.#requests.send(line, reader, { body, needsNew })) ?? reader;
  }

  #fault(method: Method, reason: string, code?: string): StorageServerFault {
    return new StorageServerFault(`${method} at ${this.host}: ${reason}`, code);
  }
}

interface RequestOptions {
  readonly headers?: Record<string, string>;
  readonly body?: ReadableFile;
  /** Receives the body of the answer; without it the body is ignored. */
  readonly target?: RangeTarget;
}

export interface RangeTarget {
  readonly bytes: Uint8Array;
  readonly position: number;
}

/** Has the code that distinguishes a full disk from other failures. */
export class StorageServerFault extends Error {
  readonly code: string | undefined;

  constructor(message: string, code?: string) {
    super(message);
    this.code = code;
  }
}

/** Copies the requested range to its target, or ignores the body. */
class AnswerReader implements OutboundReader {
  readonly #target: RangeTarget | undefined;
  #head: ResponseHead | undefined;
  #sizeBytes = 0;
  #fault: string | undefined;

  constructor(target: RangeTarget | undefined) {
    this.#target = target;
  }

  head(head: ResponseHead): boolean {
    this.#head = head;
    if (this.#target === undefined) return true;
    this.#fault = rangeFault(head, this.#target);
    return this.#fault === undefined;
  }

  data(bytes: Buffer): boolean {
    const from = this.#sizeBytes;
    this.#sizeBytes += bytes.length;
    if (this.#target === undefined) return this.#sizeBytes <= IGNORED_BYTES_MAX;
    const isWithin = this.#sizeBytes <= this.#target.bytes.length;
    if (isWithin) this.#target.bytes.set(bytes, from);
    else this.#fault = 'more bytes came than were asked for';
    return isWithin;
  }

  /** Throws for an answer without the whole range. */
  result(): ResponseHead {
    const sizeBytes = this.#target?.bytes.length ?? this.#sizeBytes;
    if (this.#head === undefined) throw new Error('an answer without a head');
    if (this.#fault !== undefined) throw new Error(this.#fault);
    if (this.#sizeBytes < sizeBytes) throw new Error(`only ${this.#sizeBytes} of ${sizeBytes} bytes came`);
    return this.#head;
  }
}

/** The fault of an answer that does not have the requested range. */
export function rangeFault(head: ResponseHead, target: RangeTarget): string | undefined {
  const range = String(head.headers()['content-range']);
  const isExpected = head.status === 206 && range.startsWith(`bytes ${rangeOf(target)}/`);
  return isExpected ? undefined : `answered ${head.status} with Content-Range ${range}`;
}

export function rangeOf({ bytes, position }: RangeTarget): string {
  return `${position}-${position + bytes.length - 1}`;
}

function isSuccess(status: number): boolean {
  return status >= 200 && status <= 299;
}
