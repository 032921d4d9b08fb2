/**
 * An object storage in memory that speaks the part of S3 the gateway uses, for tests, load tests and tools: conditional
 * writes, parts and their rules, lists with pages, and the ways in which such a storage fails.
 */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { crc32 } from 'node:zlib';
import { LoopbackServer } from './loopback-server.ts';

/**
 * - `slow`: 503 `SlowDown`. `internal`: 500. `lost`: does the work and closes the connection without an answer. `silent`:
 *   takes the request and never answers. `late error`: begins a completion with 200 and fails it. `full`: 507.
 * - `cut`: closes the connection in mid-answer. `plain`: knows no ranges.
 */
export type S3Fault = 'slow' | 'internal' | 'lost' | 'silent' | 'late error' | 'full' | 'cut' | 'plain';

export interface S3Request {
  readonly method: string;
  /** Key without the bucket. */
  readonly key: string;
  readonly query: URLSearchParams;
  readonly headers: IncomingMessage['headers'];
  /** Target as it came, escaped, with the query. */
  readonly target: string;
  readonly body: Buffer;
}

export interface MemoryS3Options {
  readonly bucket?: string;
  /** Returns the fault of a signature. All are right unless given. */
  readonly signatureFault?: (request: S3Request) => Promise<string | undefined>;
  /** `If-None-Match: *` is understood. */
  readonly conditions?: boolean;
  /** False: it knows no copies of objects. */
  readonly copies?: boolean;
  /** Rows of a page of a list at most. */
  readonly pageRows?: number;
  /** For bodies above 64 KiB the length is kept instead of the bytes. */
  readonly forgets?: boolean;
  /** Least bytes of each part of a transfer but the last one; 5 MiB unless given. */
  readonly partBytesMin?: number;
}

interface Transfer {
  readonly key: string;
  readonly begunMs: number;
  readonly parts: Map<number, StoredObject>;
}

interface StoredObject {
  readonly bytes: Buffer;
  readonly sizeBytes: number;
  readonly etag: string;
  /** Header fields of the writer (`x-amz-meta-…`). */
  readonly fields: Readonly<Record<string, string>>;
  readonly writtenMs: number;
}

export interface S3Answer {
  readonly status: number;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: Buffer | string;
}

const REMEMBERED_BYTES_MAX = 64 * 1024;
const PART_BYTES_MIN = 5 * 1024 * 1024;

export class MemoryS3 extends LoopbackServer {
  readonly bucket: string;
  readonly objects = new Map<string, StoredObject>();
  readonly transfers = new Map<string, Transfer>();
  /** `METHOD target` of each request. */
  readonly requests: string[] = [];
  /** Asked for each request, once its body has come. */
  faultOf: (request: S3Request) => S3Fault | undefined = () => undefined;
  /** Awaited before a request is judged. */
  delay: (request: S3Request) => Promise<void> = async () => undefined;
  /** Bytes of the bodies of all requests. */
  bodyBytes = 0;
  /** Requests with a part that ran at once, at most. */
  partsMost = 0;
  /** Dates transfers. */
  clock: () => number = Date.now;
  readonly #options: MemoryS3Options;
  #transfersBegun = 0;
  #parts = 0;

  private constructor(options: MemoryS3Options) {
    super();
    this.#options = options;
    this.bucket = options.bucket ?? 'files';
  }

  /** Makes one without connections: requests come by `answerTo` alone. */
  static inMemory(options: MemoryS3Options = {}): MemoryS3 {
    return new MemoryS3(options);
  }

  static async start(options: MemoryS3Options = {}): Promise<MemoryS3> {
    const storage = new MemoryS3(options);
    await storage.listen();
    return storage;
  }

