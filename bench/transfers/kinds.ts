/** How a whole file goes to, or comes from, the gateway and its peers. Every answer is checked. */
import { crc32 } from '../../src/workers/crc32.ts';
import { RawConnection } from './raw-connection.ts';

export interface TransferPlan {
  readonly kind: TransferKind;
  readonly url: string;
  readonly fileBytes: number;
  /** Files under way at once, each on a connection of its own. */
  readonly lanes: number;
  /** Connections of one file, where the protocol can use several (v1 chunks). */
  readonly connectionsPerFile: number;
  readonly durationMs: number;
  /** Instead of a duration. */
  readonly files?: number;
  /** One of each lane: its account. */
  readonly cookies: readonly string[];
  /** What is fetched (download). */
  readonly path?: string;
}

export type TransferKind = 'get' | 'put' | 'v1' | 'v2' | 'tus';

/** Moves one file; the bytes of it. */
export type Transfer = () => Promise<void>;

const CHUNK_BYTES = 256 * 1024;
const PIECE_BYTES = 1024 * 1024;

/** Bytes of a lane: lanes differ, because an upload id is the CRC-32 of the file. Made once. */
const pieceOf = remembered((lane) => Buffer.alloc(PIECE_BYTES, `lane ${lane} of the bench; `));

/** The CRC-32 of each chunk of a lane's file, and of the whole. */
const checksOf = remembered((lane, fileBytes) => {
  const chunks = chunkSizes(fileBytes).map((size) => pieceOf(lane).subarray(0, size));
  return {
    crcs: chunks.map((chunk) => crc32(chunk)),
    whole: chunks.reduce((crc, chunk) => crc32(chunk, crc), 0),
  };
});

function remembered<Value>(make: (lane: number, fileBytes: number) => Value) {
  const known = new Map<string, Value>();
  return (lane: number, fileBytes = 0): Value => {
    const key = `${lane} ${fileBytes}`;
    const value = known.get(key) ?? make(lane, fileBytes);
    known.set(key, value);
    return value;
  };
}

function chunkSizes(fileBytes: number): number[] {
  return Array.from({ length: Math.ceil(fileBytes / CHUNK_BYTES) }, (_, chunk) =>
    Math.min(CHUNK_BYTES, fileBytes - chunk * CHUNK_BYTES),
  );
}

const TRANSFERS: Record<TransferKind, (plan: TransferPlan, lane: number) => Promise<Transfer>> = {
  async get(plan) {
    const connection = await RawConnection.open(plan.url);
    return async () => {
      const { status, bodyBytes } = await connection.ask('GET', plan.path ?? '/');
      check('GET', status, 200, bodyBytes === plan.fileBytes);
    };
  },
  async put(plan, lane) {
    const connection = await RawConnection.open(plan.url);
    const piece = pieceOf(lane);
    let file = 0;
    return async () => {
      file += 1;
      const { status } = await connection.ask('PUT', `/up/${lane}-${file}`, {}, piece, plan.fileBytes);
      check('PUT', status, status === 204 ? 204 : 201);
    };
  },
  v1: chunkUpload,
  async v2(plan, lane) {
    const connection = await RawConnection.open(plan.url);
    const piece = pieceOf(lane);
    const headers = { Cookie: plan.cookies[lane] ?? '' };
    return async () => {
      const query = `fileName=bench.bin&fileSize=${plan.fileBytes}`;
      const draft = await connection.ask('POST', `/auth/v2/file/create_draft?${query}`, headers);
      const fileId = /"result":"(\d+):/.exec(draft.text)?.[1];
      check('create_draft', draft.status, 200, fileId !== undefined, draft.text);
      const type = { ...headers, 'Content-Type': 'application/octet-stream' };
      const path = `/auth/v2/file/stream_upload/${fileId}`;
      const { status, text } = await connection.ask('POST', path, type, piece, plan.fileBytes);
      check('stream_upload', status, 200, true, text);
    };
  },
  async tus(plan, lane) {
    const connection = await RawConnection.open(plan.url);
    const piece = pieceOf(lane);
    const version = { 'Tus-Resumable': '1.0.0' };
    return async () => {
      const made = await connection.ask('POST', '/files', {
        ...version,
        'Upload-Length': `${plan.fileBytes}`,
      });
      const location = /\r\nlocation: *(\S+)/.exec(made.head)?.[1];
      check('tus create', made.status, 201, location !== undefined);
      const path = new URL(location ?? '', plan.url).pathname;
      const headers = { ...version, 'Upload-Offset': '0', 'Content-Type': 'application/offset+octet-stream' };
      const { status, text } = await connection.ask('PATCH', path, headers, piece, plan.fileBytes);
      check('tus patch', status, 204, true, text);
    };
  },
};

/** v1: init_upload, then every chunk in a request of its own, over one connection or several. */
async function chunkUpload(plan: TransferPlan, lane: number): Promise<Transfer> {
  const { fileBytes, connectionsPerFile, url } = plan;
  const lanes = Array.from({ length: connectionsPerFile }, () => RawConnection.open(url));
  const connections = await Promise.all(lanes);
  const [first] = connections;
  if (first === undefined) throw new Error('at least one connection');
  const piece = pieceOf(lane).subarray(0, CHUNK_BYTES);
  const sizes = chunkSizes(fileBytes);
  const { crcs, whole } = checksOf(lane, fileBytes);
  const headers = { Cookie: plan.cookies[lane] ?? '', 'Content-Type': 'application/octet-stream' };
  return async () => {
    const body = Buffer.from(JSON.stringify({ FileName: 'bench.bin', FileSize: fileBytes, CRC32: whole }));
    const json = { ...headers, 'Content-Type': 'application/json' };
    const init = await first.ask('POST', '/auth/v1/file/init_upload', json, body);
    check('init_upload', init.status, 200, true, init.text);
    let next = 0;
    let completed = 0;
    const send = async (connection: RawConnection) => {
      while (next < sizes.length) {
        const chunk = next;
        next += 1;
        const query = `uploadId=${whole}&chunkNumber=${chunk}&chunkCrc32=${crcs[chunk]}`;
        const path = `/auth/v1/file/upload_part?${query}`;
        const { status, text } = await connection.ask('POST', path, headers, piece, sizes[chunk]);
        check('upload_part', status, 200, true, text);
        if (!text.includes('"fileId":null')) completed += 1;
      }
    };
    await Promise.all(connections.map(send));
    check('completion', completed, 1);
  };
}

export function prepare(plan: TransferPlan): Promise<Transfer[]> {
  return Promise.all(Array.from({ length: plan.lanes }, (_, lane) => TRANSFERS[plan.kind](plan, lane)));
}

function check(step: string, found: number, expected: number, right = true, text = ''): void {
  if (found !== expected || !right) throw new Error(`${step}: ${found}, expected was ${expected} ${text}`);
}
