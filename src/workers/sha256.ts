/**
 * SHA-256 of a range of a file, for the digests of an uploader (RFC 9530). The range is read again on a worker thread,
 * usually from the page cache, because it was just written.
 */
import { createHash } from 'node:crypto';
import { readSync } from 'node:fs';
import { pageMemory } from '../domain/page-memory.ts';

const STEP_BYTES = 256 * 1024;
/** One for each thread, which runs one task at a time. */
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
