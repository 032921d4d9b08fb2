/**
 * File codes: a file's id encrypted with 8 bytes of redundancy in one AES-128 block, 22 characters of base64url. No
 * look-up and deterministic; a guessed code decodes with a probability of 2^-64 (docs/decisions/0043).
 */

import { createCipheriv, createDecipheriv } from 'node:crypto';
import { decodeBase64url, parseId } from '../../../domain/ids.ts';
import { keepNewest } from '../../../domain/limits/newest.ts';

const CIPHER = 'aes-128-ecb';
const KEY_BYTES = 16;
const BLOCK_BYTES = 16;
const ID_BYTES = 8;
/** Purpose of the derived key. A change would invalidate every code that was issued. */
const PURPOSE = 'file codes';
/** The end of every block; a block that decrypts to anything else is no code of this gateway. */
const REDUNDANCY = Buffer.alloc(BLOCK_BYTES - ID_BYTES);
/** The most digits an int64 has: more of them can only be a code. */
const RAW_ID = /^[0-9]{1,19}$/;
/** Decoded codes that are cached: a player requests one file hundreds of times. The oldest entry leaves first. */
const REMEMBERED_MAX = 1_024;

/** A file as the path of a download names it. */
type FileReference = { readonly fileId: string; readonly by: 'id' | 'code' };

export interface FileCodes {
  /** The code of a file; `fileId` is a decimal int64. */
  encode(fileId: string): string;
  /** The id of a code; undefined when this gateway did not issue it. */
  decode(code: string): string | undefined;
  /** Reads `id_or_code` (spec 4.7 rule 2): at most 19 digits are a raw id, anything else has to decode. */
  read(idOrCode: string): FileReference | undefined;
}

export function openFileCodes(cipher: {
  deriveKey(purpose: string, lengthBytes: number): Buffer;
}): FileCodes {
  return createFileCodes(cipher.deriveKey(PURPOSE, KEY_BYTES));
}

/**
 * `key`: 16 bytes. Each block is encrypted alone, so there is no chaining and no nonce, and one cipher is used for all
 * blocks: to create one costs ten times as much as a block.
 */
export function createFileCodes(key: Uint8Array): FileCodes {
  if (key.length !== KEY_BYTES) throw new RangeError(`the key of file codes has ${KEY_BYTES} bytes`);
  const cipher = createCipheriv(CIPHER, key, null).setAutoPadding(false);
  const decipher = createDecipheriv(CIPHER, key, null).setAutoPadding(false);
  const decode = (code: string): string | undefined => {
    const block = decodeBase64url(code, BLOCK_BYTES);
    if (block === undefined) return undefined;
    const clear = decipher.update(block);
    if (!clear.subarray(ID_BYTES).equals(REDUNDANCY)) return undefined;
    return parseId(clear.readBigUInt64BE().toString());
  };
  const remembered = new Map<string, FileReference>();
  const readCode = (code: string): FileReference | undefined => {
    const fileId = decode(code);
    if (fileId === undefined) return undefined;
    const reference: FileReference = { fileId, by: 'code' };
    keepNewest(remembered, REMEMBERED_MAX, code, reference);
    return reference;
  };
  return {
    encode(fileId) {
      const clear = Buffer.alloc(BLOCK_BYTES);
      clear.writeBigUInt64BE(BigInt(fileId));
      return cipher.update(clear).toString('base64url');
    },
    decode,
    read(idOrCode) {
      const known = remembered.get(idOrCode);
      if (known !== undefined) return known;
      if (!RAW_ID.test(idOrCode)) return readCode(idOrCode);
      const fileId = parseId(idOrCode);
      return fileId === undefined ? undefined : { fileId, by: 'id' };
    },
  };
}
