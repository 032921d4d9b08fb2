/**
 * The part of the tour that carries files: up in chunks and down again, up in one stream that breaks off and resumes, down
 * in a stream that breaks off and resumes, and by code without a session.
 */
import { randomBytes } from 'node:crypto';
import { request } from 'node:http';
import type { Answer } from '../kit/agent.ts';
import { chunksOf, crc32, queryOf } from '../kit/upload-client.ts';
import { type Expectation, type Guide, StepFailed } from './guide.ts';
import { listOf, type Person, text } from './steps.ts';

/** Two chunks of v1, the second one short. */
const FILE_BYTES = 300_000;
/** Bytes after which uploads and downloads break off. */
const BREAK_BYTES = 120_000;
/** Milliseconds for which the broken upload runs before its end: a gateway that is busy has read nothing at first. */
const BREAK_AFTER_MS = [50, 250, 1_000, 4_000];
/** Times that the draft is asked how much of a broken upload it holds. */
const ATTEMPTS_MAX = 5;
const POLL_MS = 50;
const BYTES = 'application/octet-stream';

/** File that is fetched after a restart. */
export interface KeptFile {
  readonly fileId: string;
  readonly fileCode: string;
  readonly crc32: number;
}

export async function files(guide: Guide, person: Person): Promise<KeptFile> {
  const headers = { Cookie: person.cookie };
  const bytes = randomBytes(FILE_BYTES);
  const kept = await upInChunks(guide, headers, bytes);
  guide.title('Files: the whole of it comes back, and so does one chunk of 256 KB');
  const shows = ['Content-Type', 'Content-Disposition', 'ETag', 'X-Chunk-CRC32', 'X-File-Part'];
  await guide.ask({ path: `/auth/v1/file/${kept.fileId}`, headers, shows }, holds(bytes));
  const path = `/auth/v1/file/${kept.fileId}?part_number=1`;
  await guide.ask({ path, headers, shows: ['X-File-Part'] }, holds(bytes.subarray(256 * 1024)));
  await upInOneStream(guide, person, randomBytes(FILE_BYTES));
  await downInPieces(guide, kept, bytes);
  return kept;
}

/** The code opens the file, before and after a restart. */
export async function fetchByCode(guide: Guide, { fileCode, crc32: expected }: KeptFile): Promise<void> {
  await guide.ask({ path: `/auth/v2/file/${fileCode}` }, (answer, fail) => {
    if (crc32(answer.bytes) !== expected) fail('the bytes are other ones');
  });
}

async function upInChunks(guide: Guide, headers: Record<string, string>, bytes: Buffer): Promise<KeptFile> {
  guide.title('Files, v1: announce one of 300,000 bytes, send its two chunks');
  const uploadId = crc32(bytes);
  const body = { FileName: 'tour-1.bin', FileSize: bytes.length, CRC32: uploadId };
  await guide.ask({ path: '/auth/v1/file/init_upload', headers, body }, (answer, fail) => {
    if (text(answer.json, 'result') !== String(uploadId)) fail('the upload id is not the CRC-32');
  });
  const [first = Buffer.alloc(0), second = Buffer.alloc(0)] = chunksOf(bytes);
  const send = (chunk: Uint8Array, chunkNumber: number, expect: Expectation) => {
    const query = queryOf({ uploadId, chunkNumber, chunkCrc32: crc32(chunk) });
    const sent = { ...headers, 'Content-Type': BYTES };
    const path = `/auth/v1/file/upload_part?${query}`;
    return guide.ask({ path, headers: sent, content: chunk }, expect, codeIn);
  };
  await send(second, 1, (answer, fail) => {
    if (answer.json['result']?.['fileId'] !== null) fail('complete without its first chunk');
  });
  const path = `/auth/v1/file/upload_status?uploadId=${uploadId}`;
  await guide.ask({ path, headers }, (answer, fail) => {
    if (listOf(answer.json['result']?.['missing']).join() !== '0') fail('chunk 0 is what is missing');
  });
  const last = await send(first, 0, (answer, fail) => {
    if (text(answer.json, 'result', 'fileId') === '') fail('no fileId with the last chunk');
  });
  const fileId = text(last.json, 'result', 'fileId');
  guide.good(`file ${fileId}, with a code for people without an account`);
  return { fileId, fileCode: text(last.json, 'result', 'fileCode'), crc32: uploadId };
}