  protected override async serve(incoming: IncomingMessage, response: ServerResponse): Promise<void> {
    const isPart = incoming.url?.includes('partNumber=') === true;
    if (isPart) this.#parts += 1;
    this.partsMost = Math.max(this.partsMost, this.#parts);
    try {
      await this.#answer(incoming, response);
    } finally {
      if (isPart) this.#parts -= 1;
    }
  }

  async #answer(incoming: IncomingMessage, response: ServerResponse): Promise<void> {
    const pieces: Buffer[] = [];
    try {
      for await (const piece of incoming) pieces.push(piece as Buffer);
    } catch {
      // The client is gone, and with it what it sent.
      return;
    }
    const target = incoming.url ?? '/';
    const { pathname, searchParams } = new URL(target, this.url);
    const [, bucket = '', ...names] = pathname.split('/');
    const request: S3Request = {
      method: incoming.method ?? '',
      key: names.join('/'),
      query: searchParams,
      headers: incoming.headers,
      target,
      body: Buffer.concat(pieces),
    };
    this.requests.push(`${request.method} ${target}`);
    this.bodyBytes += request.body.length;
    const fault = this.faultOf(request);
    await this.delay(request);
    if (fault === 'silent') return;
    const answer = await this.answerTo(request, bucket, fault);
    if (fault === 'lost') {
      response.destroy();
      return;
    }
    response.writeHead(answer.status, { 'x-amz-request-id': '1', ...answer.headers });
    if (fault === 'cut') response.write((answer.body ?? '').slice(0, 1), () => response.destroy());
    else if (request.method === 'HEAD') response.end();
    else response.end(answer.body);
  }

  async answerTo(request: S3Request, bucket = this.bucket, fault?: S3Fault): Promise<S3Answer> {
    if (fault === 'slow') return failure(503, 'SlowDown', 'Please reduce your request rate.');
    if (fault === 'internal') return failure(500, 'InternalError');
    if (fault === 'full') return failure(507, 'XMinioStorageFull');
    const signatureFault = await this.#options.signatureFault?.(request);
    if (signatureFault !== undefined) return failure(403, 'SignatureDoesNotMatch', signatureFault);
    if (bucket !== this.bucket) return failure(404, 'NoSuchBucket');
    const { method, key, query } = request;
    if (key === '' && query.get('list-type') === '2') return this.#listObjects(query);
    if (key === '') return query.has('uploads') ? this.#list(query) : failure(501, 'NotImplemented');
    if (query.has('uploads')) return this.#begin(key);
    const uploadId = query.get('uploadId');
    if (uploadId !== null) return this.#onTransfer(uploadId, request, fault);
    if (method === 'PUT') return this.#put(request);
    if (method === 'DELETE') {
      this.objects.delete(key);
      return { status: 204 };
    }
    return this.#get(request, fault);
  }

