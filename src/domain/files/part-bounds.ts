/** What a part may have: the bytes of its file, and behind them a table that is not published (decision 0145). */

export interface PartBounds {
  readonly sizeBytes: number;
  readonly partBytesMax: number;
}

interface PartStats {
  isFile(): boolean;
  readonly size: number;
}

/** Why a part cannot become the file; undefined when it can, once what is behind `sizeBytes` is cut off. */
export function partFault(stats: PartStats, { sizeBytes, partBytesMax }: PartBounds): string | undefined {
  if (!stats.isFile()) return 'the part is no file';
  if (stats.size >= sizeBytes && stats.size <= partBytesMax) return undefined;
  return `the part has ${stats.size} bytes, expected were ${sizeBytes}`;
}
