/**
 * SHA-256 of a range of a file, for the digests of an uploader (RFC 9530). The range is read again on a worker thread,
 * usually from the page cache, because it was just written.
 */
import { createHash } from 'node:crypto';
import { type FileRangeTask, readRange } from './file-range.ts';

export interface Sha256Task extends FileRangeTask {
  /** Ranges of other files that follow it. */
  readonly more?: readonly FileRangeTask[];
}

/** Returns the digest in base64url; undefined when a file ends before its range does. */
export function sha256Range({ more = [], ...first }: Sha256Task): string | undefined {
  const hash = createHash('sha256');
  const isWhole = [first, ...more].every((range) => readRange(range, (bytes) => hash.update(bytes)));
  return isWhole ? hash.digest('base64url') : undefined;
}
