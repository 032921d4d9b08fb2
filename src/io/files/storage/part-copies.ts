/**
 * Copies of parts, `{fileId}.{random}.copy` beside them. A part whose chunks were replaced may have a writer of former
 * bytes, perhaps on another node: nothing that it writes later reaches a copy.
 */
import { randomUUID } from 'node:crypto';
import { close, constants } from 'node:fs';
import type { FileHandle } from 'node:fs/promises';
import { promisify } from 'node:util';
import { combineCrc32 } from '../../../domain/files/crc32-combine.ts';
import { CHUNK_BYTES, type ChunkBytes, type FileKey } from '../../../domain/files/files.ts';
import { continues, crc32Before, type SegmentRange, segmentKey } from '../../../domain/files/segments.ts';
import type { OnLate } from './file-calls.ts';
import { type FileTasks, runFileTask } from './file-tasks.ts';
import { fileName, type OwnerFolders, ownerName, partName } from './owner-folders.ts';

const COPY_SUFFIX = '.copy';
const READ_FLAGS = constants.O_RDONLY | constants.O_NOFOLLOW;
/** One step of a join. */
const STEP_BYTES = 1024 * 1024;
const closeDescriptor = promisify(close);

export class PartCopies {
  readonly #folders: OwnerFolders;
  readonly #tasks: FileTasks;
  readonly #names = new Set<string>();

  constructor(folders: OwnerFolders, tasks: FileTasks) {
    this.#folders = folders;
    this.#tasks = tasks;
  }

  /** True for a copy that no work of this process uses: a crash left it. */
  isLeftOver(name: string): boolean {
    return name.endsWith(COPY_SUFFIX) && !this.#names.has(name);
  }

  /**
   * Copies `part`, and gives the name of the copy to `publish` if every chunk is as expected. Resolves with the numbers
   * of those that are not; undefined when there is no part. The caller excludes writers of this process.
   */
  async publish(
    key: FileKey,
    part: string,
    chunks: readonly ChunkBytes[],
    publish: (copy: string) => Promise<void>,
    late: OnLate,
  ): Promise<readonly number[] | undefined> {
    const source = await this.#open(key, part, late);
    if (source === undefined) return undefined;
    return await this.#withCopy(key, late, async (copy, toFd) => {
      const wrong: number[] = [];
      try {
        // A task a chunk: other writes of the thread come in between.
        for (const [at, { sizeBytes, crc32 }] of chunks.entries()) {
          const task = { fd: source.fd, toFd, position: at * CHUNK_BYTES, length: sizeBytes };
          if ((await runFileTask(this.#tasks, 'copyRange', task, late)) !== crc32) wrong.push(at);
        }
      } finally {
        await this.#tasks.calls.free(() => source.close(), late);
      }
      if (wrong.length === 0) await publish(copy);
      return wrong;
    });
  }

  /**
   * Joins the ranges, each of a part of its own, and gives the name of the copy to `publish` if all bytes are as
   * expected; false otherwise. Where a part is gone `publish` gets a name without a file: an earlier run may have got
   * further.
   */
  publishSegments(
    key: FileKey,
    ranges: readonly SegmentRange[],
    publish: (copy: string) => Promise<void>,
    late: OnLate,
  ): Promise<boolean> {
    return this.#withCopy(key, late, async (copy, toFd) => {
      for (const range of ranges) {
        const source = await this.#open(key, partName(segmentKey(key, range.number)), late);
        if (source === undefined) {
          await publish(`${copy}.none`);
          return true;
        }
        try {
          if (!(await this.#copyRange(source.fd, toFd, range, crc32Before(ranges, range), late)))
            return false;
        } finally {
          await this.#tasks.calls.free(() => source.close(), late);
        }
      }
      await publish(copy);
      return true;
    });
  }

  /** In steps of a MiB: other writes of the thread come in between. False when the bytes are not as expected. */
  async #copyRange(
    fd: number,
    toFd: number,
    range: SegmentRange,
    before: number,
    late: OnLate,
  ): Promise<boolean> {
    let crc32: number | undefined = 0;
    for (let position = range.beginBytes; position < range.endBytes; position += STEP_BYTES) {
      const length = Math.min(STEP_BYTES, range.endBytes - position);
      const found = await runFileTask(this.#tasks, 'copyRange', { fd, toFd, position, length }, late);
      if (found === undefined) return false;
      crc32 = combineCrc32(crc32, found, length);
    }
    return continues(before, range, crc32);
  }

  #open(key: FileKey, part: string, late: OnLate): Promise<FileHandle | undefined> {
    return this.#folders.use(key.owner, (folder) => folder.open(part, READ_FLAGS), late);
  }

  /** The copy is gone afterwards, unless `work` has renamed it. */
  async #withCopy<T>(
    key: FileKey,
    late: OnLate,
    work: (copy: string, toFd: number) => Promise<T>,
  ): Promise<T> {
    const copy = `${fileName(key)}.${randomUUID()}${COPY_SUFFIX}`;
    this.#names.add(copy);
    try {
      const { root, modes } = this.#folders;
      const task = { root, modes, owner: ownerName(key), part: copy };
      const toFd = await runFileTask(this.#tasks, 'makePart', task, late);
      try {
        return await work(copy, toFd);
      } finally {
        await this.#tasks.calls.free(() => closeDescriptor(toFd), late);
      }
    } finally {
      this.#names.delete(copy);
      await this.#folders.use(key.owner, (folder) => folder.unlink(copy), late);
    }
  }
}
