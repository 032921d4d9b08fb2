/** Uploads and downloads of a fleet's day. Each upload continues after the kill; in the end every byte is compared. */
import { randomBytes } from 'node:crypto';
import { type Answer, expectOk, type Person, request, UnexpectedAnswer } from '../../kit/agent.ts';
import {
  chunksOf,
  crc32,
  initUpload,
  type PartAnswer,
  uploadPart,
  uploadStatus,
} from '../../kit/upload-client.ts';
import type { Site } from './site.ts';

const MIB = 1024 * 1024;
/** Files are slices of it, so that hundreds of them take no memory of their own. */
const SOURCE = randomBytes(16 * MIB);
const PIECE_BYTES = 512 * 1024;
const CHUNKED_BYTES = [MIB / 4, 2 * MIB] as const;
const STREAMED_BYTES = [MIB / 4, 4 * MIB] as const;
const RANGE_BYTES_MAX = MIB;
const UNKNOWN_UPLOAD = 1305;

/** Forms of a v2 upload: in one request without resumption or with it, or in pieces. */
const FORMS = ['whole', 'resumable', 'pieces'] as const;
type Form = (typeof FORMS)[number];

export interface StoredFile {
  readonly name: string;
  readonly code: string;
  readonly bytes: Buffer;
}

/** Files that the gateway stored and acknowledged. */
export class Files {
  readonly stored: StoredFile[] = [];
  /** Uploads that continued at a position after a broken connection. */
  readonly #resumed = new Set<string>();
  readonly #site: Site;
  readonly #random: () => number;

  constructor(site: Site, random: () => number) {
    this.#site = site;
    this.#random = random;
  }

  get resumed(): number {
    return this.#resumed.size;
  }

  /** Bytes of a file in chunks, and of one as a stream. */
  chunkedBytes(): Buffer {
    return this.#slice(CHUNKED_BYTES);
  }

  streamedBytes(): Buffer {
    return this.#slice(STREAMED_BYTES);
  }

