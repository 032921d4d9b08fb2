/**
 * Sends a large file in parts of 8 MiB, two at once, from this machine or from objects of the bucket. A transfer is whole or
 * ended: it is ended after all of its requests have settled, since a late part of an ended transfer stays for ever.
 */
import { PIECE_BYTES } from '../../../../domain/files/segments.ts';
import { KeyedQueue } from '../../upload/keyed-queue.ts';
import type { SentFile } from '../file-server.ts';
import type { BucketAnswer, BucketClient } from './client.ts';
import { escapedText, textOf } from './xml.ts';

const PARTS_OF_A_FILE_MAX = 2;
const PARTS_MAX = 8;
const SLOTS = 'parts';

/** Bounds the parts of all files that are under way. */
export class PartSlots {
  /** Bytes of each part of a transfer but the last one. */
  readonly partBytes: number;
  readonly #queue = new KeyedQueue(PARTS_MAX);

  constructor(partBytes = PIECE_BYTES) {
    this.partBytes = partBytes;
  }

  run<T>(work: () => Promise<T>): Promise<T> {
    return this.#queue.run(SLOTS, work);
  }
}

/** `crc32` of bytes that were sent from here. */
interface SentPart {
  readonly etag: string;
  readonly crc32?: number;
}

interface Target {
  readonly client: BucketClient;
  readonly path: string;
  readonly slots: PartSlots;
  /** Headers of the completion. */
  readonly conditions: Readonly<Record<string, string>>;
}

interface Transfer extends Target {
  readonly parts: number;
  /** Headers of its beginning. */
  readonly headers: Readonly<Record<string, string>>;
  /** Sends one, counted from 0. */
  send(uploadId: string, at: number, signal: AbortSignal): Promise<SentPart>;
}

/** The whole file is there afterwards, or an earlier one. Its bytes are read from the part on this machine. */
export async function putInParts(target: Target, file: SentFile): Promise<void> {
  await inParts({
    ...target,
    parts: Math.ceil(file.sizeBytes / target.slots.partBytes),
    headers: { 'x-amz-checksum-algorithm': 'CRC32' },
    send: (uploadId, at, signal) => sendPart(target, file, { uploadId, at, signal }),
  });
}

/** The same of objects of the bucket, which it copies itself. All but the last one have 8 MiB. */
export async function copyInParts(target: Target, sources: readonly string[]): Promise<void> {
  await inParts({
    ...target,
    parts: sources.length,
    headers: {},
    send: (uploadId, at, signal) => copyPart(target, sources[at] ?? '', { uploadId, at, signal }),
  });
}

/**
 * Part numbers are used once for each transfer, and every attempt to publish is a transfer of its own, so that no late part
 * replaces one that counts.
 */
async function inParts(transfer: Transfer): Promise<void> {
  const uploadId = await begin(transfer);
  try {
    await complete(transfer, uploadId, await sendParts(transfer, uploadId));
  } catch (error) {
    // After this a completion whose answer was lost has taken effect, or never will.
    await end(transfer, uploadId);
    throw error;
  }
}

async function begin({ client, path, headers: more }: Transfer): Promise<string> {
  const headers = { 'content-type': 'application/octet-stream', ...more };
  const answer = await client.ask({ method: 'POST', path, query: { uploads: '' }, headers });
  const uploadId = textOf(answer.text, 'UploadId');
  if (answer.status !== 200 || uploadId === undefined || uploadId === '')
    throw client.refusal('POST', answer);
  return uploadId;
}

/** Rejects with the first failure, after all parts have settled. */
async function sendParts(transfer: Transfer, uploadId: string): Promise<SentPart[]> {
  const { parts: count, slots } = transfer;
  const parts: SentPart[] = new Array(count);
  const stop = new AbortController();
  const numbers = Array.from({ length: count }, (_, at) => at).values();
  const work = async () => {
    for (const at of numbers) {
      if (stop.signal.aborted) return;
      parts[at] = await slots.run(() => transfer.send(uploadId, at, stop.signal));
    }
  };
  const workers = Array.from({ length: PARTS_OF_A_FILE_MAX }, () =>
    work().catch((error: unknown) => {
      stop.abort(error);
      throw error;
    }),
  );
  await Promise.allSettled(workers);
  if (stop.signal.aborted) throw stop.signal.reason;
  return parts;
}

