/** Transfers of a whole file to or from the gateway and its peers. Every answer is checked. */
import { crc32 } from '../../../src/workers/crc32.ts';
import { RawConnection } from './raw-connection.ts';

export interface TransferPlan {
  readonly kind: TransferKind;
  readonly url: string;
  readonly fileBytes: number;
  /** Files under way at once, each on a connection of its own. */
  readonly streams: number;
  /** Connections of one file, where the protocol can use several (v1 chunks). */
  readonly connectionsPerFile: number;
  readonly durationMs: number;
  /** Instead of a duration. */
  readonly files?: number;
  /** One of each stream: its account. */
  readonly cookies: readonly string[];
  readonly path?: string;
}

/** `v1-chunks` and `chunks` measure chunks alone, all of a file but the last one. */
export type TransferKind = 'get' | 'put' | 'v1' | 'v1-chunks' | 'chunks' | 'v2' | 'tus' | 'tus-chunks';

export interface Transfer {
  /** Before the measured time, which is that of one file then; `finish` comes after it. */
  prepare?(): Promise<void>;
  move(): Promise<void>;
  finish?(): Promise<void>;
  /** Bytes of one file, as far as they are measured. */
  readonly bytes: number;
}

const CHUNK_BYTES = 256 * 1024;
const PIECE_BYTES = 1024 * 1024;

/** Bytes of a stream: streams differ, because an upload id is the CRC-32 of the file. Made once. */
const pieceOf = remembered((stream) => Buffer.alloc(PIECE_BYTES, `stream ${stream} of the bench; `));

/** The CRC-32 of each chunk of a stream's file, and of the whole. */
const checksOf = remembered((stream, fileBytes) => {
  const chunks = chunkSizes(fileBytes).map((size) => pieceOf(stream).subarray(0, size));
  return {
    crcs: chunks.map((chunk) => crc32(chunk)),
    whole: chunks.reduce((crc, chunk) => crc32(chunk, crc), 0),
  };
});

function remembered<Value>(make: (stream: number, fileBytes: number) => Value) {
  const known = new Map<string, Value>();
  return (stream: number, fileBytes = 0): Value => {
    const key = `${stream} ${fileBytes}`;
    const value = known.get(key) ?? make(stream, fileBytes);
    known.set(key, value);
    return value;
  };
}

function chunkSizes(fileBytes: number): number[] {
  return Array.from({ length: Math.ceil(fileBytes / CHUNK_BYTES) }, (_, chunk) =>
    Math.min(CHUNK_BYTES, fileBytes - chunk * CHUNK_BYTES),
  );
}

const TRANSFERS: Record<TransferKind, (plan: TransferPlan, stream: number) => Promise<Transfer>> = {
  async get(plan) {
    const connection = await RawConnection.open(plan.url);
    return {
      bytes: plan.fileBytes,
      async move() {
        const { status, bodyBytes } = await connection.ask('GET', plan.path ?? '/');
        check('GET', status, 200, bodyBytes === plan.fileBytes);
      },
    };
  },
  async put(plan, stream) {
    const connection = await RawConnection.open(plan.url);
    const piece = pieceOf(stream);
    let file = 0;
    return {
      bytes: plan.fileBytes,
      async move() {
        file += 1;
        const { status } = await connection.ask('PUT', `/up/${stream}-${file}`, {}, piece, plan.fileBytes);
        check('PUT', status, status === 204 ? 204 : 201);
      },
    };
  },
  async v1(plan, stream) {
    const { init, send, count } = await chunkUpload(plan, stream);
    return {
      bytes: plan.fileBytes,
      async move() {
        await init();
        check('completion', await send(0, count), 1);
      },
    };
  },
  async 'v1-chunks'(plan, stream) {
    const { init, send, count } = await chunkUpload(plan, stream);
    return {
      bytes: (count - 1) * CHUNK_BYTES,
      prepare: init,
      move: async () => check('completion', await send(0, count - 1), 0),
      finish: async () => check('completion', await send(count - 1, count), 1),
    };
  },
  async chunks(plan, stream) {
    const connection = await RawConnection.open(plan.url);
    const chunk = pieceOf(stream).subarray(0, CHUNK_BYTES);
    const count = chunkSizes(plan.fileBytes).length - 1;
    return {
      bytes: count * CHUNK_BYTES,
      async move() {
        for (let number = 0; number < count; number += 1)
          check('chunk', (await connection.ask('POST', `/${stream}?${number}`, {}, chunk)).status, 200);
      },
    };
  },
  async v2(plan, stream) {
    const connection = await RawConnection.open(plan.url);
    const piece = pieceOf(stream);
    const headers = { Cookie: plan.cookies[stream] ?? '' };
    return {
      bytes: plan.fileBytes,
      async move() {
        const query = `fileName=bench.bin&fileSize=${plan.fileBytes}`;
        const draft = await connection.ask('POST', `/auth/v2/file/create_draft?${query}`, headers);
        const fileId = /"result":"(\d+):/.exec(draft.text)?.[1];
        check('create_draft', draft.status, 200, fileId !== undefined, draft.text);
        const type = { ...headers, 'Content-Type': 'application/octet-stream' };
        const path = `/auth/v2/file/stream_upload/${fileId}`;
        const { status, text } = await connection.ask('POST', path, type, piece, plan.fileBytes);
        check('stream_upload', status, 200, true, text);
      },
    };
  },
  tus: (plan, stream) => tusUpload(plan, stream, plan.fileBytes),
  'tus-chunks': (plan, stream) => tusUpload(plan, stream, CHUNK_BYTES),
};