  /** A file in chunks (v1). */
  async chunked(person: Person, name: string, bytes: Buffer): Promise<void> {
    let isOpened = false;
    await this.#site.through(name, async () => {
      const uploader = { url: this.#site.url, cookie: person.cookie };
      if (!isOpened && (await missingOf(uploader, bytes, name)) === undefined)
        expectOk(`${name}: init_upload`, await initUpload(uploader, bytes));
      isOpened = true;
      const code = await this.#sendChunks(uploader, bytes, name);
      this.stored.push({ name, code, bytes });
    });
  }

  /** Sends what is missing, or the last chunk again when nothing is; the code of the file. */
  async #sendChunks(uploader: { url: string; cookie: string }, bytes: Buffer, name: string): Promise<string> {
    const open = await missingOf(uploader, bytes, name);
    const last = chunksOf(bytes).length - 1;
    if (open !== undefined && open.length <= last) this.#resumed.add(name);
    for (const at of open === undefined || open.length === 0 ? [last] : open) {
      const answer = expectOk(`${name}: upload_part ${at}`, await uploadPart(uploader, bytes, at));
      this.#site.uploadedBytes += chunksOf(bytes)[at]?.length ?? 0;
      const { fileCode } = answer.json['result'] as unknown as PartAnswer;
      if (fileCode !== null) return fileCode;
    }
    const missing = await missingOf(uploader, bytes, name);
    throw new Error(`chunks ${open?.join(' ')} were sent, and missing are ${missing?.join(' ')}`);
  }

  /** A file as a stream (v2), in the form of its number. */
  async streamed(person: Person, name: string, at: number, bytes: Buffer): Promise<void> {
    const form = FORMS[at % FORMS.length] ?? 'whole';
    let draft: { readonly fileId: string; readonly code: string } | undefined;
    await this.#site.through(`${name}, ${form}`, async () => {
      const headers = { Cookie: person.cookie };
      const isRepeated = draft !== undefined;
      if (draft !== undefined && (await this.#isStored(draft.code, bytes))) {
        this.stored.push({ name, code: draft.code, bytes });
        return;
      }
      // Without resumption a broken connection ends the draft.
      if (draft === undefined || form === 'whole') {
        const path = `${this.#site.url}/auth/v2/file/create_draft?fileName=a.bin&fileSize=${bytes.length}`;
        const made = expectOk('create_draft', await request(path, { method: 'POST', headers }));
        const [fileId = '', code = ''] = String(made.json['result']).split(':');
        draft = { fileId, code };
      }
      const url = `${this.#site.url}/auth/v2/file/stream_upload/${draft.fileId}`;
      const offset = isRepeated && form !== 'whole' ? await offsetOf(url, headers) : 0;
      if (offset > 0) this.#resumed.add(name);
      await this.#stream(url, headers, bytes, offset, form);
      this.stored.push({ name, code: draft.code, bytes });
    });
  }

  async #stream(
    url: string,
    headers: Record<string, string>,
    bytes: Buffer,
    offset: number,
    form: Form,
  ): Promise<void> {
    const step = form === 'pieces' ? PIECE_BYTES : bytes.length;
    for (let at = offset; at < bytes.length; at += step) {
      const body = bytes.subarray(at, at + step);
      const more = form === 'pieces' ? { Range: `bytes=${at}-${at + body.length - 1}` } : {};
      const resumable = form === 'resumable' ? { 'Upload-Complete': '?1', 'Upload-Offset': String(at) } : {};
      // draft-ietf-httpbis-resumable-upload 4.3: the rest is appended by PATCH.
      const method = form === 'resumable' && at > 0 ? 'PATCH' : 'POST';
      const type = method === 'PATCH' ? 'application/partial-upload' : 'application/octet-stream';
      const all = { ...headers, ...more, ...resumable, 'Content-Type': type };
      const response = await fetch(url, { method, headers: all, body: Uint8Array.from(body) });
      await accept(`stream_upload at ${at}`, response);
      this.#site.uploadedBytes += body.length;
    }
  }

  async #isStored(code: string, bytes: Buffer): Promise<boolean> {
    const response = await fetch(`${this.#site.url}/auth/v2/file/${code}`);
    const got = Buffer.from(await response.arrayBuffer());
    return response.status === 200 && got.equals(bytes);
  }

  async range(name: string): Promise<void> {
    const file = this.stored[Math.floor(this.#random() * this.stored.length)];
    if (file === undefined) throw new Error('no file is stored yet');
    const first = Math.floor(this.#random() * file.bytes.length);
    const length = 1 + Math.floor(this.#random() * Math.min(RANGE_BYTES_MAX, file.bytes.length - first));
    await this.#site.through(name, async () => {
      const headers = { Range: `bytes=${first}-${first + length - 1}` };
      const got = await this.#site.fetchBytes(`/auth/v2/file/${file.code}`, 206, headers);
      if (!got.equals(file.bytes.subarray(first, first + length)))
        this.#site.faults.push(`${name}: bytes ${first} to ${first + length - 1} of ${file.name} are others`);
    });
  }

  /** Every stored file, byte for byte. */
  async compareAll(): Promise<void> {
    for (const { name, code, bytes } of this.stored)
      await this.#site.through(name, async () => {
        const got = await this.#site.fetchBytes(`/auth/v2/file/${code}`, 200);
        if (!got.equals(bytes)) this.#site.faults.push(`${name}: the bytes are others`);
      });
  }

  #slice([least, most]: readonly [number, number]): Buffer {
    const length = Math.floor(least + this.#random() * (most - least));
    const first = Math.floor(this.#random() * (SOURCE.length - length));
    return SOURCE.subarray(first, first + length);
  }
}

/** Chunks that the gateway does not have; undefined for an upload that it does not know. */
async function missingOf(
  uploader: { url: string; cookie: string },
  bytes: Buffer,
  name: string,
): Promise<readonly number[] | undefined> {
  const answer = await uploadStatus(uploader, crc32(bytes));
  if (codeOf(answer) === UNKNOWN_UPLOAD) return undefined;
  return expectOk(`${name}: upload_status`, answer).json['result']?.['missing'] as unknown as number[];
}

async function offsetOf(url: string, headers: Record<string, string>): Promise<number> {
  const response = await fetch(url, { method: 'HEAD', headers });
  await accept('HEAD of a draft', response, 204);
  return Number(response.headers.get('upload-offset'));
}

async function accept(step: string, response: Response, status = 200): Promise<void> {
  const text = await response.text();
  if (response.status !== status)
    throw new UnexpectedAnswer(step, { status: response.status, headers: response.headers, text, json: {} });
}

function codeOf({ json }: Answer): number {
  return Number(json['error']?.['code'] ?? 0);
}
