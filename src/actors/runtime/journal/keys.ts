/** The engine's form of keys, which its types leave out. */
import * as lmdb from 'lmdb';
import type { Part } from './reader.ts';

interface KeyForm {
  keyValueToBuffer(key: Part[] | Part): Buffer;
  /** Throws where the bytes are no key. */
  bufferToKeyValue(bytes: Uint8Array): unknown;
}

const form = lmdb as unknown as KeyForm;

export function keyBytes(key: Part[] | Part): Buffer {
  return form.keyValueToBuffer(key);
}

/** A key that is damaged, or written in another way than the engine does, is named by its bytes: no row has it. */
export function keyOf(bytes: Uint8Array): Part[] | Part {
  try {
    const key = form.bufferToKeyValue(bytes);
    const isKey = Array.isArray(key) || typeof key === 'string' || typeof key === 'number';
    if (isKey && Buffer.compare(keyBytes(key as Part[] | Part), bytes) === 0) return key as Part[] | Part;
  } catch {
    // Named by its bytes.
  }
  return `0x${Buffer.from(bytes).toString('hex')}`;
}

/** The key of a sub-database in the table of all: its name, as the engine ends it. */
export function tableKey(name: string): Buffer {
  return Buffer.from(`${name}\0`);
}

export function tableName(key: Buffer): string {
  return key.toString().replace(/\0$/, '');
}
