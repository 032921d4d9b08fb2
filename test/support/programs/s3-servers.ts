/** Object storages of other makers, from test/programs: each runs in this process, on a free port of its own. */
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import type { Test } from 'tap';
import { PROGRAMS, programRequire } from '../../../kit/run-sync.ts';
import type { BucketConfiguration } from '../../../src/domain/config/file-servers.ts';
import { temporaryFolder } from '../files/file-storage.ts';
import { bucketAt } from '../files/s3-oracle.ts';

interface S3rver {
  run(): Promise<{ readonly port: number }>;
  close(): Promise<void>;
}

interface Fauxqs {
  readonly port: number;
  createBucket(name: string): unknown;
  stop(): Promise<void>;
}

const BUCKET = 'files';
/** The one key pair of s3rver, whose signatures it checks. */
const S3RVER_KEYS = { accessKeyId: 'S3RVER', secretAccessKey: 'S3RVER' };

/** By package. */
export const S3_SERVERS: Readonly<Record<string, (t: Test) => Promise<BucketConfiguration>>> = {
  async s3rver(t) {
    const Server = programRequire('@20minutes/s3rver') as new (options: object) => S3rver;
    const server = new Server({
      address: '127.0.0.1',
      port: 0,
      silent: true,
      directory: temporaryFolder(t),
      configureBuckets: [{ name: BUCKET }],
    });
    const { port } = await server.run();
    t.teardown(() => server.close());
    return bucketAt(`http://127.0.0.1:${port}`, S3RVER_KEYS);
  },
  async fauxqs(t) {
    const { href } = pathToFileURL(join(PROGRAMS, 'node_modules/fauxqs/dist/app.js'));
    const { startFauxqs } = (await import(href)) as { startFauxqs(options: object): Promise<Fauxqs> };
    const server = await startFauxqs({ port: 0, logger: false });
    t.teardown(() => server.stop());
    server.createBucket(BUCKET);
    return bucketAt(`http://127.0.0.1:${server.port}`);
  },
};
