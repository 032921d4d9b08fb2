/**
 * Parses the answers of a module from the bytes of a connection (RFC 9112), and whether the connection may be kept. The
 * result does not depend on how the bytes are split.
 */
import { ResponseHead, readHead, trailerFault } from './response-head.ts';
import { type ResponseFault, Section } from './response-section.ts';

/** Receives an answer while it is parsed. */
export interface ResponseSink {
  /** The final head; interim ones (1xx) are skipped. */
  onHead(head: ResponseHead): void;
  /** Valid during this call only. Never empty. */
  onData(bytes: Buffer): void;
}

/** `more`: incomplete. `complete`: the answer ends at `position`. `broken`: `fault` names the error. */
export type Progress = 'more' | 'complete' | 'broken';

type Part =
  | 'head'
  | 'length'
  | 'chunkSize'
  | 'chunkExtension'
  | 'chunkSizeLf'
  | 'chunkData'
  | 'chunkDataCr'
  | 'chunkDataLf'
  | 'trailer'
  | 'untilClose'
  | 'over'
  | 'broken';

const LF = 0x0a;
const CR = 0x0d;
const SEMICOLON = 0x3b;
/** 2^52 - 1 bytes at most: exact as a number. */
const CHUNK_DIGITS_MAX = 13;
/** Bytes of one chunk extension. They are ignored, and no known module sends any. */
const CHUNK_EXTENSION_MAX_BYTES = 256;

/** Idle time of a connection without `Keep-Alive: timeout`, in milliseconds. */
export const KEEP_ALIVE_MS = 4_000;
/** Subtracted from `Keep-Alive: timeout`, because a request needs time to arrive. */
const KEEP_ALIVE_MARGIN_MS = 2_000;
const KEEP_ALIVE_MAX_MS = 600_000;

export class ResponseParser {
  readonly #sink: ResponseSink;
  readonly #section = new Section();
  #part: Part = 'over';
  #toHead = false;
  #left = 0;
  #digits = 0;
  /** Position at which reading stopped: after the answer when it is complete. */
  position = 0;
  fault: ResponseFault = 'status line';
  /** Time that the connection may stay idle, in milliseconds; 0: it must be closed. */
  keepAliveMs = 0;

  constructor(sink: ResponseSink) {
    this.#sink = sink;
  }

  /** Starts an answer. `toHead`: the request was HEAD, so the answer has no body. */
  begin(toHead: boolean): void {
    this.#toHead = toHead;
    this.#part = 'head';
    this.#section.begin(true, false);
  }

