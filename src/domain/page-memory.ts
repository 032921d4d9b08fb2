/**
 * Memory for files that the kernel fills. It begins at a page: a copy that ends 1 to 31 bytes further into a page
 * than it began is three times slower on AMD Zen, and malloc puts large blocks 16 bytes in (docs/optimizations.md).
 */

/**
 * Zeros at first. JavaScript cannot ask for an alignment, but V8 maps pages of their own for an `ArrayBuffer` that
 * may grow, even by nothing. It takes whole pages, whatever its length.
 */
export function pageMemory(sizeBytes: number): Buffer {
  return Buffer.from(new ArrayBuffer(sizeBytes, { maxByteLength: sizeBytes }), 0, sizeBytes);
}
