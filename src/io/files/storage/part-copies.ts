/**
 * Copies of parts, `{fileId}.{random}.copy` beside them. A part whose chunks were replaced may have a writer of former
 * bytes, perhaps on another node: nothing that it writes later reaches a copy.
 */
import { randomUUID } from 'node:crypto';
import { close, constants } from 'node:fs';
import { promisify } from 'node:util';
import { CHUNK_BYTES, type ChunkBytes, type FileKey } from '../../../domain/files/files.ts';
import type { OnLate } from './file-calls.ts';
import { type FileTasks, runFileTask } from './file-tasks.ts';
import { fileName, type OwnerFolders, ownerName } from './owner-folders.ts';

const COPY_SUFFIX = '.copy';
const READ_FLAGS = constants.O_RDONLY | constants.O_NOFOLLOW;
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
    const { owner } = key;
    const source = await this.#folders.use(owner, (folder) => folder.open(part, READ_FLAGS), late);
    if (source === undefined) return undefined;
    const copy = `${fileName(key)}.${randomUUID()}${COPY_SUFFIX}`;
    this.#names.add(copy);
    try {
      const wrong = await this.#copy(source.fd, { owner: ownerName(key), part: copy }, chunks, late);
      if (wrong.length === 0) await publish(copy);
      return wrong;
    } finally {
      this.#names.delete(copy);
      await this.#tasks.calls.free(() => source.close(), late);
      await this.#folders.use(owner, (folder) => folder.unlink(copy), late);
    }
  }

  /** A task a chunk: other writes of the thread come in between. */
  async #copy(
    from: number,
    to: { readonly owner: string; readonly part: string },
    chunks: readonly ChunkBytes[],
    late: OnLate,
  ): Promise<number[]> {
    const { root, modes } = this.#folders;
    const toFd = await runFileTask(this.#tasks, 'makePart', { root, modes, ...to }, late);
    try {
      const wrong: number[] = [];
      for (const [at, { sizeBytes, crc32 }] of chunks.entries()) {
        const task = { fd: from, toFd, position: at * CHUNK_BYTES, length: sizeBytes };
        if ((await runFileTask(this.#tasks, 'copyRange', task, late)) !== crc32) wrong.push(at);
      }
      return wrong;
    } finally {
      await this.#tasks.calls.free(() => closeDescriptor(toFd), late);
    }
  }
}
