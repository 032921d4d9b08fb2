/**
 * Collects the header or trailer lines of a module's answer, however the bytes are split. Refuses control characters and
 * bare line ends.
 */

/** Bytes of one section: the heads of an answer (interim ones with the final one), or its trailers. */
export const SECTION_MAX_BYTES = 16 * 1024;

const TAB = 0x09;
const LF = 0x0a;
const CR = 0x0d;
const SPACE = 0x20;
const DEL = 0x7f;
const PREFIX = Buffer.from('HTTP/1.');

/** The fault of an answer, for the log. */
export type ResponseFault =
  | 'status line'
  | 'head too large'
  | 'line end'
  | 'control character'
  | 'field'
  | 'content-length'
  | 'transfer-encoding'
  | 'switched protocols'
  | 'chunk'
  | 'trailer'
  | 'cut in half';

/** Collects lines up to and including an empty one. */
export class Section {
  #isHead = true;
  /** Bytes of the section in earlier pieces, including interim heads. */
  #bytes = 0;
  /** Bytes of the incomplete line among them. */
  #lineBytes = 0;
  /** The last byte was a CR; its LF is still missing. */
  #afterCr = false;
  #held: Buffer | undefined;
  #heldBytes = 0;
  text = '';
  fault: ResponseFault = 'line end';

  /** `continues`: after an interim head, whose bytes count towards the bound. */
  begin(isHead: boolean, continues: boolean): void {
    this.#isHead = isHead;
    if (!continues) this.#bytes = 0;
    this.#lineBytes = 0;
    this.#afterCr = false;
    this.#held = undefined;
    this.#heldBytes = 0;
  }

  /** End of the section in `bytes`, with its lines in `text`; -1 while incomplete, -2 with a fault. */
  read(bytes: Buffer, from: number, to: number): number {
    const stop = Math.min(to, from + SECTION_MAX_BYTES - this.#bytes);
    let lineStart = from - this.#lineBytes;
    if (this.#isHead && this.#heldBytes < PREFIX.length && !this.#hasPrefix(bytes, from, stop))
      return this.#refuse('status line');
    let at = from;
    if (this.#afterCr && at < stop) {
      if (bytes[at] !== LF) return this.#refuse('line end');
      at += 1;
      if (at - lineStart === 2) return this.#whole(bytes, from, at);
      lineStart = at;
      this.#afterCr = false;
    }
    for (; at < stop; at += 1) {
      const byte = bytes[at] ?? 0;
      if (byte >= SPACE && byte !== DEL) continue;
      if (byte === TAB) continue;
      if (byte !== CR) return this.#refuse(byte === LF ? 'line end' : 'control character');
      if (at + 1 === stop) {
        this.#afterCr = true;
        break;
      }
      if (bytes[at + 1] !== LF) return this.#refuse('line end');
      if (at === lineStart) return this.#whole(bytes, from, at + 2);
      at += 1;
      lineStart = at + 1;
    }
    if (stop < to) return this.#refuse('head too large');
    this.#hold(bytes, from, to);
    this.#lineBytes = to - lineStart;
    return -1;
  }

  #whole(bytes: Buffer, from: number, end: number): number {
    if (this.#held === undefined) {
      this.text = bytes.toString('latin1', from, end);
      this.#bytes += end - from;
    } else {
      this.#hold(bytes, from, end);
      this.text = this.#held.toString('latin1', 0, this.#heldBytes);
      this.#held = undefined;
    }
    return end;
  }

  #hold(bytes: Buffer, from: number, to: number): void {
    this.#held ??= Buffer.allocUnsafe(SECTION_MAX_BYTES);
    this.#held.set(bytes.subarray(from, to), this.#heldBytes);
    this.#heldBytes += to - from;
    this.#bytes += to - from;
  }

  /** Another protocol is detected by its first bytes. */
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
