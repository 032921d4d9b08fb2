/** The file storage as actors see it: failures are values, and worker threads compute hashes. */
import type { FilePort, FileSection, PortResult, WorkerPort } from '../../../actors/runtime/ports.ts';
import { GatewayError } from '../../../domain/errors.ts';
import { chunkTableBytes, chunkTableOffsetBytes, readChunkTable } from '../../../domain/files/chunk-table.ts';
import type { FileKey } from '../../../domain/files/files.ts';
import { type SegmentRange, segmentKey } from '../../../domain/files/segments.ts';
import { runOnLease } from './file-tasks.ts';
import type { FileStorage, PartLease } from './port.ts';

/** `mayUse`: false while the folder is not that of the other nodes; what is not in it may be in theirs. */
export function filePort(storage: FileStorage, workers: WorkerPort, mayUse = () => true): FilePort {
  const when = <T>(work: () => Promise<PortResult<T>>): Promise<PortResult<T>> =>
    mayUse() ? work() : Promise.resolve({ ok: false, error: 'FolderNotShared' });
  return {
    isShared: storage.isShared,
    isDurable: storage.direct !== undefined,
    create: (key) => when(() => result(storage.create(key))),
    publish: (key, sizeBytes, partBytesMax) =>
      when(() => result(storage.publish(key, sizeBytes, partBytesMax))),
    publishCopy: (key, chunks) => when(() => settled(storage.publishCopy(key, chunks))),
    publishSegments: (key, segments) => when(() => settled(storage.publishSegments(key, segments))),
    remove: (key) => when(() => result(storage.remove(key))),
    removeSegments: (key, numbers) => when(() => result(storage.removeSegments(key, numbers))),
    reserve: (holder, sizeBytes) => when(() => result(storage.reserve(holder, sizeBytes))),
    release: (holder) => storage.release(holder),
    readTable: (key, sizeBytes) => when(() => readTable(storage, key, sizeBytes)),
    hashRanges: (key, ranges) => when(() => hashRanges(storage, workers, key, ranges)),
    hashSegment: (key, segment, endBytes) =>
      when(() => hashSegment(storage, workers, { key, segment, endBytes })),
  };
}

async function hashSegment(
  storage: FileStorage,
  workers: WorkerPort,
  {
    key,
    segment,
    endBytes,
  }: { readonly key: FileKey; readonly segment: SegmentRange; readonly endBytes: number },
): Promise<PortResult<number | undefined>> {
  if (storage.direct !== undefined) return await settled(storage.direct.hashPiece(key, segment, endBytes));
  const { number, beginBytes } = segment;
  const range = { positionBytes: beginBytes, lengthBytes: endBytes - beginBytes };
  const hashed = await hashRanges(storage, workers, segmentKey(key, number), [range]);
  return hashed.ok ? { ok: true, value: hashed.value[0] } : hashed;
}

function result(work: Promise<void>): Promise<PortResult<null>> {
  return settled(work.then(() => null));
}

async function settled<T>(work: Promise<T>): Promise<PortResult<T>> {
  try {
    return { ok: true, value: await work };
  } catch (error) {
    return failure(error);
  }
}

/** One range after the other: only recovery hashes, and only the file's owner waits for it. */
function hashRanges(
  storage: FileStorage,
  workers: WorkerPort,
  key: FileKey,
  ranges: readonly FileSection[],
): Promise<PortResult<readonly (number | undefined)[]>> {
  const gone = ranges.map(() => undefined);
  return withPart<readonly (number | undefined)[]>(storage, key, gone, async (lease) => {
    const found: (number | undefined)[] = [];
    for (const { positionBytes, lengthBytes } of ranges) {
      const range = { fd: lease.fd, position: positionBytes, length: lengthBytes };
      const hashed = await runOnLease(workers, lease, 'hashRange', range);
      if (!hashed.ok) return { ok: false, error: hashed.error };
      found.push(hashed.value);
    }
    return { ok: true, value: found };
  });
}

/** Reads at most 3.2 KB, which takes one call. */
function readTable(
  storage: FileStorage,
  key: FileKey,
  sizeBytes: number,
): Promise<PortResult<readonly (number | null)[]>> {
  const gone = readChunkTable(new Uint8Array(), sizeBytes);
  return withPart<readonly (number | null)[]>(storage, key, gone, async (lease) => {
    const table = new Uint8Array(chunkTableBytes(sizeBytes));
    const bytesRead = await lease.read(table, chunkTableOffsetBytes(sizeBytes));
    return { ok: true, value: readChunkTable(table.subarray(0, bytesRead), sizeBytes) };
  });
}

/** `gone` when there is no part. */
async function withPart<T>(
  storage: FileStorage,
  key: FileKey,
  gone: T,
  work: (lease: PartLease) => Promise<PortResult<T>>,
): Promise<PortResult<T>> {
  try {
    const lease = await storage.lease(key);
    try {
      return await work(lease);
    } finally {
      await lease.release();
    }
  } catch (error) {
    if (error instanceof GatewayError && error.row === 'InvalidID') return { ok: true, value: gone };
    return failure(error);
  }
}

/** Any other error is a bug. */
function failure(error: unknown): { ok: false; error: GatewayError['row'] } {
  return { ok: false, error: error instanceof GatewayError ? error.row : 'InternalError' };
}
