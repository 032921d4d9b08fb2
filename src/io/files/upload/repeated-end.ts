/**
 * The end of a v2 upload that was completed before, sent again by a client that lost the answer: the last piece, or an empty
 * append. The bytes are compared by their checksum and stored nowhere.
 */
import { crc32 as crc32Of } from 'node:zlib';
import type { FinishedUpload } from '../../../actors/files/v2/draft-state.ts';
import { combineCrc32 } from '../../../domain/files/crc32-combine.ts';
import type { UploadPlan } from '../../../domain/files/upload-plan.ts';
import type { IncomingBody } from '../../http/body/incoming-body.ts';
import type { ThrottledStream } from '../throttle.ts';

/** True if the request ends the file as the first time. Reads the body where it may be the last piece. */
export async function repeatsEnd(
  { offsetBytes, completes, totalBytes }: UploadPlan,
  incoming: IncomingBody | undefined,
  finished: FinishedUpload,
  throttled: ThrottledStream,
): Promise<boolean> {
  const { sizeBytes, crc32, lastOffsetBytes, prefixCrc32 } = finished;
  if (completes === 'never' || (totalBytes ?? sizeBytes) !== sizeBytes) return false;
  const isEmpty = incoming === undefined || incoming.declaredBytes === 0;
  if (isEmpty) return completes === 'always' && offsetBytes === sizeBytes;
  const lastBytes = sizeBytes - lastOffsetBytes;
  if (offsetBytes !== lastOffsetBytes || (incoming.declaredBytes ?? lastBytes) !== lastBytes) return false;
  const found = await checksumOf(incoming, lastBytes, throttled);
  return found !== undefined && combineCrc32(prefixCrc32, found, lastBytes) === crc32;
}

/** Computes the CRC-32 of a body with exactly this size; undefined for any other, and when the client left. */
function checksumOf(
  incoming: IncomingBody,
  sizeBytes: number,
  throttled: ThrottledStream,
): Promise<number | undefined> {
  let crc = 0;
  let receivedBytes = 0;
  throttled.onClear = () => incoming.resume();
  return new Promise((resolve) => {
    incoming.read({
      data(bytes) {
        receivedBytes += bytes.length;
        if (receivedBytes > sizeBytes) {
          incoming.discard();
          resolve(undefined);
          return;
        }
        crc = crc32Of(bytes, crc);
        if (!throttled.charge(bytes.length)) incoming.pause();
      },
      end: () => resolve(receivedBytes === sizeBytes ? crc : undefined),
      lost: () => resolve(undefined),
    });
  });
}
