/**
 * SHA-256 of bytes that are in a file already, for the digests that an uploader sends along (RFC 9530). Read once more
 * on a thread: opt-in, and the bytes have just been written, so they come from memory.
 */
import { createHash } from 'node:crypto';
import { readSync } from 'node:fs';
import { pageMemory } from '../domain/page-memory.ts';

const STEP_BYTES = 256 * 1024;
/** Of this thread, for one task at a time. */
const STEP = pageMemory(STEP_BYTES);

export interface Sha256RangeTask {
  readonly fd: number;
  /** In bytes, as is the length. */
  readonly position: number;
  readonly length: number;
}

/** In base64url; undefined when the file ends before the range does. */
export function sha256Range({ fd, position, length }: Sha256RangeTask): string | undefined {
  const hash = createHash('sha256');
  for (let done = 0; done < length; ) {
    const got = readSync(fd, STEP, 0, Math.min(STEP_BYTES, length - done), position + done);
    if (got === 0) return undefined;
    hash.update(STEP.subarray(0, got));
    done += got;
  }
  return hash.digest('base64url');
}
