/**
 * Answers a download of v1 or v2: conditions, ranges, headers, and a body that is sent whole or streamed by its length.
 * HEAD has the answer of GET without the body (RFC 9110 9.3.2).
 */
import { randomUUID } from 'node:crypto';
import { GatewayError } from '../../../domain/errors.ts';
import type { FileKey } from '../../../domain/files/files.ts';
import { type ConditionalFields, judgeDownload } from '../../../domain/files/preconditions.ts';
import {
  type BodyPiece,
  contentRange,
  lengthOf,
  multipartPieces,
  unsatisfiedRange,
} from '../../../domain/files/ranges.ts';
import { errorReply } from '../../http/exchange/reply.ts';
import { StreamReply } from '../../http/exchange/stream.ts';
import { HandedOverReply, type HeaderList, Reply, type RouteContext } from '../../http/table/route.ts';
import type { ChatFile } from '../../modules/chat-files.ts';
import type { FileStorage, StoredFile } from '../storage/port.ts';
import type { StreamOwner } from '../stream-owner.ts';
import type { SendBufferCounters, SendBuffers } from './buffers.ts';
import { contentHeaders, presentationOf } from './headers.ts';
import { createFileSource, type Pace, readWhole, UNREAD_MS, WHOLE_BODY_BYTES } from './sender.ts';

/** Below this the gateway sends faster than a second server opens the file. */
const HANDED_OVER_BYTES_MIN = 64 * 1024;
/** A link is short-lived, and opens the file for all who have it. */
const NOT_STORED: HeaderList = [
  ['Cache-Control', 'no-store'],
  ['Referrer-Policy', 'no-referrer'],
];
/** Ranges that nginx reads as the gateway does; of malformed ones it makes 416. */
const PLAIN_RANGE = /^bytes=(?:[0-9]{1,15}-[0-9]{0,15}|-[0-9]{1,15})$/;

interface SendingProxy {
  /** Path of its internal location, with `/` at both ends. */
  readonly prefix: string;
  /** Read for every download. */
  readonly isUsed: () => boolean;
}

interface DownloadOptions {
  readonly storage: Pick<FileStorage, 'open' | 'openKept' | 'pathBelowRoot' | 'linkTo'>;
  readonly buffers: SendBuffers;
  /** A stream under the bandwidth limiter, one per answer. */
  readonly pace: (owner: StreamOwner) => Pace;
  /** A proxy in front that sends files itself (`SendfileBehind`). */
  readonly proxy?: SendingProxy | undefined;
  /** Clients may be sent to the storage itself. Read for every download. */
  readonly mayRedirect?: () => boolean;
  /** Milliseconds that a client may read nothing; `UNREAD_MS` unless given. */
  readonly unreadMs?: number;
  /** A body was aborted by the gateway. */
  readonly onFault: (message: string, error: unknown) => void;
}

export interface DownloadForm {
  /** Added to the headers of every download; `Cache-Control` is one of them. */
  readonly headers: HeaderList;
  /** A part that is a resource of its own: `Range` is ignored. */
  readonly part?: { readonly first: number; readonly lengthBytes: number };
}

export interface DownloadCounters {
  readonly buffers: SendBufferCounters;
  /** Answers that were sent whole, those that were streamed, and those whose bytes a proxy or the storage sent. */
  readonly whole: number;
  readonly streamed: number;
  readonly handedOver: number;
  readonly redirected: number;
  /** Bodies that the gateway aborted. */
  readonly broken: number;
}

/** An answer with bytes in it, or their length to HEAD. */
interface Content {
  readonly status: 200 | 206;
  readonly contentType: string;
  readonly headers: HeaderList;
  readonly pieces: readonly BodyPiece[];
  readonly lengthBytes: number;
  /** nginx makes the same answer of the same request. */
  readonly isPlain: boolean;
}

type DownloadRequest = Pick<
  RouteContext,
  | 'header'
  | 'repeatedHeaders'
  | 'allHeaders'
  | 'method'
  | 'nowMs'
  | 'session'
  | 'client'
  | 'proxySendsFiles'
  | 'onAbort'
>;

export class Downloads {
  readonly #options: DownloadOptions;
  readonly #counters = { whole: 0, streamed: 0, handedOver: 0, redirected: 0, broken: 0 };

  constructor(options: DownloadOptions) {
    this.#options = options;
  }