  #put(request: S3Request): S3Answer {
    const refused = this.#refusedWrite(request);
    if (refused !== undefined) return refused;
    const stored = this.#stored(request);
    if (!('etag' in stored)) return stored;
    this.objects.set(request.key, stored);
    return isCopy(request)
      ? copied('CopyObjectResult', stored)
      : { status: 200, headers: { etag: stored.etag } };
  }

  #copied({ headers }: S3Request): StoredObject | S3Answer {
    if (this.#options.copies === false) return failure(501, 'NotImplemented');
    const [, bucket, ...names] = String(headers['x-amz-copy-source']).split('/');
    const source = bucket === this.bucket ? this.objects.get(names.join('/')) : undefined;
    return source === undefined ? failure(404, 'NoSuchKey') : { ...source, writtenMs: this.clock() };
  }

  #refusedWrite({ key, headers }: S3Request): S3Answer | undefined {
    const once = this.#options.conditions !== false && headers['if-none-match'] === '*';
    return once && this.objects.has(key) ? failure(412, 'PreconditionFailed') : undefined;
  }

  /** The bytes that came, unless their checksum is another one. */
  #stored(request: S3Request): StoredObject | S3Answer {
    if (isCopy(request)) return this.#copied(request);
    const { headers, body } = request;
    const declared = headers['x-amz-checksum-crc32'];
    const checksum = Buffer.alloc(4);
    checksum.writeUInt32BE(crc32(body));
    if (declared !== undefined && declared !== checksum.toString('base64')) return failure(400, 'BadDigest');
    const own = Object.entries(headers).filter(([name]) => name.startsWith('x-amz-meta-'));
    const fields = Object.fromEntries(own.map(([name, value]) => [name, String(value)]));
    return this.#objectOf(body, `${checksum.toString('hex')}${body.length}`, fields);
  }

  #objectOf(body: Buffer, tag: string, fields: Readonly<Record<string, string>> = {}): StoredObject {
    const forgets = this.#options.forgets === true && body.length > REMEMBERED_BYTES_MAX;
    const bytes = forgets ? Buffer.alloc(0) : body;
    return { bytes, sizeBytes: body.length, etag: `"${tag}"`, fields, writtenMs: this.clock() };
  }

  #get({ key, headers }: S3Request, fault: S3Fault | undefined): S3Answer {
    const object = this.objects.get(key);
    if (object === undefined) return failure(404, 'NoSuchKey');
    const { sizeBytes, etag, fields } = object;
    const bytes = object.bytes.length === sizeBytes ? object.bytes : Buffer.alloc(sizeBytes);
    const range = fault === 'plain' ? null : /^bytes=(\d+)-(\d+)$/.exec(headers.range ?? '');
    if (range === null)
      return { status: 200, headers: { ...fields, etag, 'content-length': String(sizeBytes) }, body: bytes };
    const first = Number(range[1]);
    if (first >= sizeBytes)
      return { ...failure(416, 'InvalidRange'), headers: { 'content-range': `bytes */${sizeBytes}` } };
    const part = bytes.subarray(first, Number(range[2]) + 1);
    const contentRange = `bytes ${first}-${first + part.length - 1}/${sizeBytes}`;
    return {
      status: 206,
      headers: { etag, 'content-range': contentRange, 'content-length': String(part.length) },
      body: part,
    };
  }

  #begin(key: string): S3Answer {
    this.#transfersBegun += 1;
    const uploadId = `${this.#transfersBegun}+/=&`;
    this.transfers.set(uploadId, { key, begunMs: this.clock(), parts: new Map() });
    return xml('InitiateMultipartUploadResult', `<Key>${key}</Key><UploadId>${escaped(uploadId)}</UploadId>`);
  }

  #onTransfer(uploadId: string, request: S3Request, fault: S3Fault | undefined): S3Answer {
    const transfer = this.transfers.get(uploadId);
    if (transfer === undefined || transfer.key !== request.key) return failure(404, 'NoSuchUpload');
    if (request.method === 'DELETE') {
      this.transfers.delete(uploadId);
      return { status: 204 };
    }
    if (request.method === 'GET') return listParts(transfer);
    if (request.method === 'POST') return this.#complete(uploadId, transfer, request, fault);
    const number = Number(request.query.get('partNumber'));
    if (!(number >= 1 && number <= 10_000)) return failure(400, 'InvalidArgument');
    const stored = this.#stored(request);
    if (!('etag' in stored)) return stored;
    transfer.parts.set(number, stored);
    return isCopy(request)
      ? copied('CopyPartResult', stored)
      : { status: 200, headers: { etag: stored.etag } };
  }

  #complete(uploadId: string, transfer: Transfer, request: S3Request, fault: S3Fault | undefined): S3Answer {
    const rows = [...request.body.toString().matchAll(/<Part>.*?<\/Part>/gs)];
    const listed = rows.map(([row]) => {
      const [, number] = /<PartNumber>(\d+)<\/PartNumber>/.exec(row) ?? [];
      const [, etag = ''] = /<ETag>([^<]*)<\/ETag>/.exec(row) ?? [];
      const part = transfer.parts.get(Number(number));
      return part?.etag === etag.replaceAll(/&(?:#34|quot);/g, '"') ? part : undefined;
    });
    const parts = listed.filter((part) => part !== undefined);
    if (parts.length === 0 || parts.length < listed.length) return failure(400, 'InvalidPart');
    const [first, ...others] = parts.slice(0, -1);
    if (first !== undefined && first.sizeBytes < (this.#options.partBytesMin ?? PART_BYTES_MIN))
      return failure(400, 'EntityTooSmall');
    if (others.some(({ sizeBytes }) => sizeBytes !== first?.sizeBytes)) return failure(400, 'InvalidPart');
    const refused = this.#refusedWrite(request);
    if (refused !== undefined) return refused;
    if (fault === 'late error')
      return { status: 200, body: '<?xml version="1.0"?>\n\n<Error><Code>InternalError</Code></Error>' };
    const sizeBytes = parts.reduce((sum, part) => sum + part.sizeBytes, 0);
    const joined = Buffer.concat(parts.map(({ bytes }) => bytes));
    const object = this.#objectOf(joined, `${uploadId.length}-${parts.length}`);
    this.objects.set(transfer.key, { ...object, sizeBytes });
    this.transfers.delete(uploadId);
    return xml('CompleteMultipartUploadResult', `<Key>${transfer.key}</Key>`);
  }

  #listObjects(query: URLSearchParams): S3Answer {
    const rows = Math.min(Number(query.get('max-keys') ?? 1_000), this.#options.pageRows ?? 1_000);
    const after = query.get('continuation-token') ?? '';
    const keys = [...this.objects.keys()]
      .filter((key) => key.startsWith(query.get('prefix') ?? '') && key > after)
      .sort();
    const page = keys.slice(0, rows).map((key) => {
      const writtenUtc = new Date(this.objects.get(key)?.writtenMs ?? 0).toISOString();
      return `<Contents><Key>${escaped(key)}</Key><LastModified>${writtenUtc}</LastModified></Contents>`;
    });
    const isTruncated = keys.length > rows;
    const next = isTruncated
      ? `<NextContinuationToken>${escaped(keys[rows - 1] ?? '')}</NextContinuationToken>`
      : '';
    return xml('ListBucketResult', `<IsTruncated>${isTruncated}</IsTruncated>${next}${page.join('')}`);
  }

  #list(query: URLSearchParams): S3Answer {
    const rows = Math.min(Number(query.get('max-uploads') ?? 1_000), this.#options.pageRows ?? 1_000);
    const after = [query.get('key-marker') ?? '', query.get('upload-id-marker') ?? ''].join('\0');
    const found = [...this.transfers]
      .filter(([, { key }]) => key.startsWith(query.get('prefix') ?? ''))
      .map(([uploadId, { key, begunMs }]) => ({ uploadId, key, begunMs, order: `${key}\0${uploadId}` }))
      .sort((a, b) => (a.order < b.order ? -1 : 1))
      .filter(({ order }) => after === '\0' || order > after);
    const page = found.slice(0, rows);
    const last = page.at(-1);
    const uploads = page.map(
      ({ key, uploadId, begunMs }) =>
        `<Upload><Key>${escaped(key)}</Key><UploadId>${escaped(uploadId)}</UploadId><Initiated>${new Date(begunMs).toISOString()}</Initiated></Upload>`,
    );
    const isTruncated = found.length > page.length;
    const next = isTruncated && last !== undefined;
    const marker = next
      ? `<NextKeyMarker>${escaped(last.key)}</NextKeyMarker><NextUploadIdMarker>${escaped(last.uploadId)}</NextUploadIdMarker>`
      : '';
    return xml(
      'ListMultipartUploadsResult',
      `<IsTruncated>${isTruncated}</IsTruncated>${marker}${uploads.join('')}`,
    );
  }
}

function listParts({ parts }: Transfer): S3Answer {
  const rows = [...parts].map(
    ([number, { etag, sizeBytes }]) =>
      `<Part><PartNumber>${number}</PartNumber><ETag>${escaped(etag)}</ETag><Size>${sizeBytes}</Size></Part>`,
  );
  return xml('ListPartsResult', `<IsTruncated>false</IsTruncated>${rows.join('')}`);
}

function isCopy({ headers }: S3Request): boolean {
  return headers['x-amz-copy-source'] !== undefined;
}

function copied(name: string, { etag }: StoredObject): S3Answer {
  return xml(name, `<ETag>${escaped(etag)}</ETag>`);
}

function xml(name: string, content: string): S3Answer {
  const headers = { 'content-type': 'application/xml' };
  return {
    status: 200,
    headers,
    body: `<?xml version="1.0" encoding="UTF-8"?>\n<${name}>${content}</${name}>`,
  };
}

function failure(status: number, code: string, message = code): S3Answer {
  return { ...xml('Error', `<Code>${code}</Code><Message>${escaped(message)}</Message>`), status };
}

function escaped(text: string): string {
  return text.replace(/[&<>"]/g, (character) => `&#${character.charCodeAt(0)};`);
}
