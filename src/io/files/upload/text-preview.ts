/**
 * The beginning of a text file, for the chat module, whose users and agents read it there (`chat_read_text_file`). What is
 * text shows in the bytes: UTF-8 without control characters.
 */
import { GatewayError } from '../../../domain/errors.ts';
import type { FileKey } from '../../../domain/files/files.ts';
import type { FileStorage } from '../storage/port.ts';

const READ_BYTES = 32 * 1024;
/** As it travels: modules take bodies of 64 KiB, and half of a text may be quotes and line ends. */
const JSON_BYTES_MAX = 48 * 1024;
/** All control characters but tab, line feed, form feed and carriage return: one class, a fourth of a look-ahead's time. */
const BINARY = /[^\t\n\f\r\P{Cc}]/u;

/** Undefined for anything but text, and where the bytes cannot be read: the file is complete all the same. */
export async function textPreview(
  storage: Pick<FileStorage, 'open'>,
  key: FileKey,
): Promise<string | undefined> {
  const bytes = await firstBytes(storage, key).catch(nothingWhereStorageFails);
  const text = bytes === undefined ? undefined : decode(bytes);
  return text === undefined || text === '' || BINARY.test(text) ? undefined : cut(text);
}

async function firstBytes(storage: Pick<FileStorage, 'open'>, key: FileKey): Promise<Buffer | undefined> {
  const file = await storage.open(key);
  if (file === undefined) return undefined;
  try {
    const bytes = Buffer.alloc(Math.min(file.sizeBytes, READ_BYTES));
    return bytes.subarray(0, await file.read(bytes, 0));
  } finally {
    file.close();
  }
}

function nothingWhereStorageFails(error: unknown): undefined {
  if (!(error instanceof GatewayError)) throw error;
}

/** Undefined when it is no UTF-8. A character that the end of `bytes` cuts through is left out. */
function decode(bytes: Uint8Array): string | undefined {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes, { stream: true });
  } catch (error) {
    if (error instanceof TypeError) return undefined;
    throw error;
  }
}

/** Never between the halves of a pair. */
function cut(text: string): string {
  let kept = text;
  while (Buffer.byteLength(JSON.stringify(kept)) > JSON_BYTES_MAX)
    kept = kept.slice(0, Math.floor(kept.length / 2)).replace(/[\ud800-\udbff]$/, '');
  return kept;
}
