/**
 * Segments of a file whose streams may run on different nodes: a stream that cannot know the end of the one before writes
 * a part of its own. Bytes lie there at the position that they have in the file (docs/cluster.md "Files").
 */
import { combineCrc32 } from './crc32-combine.ts';
import type { FileKey } from './files.ts';

/** Bytes of each piece, but the last, that a bucket gets of a file while it arrives: some storages join no others. */
export const PIECE_BYTES = 8 * 1024 * 1024;

/** A file's bytes from the end of the segment before up to its own end. */
export interface FileSegment {
  /** Number of its part; 0 is the part of the file without a number. */
  readonly number: number;
  readonly endBytes: number;
  /** Unsigned, of the file from its first byte to the end of the segment. */
  readonly crc32: number;
  /** Its last stream has not reported its end: bytes may still arrive in its part, and count for nothing. */
  readonly isOpen?: true;
  /** Set in a bucket: the object is the last one of its stream, shorter than a piece. */
  readonly isTail?: true;
  /** Set in a bucket: its object has bytes behind the end, which count for nothing. */
  readonly isCut?: true;
}

/** A range of a file that is in one part, with the CRC-32 that the file has up to its end. */
export interface SegmentRange extends FileSegment {
  readonly beginBytes: number;
}

export function segmentKey({ owner, fileId }: FileKey, segment: number): FileKey {
  return segment === 0 ? { owner, fileId } : { owner, fileId, segment };
}

/** Those that hold bytes, with their beginnings. */
export function segmentRanges(segments: readonly FileSegment[]): SegmentRange[] {
  return segments
    .map((segment, at) => ({ ...segment, beginBytes: segments[at - 1]?.endBytes ?? 0 }))
    .filter(({ beginBytes, endBytes }) => endBytes > beginBytes);
}

/** The one segment that is the file and gets no more bytes: its part may become the file. */
export function wholeSegment(segments: readonly FileSegment[]): FileSegment | undefined {
  const [first, ...more] = segmentRanges(segments);
  return first === undefined || first.isOpen === true || more.length > 0 ? undefined : first;
}

/** The range that has to be hashed to know the CRC-32 of the first `offsetBytes`; undefined where a segment ends there. */
export function cutRange(segments: readonly FileSegment[], offsetBytes: number): SegmentRange | undefined {
  return segmentRanges(segments).find(
    ({ beginBytes, endBytes }) => beginBytes < offsetBytes && offsetBytes < endBytes,
  );
}

/** CRC-32 of the file before a range. */
export function crc32Before(segments: readonly FileSegment[], { beginBytes }: SegmentRange): number {
  return segments.find(({ endBytes }) => endBytes === beginBytes)?.crc32 ?? 0;
}

/**
 * The segments once the file ends at `endBytes` with this CRC-32: the last one has grown, or those behind are emptied. An
 * emptied one stays listed, so that its part is removed with the others. `ended`: its stream writes no more.
 */
export function segmentsUpTo(
  segments: readonly FileSegment[],
  { endBytes, crc32, ended }: { readonly endBytes: number; readonly crc32: number; readonly ended: boolean },
): FileSegment[] {
  return segments.map((segment, at) => {
    const isLast = at === segments.length - 1;
    if (!isLast && segment.endBytes <= endBytes) return segment;
    const { isOpen: _, ...closed } = segment;
    return { ...(isLast && ended ? closed : segment), endBytes, crc32 };
  });
}

/**
 * Adds the segment into which a new stream writes from `endBytes` on: the last one, if nothing else may write there, or
 * one of this number.
 */
export function segmentsWithStream(
  segments: readonly FileSegment[],
  place: { readonly endBytes: number; readonly crc32: number; readonly number: number },
): FileSegment[] {
  const { number, ...end } = place;
  const before = segmentsUpTo(segments, { ...end, ended: false });
  const last = before.at(-1);
  if (last !== undefined && last.isOpen !== true) return [...before.slice(0, -1), { ...last, isOpen: true }];
  return [...before, { number, ...end, isOpen: true }];
}

/**
 * The pieces of a bucket that hold the first `endBytes`. Their objects never change: one that holds more bytes keeps its
 * name, which follows from its stream and from the 8 MiB of the file that it belongs to.
 */
export function piecesUpTo(
  pieces: readonly FileSegment[],
  { endBytes, crc32 }: { readonly endBytes: number; readonly crc32: number },
): FileSegment[] {
  return segmentRanges(pieces)
    .filter(({ beginBytes }) => beginBytes < endBytes)
    .map(({ beginBytes: _, ...piece }) =>
      piece.endBytes > endBytes ? { ...piece, endBytes, crc32, isCut: true } : piece,
    );
}

/** Returns the beginning of the piece that holds the byte at this position. */
export function pieceBeginBytes(position: number, pieceBytes: number): number {
  return position - (position % pieceBytes);
}

/** CRC-32 of the first `offsetBytes`, given that of the range that `cutRange` names; undefined where that is gone. */
export function crc32At(
  segments: readonly FileSegment[],
  offsetBytes: number,
  found: number | undefined,
): number | undefined {
  if (offsetBytes === 0) return 0;
  const range = cutRange(segments, offsetBytes);
  if (range === undefined) return segments.find(({ endBytes }) => endBytes === offsetBytes)?.crc32;
  return found === undefined
    ? undefined
    : combineCrc32(crc32Before(segments, range), found, offsetBytes - range.beginBytes);
}

/** True when bytes of this CRC-32 between two positions lead from one checksum of the file to the next. */
export function continues(before: number, range: SegmentRange, found: number | undefined): boolean {
  return (
    found !== undefined && combineCrc32(before, found, range.endBytes - range.beginBytes) === range.crc32
  );
}
