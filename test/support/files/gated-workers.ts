/** Workers whose tasks run when a test says so, and parts that their bytes go to. */
import { readSync } from 'node:fs';
import type { Test } from 'tap';
import type { WorkerPort } from '../../../src/actors/runtime/ports.ts';
import type { PartLease } from '../../../src/io/files/storage/port.ts';
import { inlineWorkers } from '../account.ts';
import { temporaryFolder } from './file-storage.ts';
import { localStorage } from './storages.ts';

export const settle = () => new Promise((resolve) => setImmediate(resolve));

export async function newLease(t: Test, root = temporaryFolder(t)): Promise<PartLease> {
  const { storage } = localStorage(t, { root });
  const key = { owner: '1', fileId: '2' };
  await storage.create(key);
  const lease = await storage.lease(key);
  t.teardown(() => lease.release());
  return lease;
}

export function contentOf(lease: PartLease, sizeBytes: number, position = 0): Buffer {
  const bytes = Buffer.alloc(sizeBytes + 1);
  return bytes.subarray(0, readSync(lease.fd, bytes, 0, bytes.length, position));
}

/** Tasks that run when the test says so, in the order that it chooses. */
export class GatedWorkers implements WorkerPort {
  readonly waiting: (() => Promise<void>)[] = [];
  readonly #workers = inlineWorkers().workers;

  run: WorkerPort['run'] = (name, input) =>
    new Promise((resolve) => {
      this.waiting.push(async () => resolve(await this.#workers.run(name, input)));
    });

  async release(index = 0): Promise<void> {
    await this.waiting.splice(index, 1)[0]?.();
    await settle();
  }

  async releaseAll(): Promise<void> {
    while (this.waiting.length > 0) await this.release(this.waiting.length - 1);
  }
}