async function upInOneStream(guide: Guide, { cookie }: Person, bytes: Buffer): Promise<void> {
  guide.title('Files, v2: a draft, then one stream, which breaks off in the middle');
  const headers = { Cookie: cookie };
  const query = queryOf({ fileName: 'tour-2.bin', fileSize: bytes.length });
  const draft = await guide.ask(
    { method: 'POST', path: `/auth/v2/file/create_draft?${query}`, headers },
    (answer, fail) => {
      if (!/^[0-9]+:[A-Za-z0-9_-]{22}$/.test(text(answer.json, 'result'))) fail('no <fileId>:<fileCode>');
    },
    (answer) => text(answer.json, 'result').split(':').slice(1),
  );
  const [fileId = '', fileCode = ''] = text(draft.json, 'result').split(':');
  const path = `/auth/v2/file/stream_upload/${fileId}`;
  const offsetBytes = await brokenUpload(guide, path, cookie, bytes);
  const further = {
    ...headers,
    'Upload-Draft-Interop-Version': '8',
    'Upload-Offset': String(offsetBytes),
    'Upload-Complete': '?1',
    'Content-Type': 'application/partial-upload',
  };
  await guide.ask({ method: 'PATCH', path, headers: further, content: bytes.subarray(offsetBytes) });
  await guide.ask({ path: `/auth/v2/file/${fileCode}` }, holds(bytes));
  guide.good(`the file is whole: ${offsetBytes} bytes were kept, ${bytes.length - offsetBytes} came later`);
}

async function downInPieces(guide: Guide, { fileId, fileCode }: KeptFile, bytes: Buffer): Promise<void> {
  guide.title('An interrupted download resumes where it stopped, if the file is unchanged');
  const path = `/auth/v2/file/${fileCode}`;
  const shows = ['Content-Range', 'ETag'];
  const range = { Range: `bytes=0-${BREAK_BYTES - 1}` };
  const first = await guide.ask({ path, headers: range, status: 206, shows });
  const rest = { Range: `bytes=${BREAK_BYTES}-`, 'If-Range': first.headers.get('etag') ?? '' };
  const second = await guide.ask({ path, headers: rest, status: 206, shows });
  if (!Buffer.concat([first.bytes, second.bytes]).equals(bytes))
    throw new StepFailed('the halves do not fit');
  guide.good(`${first.bytes.length} and ${second.bytes.length} bytes are the file`);
  guide.title('Unchanged, it does not come again; and without a session only the code opens it');
  const known = { 'If-None-Match': first.headers.get('etag') ?? '' };
  await guide.ask({ path, headers: known, status: 304 });
  await guide.ask({ path: `/auth/v2/file/${fileId}`, status: 401 });
}

/** Returns the bytes that the draft holds after an upload that broke off. */
async function brokenUpload(guide: Guide, path: string, cookie: string, bytes: Buffer): Promise<number> {
  for (const [attempt, runsMs] of BREAK_AFTER_MS.entries()) {
    await breakOff(guide.urlOf(path), cookie, bytes, runsMs);
    guide.note(`POST ${path} with Upload-Complete: ?1: the connection was cut after ${BREAK_BYTES} bytes`);
    // A repeat, on a busy machine, is no step of its own.
    if (attempt === 0) guide.title('How far did it get? The upload resumes there');
    const offsetBytes = await keptBytes(guide, path, { Cookie: cookie });
    if (offsetBytes > 0) return offsetBytes;
  }
  throw new StepFailed('nothing of the broken upload was kept');
}

/** Cuts its own connection in the middle of the body. */
function breakOff(url: URL, cookie: string, bytes: Buffer, runsMs: number): Promise<void> {
  return new Promise((resolve) => {
    const headers = {
      Cookie: cookie,
      'Content-Type': BYTES,
      'Content-Length': bytes.length,
      'Upload-Draft-Interop-Version': '8',
      'Upload-Complete': '?1',
    };
    const upload = request(url, { method: 'POST', headers });
    upload.on('error', () => resolve());
    upload.write(bytes.subarray(0, BREAK_BYTES), () => setTimeout(() => upload.destroy(new Error()), runsMs));
  });
}

/**
 * Returns the bytes that the draft holds, once the gateway has seen that the client is gone; 0 when it does not show
 * any.
 */
async function keptBytes(guide: Guide, path: string, headers: Record<string, string>): Promise<number> {
  for (let attempt = 0; attempt < ATTEMPTS_MAX; attempt += 1) {
    const told = await guide.ask({ method: 'HEAD', path, headers, status: 204, shows: ['Upload-Offset'] });
    const offsetBytes = Number(told.headers.get('upload-offset'));
    if (offsetBytes > 0) return offsetBytes;
    await new Promise((resolve) => setTimeout(resolve, POLL_MS));
  }
  return 0;
}

function holds(bytes: Uint8Array): Expectation {
  return (answer, fail) => {
    if (!answer.bytes.equals(bytes)) fail('the bytes are other ones than those that were sent');
  };
}

function codeIn(answer: Answer): string[] {
  const code = text(answer.json, 'result', 'fileCode');
  return code === '' ? [] : [code];
}
