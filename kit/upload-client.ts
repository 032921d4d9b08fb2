/** A client of buffered uploads (spec 4.6): opens one, sends its chunks, asks what is missing. Fetch and CRC-32 only. */
import CRC32 from 'crc-32';
import { type Answer, type Json, request } from './agent.ts';

const CHUNK_BYTES = 256 * 1024;

export interface Uploader {
  readonly url: string;
  readonly cookie: string;
}

/** Answer of `upload_part`. */
export interface PartAnswer {
  readonly chunkNumber: number;
  readonly fileId: string | null;
  readonly fileCode: string | null;
}

/** Unsigned. */
export function crc32(bytes: Uint8Array): number {
  return CRC32.buf(bytes) >>> 0;
}

export function chunksOf(bytes: Uint8Array): Uint8Array[] {
  const count = Math.ceil(bytes.length / CHUNK_BYTES);
  return Array.from({ length: count }, (_, at) => bytes.subarray(at * CHUNK_BYTES, (at + 1) * CHUNK_BYTES));
}

/** `fields` are added to, or replace, what follows from the bytes. */
export async function initUpload(
  { url, cookie }: Uploader,
  bytes: Uint8Array,
  fields: Record<string, unknown> = {},
): Promise<Answer> {
  const body = { FileName: 'file.bin', FileSize: bytes.length, CRC32: crc32(bytes), ...fields };
  return await request(`${url}/auth/v1/file/init_upload`, { headers: { Cookie: cookie }, body });
}

/** Sends one chunk with the query of the caller, right or wrong. */
export async function sendPart(
  { url, cookie }: Uploader,
  query: Record<string, string | number>,
  bytes: Uint8Array,
): Promise<Answer> {
  const response = await fetch(`${url}/auth/v1/file/upload_part?${queryOf(query)}`, {
    method: 'POST',
    headers: { Cookie: cookie, 'Content-Type': 'application/octet-stream' },
    body: Buffer.from(bytes),
  });
  const text = await response.text();
  return { status: response.status, headers: response.headers, text, json: parse(text) };
}

export function queryOf(fields: Record<string, string | number>): string {
  const search = new URLSearchParams();
  for (const [name, value] of Object.entries(fields)) search.set(name, String(value));
  return search.toString();
}

/** Chunk `at` of the file. */
export async function uploadPart(uploader: Uploader, bytes: Uint8Array, at: number): Promise<Answer> {
  const chunk = chunksOf(bytes)[at] ?? new Uint8Array(0);
  const query = { uploadId: crc32(bytes), chunkNumber: at, chunkCrc32: crc32(chunk) };
  return await sendPart(uploader, query, chunk);
}

/** All of it, one chunk after the other; the last answer. Throws when a chunk is refused. */
export async function uploadAll(
  uploader: Uploader,
  bytes: Uint8Array,
  fields: Record<string, unknown> = {},
): Promise<PartAnswer> {
  const opened = await initUpload(uploader, bytes, fields);
  if (opened.status !== 200) throw new Error(`init_upload: HTTP ${opened.status} ${opened.text}`);
  let last: Answer | undefined;
  for (const at of chunksOf(bytes).keys()) {
    last = await uploadPart(uploader, bytes, at);
    if (last.status !== 200) throw new Error(`upload_part ${at}: HTTP ${last.status} ${last.text}`);
  }
  return last?.json['result'] as unknown as PartAnswer;
}

export async function cancelUpload({ url, cookie }: Uploader, uploadId: number | string): Promise<Answer> {
  const headers = { Cookie: cookie };
  return await request(`${url}/auth/v1/file/cancel_upload?uploadId=${uploadId}`, { method: 'POST', headers });
}

export async function uploadStatus({ url, cookie }: Uploader, uploadId: number | string): Promise<Answer> {
  return await request(`${url}/auth/v1/file/upload_status?uploadId=${uploadId}`, {
    headers: { Cookie: cookie },
  });
}

function parse(text: string): Json {
  try {
    return JSON.parse(text) as Json;
  } catch (error) {
    if (error instanceof SyntaxError) return {} as Json;
    throw error;
  }
}
