/**
 * Random bytes for tokens, taken from a supply that the system's generator fills a page at a time: asking it costs the
 * main thread a few microseconds, whatever the length.
 */
import { randomFillSync } from 'node:crypto';

const SUPPLY_BYTES = 4_096;

/** A source of random bytes. Every byte is handed out once, and the supply keeps none of what it handed out. */
export function randomSupply(
  fill: (bytes: Uint8Array) => unknown = randomFillSync,
): (lengthBytes: number) => Uint8Array {
  const supply = new Uint8Array(SUPPLY_BYTES);
  let given = SUPPLY_BYTES;
  return (lengthBytes) => {
    const bytes = new Uint8Array(lengthBytes);
    if (lengthBytes > SUPPLY_BYTES) {
      fill(bytes);
      return bytes;
    }
    if (given + lengthBytes > SUPPLY_BYTES) {
      fill(supply);
      given = 0;
    }
    const end = given + lengthBytes;
    bytes.set(supply.subarray(given, end));
    supply.fill(0, given, end);
    given = end;
    return bytes;
  };
}
