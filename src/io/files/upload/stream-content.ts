/**
 * Content that one stream of a v2 upload leaves: its bytes are where other nodes find them, then sizes and digests are
 * checked.
 */
import type { StreamBegun } from '../../../actors/files/v2/draft-streams.ts';
import type { WorkerPort } from '../../../actors/runtime/ports.ts';
import { GatewayError } from '../../../domain/errors.ts';
import { combineCrc32 } from '../../../domain/files/crc32-combine.ts';
import { segmentsUpTo } from '../../../domain/files/segments.ts';
import type { UploadPlan } from '../../../domain/files/upload-plan.ts';
import type { DirectUploads, FileStorage, PartLease } from '../storage/port.ts';
import type { Received } from './body-writer.ts';
import type { DraftSlot } from './draft-access.ts';
import { type BodyBounds, checkSize } from './draft-bounds.ts';
import { checkBody, checkFile, sha256OfPart, sha256OfSegments } from './draft-digests.ts';
import type { PieceStream } from './piece-stream.ts';
import type { ProgressBounds } from './upload-progress.ts';

export type Begun = Extract<StreamBegun, { begun: true }>;

/** Destination of a stream's bytes: its part, and from there a bucket where there is one. */
export interface StreamPart {
  readonly lease: PartLease;
  readonly sending: PieceStream | undefined;
}

/** Content of the part, from the first byte of the file on. */
export interface PartContent {
  readonly ended: Received['ended'];
  readonly sizeBytes: number;
  readonly crc32: number;
  /** Digest of a whole file, where it was computed. */
  readonly sha256?: Buffer | undefined;
}

interface ReceivedStream {
  readonly request: { readonly plan: UploadPlan; readonly target: DraftSlot };
  readonly bounds: BodyBounds;
  readonly begun: Begun;
  readonly part: StreamPart;
}

interface ContentDeps {
  readonly storage: Pick<FileStorage, 'lease' | 'direct'>;
  readonly workers: WorkerPort;
}

/**
 * Bytes of a body that a bucket does not have are lost with this process: three pieces at most, of which two are being
 * sent.
 */
export function pieceBounds({ pieceBytes }: DirectUploads): ProgressBounds {
  return { saveBytes: pieceBytes, waitBytes: 3 * pieceBytes };
}

/** A body that ends with these is none of the file: nothing of it is kept. */
const WRONG_BODY: ReadonlySet<string> = new Set(['MaxFileSize', 'WrongPart', 'ShortPart', 'ChecksumError']);

/** Call it while the part is leased. */
export async function contentOf(
  stream: ReceivedStream,
  body: Received,
  deps: ContentDeps,
): Promise<PartContent> {
  const { request, bounds, begun, part } = stream;
  const { plan } = request;
  const { ended } = body;
  const sizeBytes = begun.offsetBytes + body.sizeBytes;
  const crc32 = combineCrc32(begun.crc32, body.crc32, body.sizeBytes);
  if (ended === 'complete') {
    checkSize(body.sizeBytes, bounds);
    checkBody(plan.contentDigests, body);
  }
  await settle(stream, ended === 'complete', { sizeBytes, crc32 });
  if (ended !== 'complete' || !completes(plan, bounds, sizeBytes)) return { ended, sizeBytes, crc32 };
  const sha256 = begun.offsetBytes === 0 ? body.sha256 : undefined;
  const hash = () => sha256Of(request.target, begun, part, { sizeBytes, crc32 }, deps);
  await checkFile(plan.fileDigests, { sizeBytes, crc32, sha256 }, hash);
  return { ended, sizeBytes, crc32, sha256: plan.fileDigests.sha256 ?? sha256 };
}

interface Extent {
  readonly sizeBytes: number;
  readonly crc32: number;
}

/** Other nodes may continue from what is kept: it has to be in the bucket, or on the disk. */
async function settle(
  { request, begun, part: { lease, sending } }: ReceivedStream,
  isComplete: boolean,
  { sizeBytes, crc32 }: Extent,
): Promise<void> {
  if (sending === undefined) {
    if (begun.segments !== undefined) await lease.sync();
  } else if (request.plan.keeps || isComplete) await sending.finish(lease, sizeBytes, crc32);
}

function sha256Of(
  { ownerId, fileId }: DraftSlot,
  { key, segments }: Begun,
  { lease, sending }: StreamPart,
  { sizeBytes, crc32 }: Extent,
  { storage, workers }: ContentDeps,
): Promise<string | undefined> {
  if (storage.direct !== undefined && sending !== undefined)
    return storage.direct.sha256Of({ owner: ownerId, fileId }, sending.kept.pieces);
  if (segments === undefined) return sha256OfPart(workers, lease, sizeBytes);
  const ended = segmentsUpTo(segments, { endBytes: sizeBytes, crc32, ended: true });
  return sha256OfSegments(storage, workers, key, ended);
}

export function isWrongBody(error: unknown): boolean {
  return error instanceof GatewayError && WRONG_BODY.has(error.row);
}

/** Says into which places a stream writes when other nodes may continue it. */
export function placesOf({ direct, isShared }: Pick<FileStorage, 'direct' | 'isShared'>): {
  readonly places?: 'segments' | 'pieces';
  readonly segmented?: true;
} {
  if (direct !== undefined) return { places: 'pieces' };
  return isShared ? { places: 'segments', segmented: true } : {};
}

/** True when the file ends with these bytes. */
export function completes(plan: UploadPlan, bounds: BodyBounds, sizeBytes: number): boolean {
  if (plan.completes === 'atSize') return sizeBytes === bounds.totalBytes;
  return plan.completes === 'always';
}
