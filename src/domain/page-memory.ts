/**
 * Memory for files, which the kernel fills. It starts at a page, as what the kernel copies does: where the target lies
 * 1 to 31 bytes further into its page than the source, `rep movsb` of AMD's Zen falls back to small steps, and a read
 * takes three times as long (820 us a MiB instead of 260). malloc puts large blocks 16 bytes into a page, so that whole
 * pages of a file always met that; blocks it takes from its heap lie anywhere, so that one process in six was slow.
 */

/**
 * Zeros at first. JavaScript cannot ask for an alignment, but V8 maps pages of their own for an `ArrayBuffer` that may
 * grow, even where it may grow by nothing. It takes whole pages, whatever its length (docs/optimizations.md).
 */
export function pageMemory(sizeBytes: number): Buffer {
  return Buffer.from(new ArrayBuffer(sizeBytes, { maxByteLength: sizeBytes }), 0, sizeBytes);
}
