/**
 * One file on a disk that loses power: what is surely on it, and by sector what may be. A sector is written as a whole
 * or not at all, each on its own: of those that no sync has covered, any may be on the disk in any state that it had
 * since.
 */

/** The unit that a disk writes as a whole. */
export const SECTOR_BYTES = 512;

/** A write under way, or done and not yet synced. */
export interface Write {
  /** Undefined: under way. */
  endedAt: number | undefined;
}

interface Version {
  readonly write: Write;
  readonly bytes: Buffer;
}

interface Size {
  readonly write: Write;
  readonly bytes: number;
}

export class Inode {
  /** Durable content; zeros behind `#durableBytes`. */
  #content = Buffer.alloc(0);
  #durableBytes = 0;
  /** States of a sector since the durable one, oldest first. */
  readonly #sectors = new Map<number, Version[]>();
  #sizes: Size[] = [];
  #isCut = false;

  /** Size as every process sees it. */
  get sizeBytes(): number {
    return this.#sizes.at(-1)?.bytes ?? this.#durableBytes;
  }

  /** Nothing of it needs to be on the disk yet. Throws where another write to the same sectors is under way. */
  write(write: Write, offset: number, bytes: Buffer): void {
    const end = offset + bytes.length;
    if (this.#isCut && end > this.sizeBytes) throw new Error('a file that was cut grows again');
    for (let sector = Math.floor(offset / SECTOR_BYTES); sector * SECTOR_BYTES < end; sector += 1) {
      const versions = this.#sectors.get(sector) ?? [];
      const last = versions.at(-1);
      if (last !== undefined && last.write.endedAt === undefined && last.write !== write)
        throw new Error(`two writes to sector ${sector} at once`);
      const start = sector * SECTOR_BYTES;
      const next = Buffer.from(last?.bytes ?? this.#durable(sector));
      const from = Math.max(offset, start);
      bytes.copy(next, from - start, from - offset, Math.min(end, start + SECTOR_BYTES) - offset);
      versions.push({ write, bytes: next });
      this.#sectors.set(sector, versions);
    }
    if (end > this.sizeBytes) this.#sizes.push({ write, bytes: end });
  }

  /** The file ends there, and does not grow again. */
  cut(write: Write, sizeBytes: number): void {
    this.#isCut = true;
    this.#sizes.push({ write, bytes: sizeBytes });
  }

  /** Whatever had been written before that moment is on the disk. */
  sync(beganAt: number): void {
    this.#settle(({ endedAt }) => endedAt !== undefined && endedAt < beganAt);
  }

  /** This one is on the disk, with whatever its sectors held before it. */
  settle(write: Write): void {
    this.#settle((each) => each === write);
  }

  #settle(isDurable: (write: Write) => boolean): void {
    const size = this.#sizes.findLastIndex(({ write }) => isDurable(write));
    this.#durableBytes = this.#sizes[size]?.bytes ?? this.#durableBytes;
    this.#sizes = this.#sizes.slice(size + 1);
    for (const [sector, versions] of this.#sectors) {
      const last = versions.findLastIndex(({ write }) => isDurable(write));
      if (last < 0) continue;
      versions[last]?.bytes.copy(this.#room(sector), 0);
      if (last === versions.length - 1) this.#sectors.delete(sector);
      else versions.splice(0, last + 1);
    }
  }

  /** Returns the bytes as the processes see them now: a kill leaves them. */
  whole(): Buffer {
    return this.#image(this.sizeBytes, (versions) => versions.at(-1));
  }

  /** Returns bytes that may be found after a power cut; `random` gives numbers from 0 to 1. */
  afterCut(random: () => number): Buffer {
    const dice = random();
    // A third each: all that is not synced is gone, most of it is, or each sector as it happens.
    const kept = dice < 1 / 3 ? 0 : dice < 2 / 3 ? random() / 4 : random();
    const sizes = [this.#durableBytes, ...this.#sizes.map(({ bytes }) => bytes)];
    const size = sizes[Math.floor(random() * sizes.length)] ?? this.#durableBytes;
    return this.#image(size, (versions) =>
      random() < kept ? versions[Math.floor(random() * versions.length)] : undefined,
    );
  }

  #image(size: number, pick: (versions: readonly Version[]) => Version | undefined): Buffer {
    const image = Buffer.alloc(size);
    this.#content.copy(image, 0, 0, size);
    for (const [sector, versions] of this.#sectors) {
      const start = sector * SECTOR_BYTES;
      const picked = pick(versions);
      if (start < size) picked?.bytes.copy(image, start, 0, Math.min(SECTOR_BYTES, size - start));
    }
    return image;
  }

  #durable(sector: number): Buffer {
    return this.#room(sector).subarray(0, SECTOR_BYTES);
  }

  /** The durable content from this sector on. */
  #room(sector: number): Buffer {
    const start = sector * SECTOR_BYTES;
    if (this.#content.length < start + SECTOR_BYTES) {
      const larger = Buffer.alloc(2 * (start + SECTOR_BYTES));
      this.#content.copy(larger);
      this.#content = larger;
    }
    return this.#content.subarray(start);
  }
}
