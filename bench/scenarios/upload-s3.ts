/** Whole files through the gateway into an object storage, against what others send to the same storage. */
import { startServer } from '../measure/children.ts';
import type { Scenario } from '../scenario.ts';
import { startPeerAt, startTransferClient, transferSubject } from '../subjects/transfers.ts';
import { MEMORY_NOTE, MIB, NO_TARGET, startFileGateway } from './file-gateway.ts';
import type { TransferKind } from './transfers/kinds.ts';

const FILE_BYTES = 50 * MIB;
/** Bytes of each of many small files. */
const SMALL_BYTES = 64 * 1024;
const SMALL = '8 files of 64 KB at once';
const TUS = '@tus/server with @tus/s3-store';
const SDK = 'node:http with @aws-sdk/lib-storage';

export const uploadS3: Scenario = {
  name: 'upload-s3',
  summary: 'streams of 50 MiB into an object storage against @tus/s3-store and @aws-sdk/lib-storage; MiB/s',
  unit: 'MiB',
  noTarget: NO_TARGET,
  baseline: true,
  notInAll: 'its peers are large',
  targets: [
    { against: TUS, by: 'processor time', atLeast: 3, row: 'stream into a bucket against @tus/s3-store' },
    { against: SDK, by: 'processor time', atLeast: 1.5, row: 'stream into a bucket against lib-storage' },
  ],
  defaults: { warmupMs: 2_500 },
  async run(bench) {
    const client = await startTransferClient(bench);
    const storage = await startServer('s3');
    bench.onTeardown(() => storage.stop());
    const subject = (
      name: string,
      kind: TransferKind,
      server: { readonly url: string; readonly pids: readonly number[]; readonly cookies: readonly string[] },
      isSmall = false,
    ) =>
      transferSubject(bench, client, {
        name: isSmall ? `${name}, ${SMALL}` : name,
        pids: server.pids,
        group: isSmall ? SMALL : 'one',
        plan: {
          kind,
          url: server.url,
          cookies: server.cookies,
          fileBytes: isSmall ? SMALL_BYTES : FILE_BYTES,
          streams: isSmall ? 8 : 1,
          connectionsPerFile: 1,
        },
      });
    const subjects = [];
    for (const build of bench.builds) {
      const gateway = await startFileGateway(bench, 8, {}, build, bucketOf(storage.url));
      for (const isSmall of [false, true])
        subjects.push(
          subject(`gatehouse${isSmall ? '' : ', 1 stream'}${build.suffix}`, 'v2', gateway, isSmall),
        );
    }
    for (const [id, name, file, kind] of [
      ['tus-s3', TUS, 'tus-s3-server', 'tus'],
      ['lib-storage', SDK, 'lib-storage-server', 'put'],
    ] as const) {
      if (!bench.optionalPeer(id)) continue;
      const peer = await startPeerAt(bench, file, storage.url);
      for (const isSmall of [false, true]) subjects.push(subject(name, kind, peer, isSmall));
    }
    return { comparison: await bench.compare(subjects), notes: NOTES };
  },
};

const NOTES = [
  MEMORY_NOTE,
  'The storage is one process of node:http in memory, the same for all; its processor time is not in the figures.',
  'The gateway receives a file in its folder, checks it, and answers once the object is there. The others send what comes on at once.',
];

function bucketOf(url: string) {
  const keys = { AccessKeyId: 'AKEXAMPLE', SecretAccessKey: 'a/secret+key' };
  return {
    FileServers: {
      0: { S3: { Endpoint: url, Region: 'eu-central-1', Bucket: 'files', PathStyle: true, ...keys } },
    },
  };
}
