/** Checks the digests of body and file that the uploader sent (RFC 9530). */
import { createHash } from 'node:crypto';
import type { WorkerPort } from '../../../actors/runtime/ports.ts';
import { GatewayError } from '../../../domain/errors.ts';
import type { FileKey } from '../../../domain/files/files.ts';
import { type FileSegment, segmentKey, segmentRanges } from '../../../domain/files/segments.ts';
import type { Digests } from '../../../domain/files/upload-plan.ts';
import type { FileRangeTask } from '../../../workers/file-range.ts';
import type { TaskInput } from '../../../workers/tasks.ts';
import { runOnLease } from '../storage/file-tasks.ts';
import type { FileStorage, PartLease } from '../storage/port.ts';

export interface Arrived {
  readonly sizeBytes: number;
  /** Unsigned. */
  readonly crc32: number;
  /** Defined when it was computed while receiving. */
  readonly sha256: Buffer | undefined;
}

/** Throws `ChecksumError`. */
export function checkBody(digests: Digests, { crc32, sha256 }: Arrived): void {
  if (digests.crc32 !== undefined && digests.crc32 !== crc32)
    throw new GatewayError('ChecksumError', 'crc32');
  if (digests.sha256 !== undefined && sha256?.equals(digests.sha256) !== true) {
    throw new GatewayError('ChecksumError', 'sha-256');
  }
}

/**
 * Checks the digests of the whole file: one that arrived in pieces is read again for its SHA-256, by `hash`. Throws
 * `ChecksumError`, and what `hash` rejects with.
 */
export async function checkFile(
  digests: Digests,
  file: Arrived,
  hash: () => Promise<string | undefined>,
): Promise<void> {
  if (digests.sha256 === undefined || file.sha256 !== undefined) {
    checkBody(digests, file);
    return;
  }
  const hashed = await hash();
  if (hashed === undefined) throw new GatewayError('FileStorageFailed');
  checkBody(digests, { ...file, sha256: Buffer.from(hashed, 'base64url') });
}

/** Base64url; undefined when the part is shorter. Rejects with `Overloaded`, `TaskTimedOut`, `FileStorageFailed`. */
export function sha256OfPart(
  workers: WorkerPort,
  lease: PartLease,
  sizeBytes: number,
): Promise<string | undefined> {
  return hashed(workers, lease, { fd: lease.fd, position: 0, length: sizeBytes });
}

/** The same of segments that are the file. */
export async function sha256OfSegments(
  storage: Pick<FileStorage, 'lease'>,
  workers: WorkerPort,
  key: FileKey,
  segments: readonly FileSegment[],
): Promise<string | undefined> {
  const leases: PartLease[] = [];
  try {
    const ranges: FileRangeTask[] = [];
    for (const { number, beginBytes, endBytes } of segmentRanges(segments)) {
      const lease = await storage.lease(segmentKey(key, number));
      leases.push(lease);
      ranges.push({ fd: lease.fd, position: beginBytes, length: endBytes - beginBytes });
    }
    const [lease] = leases;
    const [first, ...more] = ranges;
    if (lease === undefined || first === undefined) return createHash('sha256').digest('base64url');
    const keepFor = (task: Promise<unknown>) => {
      for (const each of leases) each.keepFor(task);
    };
    return await hashed(workers, { ...lease, keepFor }, { ...first, more });
  } finally {
    await Promise.all(leases.map((lease) => lease.release()));
  }
}

async function hashed(
  workers: WorkerPort,
  lease: PartLease,
  task: TaskInput<'sha256Range'>,
): Promise<string | undefined> {
  const result = await runOnLease(workers, lease, 'sha256Range', task);
  if (!result.ok) throw new GatewayError(result.error);
  return result.value;
}
