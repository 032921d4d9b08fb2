/**
 * Room for uploads: what the disk has free, less what uploads under way may still write. Room is held for the whole of
 * an upload until it ends, although part of it is written already: too careful by at most the bytes in progress.
 */
import { statfs } from 'node:fs/promises';
import { GatewayError } from '../../domain/errors.ts';

/** Stays free: the journal may lie on the same disk, and a full one ends the gateway. */
export const FREE_MARGIN_BYTES = 64 * 1024 * 1024;

/** Bytes that the disk of a folder has free for this process. */
export type FreeSpaceProbe = () => Promise<number>;

export function freeSpaceOf(folder: string): FreeSpaceProbe {
  return async () => {
    const { bavail, bsize } = await statfs(folder);
    return bavail * bsize;
  };
}

export class FreeSpace {
  readonly #probe: FreeSpaceProbe;
  readonly #held = new Map<string, number>();
  #heldBytes = 0;

  constructor(probe: FreeSpaceProbe) {
    this.#probe = probe;
  }

  /** Rejects with `StorageFull`. What the probe throws passes through. */
  async reserve(holder: string, sizeBytes: number): Promise<void> {
    const free = await this.#probe();
    // From here to the end without a pause, so that two that ask at once cannot both get the last room.
    const before = this.#held.get(holder) ?? 0;
    if (free - FREE_MARGIN_BYTES - (this.#heldBytes - before) < sizeBytes)
      throw new GatewayError('StorageFull');
    this.#held.set(holder, sizeBytes);
    this.#heldBytes += sizeBytes - before;
  }

  release(holder: string): void {
    this.#heldBytes -= this.#held.get(holder) ?? 0;
    this.#held.delete(holder);
  }

  async freeBytes(): Promise<number> {
    return Math.max(0, (await this.#probe()) - FREE_MARGIN_BYTES - this.#heldBytes);
  }

  get heldBytes(): number {
    return this.#heldBytes;
  }
}
