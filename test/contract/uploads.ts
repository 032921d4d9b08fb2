/** Uploads through both file transports (spec 4.6, 4.7). */
import { randomBytes } from 'node:crypto';
import { crc32 } from 'node:zlib';
import { type Answer, type Headers, queryOf } from './client.ts';
import { expectOk, type Person } from './unshown.ts';
import type { World } from './world.ts';

export const CHUNK_BYTES = 256 * 1024;

export interface Stored {
  readonly fileId: string;
  readonly fileCode: string;
  readonly bytes: Buffer;
}

export function smallFile(length = 1_000): Buffer {
  return randomBytes(length);
}

/** CRC-32 in the form of the contract: an unsigned integer. */
export function crcOf(bytes: Uint8Array): number {
  return crc32(bytes);
}

export function initUpload(
  world: World,
  auth: Headers,
  bytes: Uint8Array,
  fields: object = {},
): Promise<Answer> {
  const body = { FileName: 'file.bin', FileSize: bytes.length, CRC32: crcOf(bytes), ChatId: '0', ...fields };
  return world.post('/auth/v1/file/init_upload', auth, body);
}

/** Uploads one chunk; `query` overrides the values derived from the bytes. */
export function uploadPart(
  world: World,
  auth: Headers,
  bytes: Uint8Array,
  chunkNumber: number,
  query: Record<string, string | number> = {},
  sent?: Uint8Array,
): Promise<Answer> {
  const chunk = sent ?? bytes.subarray(chunkNumber * CHUNK_BYTES, (chunkNumber + 1) * CHUNK_BYTES);
  const fields = { uploadId: crcOf(bytes), chunkNumber, chunkCrc32: crcOf(chunk), ...query };
  const search = queryOf(fields);
  return world.send('POST', `/auth/v1/file/upload_part?${search}`, { headers: auth, bytes: chunk });
}

export function cancelUpload(world: World, auth: Headers, uploadId: number): Promise<Answer> {
  return world.post(`/auth/v1/file/cancel_upload?uploadId=${uploadId}`, auth);
}

/** A whole v1 upload. */
export async function uploadV1(
  world: World,
  { auth }: Person,
  bytes: Buffer,
  fields: object = {},
): Promise<Stored> {
  expectOk('init_upload', await initUpload(world, auth, bytes, fields));
  let last: Answer | undefined;
  for (let at = 0; at * CHUNK_BYTES < bytes.length; at += 1)
    last = expectOk('upload_part', await uploadPart(world, auth, bytes, at));
  return {
    fileId: last?.textAt('result.fileId') ?? '',
    fileCode: last?.textAt('result.fileCode') ?? '',
    bytes,
  };
}

export function createDraft(
  world: World,
  auth: Headers,
  fields: Record<string, string | number>,
): Promise<Answer> {
  const search = queryOf(fields);
  return world.post(`/auth/v2/file/create_draft?${search}`, auth);
}

export function streamUpload(
  world: World,
  auth: Headers,
  fileId: string,
  bytes: Uint8Array,
  headers: Headers = {},
): Promise<Answer> {
  return world.send('POST', `/auth/v2/file/stream_upload/${fileId}`, {
    headers: { ...auth, ...headers },
    bytes,
  });
}

/** File id and file code from the answer of create_draft. */
export function draftOf(answer: Answer): { fileId: string; fileCode: string } {
  const [fileId = '', fileCode = ''] = expectOk('create_draft', answer).textAt('result').split(':');
  return { fileId, fileCode };
}

/** A whole v2 upload. */
export async function uploadV2(
  world: World,
  { auth }: Person,
  bytes: Buffer,
  fields: Record<string, string | number> = {},
): Promise<Stored> {
  const query = { fileName: 'file.bin', fileSize: bytes.length, chatId: 0, ...fields };
  const draft = draftOf(await createDraft(world, auth, query));
  expectOk('stream_upload', await streamUpload(world, auth, draft.fileId, bytes));
  return { ...draft, bytes };
}