  /**
   * Answers within the call where possible. Throws, or rejects with, `FileNotFound`, `PreconditionFailed`, `Overloaded`
   * and the storage's failures.
   */
  answer(request: DownloadRequest, file: ChatFile, form: DownloadForm): Reply | Promise<Reply> {
    const { etag, modifiedMs, validators } = presentationOf(file);
    const facts = { etag, modifiedMs, sizeBytes: file.sizeBytes };
    const read = readerOf(request);
    const sent = fieldsOf(read);
    const fields = form.part === undefined ? sent : { ...sent, range: undefined };
    const decision = judgeDownload(fields, facts, request.nowMs);
    if (decision.status === 412) throw new GatewayError('PreconditionFailed');
    if (decision.status === 304)
      return new Reply(304, null, undefined, [...validators, ...form.headers], { lengthBytes: undefined });
    if (decision.status === 416)
      return errorReply(new GatewayError('RangeNotSatisfiable'), [
        ...validators,
        ['Accept-Ranges', 'bytes'],
        ['Content-Range', unsatisfiedRange(file.sizeBytes)],
      ]);
    const ranges = decision.status === 206 ? decision.ranges : undefined;
    const plain = form.part === undefined && isPlain(sent, ranges?.length);
    const content = contentOf(file, ranges, form, plain, read('want-repr-digest'));
    const key = { owner: file.ownerId, fileId: file.fileId };
    const { storage } = this.#options;
    const kept = storage.openKept?.(key);
    if (kept !== undefined) return this.#reply(kept, request, file, content);
    return storage.open(key).then((stored) => {
      if (stored === undefined) throw new GatewayError('FileNotFound');
      return this.#reply(stored, request, file, content);
    });
  }

  counters(): DownloadCounters {
    return { buffers: this.#options.buffers.counters(), ...this.#counters };
  }

  #reply(
    stored: StoredFile,
    request: DownloadRequest,
    file: ChatFile,
    content: Content,
  ): Reply | Promise<Reply> {
    const { status, contentType, headers, lengthBytes } = content;
    const { fileId, ownerId, sizeBytes } = file;
    if (stored.sizeBytes !== sizeBytes) {
      stored.close();
      // Storage and chat module disagree: a fault of the deployment, which the log has to show.
      throw new Error(`file ${fileId} has ${stored.sizeBytes} bytes, the chat module says ${sizeBytes}`);
    }
    if (request.method === 'HEAD') {
      stored.close();
      return new Reply(status, null, contentType, headers, { lengthBytes });
    }
    const link = this.#linkFor(file, content);
    if (link !== undefined) {
      stored.close();
      this.#counters.redirected += 1;
      return new Reply(307, null, undefined, [['Location', link], ...NOT_STORED]);
    }
    const pace = this.#options.pace({ userId: request.session?.userId, address: request.client.address });
    const path = request.proxySendsFiles
      ? this.#pathForProxy({ owner: ownerId, fileId }, content)
      : undefined;
    if (path !== undefined) return this.#handOver(stored, content, pace, path);
    if (lengthBytes > WHOLE_BODY_BYTES || stored.readNow === undefined)
      return this.#stream(stored, fileId, content, pace);
    // Paid before it is sent: nothing follows that could be delayed.
    if (pace.charge(lengthBytes)) return this.#whole(stored, content, pace);
    request.onAbort(() => pace.leave());
    return pace.paid().then(() => this.#whole(stored, content, pace));
  }

  /**
   * Returns a link for an attachment that is asked for whole, without conditions: the storage sends no policy that
   * would keep a shown file from running scripts, and judges conditions by its own validators.
   */
  #linkFor(file: ChatFile, { status, isPlain, contentType, headers }: Content): string | undefined {
    const { mayRedirect, storage } = this.#options;
    if (storage.linkTo === undefined || mayRedirect?.() !== true || status !== 200 || !isPlain)
      return undefined;
    const fields = new Map(headers);
    const contentDisposition = fields.get('Content-Disposition') ?? '';
    if (!contentDisposition.startsWith('attachment')) return undefined;
    const cacheControl = fields.get('Cache-Control') ?? '';
    const key = { owner: file.ownerId, fileId: file.fileId };
    return storage.linkTo(key, { contentType, contentDisposition, cacheControl });
  }

