/**
 * One download, for both versions of the file transport: conditions and ranges judged on what the chat module says of
 * the file, headers, and the body by whichever way fits its length. HEAD answers as GET would, without reading.
 */
import { randomUUID } from 'node:crypto';
import { GatewayError } from '../../../domain/errors.ts';
import { type ConditionalFields, judgeDownload } from '../../../domain/files/preconditions.ts';
import {
  type BodyPiece,
  contentRange,
  lengthOf,
  multipartPieces,
  unsatisfiedRange,
} from '../../../domain/files/ranges.ts';
import { errorReply } from '../../http/reply.ts';
import { type HeaderList, Reply, type RouteContext } from '../../http/route.ts';
import { StreamReply } from '../../http/stream.ts';
import type { ChatFile } from '../../modules/chat-files.ts';
import type { FileStorage, StoredFile } from '../storage/port.ts';
import type { StreamOwner } from '../stream-owner.ts';
import type { SendBufferCounters, SendBuffers } from './buffers.ts';
import { presentationOf } from './headers.ts';
import { createFileSource, type Pace, readWhole, WHOLE_BODY_BYTES } from './sender.ts';

interface DownloadOptions {
  readonly storage: Pick<FileStorage, 'open' | 'openKept'>;
  readonly buffers: SendBuffers;
  /** A stream under the bandwidth limiter, one per answer. */
  readonly pace: (owner: StreamOwner) => Pace;
  /** A body broke off on the gateway's side. */
  readonly onFault: (message: string, error: unknown) => void;
}

/** What of the file is asked for, and what the route says about it. */
export interface DownloadForm {
  /** Beside those that every download has; `Cache-Control` is one of them. */
  readonly headers: HeaderList;
  /** A part of the file that is a resource of its own; ranges are then ignored. */
  readonly part?: { readonly first: number; readonly lengthBytes: number };
}

export interface DownloadCounters {
  readonly buffers: SendBufferCounters;
  /** Answers that left whole, and those that left piece by piece. */
  readonly whole: number;
  readonly streamed: number;
  /** Bodies that broke off on the gateway's side. */
  readonly broken: number;
}

/** An answer with bytes in it, or their length to HEAD. */
interface Content {
  readonly status: 200 | 206;
  readonly contentType: string;
  readonly headers: HeaderList;
  readonly pieces: readonly BodyPiece[];
  readonly lengthBytes: number;
}

type DownloadRequest = Pick<
  RouteContext,
  'header' | 'repeatedHeaders' | 'allHeaders' | 'method' | 'nowMs' | 'session' | 'client' | 'onAbort'
>;

export class Downloads {
  readonly #options: DownloadOptions;
  readonly #counters = { whole: 0, streamed: 0, broken: 0 };

  constructor(options: DownloadOptions) {
    this.#options = options;
  }

  /**
   * Within the call where nothing has to be waited for. Throws, or rejects with, `FileNotFound`, `PreconditionFailed`,
   * `Overloaded` and the storage's failures.
   */
  answer(request: DownloadRequest, file: ChatFile, form: DownloadForm): Reply | Promise<Reply> {
    const { etag, modifiedMs, validators } = presentationOf(file);
    const facts = { etag, modifiedMs, sizeBytes: file.sizeBytes };
    const sent = fieldsOf(request);
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
    const content = contentOf(file, decision.status === 206 ? decision.ranges : undefined, form);
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
    { fileId, sizeBytes }: ChatFile,
    content: Content,
  ): Reply | Promise<Reply> {
    const { status, contentType, headers, lengthBytes } = content;
    if (stored.sizeBytes !== sizeBytes) {
      stored.close();
      // The two have come apart: a fault of the deployment, which its operator has to see.
      throw new Error(`file ${fileId} has ${stored.sizeBytes} bytes, the chat module says ${sizeBytes}`);
    }
    if (request.method === 'HEAD') {
      stored.close();
      return new Reply(status, null, contentType, headers, { lengthBytes });
    }
    const pace = this.#options.pace({ userId: request.session?.userId, address: request.client.address });
    if (lengthBytes > WHOLE_BODY_BYTES || stored.readNow === undefined)
      return this.#stream(stored, fileId, content, pace);
    // Paid for before it leaves: behind it there is nothing that could be held back.
    if (pace.charge(lengthBytes)) return this.#whole(stored, content, pace);
    request.onAbort(() => pace.leave());
    return pace.paid().then(() => this.#whole(stored, content, pace));
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
    const { buffers } = this.#options;
    const onFault = (error: unknown) => this.#reportFault(fileId, error);
    try {
      const source = createFileSource({ file, pieces, lengthBytes, pace, buffers, onFault });
      this.#counters.streamed += 1;
      return new StreamReply(status, source, { contentType, headers, lengthBytes });
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
): Content {
  const { sizeBytes } = file;
  const { contentType, content } = presentationOf(file);
  const headers: HeaderList = [...(part === undefined ? content.file : content.part), ...own];
  const [first, second] = ranges ?? [];
  if (first === undefined) {
    const { first: start, lengthBytes } = part ?? { first: 0, lengthBytes: sizeBytes };
    const pieces: BodyPiece[] = [{ kind: 'file', first: start, lengthBytes }];
    return { status: 200, contentType, headers, pieces, lengthBytes };
  }
  if (second === undefined) {
    const lengthBytes = lengthOf(first);
    return {
      status: 206,
      contentType,
      headers: [...headers, ['Content-Range', contentRange(first, sizeBytes)]],
      pieces: [{ kind: 'file', first: first.first, lengthBytes }],
      lengthBytes,
    };
  }
  const boundary = randomUUID();
  const multipart = multipartPieces(ranges ?? [], sizeBytes, contentType, boundary);
  return { status: 206, contentType: `multipart/byteranges; boundary=${boundary}`, headers, ...multipart };
}

/** Fields that came several times are joined (RFC 9110 5.3): lists go on, anything else is void by that. */
function fieldsOf({ header, repeatedHeaders, allHeaders }: DownloadRequest): ConditionalFields {
  const joined = repeatedHeaders.size === 0 ? undefined : new Map(allHeaders());
  const read = (name: string) => (joined === undefined ? header(name) : joined.get(name));
  return {
    ifMatch: read('if-match'),
    ifNoneMatch: read('if-none-match'),
    ifModifiedSince: read('if-modified-since'),
    ifUnmodifiedSince: read('if-unmodified-since'),
    ifRange: read('if-range'),
    range: read('range'),
  };
}
