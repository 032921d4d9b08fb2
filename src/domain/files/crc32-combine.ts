/**
 * CRC-32 of a whole from the CRC-32s of its pieces, without reading a byte again. CRC is linear over GF(2): with P the
 * polynomial 0xEDB88320 in reflected form, crc(A‖B) = crc(A) · x^(8·|B|) mod P, xor crc(B). So every piece adds its own
 * term, whatever the order in which they arrive. Source: M. Adler's crc32_combine of zlib.
 */

const POLYNOMIAL = 0xedb88320;
/** The polynomial 1: reflected, so the highest bit is the lowest power. */
const ONE = 0x80000000;
/** x^(2^i) mod P; the powers repeat after 32 (the order of x divides 2^32 − 1). */
const SQUARES = squares();

/** CRC-32 of A followed by B, from both and the length of B in bytes. */
export function combineCrc32(crcOfA: number, crcOfB: number, lengthOfBBytes: number): number {
  return (shiftCrc32(crcOfA, lengthOfBBytes) ^ crcOfB) >>> 0;
}

/**
 * Returns the term of a piece in the CRC-32 of its file, given how many bytes follow it there. The file's CRC-32 is the
 * xor of the terms of all pieces, in any order. Unsigned.
 */
export function shiftCrc32(crc: number, bytesAfter: number): number {
  return multiply(powerOfX(bytesAfter), crc);
}

/** x^(8·bytes) mod P. */
function powerOfX(bytes: number): number {
  let product = ONE;
  // 8 bits a byte: the exponent begins at the third square.
  for (let rest = bytes, index = 3; rest > 0; rest = Math.floor(rest / 2), index++) {
    if (rest % 2 === 1) product = multiply(SQUARES[index % 32] ?? ONE, product);
  }
  return product;
}

function multiply(a: number, b: number): number {
  let product = 0;
  let factor = b;
  for (let bit = ONE; bit !== 0; bit >>>= 1) {
    if ((a & bit) !== 0) product ^= factor;
    factor = (factor & 1) === 1 ? (factor >>> 1) ^ POLYNOMIAL : factor >>> 1;
  }
  return product >>> 0;
}

function squares(): readonly number[] {
  const found = [ONE >>> 1];
  while (found.length < 32) {
    const last = found.at(-1) ?? ONE;
    found.push(multiply(last, last));
  }
  return found;
}
