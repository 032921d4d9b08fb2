/**
 * Byte ranges of RFC 9110 14: what a `Range` field asks of a file, and how an answer names what it gives. Reads any
 * text in time linear in its length, and throws at none.
 */

/** Ranges of one request beyond this are not worth their overhead: the whole file is sent (RFC 9110 14.2). */
export const RANGES_MAX = 8;

/** Positions of bytes, both included. */
export interface ByteRange {
  readonly first: number;
  readonly last: number;
}

/** `whole`: there is no usable `Range`, the file is sent as if none had come. `none`: well-formed, nothing to give (416). */
type RangeResult =
  | { readonly kind: 'whole' }
  | { readonly kind: 'none' }
  | { readonly kind: 'some'; readonly ranges: readonly ByteRange[] };

const WHOLE: RangeResult = { kind: 'whole' };
const UNIT = /^bytes=/i;
/** A number of so many digits is exact. */
const EXACT_DIGITS = 15;
const SPEC = /^([0-9]*)-([0-9]*)$/;

/** `range`: the field's value. Ranges are clamped to the file and come in the order in which they were asked for. */
export function readRanges(range: string | undefined, sizeBytes: number): RangeResult {
  if (range === undefined || sizeBytes === 0 || !UNIT.test(range)) return WHOLE;
  const specs = specsOf(range.slice('bytes='.length));
  if (specs.length === 0 || specs.length > RANGES_MAX) return WHOLE;
  const ranges: ByteRange[] = [];
  for (const spec of specs) {
    const read = readSpec(spec, sizeBytes);
    if (read === undefined) return WHOLE;
    if (read !== 'outside') ranges.push(read);
  }
  if (ranges.length === 0) return { kind: 'none' };
  // Overlapping ranges that add up to more than the file would let a short request cost more than a long one.
  return sum(ranges) > sizeBytes ? WHOLE : { kind: 'some', ranges };
}

/** Mostly it is one. */
function specsOf(list: string): string[] {
  if (!list.includes(',')) return [trimBlanks(list)];
  return list
    .split(',')
    .map(trimBlanks)
    .filter((spec) => spec !== '');
}

/** Undefined: malformed, which makes the whole field void. */
function readSpec(spec: string, sizeBytes: number): ByteRange | 'outside' | undefined {
  const [, from, to] = SPEC.exec(spec) ?? [];
  if (from === undefined || to === undefined || (from === '' && to === '')) return undefined;
  if (from === '') {
    const suffix = clamped(to, sizeBytes);
    return suffix === 0 ? 'outside' : { first: sizeBytes - suffix, last: sizeBytes - 1 };
  }
  if (to !== '' && isAbove(from, to)) return undefined;
  const first = clamped(from, sizeBytes);
  if (first === sizeBytes) return 'outside';
  return { first, last: to === '' ? sizeBytes - 1 : clamped(to, sizeBytes - 1) };
}

/** The value of a decimal of any length, or `most` where it is above that. */
function clamped(digits: string, most: number): number {
  return Math.min(Number(digits), most);
}

/** Exact for any length: beyond 2^53 numbers would compare equal. */
function isAbove(a: string, b: string): boolean {
  if (a.length <= EXACT_DIGITS && b.length <= EXACT_DIGITS) return Number(a) > Number(b);
  const [left, right] = [a.replace(/^0+/, ''), b.replace(/^0+/, '')];
  return left.length === right.length ? left > right : left.length > right.length;
}

/** Optional whitespace of HTTP: blanks and tabs alone. Not by a pattern at the end, which is quadratic on long runs. */
function trimBlanks(text: string): string {
  let from = 0;
  let to = text.length;
  while (from < to && isBlank(text, from)) from += 1;
  while (to > from && isBlank(text, to - 1)) to -= 1;
  return text.slice(from, to);
}

function isBlank(text: string, at: number): boolean {
  const code = text.charCodeAt(at);
  return code === 0x20 || code === 0x09;
}

function sum(ranges: readonly ByteRange[]): number {
  return ranges.reduce((total, range) => total + lengthOf(range), 0);
}

export function lengthOf({ first, last }: ByteRange): number {
  return last - first + 1;
}

/** `Content-Range` of a part that is given. */
export function contentRange({ first, last }: ByteRange, sizeBytes: number): string {
  return `bytes ${first}-${last}/${sizeBytes}`;
}

/** `Content-Range` of a 416. */
export function unsatisfiedRange(sizeBytes: number): string {
  return `bytes */${sizeBytes}`;
}

/** One stretch of a body: text that frames, or bytes of the file. */
export type BodyPiece =
  | { readonly kind: 'text'; readonly text: string }
  | { readonly kind: 'file'; readonly first: number; readonly lengthBytes: number };

/** The body of a multipart/byteranges answer (RFC 9110 14.6), and its exact length. All text is ASCII. */
export function multipartPieces(
  ranges: readonly ByteRange[],
  sizeBytes: number,
  contentType: string,
  boundary: string,
): { readonly pieces: readonly BodyPiece[]; readonly lengthBytes: number } {
  const pieces: BodyPiece[] = [];
  let before = '';
  for (const range of ranges) {
    const head = `--${boundary}\r\nContent-Type: ${contentType}\r\nContent-Range: ${contentRange(range, sizeBytes)}\r\n\r\n`;
    pieces.push({ kind: 'text', text: before + head });
    pieces.push({ kind: 'file', first: range.first, lengthBytes: lengthOf(range) });
    before = '\r\n';
  }
  pieces.push({ kind: 'text', text: `\r\n--${boundary}--\r\n` });
  const lengthBytes = pieces.reduce(
    (total, piece) => total + (piece.kind === 'text' ? piece.text.length : piece.lengthBytes),
    0,
  );
  return { pieces, lengthBytes };
}
