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
import t from 'tap';
import { plainEnvironment } from '../../../kit/launch.ts';
import { seededNumbers } from '../../../kit/seeded-numbers.ts';
import { HOUR_MS } from '../../../src/domain/time.ts';
import { RemoteStorage } from '../../../src/io/files/storage/remote.ts';
import { inlineWorkers } from '../../support/account.ts';
import { depth } from '../../support/depth.ts';
import { temporaryFolder, writePart } from '../../support/files/file-storage.ts';
import type { PublisherPlan } from '../../support/files/publisher.ts';
import { bucketAt, startS3 } from '../../support/files/s3-oracle.ts';

t.setTimeout(1_800_000);

const MIB = 1024 * 1024;
const PROGRAM = fileURLToPath(new URL('../../support/files/publisher.js', import.meta.url));
/** One PUT, and transfers of three parts. */
const SIZES = [100_000, 17 * MIB + 1, 17 * MIB + 2];
/** Requests of a run that is not killed: probe, PUT with its check, transfers with theirs. */
const REQUESTS = 5 + 2 + 2 * 6;

t.test('bucket: kills while files are published lose none and leave no transfer', async (t) => {
  const kills = depth.count(20);
  const random = seededNumbers(depth.seed);
  const server = await startS3(t, { signatureFault: async () => undefined });
  const bucket = bucketAt(server.url);
  const staging = temporaryFolder(t);
  const storage = new RemoteStorage({
    workers: inlineWorkers().workers,
    servers: { 0: { S3: bucket } },
    staging,
    onFault: (message) => t.fail(message),
  });
  t.teardown(() => storage.close());
  const source = Buffer.alloc(18 * MIB, 'abcdefghijklmnopq');
  const acknowledged = new Map<string, number>();
  const caught = { effect: 0, none: 0 };
  let waiting: PublisherPlan['files'] = [];
  let fileId = 1_000;

  /** Runs until it ends, or is killed at its `killAt`th request. True when it was killed. */
  const run = async (killAt: number): Promise<boolean> => {
    const plan = JSON.stringify({ bucket, staging, files: waiting } satisfies PublisherPlan);
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
    if (waiting.length === 0) {
      waiting = SIZES.map((sizeBytes, at) => ({
        key: { owner: '7', fileId: String(fileId + at) },
        sizeBytes,
      }));
      fileId += SIZES.length;
      for (const { key, sizeBytes } of waiting) {
        await storage.create(key);
        await writePart(storage, key, source.subarray(0, sizeBytes));
      }
    }
    if (await run(1 + Math.floor(random() * REQUESTS))) killed += 1;
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
});
