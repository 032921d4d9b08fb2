/**
 * Sends what one stream has written into its part to a bucket: pieces of 8 MiB while the body arrives, two at once, and a
 * tail at its end. What it says to be kept is in the bucket, and what it sends after that never changes it.
 */
import type { WorkerPort } from '../../../actors/runtime/ports.ts';
import { GatewayError } from '../../../domain/errors.ts';
import { combineCrc32 } from '../../../domain/files/crc32-combine.ts';
import type { FileKey } from '../../../domain/files/files.ts';
import {
  continues,
  crc32Before,
  type FileSegment,
  pieceBeginBytes,
  type SegmentRange,
  segmentRanges,
} from '../../../domain/files/segments.ts';
import { runOnLease } from '../storage/file-tasks.ts';
import type { DirectUploads, PartLease } from '../storage/port.ts';

const AT_ONCE = 2;

/** Bytes from the beginning of the file on, and the objects that hold them. */
interface KeptPieces {
  readonly receivedBytes: number;
  /** Unsigned, of these bytes. */
  readonly crc32: number;
  readonly pieces: readonly FileSegment[];
}

interface PieceStreamOptions {
  readonly direct: DirectUploads;
  readonly workers: WorkerPort;
  /** Key of the finished file. */
  readonly key: FileKey;
  /** Its fencing number, which no other stream of the draft has. */
  readonly stream: number;
  /** Pieces and bytes that are kept when it begins. */
  readonly kept: KeptPieces;
}

export class PieceStream {
  readonly #options: PieceStreamOptions;
  #kept: KeptPieces;
  #nextBytes: number;
  #sending: Promise<unknown> = Promise.resolve();

  constructor(options: PieceStreamOptions) {
    this.#options = options;
    this.#kept = options.kept;
    this.#nextBytes = pieceBeginBytes(options.kept.receivedBytes, options.direct.pieceBytes);
  }

  get kept(): KeptPieces {
    return this.#kept;
  }

  /**
   * A piece that is not full is the beginning of the next one. False when the bucket has other bytes of it than were listed,
   * or none: then what is kept ends before it.
   */
  async begin(lease: PartLease): Promise<boolean> {
    const { direct, key, kept } = this.#options;
    const last = segmentRanges(kept.pieces).at(-1);
    if (last === undefined || last.endBytes <= this.#nextBytes) return true;
    const { beginBytes: receivedBytes } = last;
    const crc32 = crc32Before(kept.pieces, last);
    const found = (await direct.fetch(key, last, lease)) ? await this.#hash(lease, last) : undefined;
    if (continues(crc32, last, found)) return true;
    this.#kept = {
      receivedBytes,
      crc32,
      pieces: kept.pieces.filter(({ endBytes }) => endBytes <= receivedBytes),
    };
    return false;
  }

  /** Discards the received bytes, which are none of the file: those that were kept before count. */
  forget(): void {
    this.#kept = this.#options.kept;
  }

  /** Resolves when nothing of it reads the part any more. */
  async settled(): Promise<void> {
    await this.#sending;
  }

  /** Sends the full pieces of the first `endBytes`, after what is being sent. */
  save(lease: PartLease, endBytes: number): Promise<KeptPieces> {
    return this.#inOrder(async () => {
      while (this.#nextBytes + this.#options.direct.pieceBytes <= endBytes)
        await this.#sendFull(lease, endBytes);
      return this.#kept;
    });
  }

  /** Sends all of them. Rejects with `FileStorageFailed` where the bucket got other bytes than came. */
  async finish(lease: PartLease, endBytes: number, crc32: number): Promise<KeptPieces> {
    await this.save(lease, endBytes);
    return await this.#inOrder(async () => {
      if (endBytes > this.#kept.receivedBytes) {
        const tail = { ...this.#rangeTo(endBytes), isTail: true as const };
        this.#keep(await this.#send(lease, tail));
      }
      if (this.#kept.crc32 !== crc32) throw new GatewayError('FileStorageFailed');
      return this.#kept;
    });
  }

  async #sendFull(lease: PartLease, endBytes: number): Promise<void> {
    const { pieceBytes } = this.#options.direct;
    const count = Math.min(AT_ONCE, Math.floor((endBytes - this.#nextBytes) / pieceBytes));
    const ranges = Array.from({ length: count }, (_, at) =>
      this.#rangeTo(this.#nextBytes + (at + 1) * pieceBytes, this.#nextBytes + at * pieceBytes),
    );
    // The part stays in use until both have settled.
    const sent = await Promise.allSettled(ranges.map((range) => this.#send(lease, range)));
    for (const each of sent) {
      if (each.status === 'rejected') throw each.reason;
      this.#keep(each.value);
    }
  }

  #rangeTo(endBytes: number, beginBytes = this.#nextBytes): Omit<SegmentRange, 'crc32'> {
    return { number: this.#options.stream, beginBytes, endBytes };
  }

  async #send(lease: PartLease, range: Omit<SegmentRange, 'crc32'>): Promise<SegmentRange> {
    const { direct, key } = this.#options;
    const crc32 = await this.#hash(lease, range);
    const piece = { ...range, crc32 };
    await direct.putPiece(key, piece, crc32, lease);
    return piece;
  }

  async #hash(lease: PartLease, { beginBytes, endBytes }: Omit<SegmentRange, 'crc32'>): Promise<number> {
    const task = { fd: lease.fd, position: beginBytes, length: endBytes - beginBytes };
    const hashed = await runOnLease(this.#options.workers, lease, 'hashRange', task);
    if (!hashed.ok) throw new GatewayError(hashed.error);
    if (hashed.value === undefined) throw lease.failure(new Error('the part is shorter than what came'));
    return hashed.value;
  }

  /** It follows what is kept; of the same bytes, what was kept counts no more. */
  #keep({ beginBytes, crc32: own, ...rest }: SegmentRange): void {
    const before = this.#kept.pieces.filter(({ endBytes }) => endBytes <= beginBytes);
    const { endBytes } = rest;
    const crc32 = combineCrc32(before.at(-1)?.crc32 ?? 0, own, endBytes - beginBytes);
    this.#kept = { receivedBytes: endBytes, crc32, pieces: [...before, { ...rest, crc32 }] };
    this.#nextBytes = pieceBeginBytes(endBytes, this.#options.direct.pieceBytes);
  }

  #inOrder<T>(work: () => Promise<T>): Promise<T> {
    const mine = this.#sending.then(work);
    this.#sending = mine.catch(() => undefined);
    return mine;
  }
}
