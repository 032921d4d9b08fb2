/**
 * Answers of a download to conditions and ranges (RFC 9110 13 and 14), in the order of RFC 9110 13.2.2. Pure: fields of
 * the request and facts of the file in, status and ranges out. Reads any text in linear time, and throws at none.
 */

import { SECOND_MS } from '../time.ts';
import { parseHttpDate } from './http-dates.ts';
import { type ByteRange, readRanges } from './ranges.ts';

/** Fields as sent; repeated ones are joined with commas (RFC 9110 5.3). */
export interface ConditionalFields {
  readonly ifMatch?: string | undefined;
  readonly ifNoneMatch?: string | undefined;
  readonly ifModifiedSince?: string | undefined;
  readonly ifUnmodifiedSince?: string | undefined;
  readonly ifRange?: string | undefined;
  readonly range?: string | undefined;
}

export interface Validators {
  /** Strong, quotes included. */
  readonly etag: string;
  readonly modifiedMs: number;
  readonly sizeBytes: number;
}

type PreconditionResult =
  | { readonly status: 200 | 304 | 412 | 416 }
  | { readonly status: 206; readonly ranges: readonly ByteRange[] };

interface EntityTag {
  readonly weak: boolean;
  /** Quotes included. */
  readonly opaque: string;
}

/** One entity-tag of RFC 9110 8.8.3 with what may stand before it in a list; commas may stand inside the quotes. */
const TAG = /[\t ,]*(W\/)?("[\x21\x23-\x7e\x80-\xff]*")/y;
const LIST_END = /^[\t ,]*$/;
/** Separator after a tag: the end of the list, or a comma. */
const SEPARATOR = /[\t ]*(?:,|$)/y;

/** `nowMs` is only for dates with two digits of a year. */
export function judgeDownload(
  fields: ConditionalFields,
  file: Validators,
  nowMs: number,
): PreconditionResult {
  if (!meetsMatch(fields, file, nowMs)) return { status: 412 };
  if (isNotModified(fields, file, nowMs)) return { status: 304 };
  if (fields.range === undefined || !meetsIfRange(fields.ifRange, file, nowMs)) return { status: 200 };
  const asked = readRanges(fields.range, file.sizeBytes);
  if (asked.kind === 'whole') return { status: 200 };
  return asked.kind === 'none' ? { status: 416 } : { status: 206, ranges: asked.ranges };
}

/** Steps 1 and 2: If-Match, or else If-Unmodified-Since. */
function meetsMatch(
  { ifMatch, ifUnmodifiedSince }: ConditionalFields,
  file: Validators,
  nowMs: number,
): boolean {
  if (ifMatch !== undefined) return lists(ifMatch, ({ weak, opaque }) => !weak && opaque === file.etag);
  const since = dateOf(ifUnmodifiedSince, nowMs);
  return since === undefined || wholeSeconds(file.modifiedMs) <= since;
}

/** Steps 3 and 4: If-None-Match, or else If-Modified-Since. Only GET and HEAD come here, so the answer is 304. */
function isNotModified(
  { ifNoneMatch, ifModifiedSince }: ConditionalFields,
  file: Validators,
  nowMs: number,
): boolean {
  if (ifNoneMatch !== undefined) return lists(ifNoneMatch, ({ opaque }) => opaque === file.etag);
  const since = dateOf(ifModifiedSince, nowMs);
  return since !== undefined && wholeSeconds(file.modifiedMs) <= since;
}

/** Step 5. A date has to be the very one, and a weak tag never counts (RFC 9110 13.1.5). */
function meetsIfRange(ifRange: string | undefined, file: Validators, nowMs: number): boolean {
  if (ifRange === undefined || ifRange === file.etag) return true;
  return dateOf(ifRange, nowMs) === wholeSeconds(file.modifiedMs);
}

/** Does the list hold a fitting tag, or is it `*`? One that is malformed anywhere holds nothing. */
function lists(field: string, fits: (tag: EntityTag) => boolean): boolean {
  if (field === '*') return true;
  return readTags(field)?.some(fits) === true;
}

function readTags(field: string): EntityTag[] | undefined {
  const tags: EntityTag[] = [];
  let at = 0;
  for (;;) {
    TAG.lastIndex = at;
    const [all, weak, opaque] = TAG.exec(field) ?? [];
    if (all === undefined || opaque === undefined) return LIST_END.test(field.slice(at)) ? tags : undefined;
    tags.push({ weak: weak !== undefined, opaque });
    at += all.length;
    SEPARATOR.lastIndex = at;
    if (!SEPARATOR.test(field)) return undefined;
  }
}

function dateOf(text: string | undefined, nowMs: number): number | undefined {
  return text === undefined ? undefined : parseHttpDate(text, nowMs);
}

function wholeSeconds(timeMs: number): number {
  return Math.floor(timeMs / SECOND_MS) * SECOND_MS;
}
