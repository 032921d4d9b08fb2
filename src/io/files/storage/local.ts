/**
 * Files in a local folder: `{root}/{owner}/{fileId}`, the part beside it, so that publishing is one rename within a
 * directory (spec 4.8). For the order of syncs see `publish`.
 */
import { constants } from 'node:fs';
import { rename } from 'node:fs/promises';
import type { FileKey } from '../../../domain/files/files.ts';
import { type FullListener, StorageFaults } from './faults.ts';
import { FreeSpace, type FreeSpaceProbe } from './free-space.ts';
import { OpenFiles } from './open-files.ts';
import {
  fileName,
  isPresent,
  type OwnerFolder,
  OwnerFolders,
  openIfPresent,
  ownerName,
  type Readers,
} from './owner-folders.ts';
import { cutPart, type PartBounds, Parts, partName, unlinkIfPresent } from './parts.ts';
import type {
  FileStorage,
  PartLease,
  StorageCounters,
  StorageFaultListener,
  StoredFile,
  WantedFiles,
} from './port.ts';

interface LocalStorageOptions {
  /** Exists and is writable. */
  readonly root: string;
  readonly onFault: StorageFaultListener;
  /** Called, once a minute at most, when the disk has no space for uploads. */
  readonly full?: FullListener;
  /** Of the root's disk unless given. */
  readonly freeSpace?: FreeSpaceProbe;
  /** Descriptors kept for reading. */
  readonly keptMax?: number;
  /** Who may read new files: the gateway's account, or its group too. */
  readonly readers?: Readers;
}

export class LocalStorage implements FileStorage {
  readonly #faults: StorageFaults;
  readonly #folders: OwnerFolders;
  readonly #parts: Parts;
  readonly #files: OpenFiles;
  readonly #space: FreeSpace;
  #published = 0;
  #removed = 0;

  constructor({ root, onFault, full, freeSpace, keptMax, readers }: LocalStorageOptions) {
    this.#faults = new StorageFaults(onFault, full);
    this.#folders = new OwnerFolders(root, readers);
    this.#parts = new Parts(this.#folders, this.#faults);
    this.#files = new OpenFiles(this.#folders, this.#faults, keptMax);
    this.#space = new FreeSpace(root, this.#faults, freeSpace);
  }

  open(key: FileKey): Promise<StoredFile | undefined> {
    return this.#guard('opening', key, () => this.#files.get(key));
  }

  openKept(key: FileKey): StoredFile | undefined {
    return this.#files.getKept(key);
  }

  pathBelowRoot(key: FileKey): string {
    return `${ownerName(key)}/${fileName(key)}`;
  }

  create(key: FileKey): Promise<void> {
    return this.#guard('making a part of', key, () => this.#parts.make(key));
  }

  lease(key: FileKey): Promise<PartLease> {
    return this.#guard('opening the part of', key, () => this.#parts.lease(key));
  }

  publish(key: FileKey, sizeBytes: number, partBytesMax = sizeBytes): Promise<void> {
    return this.#guard('publishing', key, async () => {
      const done = await this.#parts.exclusively(key, () =>
        this.#folders.use(key.owner, (folder) => publishIn(folder, key, { sizeBytes, partBytesMax })),
      );
      if (done !== true) throw new Error('there is neither a part nor a file');
      this.#parts.ended(key);
      this.#published += 1;
    });
  }

  remove(key: FileKey): Promise<void> {
    return this.#guard('removing', key, async () => {
      await this.#files.forget(key);
      const gone = await this.#parts.exclusively(key, () =>
        this.#folders.use(key.owner, async (folder) => {
          const part = await this.#parts.removeFrom(folder, key);
          const file = await unlinkIfPresent(folder.pathOf(fileName(key)));
          return part || file;
        }),
      );
      if (gone === true) this.#removed += 1;
    });
  }

  removeFinished(key: FileKey): Promise<boolean> {
    return this.#guard('removing', key, async () => {
      const gone = await this.#folders.use(key.owner, async (folder) => {
        if (await isPresent(folder.pathOf(partName(key)))) return false;
        const file = await unlinkIfPresent(folder.pathOf(fileName(key)));
        if (file) await folder.sync();
        return file;
      });
      // After the unlink: a reader that opened it meanwhile would leave it in the cache.
      await this.#files.forget(key);
      if (gone === true) this.#removed += 1;
      return gone === true;
    });
  }

  reserve(holder: string, sizeBytes: number): Promise<void> {
    return this.#space.reserve(holder, sizeBytes);
  }

  release(holder: string): void {
    this.#space.release(holder);
  }

  freeBytes(): Promise<number> {
    return this.#space.freeBytes();
  }

  sweep(wanted: WantedFiles): Promise<number> {
    return this.#faults.guard(`sweeping ${this.#folders.root}`, () => this.#parts.sweep(wanted));
  }

  counters(): StorageCounters {
    return {
      leases: this.#parts.leases,
      reservedBytes: this.#space.heldBytes,
      published: this.#published,
      removed: this.#removed,
      failed: this.#faults.failed,
      full: this.#faults.full,
      open: this.#files.open,
    };
  }

  async close(): Promise<void> {
    await this.#parts.close();
    await this.#files.close();
  }

  #guard<T>(doing: string, key: FileKey, work: () => Promise<T>): Promise<T> {
    return this.#faults.guard(`${doing} ${key.owner}/${key.fileId} in ${this.#folders.root}`, work);
  }
}

/** Bytes, name, directory: each is on disk before the next one. */
async function publishIn(folder: OwnerFolder, key: FileKey, bounds: PartBounds): Promise<boolean> {
  const { sizeBytes } = bounds;
  const part = folder.pathOf(partName(key));
  const handle = await openIfPresent(part, constants.O_RDWR | constants.O_NOFOLLOW);
  if (handle === undefined) return isPublished(folder, key, sizeBytes);
  try {
    await cutPart(handle, bounds);
    await handle.datasync();
  } finally {
    await handle.close();
  }
  await rename(part, folder.pathOf(fileName(key)));
  await folder.sync();
  return true;
}

/** An earlier run got as far as the rename; its directory may not have reached the disk. */
async function isPublished(folder: OwnerFolder, key: FileKey, sizeBytes: number): Promise<boolean> {
  const path = folder.pathOf(fileName(key));
  const handle = await openIfPresent(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
  if (handle === undefined) return false;
  try {
    const { size } = await handle.stat();
    if (size !== sizeBytes) throw new Error(`the file has ${size} bytes, expected were ${sizeBytes}`);
  } finally {
    await handle.close();
  }
  await folder.sync();
  return true;
}
