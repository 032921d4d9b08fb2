/** Splits the output of a process into lines of bounded length, one at a time: its reader may pause between two. */
import { ANSWER_MAX_BYTES } from '../../../http-client/attempt.ts';

/** A longer line is read and dropped up to this size; then the process is ended. */
export const DROPPED_BYTES_MAX = 64 * 1024 * 1024;
const LINE_END = 0x0a;
/** Bytes of the beginning and of the end of a line that name the call which it answers. */
const EDGE_BYTES = 256;
const NOTHING = Buffer.alloc(0);

export interface Line {
  /** Undefined for a line of more than 4 MiB. */
  readonly whole: Buffer | undefined;
  readonly head: string;
  readonly tail: string;
}

export class LineSplitter {
  /** Bytes that were read and not split yet. */
  #unread: Buffer = NOTHING;
  /** The beginning of a line whose end is not here, in a buffer that grows by doubling. */
  #begun: Buffer = NOTHING;
  #tail: Buffer = NOTHING;
  #bytes = 0;

  add(bytes: Buffer): void {
    this.#unread = this.#unread.length === 0 ? bytes : Buffer.concat([this.#unread, bytes]);
  }

  /** Bytes of the line whose end is not here. */
  get begunBytes(): number {
    return this.#bytes;
  }

  /** The next line, without its line feed; undefined until more bytes are here. */
  next(): Line | undefined {
    const at = this.#unread.indexOf(LINE_END);
    const piece = at < 0 ? this.#unread : this.#unread.subarray(0, at);
    this.#unread = at < 0 ? NOTHING : this.#unread.subarray(at + 1);
    if (at < 0) {
      this.#keep(piece);
      return undefined;
    }
    if (this.#bytes === 0) return lineOf(piece);
    this.#keep(piece);
    const isWhole = this.#bytes <= ANSWER_MAX_BYTES;
    const kept = this.#begun.subarray(0, Math.min(this.#bytes, this.#begun.length));
    const line = isWhole ? lineOf(kept) : { ...lineOf(kept), whole: undefined, tail: edge(this.#tail) };
    this.#begun = NOTHING;
    this.#tail = NOTHING;
    this.#bytes = 0;
    return line;
  }

  #keep(piece: Buffer): void {
    if (piece.length === 0) return;
    const end = this.#bytes + piece.length;
    if (end > this.#begun.length && this.#begun.length < ANSWER_MAX_BYTES) {
      const larger = Buffer.alloc(Math.min(ANSWER_MAX_BYTES, Math.max(end, 2 * this.#begun.length)));
      this.#begun.copy(larger, 0, 0, this.#bytes);
      this.#begun = larger;
    }
    piece.copy(this.#begun, this.#bytes);
    this.#bytes = end;
    if (end > ANSWER_MAX_BYTES)
      this.#tail = Buffer.concat([this.#tail.subarray(-EDGE_BYTES), piece.subarray(-EDGE_BYTES)]);
  }
}

function lineOf(whole: Buffer): Line {
  return { whole, head: whole.toString('latin1', 0, EDGE_BYTES), tail: edge(whole) };
}

function edge(bytes: Buffer): string {
  return bytes.subarray(-EDGE_BYTES).toString('latin1');
}
