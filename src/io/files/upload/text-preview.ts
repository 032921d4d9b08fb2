/** Preview of a finished file for the chat module (`chat_read_text_file`). */
import { GatewayError } from '../../../domain/errors.ts';
import type { FileKey } from '../../../domain/files/files.ts';
import { PREVIEW_READ_BYTES, previewOf } from '../../../domain/files/text-preview.ts';
import type { FileStorage } from '../storage/port.ts';

/** Undefined for files without text, and when the bytes cannot be read: the file is complete in either case. */
export async function textPreview(
  storage: Pick<FileStorage, 'open' | 'takePreview'>,
  key: FileKey,
): Promise<string | undefined> {
  const known = storage.takePreview?.(key);
  if (known !== undefined) return known.text;
  const bytes = await firstBytes(storage, key).catch(nothingWhereStorageFails);
  return bytes === undefined ? undefined : previewOf(bytes);
}

async function firstBytes(storage: Pick<FileStorage, 'open'>, key: FileKey): Promise<Buffer | undefined> {
  const file = await storage.open(key);
  if (file === undefined) return undefined;
  const bytes = Buffer.alloc(Math.min(file.sizeBytes, PREVIEW_READ_BYTES));
  return new Promise((resolve, reject) => {
    const late = () => reject(new GatewayError('TaskTimedOut'));
    file
      .read(bytes, 0, late)
      .finally(() => file.close())
      .then((sizeBytes) => resolve(bytes.subarray(0, sizeBytes)), reject);
  });
}

function nothingWhereStorageFails(error: unknown): undefined {
  if (!(error instanceof GatewayError)) throw error;
}
