/**
 * Performs the I/O of a v2 upload (spec 4.7 stream_upload): one stream of a draft at a time, within its bounds. All
 * decisions are made by the draft actor.
 */
import { createHash } from 'node:crypto';
import { draft } from '../../../actors/files/v2/draft.ts';
import type { UploadedFile } from '../../../actors/files/v2/draft-ending.ts';
import type { FinishedUpload } from '../../../actors/files/v2/draft-state.ts';
import type { ActorSystem } from '../../../actors/runtime/actor.ts';
import type { WorkerPort } from '../../../actors/runtime/ports.ts';
import { GatewayError } from '../../../domain/errors.ts';
import { combineCrc32 } from '../../../domain/files/crc32-combine.ts';
import { type FileKey, fileSizeMaxBytes } from '../../../domain/files/files.ts';
import type { FileSegment } from '../../../domain/files/segments.ts';
import type { UploadPlan } from '../../../domain/files/upload-plan.ts';
import type { SettingsReader } from '../../../domain/settings/settings.ts';
import type { Clock } from '../../../domain/time.ts';
import type { IncomingBody } from '../../http/body/incoming-body.ts';
import type { TraceSpan } from '../../tracing/span.ts';
import { actorsBelow } from '../../tracing/traced-actors.ts';
import { workersBelow } from '../../tracing/traced-ports.ts';
import type { FileStorage } from '../storage/port.ts';
import type { Throttle, ThrottleTimer } from '../throttle.ts';
import type { Received } from './body-writer.ts';
import { type DraftSlot, viewDraft } from './draft-access.ts';
import { type BodyBounds, bodyBounds, checkSize } from './draft-bounds.ts';
import { PieceStream } from './piece-stream.ts';
import type { PrebufferedBody } from './prebuffered-body.ts';
import type { BodyReceiver } from './receiver.ts';
import { repeatsEnd } from './repeated-end.ts';
import {
  type Begun,
  completes,
  contentOf,
  isWrongBody,
  type PartContent,
  pieceBounds,
  placesOf,
  type StreamPart,
} from './stream-content.ts';
import { StreamLocks } from './stream-locks.ts';
import type { ProgressOptions } from './upload-progress.ts';

interface DraftUploadDeps {
  readonly actors: ActorSystem;
  readonly settings: SettingsReader;
  readonly storage: Pick<FileStorage, 'create' | 'lease' | 'reserve' | 'release' | 'isShared' | 'direct'>;
  readonly receiver: Pick<BodyReceiver, 'prebuffer' | 'receive'>;
  readonly throttle: Pick<Throttle, 'open'>;
  readonly workers: WorkerPort;
  readonly clock: Clock;
  readonly timer: ThrottleTimer;
}

/** One `stream_upload` request. */
interface UploadRequest {
  readonly target: DraftSlot;
  readonly plan: UploadPlan;
  /** Undefined: there is no body. */
  readonly incoming: IncomingBody | undefined;
  readonly address: string;
  /** Span of a sampled request. */
  readonly span?: TraceSpan | undefined;
}

interface PrebufferedRequest extends UploadRequest {
  readonly incoming: PrebufferedBody | undefined;
}

/** `kept`: a piece was stored and more may follow. `complete`: the file exists. `elsewhere`: kept bytes end at that offset. */
export type UploadOutcome =
  | { readonly end: 'kept' | 'elsewhere'; readonly offsetBytes: number }
  | { readonly end: 'complete'; readonly file: UploadedFile };

const EXPIRED = new GatewayError('InvalidID', 'the draft has expired');
const SUPERSEDED = new GatewayError('UploadConflict', 'another request has taken over');
/** The bucket has lost bytes, or has others: what is kept ends before them. */
const DAMAGED = new GatewayError('UploadConflict', 'kept bytes are damaged');
const EMPTY_BODY: Received = {
  ended: 'complete',
  sizeBytes: 0,
  crc32: 0,
  sha256: createHash('sha256').digest(),
};

export class DraftUploads {
  readonly #deps: DraftUploadDeps;
  readonly #locks = new StreamLocks();
  readonly #suspendable = new Set<AbortController>();