interface PartPlace {
  readonly uploadId: string;
  readonly at: number;
  readonly signal: AbortSignal;
}

async function sendPart(
  { client, path, slots: { partBytes } }: Target,
  file: SentFile,
  { uploadId, at, signal }: PartPlace,
): Promise<SentPart> {
  signal.throwIfAborted();
  const position = at * partBytes;
  const sizeBytes = Math.min(partBytes, file.sizeBytes - position);
  const crc32 = await file.crc32Of(position, sizeBytes);
  const answer = await client.ask({
    method: 'PUT',
    path,
    query: { partNumber: String(at + 1), uploadId },
    headers: { 'x-amz-checksum-crc32': crc32Text(crc32) },
    body: { sizeBytes, read: (target, from) => file.read(target, position + from) },
    signal,
  });
  const etag = answer.header('etag');
  if (answer.status !== 200 || etag === '') throw client.refusal('PUT', answer);
  return { etag, crc32 };
}

async function copyPart(
  { client, path }: Target,
  source: string,
  { uploadId, at, signal }: PartPlace,
): Promise<SentPart> {
  signal.throwIfAborted();
  const query = { partNumber: String(at + 1), uploadId };
  const headers = { 'x-amz-copy-source': source };
  const answer = await client.ask({ method: 'PUT', path, query, headers, signal });
  const etag = textOf(answer.text, 'ETag');
  if (!isSuccessful(answer) || etag === undefined) throw client.refusal('PUT', answer);
  return { etag };
}

/** A storage may begin its answer with 200 and fail later. */
export function isSuccessful({ status, text }: BucketAnswer): boolean {
  return status === 200 && textOf(text, 'Code') === undefined;
}

/**
 * The transfer is not known any more where the answer of an earlier attempt was lost. 412: the file is there. The caller
 * finds out by the size of the file.
 */
async function complete(transfer: Transfer, uploadId: string, parts: readonly SentPart[]): Promise<void> {
  const { client, path, conditions } = transfer;
  const rows = parts.map(
    ({ etag, crc32 }, at) =>
      `<Part><PartNumber>${at + 1}</PartNumber><ETag>${escapedText(etag)}</ETag>${checksumOf(crc32)}</Part>`,
  );
  const namespace = 'http://s3.amazonaws.com/doc/2006-03-01/';
  const body = `<CompleteMultipartUpload xmlns="${namespace}">${rows.join('')}</CompleteMultipartUpload>`;
  const headers = { 'content-type': 'application/xml', ...conditions };
  const answer = await client.ask({ method: 'POST', path, query: { uploadId }, headers, body });
  if (isSuccessful(answer)) return;
  if (isUnknownTransfer(answer)) return;
  if (answer.status !== 412) throw client.refusal('POST', answer);
  await end(transfer, uploadId);
}

function checksumOf(crc32: number | undefined): string {
  return crc32 === undefined ? '' : `<ChecksumCRC32>${crc32Text(crc32)}</ChecksumCRC32>`;
}

function isUnknownTransfer({ status, text }: BucketAnswer): boolean {
  return status === 404 && textOf(text, 'Code') === 'NoSuchUpload';
}

/** A transfer that cannot be ended is ended by the daily sweep; the failure that led here is the one to report. */
async function end({ client, path }: Transfer, uploadId: string): Promise<void> {
  await client.ask({ method: 'DELETE', path, query: { uploadId } }).catch(() => undefined);
}

/** Big-endian, base64, as `x-amz-checksum-crc32` has it. */
export function crc32Text(crc32: number): string {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32BE(crc32);
  return bytes.toString('base64');
}
