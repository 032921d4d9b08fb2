/**
 * Receives the chunks of v1 uploads. The upload actor gives a chunk's position and records it when its bytes are written.
 * One request at a time writes a chunk. Acknowledged bytes are overwritten only after the actor has recorded it.
 */

import { type ChunkPosition, type FindPosition, upload } from '../../../actors/files/v1/upload.ts';
import type { StoredChunk } from '../../../actors/files/v1/upload-messages.ts';
import type { ReplaceChunk, StoreChunk } from '../../../actors/files/v1/upload-parts.ts';
import type { ActorSystem } from '../../../actors/runtime/actor.ts';
import { GatewayError } from '../../../domain/errors.ts';
import { chunkEntry } from '../../../domain/files/chunk-table.ts';
import { CHUNK_BYTES } from '../../../domain/files/files.ts';
import type { IncomingBody } from '../../http/body/incoming-body.ts';
import type { TraceSpan } from '../../tracing/span.ts';
import type { FileStorage } from '../storage/port.ts';
import type { Throttle, ThrottledStream } from '../throttle.ts';
import type { ReceiveOptions } from './body-writer.ts';
import { KeyedQueue } from './keyed-queue.ts';
import type { BodyReceiver } from './receiver.ts';

/** Chunks of one upload that are received at once: bounds the buffers and descriptors of 60 uploads. */
const RECEIVED_AT_ONCE_MAX = 8;

/** Lease for chunks that a bucket gets: nothing is written here, and no late task holds anything. */
const NO_PART: ReceiveOptions['lease'] = {
  fd: -1,
  keepFor: () => undefined,
  failure: () => new GatewayError('FileStorageFailed'),
};

interface PartUploadsOptions {
  readonly storage: Pick<FileStorage, 'lease' | 'isShared' | 'direct'>;
  readonly receiver: Pick<BodyReceiver, 'receive' | 'prebuffer'>;
  readonly throttle: Pick<Throttle, 'open'>;
}

/** One `upload_part` request. */
interface PartRequest {
  readonly actors: ActorSystem;
  readonly userId: string;
  readonly address: string;
  readonly uploadId: number;
  /** NaN when it is missing or invalid. */
  readonly chunkNumber: number;
  /** Declared CRC-32, unsigned; -1, which no chunk has, when it is missing or invalid. */
  readonly crc32: number;
  readonly body: IncomingBody | undefined;
  /** Span of a sampled request. */
  readonly span?: TraceSpan | undefined;
}

export class PartUploads {
  readonly #options: PartUploadsOptions;
  readonly #chunks = new KeyedQueue(1);
  readonly #uploads = new KeyedQueue(RECEIVED_AT_ONCE_MAX);

  constructor(options: PartUploadsOptions) {
    this.#options = options;
  }

  /** Uploads and chunks that are being received or wait for it. */
  counters(): { readonly uploads: number; readonly chunks: number } {
    return { uploads: this.#uploads.size, chunks: this.#chunks.size };
  }

  /**
   * Rejects with `InvalidID`, `InvalidPart`, then `InvalidInput` for the checksum, `WrongPart`, `ShortPart`,
   * `ChecksumError`; with the error of the completion when the last chunk ended the upload.
   */
  async store(part: PartRequest): Promise<StoredChunk> {
    const { body } = part;
    if (body === undefined) return await this.#store(part);
    return await this.#options.receiver.prebuffer(body, (prebuffered) =>
      this.#store({ ...part, body: prebuffered }),
    );
  }

