/** Bounds of a part: the bytes of its file, and behind them a table that is not published (decision 0045). */

export interface PartBounds {
  readonly sizeBytes: number;
  readonly partBytesMax: number;
}

interface PartStats {
  isFile(): boolean;
  readonly size: number;
}

/** Says why a part cannot become the file; undefined when it can, once the bytes behind `sizeBytes` are cut off. */
export function partFault(stats: PartStats, { sizeBytes, partBytesMax }: PartBounds): string | undefined {
  if (!stats.isFile()) return 'the part is no file';
  if (stats.size >= sizeBytes && stats.size <= partBytesMax) return undefined;
  return `the part has ${stats.size} bytes, expected were ${sizeBytes}`;
}