  /** Reads the first `size` bytes. */
  read(bytes: Buffer, size: number): Progress {
    this.position = 0;
    while (this.position < size && this.#part !== 'broken') {
      if (this.#part === 'over') return 'complete';
      this.#step(bytes, size);
    }
    // An answer without a body ends with its head.
    if (this.#part === 'over') return 'complete';
    return this.#part === 'broken' ? 'broken' : 'more';
  }

  closed(): Progress {
    if (this.#part === 'untilClose') {
      this.#part = 'over';
      return 'complete';
    }
    if (this.#part !== 'broken') this.#break('cut in half');
    return 'broken';
  }

  #step(bytes: Buffer, size: number): void {
    switch (this.#part) {
      case 'head':
        this.#readHead(bytes, size);
        return;
      case 'length':
        this.#body(bytes, size, 'over');
        return;
      case 'chunkData':
        this.#body(bytes, size, 'chunkDataCr');
        return;
      case 'untilClose':
        this.#sink.onData(
          this.position === 0 ? bytes.subarray(0, size) : bytes.subarray(this.position, size),
        );
        this.position = size;
        return;
      case 'trailer':
        this.#readTrailer(bytes, size);
        return;
      default:
        this.#chunkByte(bytes[this.position] ?? 0);
        this.position += 1;
    }
  }

  #readHead(bytes: Buffer, size: number): void {
    if (!this.#readSection(bytes, size)) return;
    const head = readHead(this.#section.text);
    if (!(head instanceof ResponseHead)) this.#break(head);
    else if (head.status === 101) this.#break('switched protocols');
    else if (head.status < 200) this.#section.begin(true, true);
    else {
      this.#frame(head);
      this.#sink.onHead(head);
    }
  }

  /** RFC 9112 6.3, in its order. */
  #frame(head: ResponseHead): void {
    const { status, contentLength, isChunked } = head;
    this.keepAliveMs = keepAliveOf(head);
    if (this.#toHead || status === 204 || status === 304) {
      this.#part = 'over';
      // A forbidden body may follow, so the connection is not kept.
      if (status === 204 && (isChunked || (contentLength ?? 0) > 0)) this.keepAliveMs = 0;
    } else if (isChunked) {
      this.#part = 'chunkSize';
      this.#left = 0;
      this.#digits = 0;
    } else if (contentLength !== undefined) {
      this.#part = contentLength === 0 ? 'over' : 'length';
      this.#left = contentLength;
    } else {
      this.#part = 'untilClose';
      this.keepAliveMs = 0;
    }
  }

  #body(bytes: Buffer, size: number, next: Part): void {
    const from = this.position;
    const end = Math.min(size, from + this.#left);
    this.#left -= end - from;
    this.position = end;
    if (this.#left === 0) this.#part = next;
    this.#sink.onData(bytes.subarray(from, end));
  }

  /** RFC 9112 7.1, a byte at a time: these lines are short. */
  #chunkByte(byte: number): void {
    switch (this.#part) {
      case 'chunkSize':
        this.#sizeByte(byte);
        return;
      case 'chunkExtension':
        this.#digits += 1;
        if (byte === CR) this.#part = 'chunkSizeLf';
        else if (!isText(byte) || this.#digits > CHUNK_EXTENSION_MAX_BYTES) this.#break('chunk');
        return;
      case 'chunkSizeLf':
        this.#part = this.#left === 0 ? 'trailer' : 'chunkData';
        if (byte !== LF) this.#break('chunk');
        else if (this.#left === 0) this.#section.begin(false, false);
        return;
      case 'chunkDataCr':
        this.#part = 'chunkDataLf';
        if (byte !== CR) this.#break('chunk');
        return;
      default:
        this.#part = 'chunkSize';
        this.#digits = 0;
        if (byte !== LF) this.#break('chunk');
    }
  }

  #sizeByte(byte: number): void {
    const digit = hexDigit(byte);
    if (digit >= 0) {
      this.#digits += 1;
      this.#left = this.#left * 16 + digit;
      if (this.#digits > CHUNK_DIGITS_MAX) this.#break('chunk');
    } else if (this.#digits === 0) this.#break('chunk');
    else if (byte === CR) this.#part = 'chunkSizeLf';
    else if (byte === SEMICOLON) {
      this.#part = 'chunkExtension';
      this.#digits = 0;
    } else this.#break('chunk');
  }

  #readTrailer(bytes: Buffer, size: number): void {
    if (!this.#readSection(bytes, size)) return;
    const fault = trailerFault(this.#section.text);
    if (fault === undefined) this.#part = 'over';
    else this.#break(fault);
  }

  #readSection(bytes: Buffer, size: number): boolean {
    const end = this.#section.read(bytes, this.position, size);
    this.position = end < 0 ? size : end;
    if (end === -2) this.#break(this.#part === 'trailer' ? 'trailer' : this.#section.fault);
    return end >= 0;
  }

  #break(fault: ResponseFault): void {
    this.fault = fault;
    this.#part = 'broken';
  }
}

/** RFC 9112 9.3: kept unless one side says otherwise; in HTTP/1.0 only when the module says so. */
function keepAliveOf({ connection, keepAlive, isCurrent }: ResponseHead): number {
  const options = connection === '' ? '' : connection.toLowerCase();
  if (options !== 'keep-alive') {
    const tokens = options.split(/[\t ,]+/);
    if (tokens.includes('close') || (!isCurrent && !tokens.includes('keep-alive'))) return 0;
  }
  if (keepAlive === '') return KEEP_ALIVE_MS;
  const seconds = /(?:^|[\t ,])timeout *= *"?([0-9]{1,9})/i.exec(keepAlive)?.[1];
  if (seconds === undefined) return KEEP_ALIVE_MS;
  return Math.max(0, Math.min(Number(seconds) * 1_000 - KEEP_ALIVE_MARGIN_MS, KEEP_ALIVE_MAX_MS));
}

function isText(byte: number): boolean {
  return byte === 0x09 || (byte >= 0x20 && byte !== 0x7f);
}

function hexDigit(byte: number): number {
  if (byte >= 0x30 && byte <= 0x39) return byte - 0x30;
  const lower = byte | 0x20;
  return lower >= 0x61 && lower <= 0x66 ? lower - 0x57 : -1;
}