  async #store(part: PartRequest): Promise<StoredChunk> {
    const first = await this.#findPosition(part);
    if (part.crc32 < 0) throw new GatewayError('InvalidInput', 'chunkCrc32: expected a CRC-32');
    if (first.known) return await this.#repeat(part, first);
    return await this.#chunks.run(`${first.uploadKey} ${part.chunkNumber}`, async () => {
      // Another request may have stored the same chunk while this one waited.
      const position = await this.#findPosition(part);
      if (position.known) return await this.#repeat(part, position);
      try {
        await this.#uploads.run(position.uploadKey, () => this.#receive(part, position));
      } catch (error) {
        return await this.#repeatOrThrow(part, error);
      }
      return await recordChunk(part, position);
    });
  }

  /** The same chunk may have completed the upload at another node meanwhile: then its part is gone, and its answer repeated. */
  async #repeatOrThrow(part: PartRequest, error: unknown): Promise<StoredChunk> {
    const isGone = error instanceof GatewayError && error.row === 'InvalidID';
    if (!isGone || !this.#options.storage.isShared) throw error;
    const position = await this.#findPosition(part);
    if (!position.known) throw error;
    return await this.#repeat(part, position);
  }

  /** Finds the position within the tick where this node owns the upload for certain: no commit is waited for. */
  #findPosition({
    actors,
    userId,
    uploadId,
    chunkNumber,
    crc32,
  }: PartRequest): ChunkPosition | Promise<ChunkPosition> {
    const command: FindPosition = { type: 'findPosition', uploadId, chunkNumber, crc32 };
    return this.#options.storage.isShared
      ? actors.query(upload, userId, command)
      : actors.now(upload, userId, command);
  }

  /** The lease is released before the actor records the chunk: publish waits for the last lease. */
  async #receive(part: PartRequest, position: ChunkPosition): Promise<void> {
    const { fileId, sizeBytes } = position;
    const { body, userId, chunkNumber, crc32 } = part;
    if (body === undefined || (body.declaredBytes ?? sizeBytes) < sizeBytes) throw shortPartError(sizeBytes);
    const { storage } = this.#options;
    const { direct } = storage;
    const key = { owner: userId, fileId };
    if (direct !== undefined) {
      const send = (bytes: Uint8Array) => direct.putChunk(key, chunkNumber, crc32, bytes);
      await this.#receiveBody(part, body, position, { lease: NO_PART, send });
      return;
    }
    const lease = await storage.lease(key);
    try {
      await this.#receiveBody(part, body, position, { lease });
      if (storage.isShared) await lease.sync();
    } finally {
      await lease.release();
    }
  }

  async #receiveBody(
    part: PartRequest,
    body: IncomingBody,
    position: ChunkPosition,
    target: Pick<ReceiveOptions, 'lease' | 'send'>,
  ): Promise<void> {
    const { positionBytes, sizeBytes, fileBytes, replaces } = position;
    const { chunkNumber, crc32, span } = part;
    const { storage, receiver } = this.#options;
    const throttled = this.#throttled(part);
    try {
      const received = await receiver.receive({
        ...target,
        body,
        positionBytes,
        maxBytes: sizeBytes,
        tooLong: 'WrongPart',
        expectedCrc32: crc32,
        entry: chunkEntry(chunkNumber, fileBytes),
        writesWhole: storage.isShared,
        beforeWrite: replaces ? () => replaceChunk(part, position) : undefined,
        throttled,
        span,
      });
      if (received.ended !== 'complete') throw new GatewayError('InvalidInput', 'the body was cut off');
      if (received.sizeBytes < sizeBytes) throw shortPartError(sizeBytes);
      if (received.crc32 !== crc32) throw new GatewayError('ChecksumError');
    } finally {
      throttled.leave();
    }
  }

  /** The chunk is stored already: its bytes are discarded, charged like any others, and the answer is repeated. */
  async #repeat(part: PartRequest, position: ChunkPosition): Promise<StoredChunk> {
    const { body } = part;
    if (body !== undefined) {
      const throttled = this.#throttled(part);
      try {
        await discardBody(body, throttled);
        await throttled.paid();
      } finally {
        throttled.leave();
      }
    }
    return await recordChunk(part, position);
  }

  #throttled({ userId, address }: PartRequest): ThrottledStream {
    return this.#options.throttle.open('part', { userId, address });
  }
}

async function replaceChunk(part: PartRequest, { uploadKey }: ChunkPosition): Promise<void> {
  const { actors, userId, uploadId, chunkNumber, crc32 } = part;
  const command: ReplaceChunk = { type: 'replaceChunk', uploadKey, uploadId, chunkNumber, crc32 };
  await actors.ask(upload, userId, command);
}

function recordChunk(part: PartRequest, { uploadKey }: ChunkPosition): Promise<StoredChunk> {
  const { actors, userId, uploadId, chunkNumber, crc32 } = part;
  const command: StoreChunk = { type: 'storeChunk', uploadKey, uploadId, chunkNumber, crc32 };
  return actors.ask(upload, userId, command);
}

function shortPartError(sizeBytes: number): GatewayError {
  return new GatewayError('ShortPart', `expected ${sizeBytes} bytes`);
}

/** Stops after more than a chunk; the answer discards the rest. */
function discardBody(body: IncomingBody, throttled: ThrottledStream): Promise<void> {
  return new Promise((resolve) => {
    let sizeBytes = 0;
    throttled.onClear = () => body.resume();
    body.read({
      data(bytes) {
        sizeBytes += bytes.length;
        if (!throttled.charge(bytes.length)) body.pause();
        if (sizeBytes <= CHUNK_BYTES) return;
        body.discard();
        resolve();
      },
      end: resolve,
      lost: resolve,
    });
  });
}