  constructor(deps: DraftUploadDeps) {
    this.#deps = deps;
  }

  /** `streams`: running streams. `open`: open drafts. */
  counters(): { readonly streams: number; readonly open: number } {
    return { streams: this.#locks.size, open: this.#deps.actors.count('draft') };
  }

  /**
   * Stores the body. Rejects with `InvalidID`, `InvalidInput`, `MaxFileSize`, `EmptyFile`, `WrongPart`, `ShortPart`,
   * `ChecksumError`, `UploadConflict`, `StorageFull`, `FileStorageFailed`, `Forbidden`, `ChartApiFileError`, `Overloaded`,
   * `TaskTimedOut`.
   */
  async upload(request: UploadRequest): Promise<UploadOutcome> {
    const { incoming } = request;
    if (incoming === undefined) return await this.#upload({ ...request, incoming });
    return await this.#deps.receiver.prebuffer(incoming, (prebuffered) =>
      this.#upload({ ...request, incoming: prebuffered }),
    );
  }

  /** Answers the end of a complete upload again. Rejects with `InvalidID` for any other request to it. */
  async repeat(
    finished: FinishedUpload,
    { plan, incoming, address }: Pick<UploadRequest, 'plan' | 'incoming' | 'address'>,
  ): Promise<UploadOutcome> {
    const { ownerId: userId, fileId, sizeBytes, crc32 } = finished;
    const throttled = this.#deps.throttle.open('upload', { userId, address });
    try {
      if (!(await repeatsEnd(plan, incoming, finished, throttled))) throw new GatewayError('InvalidID');
      await throttled.paid();
    } finally {
      throttled.leave();
    }
    return { end: 'complete', file: { fileId, sizeBytes, crc32 } };
  }

