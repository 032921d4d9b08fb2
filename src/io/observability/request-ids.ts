/**
 * Request ids: UUIDs of version 4 (RFC 9562 5.4). Built as one flat string: `randomUUID` returns a rope of 15 parts,
 * 490 bytes in V8 for each open event stream (docs/optimizations.md).
 */
import { randomFillSync } from 'node:crypto';

const ID_BYTES = 16;
/**
 * Ids for which random bytes are read at once, because the call costs more than the rest of an id. Not `randomSupply`:
 * it returns copies and clears the source, as secrets need, which costs 0.2 us more.
 */
const STOCK_IDS = 256;
const TEXT_LENGTH = 36;
const DASH = 0x2d;
/** Position in the text of the two digits of each byte. */
const POSITIONS = [0, 2, 4, 6, 9, 11, 14, 16, 19, 21, 24, 26, 28, 30, 32, 34];
const VERSION_BYTE = 6;
const VARIANT_BYTE = 8;
/** The two digits of each byte, in the order of the text, as a 16-bit number. */
const DIGITS = Uint16Array.from({ length: 256 }, (_, byte) =>
  Buffer.from(byte.toString(16).padStart(2, '0'), 'latin1').readUInt16BE(),
);

const stock = Buffer.alloc(ID_BYTES * STOCK_IDS);
let used = stock.length;
const text = Buffer.alloc(TEXT_LENGTH, DASH);
const digits = new DataView(text.buffer, text.byteOffset, TEXT_LENGTH);

/** Unpredictable as the system's random numbers are. */
export function newRequestId(): string {
  if (used === stock.length) {
    randomFillSync(stock);
    used = 0;
  }
  stock[used + VERSION_BYTE] = ((stock[used + VERSION_BYTE] ?? 0) & 0x0f) | 0x40;
  stock[used + VARIANT_BYTE] = ((stock[used + VARIANT_BYTE] ?? 0) & 0x3f) | 0x80;
  for (let index = 0; index < ID_BYTES; index += 1)
    digits.setUint16(POSITIONS[index] ?? 0, DIGITS[stock[used + index] ?? 0] ?? 0);
  used += ID_BYTES;
  return text.toString('latin1');
}
