/**
 * Ring of the newest events as encoded frames, shared by all clients: each event is encoded once and no client has a
 * queue. Bounded in frames and bytes; evicted events remain in the log.
 */
import type { StoredEvent } from '../../domain/events/events.ts';
import { eventFrame, WRITE_BYTES_MAX } from './frames.ts';

export interface RingBounds {
  readonly framesMax: number;
  readonly sizeBytesMax: number;
}

/** One second at 4,000 events/s; a client that is farther behind replays the log. */
export const RING_BOUNDS: RingBounds = { framesMax: 4_096, sizeBytesMax: 8 * 1024 * 1024 };

export interface Frame {
  readonly sequence: number;
  /** Undefined: for all users. */
  readonly userId: string | undefined;
  readonly bytes: Buffer;
}

/** The bytes of one write. */
export interface Piece {
  /** Undefined when no frame is due. A frame larger than one write is sent alone and whole. */
  readonly bytes: Buffer | undefined;
  readonly frames: number;
  /** The next frame that is due after these; 0: none. */
  readonly next: number;
}

/** Size of the blocks from which frames are allocated. */
const ROOM_BYTES = 64 * 1024;
/** Buffers from this size on are not allocated from Node's pool. */
const POOLED_BYTES = Buffer.poolSize >>> 1;

const NOTHING: Piece = { bytes: undefined, frames: 0, next: 0 };

export class FrameRing {
  readonly #epoch: string;
  readonly #bounds: RingBounds;
  readonly #slots: (Frame | undefined)[];
  /** Positions only grow; a frame is stored in the slot of its position modulo the size. */
  #start = 0;
  #end = 0;
  #sizeBytes = 0;
  /** Free part of the current block. */
  #room = Buffer.alloc(0);
  /** The newest event before the first one in the ring. */
  floor: number;
  /** The newest event that was appended. */
  newest: number;
  /** The newest event for all users; 0: none yet. */
  #newestBroadcast = 0;
  #shared: { readonly from: number; readonly end: number; readonly piece: Piece } | undefined;

  /** `after`: the ring starts after this position of the log. */
  constructor(epoch: string, after: number, bounds: RingBounds = RING_BOUNDS) {
    this.#epoch = epoch;
    this.#bounds = bounds;
    this.#slots = new Array<Frame | undefined>(bounds.framesMax);
    this.floor = after;
    this.newest = after;
  }

  get size(): { readonly frames: number; readonly sizeBytes: number } {
    return { frames: this.#end - this.#start, sizeBytes: this.#sizeBytes };
  }

  /** Evicts older frames, but none after `keepAfter`; false when there is no room otherwise. */
  append(event: StoredEvent, keepAfter: number): boolean {
    const bytes = eventFrame(this.#epoch, event);
    const { framesMax, sizeBytesMax } = this.#bounds;
    while (this.#end > this.#start) {
      const full = this.#end - this.#start >= framesMax || this.#sizeBytes + bytes.length > sizeBytesMax;
      if (!full) break;
      if (this.#at(this.#start).sequence > keepAfter) return false;
      this.#evict();
    }
    this.#slots[this.#end % framesMax] = {
      sequence: event.sequence,
      userId: event.userId,
      bytes: this.#own(bytes),
    };
    this.#end += 1;
    this.#sizeBytes += bytes.length;
    this.newest = event.sequence;
    if (event.userId === undefined) this.#newestBroadcast = event.sequence;
    return true;
  }

  /** Evicts everything up to `sequence`, which has left the log. */
  skipTo(sequence: number): void {
    while (this.#end > this.#start) this.#evict();
    this.floor = Math.max(this.floor, sequence);
    this.newest = this.floor;
  }

  /** The first frame after a position that is for this user; 0: none. */
  nextFor(userId: string, after: number): number {
    for (let at = this.#positionAfter(after); at < this.#end; at += 1) {
      const frame = this.#at(at);
      if (frame.userId === undefined || frame.userId === userId) return frame.sequence;
    }
    return 0;
  }

  /** The newest frame for this user only; 0: none. */
  newestOf(userId: string): number {
    for (let at = this.#end - 1; at >= this.#start; at -= 1) {
      const frame = this.#at(at);
      if (frame.userId === userId) return frame.sequence;
    }
    return 0;
  }

  /**
   * The due frames of a user from `from` on, up to one write. `newestOwn`: the user's newest own event, 0 for none; when
   * it is older than `from`, all clients at that position share one piece.
   */
  collect(userId: string, newestOwn: number, from: number): Piece {
    if (newestOwn < from) return this.#collectShared(from);
    return this.#collect(userId, from, Math.max(newestOwn, this.#newestBroadcast));
  }

  #collectShared(from: number): Piece {
    const known = this.#shared;
    if (known !== undefined && known.from === from && known.end === this.#end) return known.piece;
    const piece = this.#collect(undefined, from, this.#newestBroadcast);
    this.#shared = { from, end: this.#end, piece };
    return piece;
  }

  #collect(userId: string | undefined, from: number, last: number): Piece {
    const parts: Buffer[] = [];
    let sizeBytes = 0;
    for (let at = this.#positionAfter(from - 1); at < this.#end; at += 1) {
      const { sequence, userId: owner, bytes } = this.#at(at);
      if (sequence > last) break;
      if (owner !== undefined && owner !== userId) continue;
      if (parts.length > 0 && sizeBytes + bytes.length > WRITE_BYTES_MAX) return pieceOf(parts, sequence);
      parts.push(bytes);
      sizeBytes += bytes.length;
    }
    return pieceOf(parts, 0);
  }

  /**
   * Copies the frame into the ring's own block. A buffer of Node's pool would keep 8 KiB alive; blocks of adjacent frames
   * are freed in order of eviction.
   */
  #own(bytes: Buffer): Buffer {
    if (bytes.length >= POOLED_BYTES) return bytes;
    if (this.#room.length < bytes.length) this.#room = Buffer.allocUnsafeSlow(ROOM_BYTES);
    const own = this.#room.subarray(0, bytes.length);
    bytes.copy(own);
    this.#room = this.#room.subarray(bytes.length);
    return own;
  }

  #evict(): void {
    const slot = this.#start % this.#bounds.framesMax;
    const { sequence, bytes } = this.#at(this.#start);
    this.#slots[slot] = undefined;
    this.#start += 1;
    this.#sizeBytes -= bytes.length;
    this.floor = sequence;
  }

  #at(position: number): Frame {
    const frame = this.#slots[position % this.#bounds.framesMax];
    if (frame === undefined) throw new RangeError(`no frame at ${position}`);
    return frame;
  }

  /** Binary search: sequences are ascending, but have gaps. */
  #positionAfter(sequence: number): number {
    let low = this.#start;
    let high = this.#end;
    while (low < high) {
      const middle = Math.floor((low + high) / 2);
      if (this.#at(middle).sequence <= sequence) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}

/** Joins frames to one piece; a single frame is not copied. */
function pieceOf(parts: readonly Buffer[], next: number): Piece {
  const [first] = parts;
  if (first === undefined) return NOTHING;
  return { bytes: parts.length === 1 ? first : Buffer.concat(parts), frames: parts.length, next };
}
