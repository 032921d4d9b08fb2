/**
 * File codes: a file's id enciphered with 8 bytes of redundancy in one AES-128 block, 22 characters of base64url. No
 * look-up, deterministic, and not to be guessed: a made-up code decodes with a chance of 2^-64 (decision 0043).
 */
import { createCipheriv, createDecipheriv } from 'node:crypto';
import { decodeBase64url, parseId } from '../../../domain/ids.ts';

const CIPHER = 'aes-128-ecb';
const KEY_BYTES = 16;
const BLOCK_BYTES = 16;
const ID_BYTES = 8;
/** Purpose under which the vault derives the key. Another one here would make every code that was given out unknown. */
const PURPOSE = 'file codes';
/** What every block ends with; a block that deciphers to anything else is no code of this gateway. */
const REDUNDANCY = Buffer.alloc(BLOCK_BYTES - ID_BYTES);
/** The most digits an int64 has: more of them can only be a code. */
const RAW_ID = /^[0-9]{1,19}$/;
/** Codes whose ids are remembered: a player asks for one file hundreds of times. The first that came go first. */
const REMEMBERED_MAX = 1_024;

/** What stands in a download's path. */
type FileReference = { readonly fileId: string; readonly by: 'id' | 'code' };

export interface FileCodes {
  /** The code of a file; `fileId` is a decimal int64. */
  encode(fileId: string): string;
  /** The id behind a code; undefined when this gateway never gave it out. */
  decode(code: string): string | undefined;
  /** Reads `id_or_code` (spec 4.7 rule 2): at most 19 digits are a raw id, anything else has to decode. */
  read(idOrCode: string): FileReference | undefined;
}

/** The codes of this journal. */
export function openFileCodes(cipher: {
  deriveKey(purpose: string, lengthBytes: number): Buffer;
}): FileCodes {
  return createFileCodes(cipher.deriveKey(PURPOSE, KEY_BYTES));
}

/**
 * `key`: 16 bytes. One block is enciphered by itself, so there is nothing to chain and no nonce to keep, and a cipher that
 * has done its block is as good as new: making one costs ten times the block.
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
    const oldest = remembered.size < REMEMBERED_MAX ? undefined : remembered.keys().next().value;
    if (oldest !== undefined) remembered.delete(oldest);
    const reference: FileReference = { fileId, by: 'code' };
    remembered.set(code, reference);
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
