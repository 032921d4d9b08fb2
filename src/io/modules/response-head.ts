/**
 * The head of a module's answer (RFC 9112 4 and 5): finds where it ends, however its bytes are cut up, and reads status
 * line and fields strictly. What readers could understand in two ways is refused and never repaired.
 */

/** Bytes of one section: the heads of an answer (interim ones with the final one), or its trailers. */
export const SECTION_MAX_BYTES = 16 * 1024;
/** Fields of one head, and of one set of trailers. */
export const FIELDS_MAX = 256;

const LF = 0x0a;
const CR = 0x0d;
const PREFIX = Buffer.from('HTTP/1.');
const STATUS_LINE = /^HTTP\/1\.([01]) ([1-9][0-9]{2})(?: [\t\x20-\x7e\x80-\xff]*)?$/;
const NAME = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/;
const VALUE = /^[\t\x20-\x7e\x80-\xff]*$/;
const LENGTH = /^[0-9]{1,15}$/;
/** Names as modules spell them, by their lower case: the same few come with every answer. */
const namesKnown = new Map<string, string>();
const NAMES_KNOWN_MAX = 1_000;

/** What is wrong with an answer; for the log. */
export type ResponseFault =
  | 'status line'
  | 'head too large'
  | 'line end'
  | 'field'
  | 'content-length'
  | 'transfer-encoding'
  | 'switched protocols'
  | 'chunk'
  | 'trailer'
  | 'cut in half';

export class ResponseHead {
  readonly status: number;
  /** HTTP/1.1; 1.0 otherwise. */
  readonly isCurrent: boolean;
  /** Lower-case name, value, name, value … in the order of arrival. */
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

  /** All fields by name; those that came more than once as lists. */
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

/** Collects the lines up to and with an empty one. */
export class Section {
  #isHead = true;
  /** Bytes of the section that came in earlier pieces, with those of interim heads before it. */
  #bytes = 0;
  /** Bytes of the line that is not over, of them. */
  #lineBytes = 0;
  #lastByte = 0;
  #held: Buffer | undefined;
  #heldBytes = 0;
  text = '';
  fault: ResponseFault = 'line end';

  /** `goesOn`: after an interim head, whose bytes count with those that follow. */
  begin(isHead: boolean, goesOn: boolean): void {
    this.#isHead = isHead;
    if (!goesOn) this.#bytes = 0;
    this.#lineBytes = 0;
    this.#held = undefined;
    this.#heldBytes = 0;
  }

  /** Where the section ends in `bytes`, its lines in `text`; -1 when there is more to come, -2 with a fault. */
  read(bytes: Buffer, from: number, to: number): number {
    const stop = Math.min(to, from + SECTION_MAX_BYTES - this.#bytes);
    let lineStart = from - this.#lineBytes;
    if (this.#isHead && this.#heldBytes < PREFIX.length && !this.#hasPrefix(bytes, from, stop))
      return this.#refuse('status line');
    for (let at = from; at < stop; at += 1) {
      if (bytes[at] !== LF) continue;
      if ((at > from ? bytes[at - 1] : this.#lastByte) !== CR || at === lineStart)
        return this.#refuse('line end');
      if (at - lineStart === 1) return this.#whole(bytes, from, at + 1);
      lineStart = at + 1;
    }
    if (stop < to) return this.#refuse('head too large');
    this.#hold(bytes, from, to);
    this.#lineBytes = to - lineStart;
    this.#lastByte = bytes[to - 1] ?? this.#lastByte;
    return -1;
  }

  #whole(bytes: Buffer, from: number, end: number): number {
    if (this.#held === undefined) {
      this.text = bytes.toString('latin1', from, end);
      this.#bytes += end - from;
    } else {
      this.#hold(bytes, from, end);
      this.text = this.#held.toString('latin1', 0, this.#heldBytes);
    }
    return end;
  }

  #hold(bytes: Buffer, from: number, to: number): void {
    this.#held ??= Buffer.allocUnsafe(SECTION_MAX_BYTES);
    this.#held.set(bytes.subarray(from, to), this.#heldBytes);
    this.#heldBytes += to - from;
    this.#bytes += to - from;
  }

  /** What speaks another protocol is told by its first bytes. */
  #hasPrefix(bytes: Buffer, from: number, stop: number): boolean {
    const done = this.#heldBytes;
    const end = Math.min(stop - from, PREFIX.length - done);
    for (let at = 0; at < end; at += 1) if (bytes[from + at] !== PREFIX[done + at]) return false;
    return true;
  }

  #refuse(fault: ResponseFault): number {
    this.fault = fault;
    return -2;
  }
}

/** The head whose lines are `text`, the empty one too, or what is wrong with it. */
export function readHead(text: string): ResponseHead | ResponseFault {
  const end = text.indexOf('\r\n');
  const [, minor, status] = STATUS_LINE.exec(text.slice(0, end)) ?? [];
  if (status === undefined) return 'status line';
  const head = new ResponseHead(Number(status), minor === '1');
  const fault = readFields(text, end + 2, head);
  if (fault !== undefined) return fault;
  // Who reads the one and who reads the other would find different ends of it (RFC 9112 6.3).
  if (head.isChunked && (head.contentLength !== undefined || !head.isCurrent)) return 'transfer-encoding';
  return head;
}

/** Trailers count for nothing; they are held to the same rules all the same. */
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
    // A space before the colon, or in front for a folded line, is in no name.
    const name = colon < 0 || colon > end ? undefined : nameOf(text.slice(at, colon));
    if (name === undefined) return 'field';
    const value = trimmed(text, colon + 1, end);
    if (!VALUE.test(value)) return 'field';
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
      // Twice the same is refused as well: somebody put two messages together.
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

/** Framing behind the body it would frame (RFC 9110 6.5.1). */
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
  if (namesKnown.size < NAMES_KNOWN_MAX) namesKnown.set(spelled, name);
  return name;
}

/** Without the spaces and tabs around it. */
function trimmed(text: string, from: number, to: number): string {
  let start = from;
  let end = to;
  while (start < end && isBlank(text.charCodeAt(start))) start += 1;
  while (end > start && isBlank(text.charCodeAt(end - 1))) end -= 1;
  return text.slice(start, end);
}

function isBlank(code: number): boolean {
  return code === 0x20 || code === 0x09;
}
