/** Publishes copies of parts, and the segments of a file, whatever the finished file is stored in. */
import { type ChunkBytes, type FileKey, fileBytes } from '../../../domain/files/files.ts';
import type { PartBounds } from '../../../domain/files/part-bounds.ts';
import { type FileSegment, segmentKey, segmentRanges, wholeSegment } from '../../../domain/files/segments.ts';
import type { OnLate } from './file-calls.ts';
import type { FreeSpace } from './free-space.ts';
import { fileName, type OwnerFolders, partName } from './owner-folders.ts';
import type { Parts } from './parts.ts';

/** A local file that has the bytes, beside the parts of its owner. */
interface JoinedFile extends PartBounds {
  readonly name: string;
}

type Publish = (file: JoinedFile, late: OnLate) => Promise<void>;

export class SegmentJoins {
  readonly #folders: OwnerFolders;
  readonly #parts: Parts;
  readonly #space: FreeSpace;

  constructor(folders: OwnerFolders, parts: Parts, space: FreeSpace) {
    this.#folders = folders;
    this.#parts = parts;
    this.#space = space;
  }

  /** Resolves with the numbers of chunks that have other bytes; without any, the file is there. */
  publishCopy(key: FileKey, chunks: readonly ChunkBytes[], publish: Publish): Promise<readonly number[]> {
    const sizeBytes = fileBytes(chunks);
    const bounds = { sizeBytes, partBytesMax: sizeBytes };
    const copy = () =>
      this.#parts.publishCopy(key, chunks, (name, late) => publish({ name, ...bounds }, late));
    const published: readonly number[] = [];
    return this.#unlessThere(key, sizeBytes, { publish, published }, () =>
      this.#space.use(partName(key), sizeBytes, copy),
    );
  }

  /** False when the bytes are not those that were listed. */
  publish(key: FileKey, segments: readonly FileSegment[], publish: Publish): Promise<boolean> {
    const sizeBytes = segments.at(-1)?.endBytes ?? 0;
    return this.#unlessThere(key, sizeBytes, { publish, published: true }, () =>
      this.#publishSegments(key, segments, publish),
    );
  }

  async #publishSegments(key: FileKey, segments: readonly FileSegment[], publish: Publish): Promise<boolean> {
    const sizeBytes = segments.at(-1)?.endBytes ?? 0;
    const whole = wholeSegment(segments);
    if (whole === undefined) {
      const bounds = { sizeBytes, partBytesMax: sizeBytes };
      const join = () =>
        this.#parts.publishSegments(key, segmentRanges(segments), (name, late) =>
          publish({ name, ...bounds }, late),
        );
      return await this.#space.use(`join ${key.fileId}`, sizeBytes, join);
    }
    const part = segmentKey(key, whole.number);
    // Bytes that a stream wrote behind those that count are cut off.
    const file = { name: partName(part), sizeBytes, partBytesMax: Number.MAX_SAFE_INTEGER };
    await this.#parts.exclusively(part, (late) => publish(file, late));
    return true;
  }

  /**
   * A repeat may find no room, or lose its sources, although the file is there: another node has published it. Then it
   * publishes a name without a file, which succeeds for the file of an earlier run alone.
   */
  async #unlessThere<T>(
    key: FileKey,
    sizeBytes: number,
    { publish, published }: { readonly publish: Publish; readonly published: T },
    work: () => Promise<T>,
  ): Promise<T> {
    try {
      return await work();
    } catch (error) {
      const none = { name: `${fileName(key)}.none`, sizeBytes, partBytesMax: sizeBytes };
      const isThere = await this.#parts
        .exclusively(key, (late) => publish(none, late))
        .then(
          () => true,
          () => false,
        );
      if (!isThere) throw error;
      return published;
    }
  }

  async remove(key: FileKey, numbers: readonly number[]): Promise<void> {
    for (const number of numbers) {
      const part = segmentKey(key, number);
      await this.#parts.exclusively(part, (late) =>
        this.#folders.use(key.owner, (folder) => this.#parts.removeFrom(folder, part), late),
      );
    }
  }
}
