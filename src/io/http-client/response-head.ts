/**
 * Parses the head of a module's answer strictly (RFC 9112 4 and 5). Ambiguous input is refused, never repaired.
 */
import type { ResponseFault } from './response-section.ts';

/** Fields of one head, and of one set of trailers. */
export const FIELDS_MAX = 256;

const TAB = 0x09;
const SPACE = 0x20;
/** Offset of the minor version in `HTTP/1.1 200`, and length of that prefix. */
const MINOR_AT = 7;
const STATUS_BYTES = 12;
const NAME = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/;
const LENGTH = /^[0-9]{1,15}$/;
/** Cache from a name as spelled to its lower case. */
const namesKnown = new Map<string, string>();
const NAMES_KNOWN_MAX = 1_000;
const NAME_KNOWN_CHARACTERS_MAX = 64;

export class ResponseHead {
  readonly status: number;
  /** HTTP/1.1; 1.0 otherwise. */
  readonly isCurrent: boolean;
  /** Lower-case name, value, name, value … in order of arrival. */
  readonly fields: string[] = [];
  /** Declared bytes of the body; undefined without a declaration. */
  contentLength: number | undefined;
  isChunked = false;
  contentType = '';
  contentEncoding = '';
  /** Values of `Connection` and `Keep-Alive`, joined as lists. */
  connection = '';
  keepAlive = '';

  constructor(status: number, isCurrent: boolean) {
    this.status = status;
    this.isCurrent = isCurrent;
  }

  /** All fields by name; repeated ones as lists. */
  headers(): Record<string, string | string[]> {
    const headers: Record<string, string | string[]> = Object.create(null);
    for (let at = 0; at < this.fields.length; at += 2) {
      const name = this.fields[at] ?? '';
      const value = this.fields[at + 1] ?? '';
      const known = headers[name];
      if (known === undefined) headers[name] = value;
      else if (Array.isArray(known)) known.push(value);
      else headers[name] = [known, value];
    }
    return headers;
  }
}

/** Parses `text`, which includes the final empty line; returns the fault of an invalid head. */
export function readHead(text: string): ResponseHead | ResponseFault {
  const end = text.indexOf('\r\n');
  const status = statusOf(text);
  const minor = text.charCodeAt(MINOR_AT) - 0x30;
  // The reason phrase is optional.
  const isEnded = end === STATUS_BYTES || text.charCodeAt(STATUS_BYTES) === SPACE;
  const isLine = (minor === 0 || minor === 1) && text.charCodeAt(MINOR_AT + 1) === SPACE && isEnded;
  if (!isLine || status < 100) return 'status line';
  const head = new ResponseHead(status, minor === 1);
  const fault = readFields(text, end + 2, head);
  if (fault !== undefined) return fault;
  // Both headers at once allow request smuggling (RFC 9112 6.3).
  if (head.isChunked && (head.contentLength !== undefined || !head.isCurrent)) return 'transfer-encoding';
  return head;
}

/** Three digits; 0 for anything else. */
function statusOf(text: string): number {
  let status = 0;
  for (let at = STATUS_BYTES - 3; at < STATUS_BYTES; at += 1) {
    const digit = text.charCodeAt(at) - 0x30;
    if (!(digit >= 0 && digit <= 9)) return 0;
    status = status * 10 + digit;
  }
  return status;
}

/** Trailers are ignored, but must be valid. */
export function trailerFault(text: string): ResponseFault | undefined {
  return readFields(text, 0, undefined) === undefined ? undefined : 'trailer';
}

function readFields(text: string, from: number, head: ResponseHead | undefined): ResponseFault | undefined {
  let count = 0;
  let at = from;
  for (;;) {
    const end = text.indexOf('\r\n', at);
    if (end === at) return undefined;
    const colon = text.indexOf(':', at);
    // A space before the colon, or a folded line, makes the name invalid.
    const name = colon < 0 || colon > end ? undefined : nameOf(text.slice(at, colon));
    if (name === undefined) return 'field';
    const value = trimmed(text, colon + 1, end);
    count += 1;
    if (count > FIELDS_MAX) return 'head too large';
    const fault = head === undefined ? framingFault(name) : take(head, name, value);
    if (fault !== undefined) return fault;
    at = end + 2;
  }
}

function take(head: ResponseHead, name: string, value: string): ResponseFault | undefined {
  head.fields.push(name, value);
  switch (name) {
    case 'content-length':
      // Two equal values are refused too: they show merged messages.
      if (head.contentLength !== undefined || !LENGTH.test(value)) return 'content-length';
      head.contentLength = Number(value);
      return undefined;
    case 'transfer-encoding':
      if (head.isChunked || value.toLowerCase() !== 'chunked') return 'transfer-encoding';
      head.isChunked = true;
      return undefined;
    case 'content-type':
      if (head.contentType === '') head.contentType = value;
      return undefined;
    case 'content-encoding':
      head.contentEncoding = joined(head.contentEncoding, value);
      return undefined;
    case 'connection':
      head.connection = joined(head.connection, value);
      return undefined;
    case 'keep-alive':
      head.keepAlive = joined(head.keepAlive, value);
      return undefined;
    default:
      return undefined;
  }
}

/** Framing fields are not allowed in trailers (RFC 9110 6.5.1). */
function framingFault(name: string): ResponseFault | undefined {
  return name === 'content-length' || name === 'transfer-encoding' ? 'trailer' : undefined;
}

function joined(list: string, value: string): string {
  return list === '' ? value : `${list},${value}`;
}

function nameOf(spelled: string): string | undefined {
  const known = namesKnown.get(spelled);
  if (known !== undefined) return known;
  if (!NAME.test(spelled)) return undefined;
  const name = spelled.toLowerCase();
  // Copied: a slice would keep the whole text in memory.
  if (namesKnown.size < NAMES_KNOWN_MAX && name.length <= NAME_KNOWN_CHARACTERS_MAX)
    namesKnown.set(copyOf(spelled), copyOf(name));
  return name;
}

/** Returns the text without the spaces and tabs around it. */
function trimmed(text: string, from: number, to: number): string {
  let start = from;
  let end = to;
  while (start < end && isBlank(text.charCodeAt(start))) start += 1;
  while (end > start && isBlank(text.charCodeAt(end - 1))) end -= 1;
  return text.slice(start, end);
}

function isBlank(code: number): boolean {
  return code === SPACE || code === TAB;
}

function copyOf(text: string): string {
  return Buffer.from(text, 'latin1').toString('latin1');
}
