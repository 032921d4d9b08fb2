/**
 * Framing of links between nodes: 4 bytes of length (little endian), then one msgpack value. A length is bounded before
 * memory is taken for it.
 */
import { Packr, RESERVE_START_SPACE } from 'msgpackr';

/** Bytes of a frame without its length. A group of the log has 4 MiB and one turn more. */
export const FRAME_BYTES_MAX = 16 * 1024 * 1024;
const LENGTH_BYTES = 4;
/** First size of the buffer for an incomplete frame: what one read of a socket brings. It doubles up to the frame. */
const BUFFER_BYTES_MIN = 64 * 1024;
const EMPTY = Buffer.alloc(0);

/** The peer does not speak this protocol, or breaks a bound of it. */
export class BadFrame extends Error {
  constructor(reason: string) {
    super(reason);
    this.name = 'BadFrame';
  }
}

// Without records, as nothing that travels is a Map (docs/decisions/0220).
const packr = new Packr({ useRecords: false, moreTypes: true, copyBuffers: true });

/** One frame, ready to be written. Throws `BadFrame` for one that no receiver would take. */
export function packFrame(value: unknown): Buffer {
  const frame = packr.pack(value, RESERVE_START_SPACE + LENGTH_BYTES);
  return withLength(frame);
}

/** A frame whose bytes are given: the handshake, which is not in msgpack. */
export function frameOf(text: string): Buffer {
  return withLength(Buffer.concat([Buffer.alloc(LENGTH_BYTES), Buffer.from(text)]));
}

function withLength(frame: Buffer): Buffer {
  const sizeBytes = frame.length - LENGTH_BYTES;
  if (sizeBytes > FRAME_BYTES_MAX) throw new BadFrame(`a frame of ${sizeBytes} bytes is too large`);
  frame.writeUInt32LE(sizeBytes, 0);
  return frame;
}

/** Throws `BadFrame` for bytes that are not one msgpack value. */
export function unpackFrame(frame: Uint8Array): unknown {
  try {
    return packr.unpack(frame as Buffer);
  } catch (error) {
    throw new BadFrame(error instanceof Error ? error.message : String(error));
  }
}

/** Cuts a stream of bytes into frames. Holds at most one incomplete frame. */
export class FrameReader {
  /** Bound of the next frame, in bytes. */
  #bytesMax: number;
  #buffer: Buffer = EMPTY;
  /** Bytes of `#buffer` that have arrived. */
  #filled = 0;
  #stopped = false;

  constructor(bytesMax: number) {
    this.#bytesMax = bytesMax;
  }

  /** The handshake is over: frames may be large. Holds from the next frame on. */
  raise(bytesMax: number): void {
    this.#bytesMax = bytesMax;
  }

  /** No further frame is handed out. */
  stop(): void {
    this.#stopped = true;
    this.#buffer = EMPTY;
    this.#filled = 0;
  }

  /** Hands out every complete frame; a frame is valid within the call. Throws `BadFrame` at one that is too large. */
  read(chunk: Buffer, onFrame: (frame: Buffer) => void): void {
    let rest = chunk;
    while (!this.#stopped && rest.length > 0) {
      if (this.#filled === 0) rest = this.#readWhole(rest, onFrame);
      else rest = this.#readSplit(rest, onFrame);
    }
  }

  /** Frames that lie in the chunk are not copied. Keeps the beginning of an incomplete one; nothing is left then. */
  #readWhole(chunk: Buffer, onFrame: (frame: Buffer) => void): Buffer {
    let start = 0;
    while (!this.#stopped && chunk.length - start >= LENGTH_BYTES) {
      const end = start + LENGTH_BYTES + this.#lengthAt(chunk, start);
      if (end > chunk.length) break;
      onFrame(chunk.subarray(start + LENGTH_BYTES, end));
      start = end;
    }
    if (!this.#stopped && start < chunk.length) this.#keep(chunk.subarray(start));
    return chunk.subarray(chunk.length);
  }

  /** Completes the frame that has begun; what is left of the chunk. */
  #readSplit(chunk: Buffer, onFrame: (frame: Buffer) => void): Buffer {
    if (this.#filled < LENGTH_BYTES) {
      const missing = Math.min(LENGTH_BYTES - this.#filled, chunk.length);
      this.#keep(chunk.subarray(0, missing));
      return chunk.subarray(missing);
    }
    const wholeBytes = LENGTH_BYTES + this.#lengthAt(this.#buffer, 0);
    const missing = Math.min(wholeBytes - this.#filled, chunk.length);
    this.#keep(chunk.subarray(0, missing));
    if (this.#filled < wholeBytes) return chunk.subarray(missing);
    const frame = this.#buffer.subarray(LENGTH_BYTES, wholeBytes);
    this.#filled = 0;
    this.#buffer = EMPTY;
    onFrame(frame);
    return chunk.subarray(missing);
  }

  #keep(bytes: Buffer): void {
    const needed = this.#filled + bytes.length;
    if (needed > this.#buffer.length) this.#grow(needed, bytes);
    bytes.copy(this.#buffer, this.#filled);
    this.#filled = needed;
  }

  /** Doubles the buffer, at most to the size of the frame: memory follows the bytes that have arrived. */
  #grow(needed: number, bytes: Buffer): void {
    const header = this.#filled < LENGTH_BYTES ? bytes : this.#buffer;
    const wholeBytes = LENGTH_BYTES + (needed < LENGTH_BYTES ? 0 : this.#lengthAt(header, 0));
    const doubled = Math.max(2 * this.#buffer.length, BUFFER_BYTES_MIN);
    const buffer = Buffer.allocUnsafe(Math.max(needed, Math.min(doubled, wholeBytes)));
    this.#buffer.copy(buffer, 0, 0, this.#filled);
    this.#buffer = buffer;
  }

  #lengthAt(bytes: Buffer, start: number): number {
    const length = bytes.readUInt32LE(start);
    if (length > this.#bytesMax) throw new BadFrame(`a frame of ${length} bytes is too large`);
    return length;
  }
}
