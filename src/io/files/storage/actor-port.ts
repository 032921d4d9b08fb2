/** The file storage as actors see it: failures are values, and worker threads compute hashes. */
import type { FilePort, FileSection, PortResult, WorkerPort } from '../../../actors/runtime/ports.ts';
import { GatewayError } from '../../../domain/errors.ts';
import type { FileKey } from '../../../domain/files/files.ts';
import type { FileStorage } from './port.ts';

export function filePort(storage: FileStorage, workers: WorkerPort): FilePort {
  return {
    create: (key) => result(storage.create(key)),
    publish: (key, sizeBytes) => result(storage.publish(key, sizeBytes)),
    remove: (key) => result(storage.remove(key)),
    reserve: (holder, sizeBytes) => result(storage.reserve(holder, sizeBytes)),
    release: (holder) => storage.release(holder),
    hashRanges: (key, ranges) => hashRanges(storage, workers, key, ranges),
  };
}

async function result(work: Promise<void>): Promise<PortResult<null>> {
  try {
    await work;
    return { ok: true, value: null };
  } catch (error) {
    return failure(error);
  }
}

/** One range after the other: only recovery hashes, and only the file's owner waits for it. */
async function hashRanges(
  storage: FileStorage,
  workers: WorkerPort,
  key: FileKey,
  ranges: readonly FileSection[],
): Promise<PortResult<readonly (number | undefined)[]>> {
  try {
    const lease = await storage.lease(key);
    try {
      const found: (number | undefined)[] = [];
      for (const { positionBytes, lengthBytes } of ranges) {
        const task = { fd: lease.fd, position: positionBytes, length: lengthBytes };
        const hashed = await workers.run('hashRange', task);
        if (!hashed.ok) return hashed;
        found.push(hashed.value);
      }
      return { ok: true, value: found };
    } finally {
      await lease.release();
    }
  } catch (error) {
    if (error instanceof GatewayError && error.row === 'InvalidID')
      return { ok: true, value: ranges.map(() => undefined) };
    return failure(error);
  }
}

/** Any other error is a bug. */
function failure(error: unknown): { ok: false; error: GatewayError['row'] } {
  return { ok: false, error: error instanceof GatewayError ? error.row : 'InternalError' };
}
