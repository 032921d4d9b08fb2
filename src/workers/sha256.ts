/**
 * SHA-256 of a range of a file, for the digests of an uploader (RFC 9530). The range is read again on a worker thread,
 * usually from the page cache, because it was just written.
 */
import { createHash } from 'node:crypto';
import { type FileRangeTask, readRange } from './file-range.ts';

/** In base64url; undefined when the file ends before the range does. */
export function sha256Range(task: FileRangeTask): string | undefined {
  const hash = createHash('sha256');
  return readRange(task, (bytes) => hash.update(bytes)) ? hash.digest('base64url') : undefined;
}
