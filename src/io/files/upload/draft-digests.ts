/** Checks the digests of body and file that the uploader sent (RFC 9530). */
import type { WorkerPort } from '../../../actors/runtime/ports.ts';
import { GatewayError } from '../../../domain/errors.ts';
import type { Digests } from '../../../domain/files/upload-plan.ts';
import { runOnLease } from '../storage/file-tasks.ts';
import type { PartLease } from '../storage/port.ts';

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
 * Of the whole file: one that arrived in pieces is read again for its SHA-256. Throws `ChecksumError`, `Overloaded`,
 * `TaskTimedOut`, `FileStorageFailed`.
 */
export async function checkFile(
  digests: Digests,
  file: Arrived,
  { lease, workers }: { readonly lease: PartLease; readonly workers: WorkerPort },
): Promise<void> {
  if (digests.sha256 === undefined || file.sha256 !== undefined) {
    checkBody(digests, file);
    return;
  }
  const range = { fd: lease.fd, position: 0, length: file.sizeBytes };
  const hashed = await runOnLease(workers, lease, 'sha256Range', range);
  if (!hashed.ok) throw new GatewayError(hashed.error);
  if (hashed.value === undefined) throw new GatewayError('FileStorageFailed');
  checkBody(digests, { ...file, sha256: Buffer.from(hashed.value, 'base64url') });
}
