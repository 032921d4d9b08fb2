/** Uploads and downloads of whole files at the real program, by both transports. */
import CRC32 from 'crc-32';
import { expectOk, type Person, request } from '../../../kit/agent.ts';
import type { RunningGateway } from '../../../kit/launch.ts';

export const CHUNK_BYTES = 256 * 1024;
const OCTETS = 'application/octet-stream';
const crcOf = (bytes: Uint8Array) => CRC32.buf(bytes) >>> 0;

async function send(
  url: string,
  person: Person,
  body: Uint8Array,
): Promise<{ status: number; text: string }> {
  const headers = { Cookie: person.cookie, 'Content-Type': OCTETS };
  const response = await fetch(url, { method: 'POST', headers, body: Uint8Array.from(body) });
  return { status: response.status, text: await response.text() };
}

export async function uploadChunks({ url }: RunningGateway, person: Person, bytes: Buffer): Promise<string> {
  const crc32 = crcOf(bytes);
  const body = { FileName: 'a.bin', FileSize: bytes.length, CRC32: crc32 };
  const headers = { Cookie: person.cookie };
  expectOk('init_upload', await request(`${url}/auth/v1/file/init_upload`, { headers, body }));
  let code: unknown = null;
  for (let chunk = 0; chunk * CHUNK_BYTES < bytes.length; chunk++) {
    const piece = bytes.subarray(chunk * CHUNK_BYTES, (chunk + 1) * CHUNK_BYTES);
    const query = `uploadId=${crc32}&chunkNumber=${chunk}&chunkCrc32=${crcOf(piece)}`;
    const { status, text } = await send(`${url}/auth/v1/file/upload_part?${query}`, person, piece);
    if (status !== 200) throw new Error(`upload_part: ${status} ${text}`);
    code = (JSON.parse(text) as { result: { fileCode: unknown } }).result.fileCode;
  }
  return String(code);
}

export async function uploadStream({ url }: RunningGateway, person: Person, bytes: Buffer, name = 'b.bin') {
  const address = `${url}/auth/v2/file/create_draft?fileName=${name}&fileSize=${bytes.length}`;
  const headers = { Cookie: person.cookie };
  const draft = expectOk('create_draft', await request(address, { method: 'POST', headers }));
  const [fileId, code] = String(draft.json['result']).split(':');
  return { ...(await send(`${url}/auth/v2/file/stream_upload/${fileId}`, person, bytes)), code };
}

export async function fetchFile({ url }: RunningGateway, code: string | undefined, range?: string) {
  const headers = range === undefined ? {} : { Range: range };
  const response = await fetch(`${url}/auth/v2/file/${code}`, { headers });
  return { status: response.status, bytes: Buffer.from(await response.arrayBuffer()) };
}
