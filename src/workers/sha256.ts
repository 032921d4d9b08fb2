/**
 * SHA-256 of bytes that are in a file already, for the digests that an uploader sends along (RFC 9530). Read once more
 * on a thread: opt-in, and the bytes have just been written, so they come from memory.
 */
import { createHash } from 'node:crypto';
import { readSync } from 'node:fs';

const STEP_BYTES = 256 * 1024;

export interface Sha256RangeTask {
  readonly fd: number;
  /** In bytes, as is the length. */
  readonly position: number;
  readonly length: number;
}

/** In base64url; undefined when the file ends before the range does. */
export function sha256Range({ fd, position, length }: Sha256RangeTask): string | undefined {
  const hash = createHash('sha256');
  const step = new Uint8Array(Math.min(Math.max(1, length), STEP_BYTES));
  for (let done = 0; done < length; ) {
    const got = readSync(fd, step, 0, Math.min(step.length, length - done), position + done);
    if (got === 0) return undefined;
    hash.update(step.subarray(0, got));
    done += got;
  }
  return hash.digest('base64url');
}
