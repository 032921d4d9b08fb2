/**
 * Publishing to a bucket while the process is killed: at any request, before it takes effect or after. Then each file is
 * whole, a file that was acknowledged is never lost, and a sweep leaves no transfer.
 */
import { fork } from 'node:child_process';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import t, { type Test } from 'tap';
import { plainEnvironment } from '../../../kit/launch.ts';
import { seededNumbers } from '../../../kit/seeded-numbers.ts';
import type { FileKey } from '../../../src/domain/files/files.ts';
import { type FileSegment, segmentKey } from '../../../src/domain/files/segments.ts';
import { HOUR_MS } from '../../../src/domain/time.ts';
import type { DirectUploads, FileStorage } from '../../../src/io/files/storage/port.ts';
import { RemoteStorage } from '../../../src/io/files/storage/remote.ts';
import { PieceStream } from '../../../src/io/files/upload/piece-stream.ts';
import { crc32 } from '../../../src/workers/crc32.ts';
import { inlineWorkers } from '../../support/account.ts';
import { depth } from '../../support/depth.ts';
import { temporaryFolder, writePart } from '../../support/files/file-storage.ts';
import type { PublishedFile, PublisherPlan } from '../../support/files/publisher.ts';
import { bucketAt, startS3 } from '../../support/files/s3-oracle.ts';

t.setTimeout(1_800_000);

const MIB = 1024 * 1024;
const PROGRAM = fileURLToPath(new URL('../../support/files/publisher.js', import.meta.url));
/** One PUT, and transfers of three parts. */
const SIZES = [100_000, 17 * MIB + 1, 17 * MIB + 2];
/** Requests of a run that is not killed: probe, PUT with its check, transfers with theirs; of pieces, copies and removals. */
const REQUESTS = { parts: 5 + 2 + 2 * 6, pieces: 5 + 6 + 2 * 12 };
const KILLS = 20;

t.test('bucket: kills while files are published lose none and leave no transfer', (t) => runs(t));

t.test('bucket: kills while pieces are joined lose none, and a sweep leaves nothing', (t) =>
  runs(t, 'log-1'),
);

/** `directLogId`: the files are in pieces of this log. */
async function runs(t: Test, directLogId?: string): Promise<void> {
  const requestsMax = REQUESTS[directLogId === undefined ? 'parts' : 'pieces'];
  const kills = depth.count(KILLS);
  const random = seededNumbers(depth.seed);
  const server = await startS3(t, { signatureFault: async () => undefined });
  const bucket = bucketAt(server.url);
  const staging = temporaryFolder(t);
  const storage = new RemoteStorage({
    workers: inlineWorkers().workers,
    servers: { 0: { S3: bucket } },
    staging,
    directLogId,
    onFault: (message) => t.fail(message),
  });
  const { direct } = storage;
  t.teardown(() => storage.close());
  const source = Buffer.alloc(18 * MIB, 'abcdefghijklmnopq');
  const acknowledged = new Map<string, number>();
  const caught = { effect: 0, none: 0 };
  let waiting: PublishedFile[] = [];
  let fileId = 1_000;

  /** Runs until it ends, or is killed at its `killAt`th request. True when it was killed. */
  const run = async (killAt: number): Promise<boolean> => {
    const plan = JSON.stringify({ bucket, staging, directLogId, files: waiting } satisfies PublisherPlan);
    const child = fork(PROGRAM, [plan], { env: plainEnvironment(), execArgv: [] });
    child.on('message', (message: { done?: string; fault?: string }) => {
      if (message.fault !== undefined) t.fail(message.fault);
      const done = waiting.find(({ key }) => key.fileId === message.done);
      if (done !== undefined) acknowledged.set(done.key.fileId, done.sizeBytes);
    });
    let requests = 0;
    server.faultOf = () => {
      requests += 1;
      if (requests !== killAt) return undefined;
      child.kill('SIGKILL');
      const takesEffect = random() < 0.5;
      caught[takesEffect ? 'effect' : 'none'] += 1;
      return takesEffect ? 'lost' : 'silent';
    };
    const [code, signal] = await once(child, 'close');
    if (signal !== 'SIGKILL') t.equal(code, 0);
    waiting = waiting.filter(({ key }) => !acknowledged.has(key.fileId));
    return signal === 'SIGKILL';
  };

  for (let killed = 0; killed < kills; ) {
    server.faultOf = () => undefined;
    if (waiting.length === 0) {
      for (const sizeBytes of SIZES) {
        const key = { owner: '7', fileId: String(fileId) };
        const bytes = source.subarray(0, sizeBytes);
        fileId += 1;
        if (direct === undefined) await storage.create(key);
        if (direct === undefined) await writePart(storage, key, bytes);
        const pieces = direct && (await sendPieces(storage, direct, key, bytes));
        waiting.push({ key, sizeBytes, ...(pieces && { pieces }) });
      }
    }
    if (await run(1 + Math.floor(random() * requestsMax))) killed += 1;
  }
  await run(Number.POSITIVE_INFINITY);
  server.faultOf = () => undefined;

  t.comment(`${kills} kills, ${JSON.stringify(caught)}, ${acknowledged.size} files`);
  t.equal(acknowledged.size, fileId - 1_000, 'every file was published');
  const digest = (bytes: Buffer) => createHash('sha256').update(bytes).digest('hex');
  for (const [id, sizeBytes] of acknowledged) {
    const stored = server.objects.get(`one/7/${id}`)?.bytes ?? Buffer.alloc(0);
    t.equal(digest(stored), digest(source.subarray(0, sizeBytes)), id);
  }
  t.same(readdirSync(join(staging, '7')), [], 'no part is left');
  await storage.sweepServers(new Set(), Date.now() + HOUR_MS);
  t.equal(server.transfers.size, 0, 'no transfer is left');
  t.equal(server.objects.size, acknowledged.size, 'and no object that is no file');
}

/** Sends pieces like a stream of an upload. */
async function sendPieces(
  storage: FileStorage,
  direct: DirectUploads,
  key: FileKey,
  bytes: Buffer,
): Promise<readonly FileSegment[]> {
  const part = segmentKey(key, 1);
  const kept = { receivedBytes: 0, crc32: 0, pieces: [] };
  const stream = new PieceStream({ direct, workers: inlineWorkers().workers, key, stream: 1, kept });
  await storage.create(part);
  await writePart(storage, part, bytes);
  const lease = await storage.lease(part);
  const { pieces } = await stream.finish(lease, bytes.length, crc32(bytes));
  await lease.release();
  await direct.discard(part);
  return pieces;
}
