/** Publishes and removes the segments of a file, whatever the finished file is stored in. */
import type { FileKey } from '../../../domain/files/files.ts';
import type { PartBounds } from '../../../domain/files/part-bounds.ts';
import { type FileSegment, segmentKey, segmentRanges, wholeSegment } from '../../../domain/files/segments.ts';
import type { OnLate } from './file-calls.ts';
import type { FreeSpace } from './free-space.ts';
import { type OwnerFolders, partName } from './owner-folders.ts';
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

  /** False when the bytes are not those that were listed. */
  async publish(key: FileKey, segments: readonly FileSegment[], publish: Publish): Promise<boolean> {
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

  async remove(key: FileKey, numbers: readonly number[]): Promise<void> {
    for (const number of numbers) {
      const part = segmentKey(key, number);
      await this.#parts.exclusively(part, (late) =>
        this.#folders.use(key.owner, (folder) => this.#parts.removeFrom(folder, part), late),
      );
    }
  }
}