  async #upload(request: PrebufferedRequest): Promise<UploadOutcome> {
    const { target, plan, incoming, span } = request;
    const { actors, settings, storage, clock, timer } = this.#deps;
    const view = await viewDraft(actorsBelow(actors, span), target);
    if ('untilMs' in view) return await this.repeat(view, request);
    const { sizeBytes, expiresMs } = view;
    let bounds: BodyBounds;
    try {
      bounds = bodyBounds(plan, sizeBytes, fileSizeMaxBytes(settings));
      if (incoming?.declaredBytes !== undefined) checkSize(incoming.declaredBytes, bounds);
    } catch (error) {
      if (!plan.keeps) await this.drop(target);
      throw error;
    }
    const stop = new AbortController();
    const leave = await this.#locks.take(target.fileId, () => stop.abort(SUPERSEDED));
    const holder = `draft-${target.fileId}`;
    if (plan.keeps) this.#suspendable.add(stop);
    // A slow client must not hold bytes and space of an expired draft.
    const cancelExpiry = timer(Math.max(0, expiresMs - clock()), () => stop.abort(EXPIRED));
    try {
      await storage.reserve(holder, incoming?.declaredBytes ?? bounds.maxBytes);
      return await this.#stream(request, bounds, stop);
    } finally {
      cancelExpiry();
      this.#suspendable.delete(stop);
      storage.release(holder);
      leave();
    }
  }

  /** The gateway stops: resumable streams end now and continue after the restart. The others may finish. */
  suspend(): void {
    for (const stop of this.#suspendable) stop.abort(new GatewayError('Stopping'));
  }

  /** Message and bytes are removed. Rejects with `InvalidID` when the draft has ended already. */
  async drop({ slot, ownerId, fileId }: DraftSlot): Promise<void> {
    await this.#locks.clear(fileId);
    await this.#deps.actors.ask(draft, slot, { type: 'dropDraft', ownerId, fileId });
  }

  /** Ends a resumable stream, so that the number of kept bytes is exact. */
  async interrupt({ fileId }: DraftSlot): Promise<void> {
    await this.#locks.clear(fileId);
  }

  async #stream(
    request: PrebufferedRequest,
    bounds: BodyBounds,
    stop: AbortController,
  ): Promise<UploadOutcome> {
    const { target, plan } = request;
    const { ownerId, fileId, slot } = target;
    const { offsetBytes, appends, keeps } = plan;
    const actors = actorsBelow(this.#deps.actors, request.span);
    // The body is checked before the stream begins: then bytes that could not be kept do not end the draft.
    request.incoming?.check();
    const begin = {
      type: 'beginStream' as const,
      ownerId,
      fileId,
      offsetBytes,
      appends,
      keeps,
      ...placesOf(this.#deps.storage),
    };
    const begun = await actors.ask(draft, slot, begin);
    if (!begun.begun) {
      if ('finished' in begun) return await this.repeat(begun.finished, request);
      return { end: 'elsewhere', offsetBytes: begun.offsetBytes };
    }
    const streamRef = { fileId, stream: begun.stream };
    const sending = this.#sendingOf(request, begun);
    const listed = () => (sending === undefined ? {} : { pieces: sending.kept.pieces });
    const keep = async (receivedBytes: number, crc32: number, isLate = false): Promise<UploadOutcome> => {
      const late = isLate && begun.segments !== undefined ? { isLate: true as const } : {};
      const kept = { type: 'keepBytes' as const, ...streamRef, receivedBytes, crc32, more: false };
      await actors.ask(draft, slot, { ...kept, ...(sending === undefined ? late : listed()) });
      await this.#removeUnlisted(target, begun, sending?.kept.pieces);
      return { end: 'kept', offsetBytes: receivedBytes };
    };
    /** Ends a body that is none without its end: it began at the first byte. */
    const end = async (): Promise<void> => {
      await actors.ask(draft, slot, { type: 'endStream', ...streamRef });
      await this.#removeUnlisted(target, begun, sending && []);
    };
    let content: PartContent;
    try {
      content = await this.#receiveIntoPart(request, bounds, begun, stop, sending);
    } catch (error) {
      const isLate = error instanceof GatewayError && error.row === 'TaskTimedOut';
      if (isWrongBody(error)) sending?.forget();
      const { receivedBytes, crc32 } = sending?.kept ?? { receivedBytes: offsetBytes, crc32: begun.crc32 };
      if (keeps || isLate || request.incoming?.failedUnread === true)
        await keep(receivedBytes, crc32, isLate);
      else await end();
      if (error === DAMAGED) return { end: 'elsewhere', offsetBytes: receivedBytes };
      throw error;
    }
    const { ended, sizeBytes, crc32, sha256 } = content;
    if (ended === 'complete' && completes(plan, bounds, sizeBytes)) {
      const digest = sha256 === undefined ? {} : { sha256: sha256.toString('hex') };
      const finish = { type: 'finishBody' as const, ...streamRef, sizeBytes, crc32, ...digest, ...listed() };
      return { end: 'complete', file: await actors.ask(draft, slot, finish) };
    }
    if (keeps) await keep(sizeBytes, crc32);
    else if (ended === 'lost') await end();
    if (ended === 'stopped') throw stop.signal.reason;
    return { end: 'kept', offsetBytes: sizeBytes };
  }

  #sendingOf({ target, span }: UploadRequest, begun: Begun): PieceStream | undefined {
    const { direct } = this.#deps.storage;
    if (direct === undefined) return undefined;
    const { stream, offsetBytes: receivedBytes, crc32, segments: pieces = [] } = begun;
    return new PieceStream({
      direct,
      workers: workersBelow(this.#deps.workers, span),
      key: { owner: target.ownerId, fileId: target.fileId },
      stream,
      kept: { receivedBytes, crc32, pieces },
    });
  }

  /** Receives from the socket into the part. What a bucket gets of it, it has before this resolves. */
  async #receiveIntoPart(
    request: UploadRequest,
    bounds: BodyBounds,
    begun: Begun,
    stop: AbortController,
    sending: PieceStream | undefined,
  ): Promise<PartContent> {
    const { storage } = this.#deps;
    const { offsetBytes, segments } = begun;
    // The owner of the draft has made the only part of a file.
    if (segments !== undefined) await storage.create(begun.key);
    const lease = await storage.lease(begun.key);
    try {
      // Bytes behind the offset were not acknowledged, or are to be overwritten.
      if (offsetBytes > 0) await lease.truncate(offsetBytes);
      if ((await sending?.begin(lease)) === false) throw DAMAGED;
      const body = await this.#receive(request, bounds, begun, { lease, sending }, stop);
      const workers = workersBelow(this.#deps.workers, request.span);
      const stream = { request, bounds, begun, part: { lease, sending } };
      return await contentOf(stream, body, { storage, workers });
    } finally {
      await sending?.settled();
      await lease.release();
      if (sending !== undefined) await this.#discard(begun.key);
    }
  }

  /** Appends of few bytes would fill a bucket otherwise: each sends what its last piece has anew. */
  async #removeUnlisted(
    { ownerId, fileId }: DraftSlot,
    { stream }: Begun,
    listed: readonly FileSegment[] | undefined,
  ): Promise<void> {
    const { direct } = this.#deps.storage;
    // The first stream has sent nothing else.
    if (direct === undefined || listed === undefined || (stream === 1 && listed.length > 0)) return;
    await logged(direct.removeUnlisted({ owner: ownerId, fileId }, stream, listed));
  }

  /** The next start removes what stays. */
  async #discard(key: FileKey): Promise<void> {
    await logged(this.#deps.storage.direct?.discard(key));
  }

  /** Returns the checkpoint of a body that is kept when it breaks off; a bucket gets every body while it arrives. */
  #checkpointOf(
    { target, plan, span }: UploadRequest,
    begun: Begun,
    { lease, sending }: StreamPart,
    stop: AbortController,
  ): ProgressOptions | undefined {
    if (!plan.keeps && sending === undefined) return undefined;
    const actors = actorsBelow(this.#deps.actors, span);
    const { fileId, slot } = target;
    const { stream, offsetBytes } = begun;
    const { direct } = this.#deps.storage;
    const keepOf = async (sizeBytes: number, bodyCrc32: number) => {
      const receivedBytes = offsetBytes + sizeBytes;
      if (sending === undefined) {
        if (begun.segments !== undefined) await lease.sync();
        return { receivedBytes, crc32: combineCrc32(begun.crc32, bodyCrc32, sizeBytes) };
      }
      return await sending.save(lease, receivedBytes);
    };
    return {
      timer: this.#deps.timer,
      ...(direct === undefined ? {} : { bounds: pieceBounds(direct) }),
      async save(sizeBytes, bodyCrc32) {
        try {
          const kept = await keepOf(sizeBytes, bodyCrc32);
          const keep = { type: 'keepBytes' as const, fileId, stream, ...kept, more: true };
          if (plan.keeps) await actors.ask(draft, slot, keep);
          return undefined;
        } catch (error) {
          if (error instanceof GatewayError) return error;
          throw error;
        }
      },
      onRefused: (error) => stop.abort(error),
    };
  }

  async #receive(
    request: UploadRequest,
    bounds: BodyBounds,
    begun: Begun,
    part: StreamPart,
    stop: AbortController,
  ): Promise<Received> {
    const { incoming, plan, target, address, span } = request;
    const sha256 = plan.contentDigests.sha256 !== undefined || plan.fileDigests.sha256 !== undefined;
    if (incoming === undefined) return EMPTY_BODY;
    const throttled = this.#deps.throttle.open('upload', { userId: target.ownerId, address });
    try {
      return await this.#deps.receiver.receive({
        body: incoming,
        lease: part.lease,
        positionBytes: plan.offsetBytes,
        maxBytes: bounds.maxBytes,
        tooLong: bounds.tooLong,
        throttled,
        sha256,
        checkpoint: this.#checkpointOf(request, begun, part, stop),
        span,
        signal: stop.signal,
      });
    } finally {
      throttled.leave();
    }
  }
}

/** Ignores a failed removal: files that stay only take space, and the failure is in the log. */
async function logged(removed: Promise<void> | undefined): Promise<void> {
  try {
    await removed;
  } catch (error) {
    if (!(error instanceof GatewayError)) throw error;
  }
}