  /** Returns the path at which the proxy finds the file; undefined when the gateway sends it. */
  #pathForProxy(key: FileKey, { isPlain, lengthBytes }: Content): string | undefined {
    const { proxy, storage } = this.#options;
    if (proxy === undefined || !isPlain || lengthBytes < HANDED_OVER_BYTES_MIN) return undefined;
    if (storage.pathBelowRoot === undefined || !proxy.isUsed()) return undefined;
    return `${proxy.prefix}${storage.pathBelowRoot(key)}`;
  }

  /** nginx replaces the body by the file and makes the range itself (docs/decisions/0043). */
  #handOver(file: StoredFile, content: Content, pace: Pace, path: string): Reply {
    const { status, contentType, headers, lengthBytes } = content;
    // Counted, never delayed: there is no quota.
    pace.charge(lengthBytes);
    pace.leave();
    file.close();
    this.#counters.handedOver += 1;
    // nginx writes the field of whole files itself, beside this one, and that of ranges not at all.
    const kept = status === 206 ? headers : headers.filter(([name]) => name !== 'Accept-Ranges');
    return new HandedOverReply(status, contentType, [...kept, ['X-Accel-Redirect', path]], lengthBytes);
  }

  #whole(file: StoredFile, content: Content, pace: Pace): Reply {
    const { status, contentType, headers, pieces, lengthBytes } = content;
    try {
      const body = readWhole(file, pieces, lengthBytes);
      this.#counters.whole += 1;
      return new Reply(status, body, contentType, headers);
    } finally {
      pace.leave();
      file.close();
    }
  }

  #stream(file: StoredFile, fileId: string, content: Content, pace: Pace): Reply {
    const { status, contentType, headers, pieces, lengthBytes } = content;
    const { buffers, unreadMs = UNREAD_MS } = this.#options;
    const onFault = (error: unknown) => this.#reportFault(fileId, error);
    try {
      const source = createFileSource({ file, pieces, lengthBytes, pace, buffers, onFault });
      this.#counters.streamed += 1;
      return new StreamReply(status, source, { contentType, headers, lengthBytes, unreadMs });
    } catch (error) {
      pace.leave();
      file.close();
      throw error;
    }
  }

  #reportFault(fileId: string, error: unknown): void {
    this.#counters.broken += 1;
    this.#options.onFault(`the download of file ${fileId} broke off`, error);
  }
}

function contentOf(
  file: ChatFile,
  ranges: readonly { readonly first: number; readonly last: number }[] | undefined,
  { part, headers: own }: DownloadForm,
  isPlain: boolean,
  wantedDigests: string | undefined,
): Content {
  const { sizeBytes } = file;
  const presentation = presentationOf(file);
  const { contentType, content } = presentation;
  const kept = part === undefined ? contentHeaders(presentation, wantedDigests) : content.part;
  const headers: HeaderList = [...kept, ...own];
  const [first, second] = ranges ?? [];
  if (first === undefined) {
    const { first: start, lengthBytes } = part ?? { first: 0, lengthBytes: sizeBytes };
    const pieces: BodyPiece[] = [{ kind: 'file', first: start, lengthBytes }];
    return { status: 200, contentType, headers, pieces, lengthBytes, isPlain };
  }
  if (second === undefined) {
    const lengthBytes = lengthOf(first);
    return {
      status: 206,
      contentType,
      headers: [...headers, ['Content-Range', contentRange(first, sizeBytes)]],
      pieces: [{ kind: 'file', first: first.first, lengthBytes }],
      lengthBytes,
      isPlain,
    };
  }
  const boundary = randomUUID();
  const multipart = multipartPieces(ranges ?? [], sizeBytes, contentType, boundary);
  const type = `multipart/byteranges; boundary=${boundary}`;
  return { status: 206, contentType: type, headers, ...multipart, isPlain: false };
}

/**
 * A whole file or one range, without a condition: the proxy sees the same request and would judge its conditions by the
 * time of the file on disk. `ranges`: number of the answer's ranges.
 */
function isPlain(sent: ConditionalFields, ranges: number | undefined): boolean {
  const { range, ifMatch, ifNoneMatch, ifModifiedSince, ifUnmodifiedSince, ifRange } = sent;
  const conditions = [ifMatch, ifNoneMatch, ifModifiedSince, ifUnmodifiedSince, ifRange];
  if (conditions.some((condition) => condition !== undefined)) return false;
  return ranges === undefined ? range === undefined : ranges === 1 && PLAIN_RANGE.test(range ?? '');
}

type FieldReader = (name: string) => string | undefined;

/** Repeated fields are joined (RFC 9110 5.3): lists stay valid, other fields become invalid. */
function readerOf({ header, repeatedHeaders, allHeaders }: DownloadRequest): FieldReader {
  if (repeatedHeaders.size === 0) return header;
  const joined = new Map(allHeaders());
  return (name) => joined.get(name);
}

function fieldsOf(read: FieldReader): ConditionalFields {
  return {
    ifMatch: read('if-match'),
    ifNoneMatch: read('if-none-match'),
    ifModifiedSince: read('if-modified-since'),
    ifUnmodifiedSince: read('if-unmodified-since'),
    ifRange: read('if-range'),
    range: read('range'),
  };
}