/** Creates a file, and sends it in PATCHes of so many bytes. */
async function tusUpload(plan: TransferPlan, stream: number, patchBytes: number): Promise<Transfer> {
  const { fileBytes, url } = plan;
  const connection = await RawConnection.open(url);
  const version = { 'Tus-Resumable': '1.0.0' };
  const create = { ...version, 'Upload-Length': `${fileBytes}` };
  return {
    bytes: fileBytes,
    async move() {
      const made = await connection.ask('POST', '/files', create);
      const location = /\r\nlocation: *(\S+)/.exec(made.head)?.[1];
      check('tus create', made.status, 201, location !== undefined);
      const path = new URL(location ?? '', url).pathname;
      for (let offset = 0; offset < fileBytes; offset += patchBytes) {
        const type = 'application/offset+octet-stream';
        const headers = { ...version, 'Upload-Offset': `${offset}`, 'Content-Type': type };
        const length = Math.min(patchBytes, fileBytes - offset);
        const { status, text } = await connection.ask('PATCH', path, headers, pieceOf(stream), length);
        check('tus patch', status, 204, true, text);
      }
    },
  };
}

interface ChunkUpload {
  readonly count: number;
  init(): Promise<void>;
  /** Chunks from `first` to before `end`, over all connections; how many of them completed the file. */
  send(first: number, end: number): Promise<number>;
}

/** v1: init_upload, then every chunk in a request of its own, over one connection or several. */
async function chunkUpload(plan: TransferPlan, stream: number): Promise<ChunkUpload> {
  const { fileBytes, connectionsPerFile, url } = plan;
  const opening = Array.from({ length: connectionsPerFile }, () => RawConnection.open(url));
  const connections = await Promise.all(opening);
  const [first] = connections;
  if (first === undefined) throw new Error('at least one connection');
  const piece = pieceOf(stream).subarray(0, CHUNK_BYTES);
  const sizes = chunkSizes(fileBytes);
  const { crcs, whole } = checksOf(stream, fileBytes);
  const headers = { Cookie: plan.cookies[stream] ?? '', 'Content-Type': 'application/octet-stream' };
  return {
    count: sizes.length,
    async init() {
      const body = Buffer.from(JSON.stringify({ FileName: 'bench.bin', FileSize: fileBytes, CRC32: whole }));
      const json = { ...headers, 'Content-Type': 'application/json' };
      const { status, text } = await first.ask('POST', '/auth/v1/file/init_upload', json, body);
      check('init_upload', status, 200, true, text);
    },
    async send(from, end) {
      let next = from;
      let completed = 0;
      const work = async (connection: RawConnection) => {
        while (next < end) {
          const chunk = next;
          next += 1;
          const query = `uploadId=${whole}&chunkNumber=${chunk}&chunkCrc32=${crcs[chunk]}`;
          const path = `/auth/v1/file/upload_part?${query}`;
          const { status, text } = await connection.ask('POST', path, headers, piece, sizes[chunk]);
          check('upload_part', status, 200, true, text);
          if (!text.includes('"fileId":null')) completed += 1;
        }
      };
      await Promise.all(connections.map(work));
      return completed;
    },
  };
}

export function prepare(plan: TransferPlan): Promise<Transfer[]> {
  return Promise.all(Array.from({ length: plan.streams }, (_, stream) => TRANSFERS[plan.kind](plan, stream)));
}

function check(step: string, found: number, expected: number, right = true, text = ''): void {
  if (found !== expected || !right) throw new Error(`${step}: ${found}, expected was ${expected} ${text}`);
}
