/**
 * Markers of nodes in the folder of files that they share: empty files, `.gatehouse/{log id}/{node}.{value}`. A value is in
 * the name, so that no NFS client answers from what it has read before.
 */
import { lstat, mkdir, open, opendir, unlink } from 'node:fs/promises';
import { join } from 'node:path';
import { systemCode } from '../../../domain/disk-faults.ts';
import type { FileCalls } from './file-calls.ts';

/** Entries that are read; further names, which a person has put there, are left. */
const ENTRIES_MAX = 1_000;

/** Each call rejects with the error of the system, or with that of the bound on calls; one that hangs does not settle. */
export interface Markers {
  write(node: number, value: string): Promise<void>;
  has(node: number, value: string): Promise<boolean>;
  /** Removes markers of this node but those with these values. */
  trim(node: number, kept: readonly string[]): Promise<void>;
}

export class MarkerFolder implements Markers {
  readonly #path: string;
  readonly #calls: FileCalls;

  constructor(root: string, logId: string, calls: FileCalls) {
    this.#path = join(root, '.gatehouse', logId);
    this.#calls = calls;
  }

  write(node: number, value: string): Promise<void> {
    return this.#calls.run(async () => {
      await mkdir(this.#path, { recursive: true, mode: 0o700 });
      const handle = await open(this.#pathOf(node, value), 'wx', 0o600);
      await handle.close();
    });
  }

  has(node: number, value: string): Promise<boolean> {
    return this.#calls.run(async () => {
      try {
        return (await lstat(this.#pathOf(node, value))).isFile();
      } catch (error) {
        if (systemCode(error) === 'ENOENT') return false;
        throw error;
      }
    });
  }

  trim(node: number, kept: readonly string[]): Promise<void> {
    const names = new Set(kept.map((value) => `${node}.${value}`));
    return this.#calls.run(async () => {
      let entries = 0;
      for await (const { name } of await opendir(this.#path)) {
        entries += 1;
        if (entries > ENTRIES_MAX) break;
        if (name.startsWith(`${node}.`) && !names.has(name)) await unlink(join(this.#path, name));
      }
    });
  }

  #pathOf(node: number, value: string): string {
    return join(this.#path, `${node}.${value}`);
  }
}
