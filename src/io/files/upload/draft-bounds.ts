/**
 * Size bounds of the body of a v2 upload, from the declarations of draft and request and from the settings (spec 4.7
 * rule 5).
 */
import { type ErrorName, GatewayError } from '../../../domain/errors.ts';
import type { UploadPlan } from '../../../domain/files/upload-plan.ts';

export interface BodyBounds {
  /** Most bytes that the body may have, and the error of a longer one. */
  readonly maxBytes: number;
  readonly tooLong: ErrorName;
  /** Bytes between the offset and the size of the largest file accepted. */
  readonly roomBytes: number;
  /** Fewest bytes of a complete body. */
  readonly minBytes: number;
  /** Bytes of the whole file; undefined where it was not declared. */
  readonly totalBytes: number | undefined;
}

/** Throws `InvalidInput` for contradicting declarations, `MaxFileSize` for an offset past every file. */
export function bodyBounds(plan: UploadPlan, declaredBytes: number | null, fileMaxBytes: number): BodyBounds {
  const { offsetBytes, bodyBytes, completes } = plan;
  if (plan.totalBytes !== undefined && declaredBytes !== null && plan.totalBytes !== declaredBytes) {
    throw new GatewayError('InvalidInput', `the draft was declared with ${declaredBytes} bytes`);
  }
  const totalBytes = declaredBytes ?? plan.totalBytes;
  if (Math.max(offsetBytes, totalBytes ?? 0) > fileMaxBytes) throw new GatewayError('MaxFileSize');
  if (totalBytes !== undefined && offsetBytes > totalBytes) throw new GatewayError('WrongPart');
  const roomBytes = fileMaxBytes - offsetBytes;
  const maxBytes = Math.min(
    bodyBytes ?? Number.POSITIVE_INFINITY,
    (totalBytes ?? fileMaxBytes) - offsetBytes,
    roomBytes,
  );
  const whole = completes === 'always' && totalBytes !== undefined ? totalBytes - offsetBytes : 0;
  return {
    maxBytes,
    tooLong: maxBytes === roomBytes ? 'MaxFileSize' : 'WrongPart',
    roomBytes,
    minBytes: Math.max(bodyBytes ?? 0, whole),
    totalBytes,
  };
}

/** Throws `MaxFileSize`, `WrongPart` or `ShortPart` for a body of this size. */
export function checkSize(sizeBytes: number, bounds: BodyBounds): void {
  if (sizeBytes > bounds.roomBytes) throw new GatewayError('MaxFileSize');
  if (sizeBytes > bounds.maxBytes) throw new GatewayError(bounds.tooLong);
  if (sizeBytes < bounds.minBytes) throw new GatewayError('ShortPart');
}
