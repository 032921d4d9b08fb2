/**
 * The lines before and after the body of a module's answer: finds where they end, however their bytes are cut up, and
 * that they hold no control characters, bare line ends among them.
 */

/** Bytes of one section: the heads of an answer (interim ones with the final one), or its trailers. */
export const SECTION_MAX_BYTES = 16 * 1024;

const TAB = 0x09;
const LF = 0x0a;
const CR = 0x0d;
const SPACE = 0x20;
const DEL = 0x7f;
const PREFIX = Buffer.from('HTTP/1.');

/** What is wrong with an answer; for the log. */
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

/** Collects the lines up to and with an empty one. */
export class Section {
  #isHead = true;
  /** Bytes of the section that came in earlier pieces, with those of interim heads before it. */
  #bytes = 0;
  /** Bytes of the line that is not over, of them. */
  #lineBytes = 0;
  /** The last byte was one, whose LF is still to come. */
  #afterCr = false;
  #held: Buffer | undefined;
  #heldBytes = 0;
  text = '';
  fault: ResponseFault = 'line end';

  /** `goesOn`: after an interim head, whose bytes count with those that follow. */
  begin(isHead: boolean, goesOn: boolean): void {
    this.#isHead = isHead;
    if (!goesOn) this.#bytes = 0;
    this.#lineBytes = 0;
    this.#afterCr = false;
    this.#held = undefined;
    this.#heldBytes = 0;
  }

  /** Where the section ends in `bytes`, its lines in `text`; -1 when there is more to come, -2 with a fault. */
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
