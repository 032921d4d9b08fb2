/** Files at any node: uploads whose requests go to all nodes, while nodes are paused and taken over. */
import t, { type Test } from 'tap';
import { stopAfter } from '../../../kit/close-after.ts';
import { type FileTakeoverOptions, runFileTakeovers } from '../../../kit/cluster/file-takeovers.ts';
import type { Postgres } from '../../../kit/cluster/postgres.ts';
import { MemoryS3 } from '../../../kit/storage/memory-s3.ts';
import { MemoryStorageServer } from '../../../kit/storage/memory-server.ts';
import { postgresTest } from '../../support/cluster/postgres.ts';
import { count, depth } from '../../support/depth.ts';

const TAKEOVERS = 6;
const UPLOADS = 36;

t.setTimeout(600_000);

/** Where the files are: in a bucket, or at a server, over the folder that the nodes share. */
type Place = Pick<FileTakeoverOptions, 'nodes' | 'objectStorage' | 'fileServer'>;

async function takeovers(t: Test, postgres: Postgres, place: Place): Promise<void> {
  const report = await runFileTakeovers({
    postgres,
    ...place,
    seed: depth.seed,
    takeovers: count(TAKEOVERS),
    uploads: count(UPLOADS),
  });
  t.comment(JSON.stringify(report));
  t.same(report.faults, []);
  t.equal(report.takeovers, count(TAKEOVERS));
  for (const done of [report.chunked, report.whole, report.resumed]) t.ok(done >= count(UPLOADS));
  t.ok(report.midBody > 0, 'bodies were under way');
}

// covers C2
postgresTest(
  'files over a shared folder: every byte is equal at every node across takeovers',
  (t, postgres) => takeovers(t, postgres, { nodes: 3 }),
);
postgresTest(
  'files over staged file servers: every byte is equal at every node across takeovers',
  async (t, postgres) =>
    takeovers(t, postgres, { nodes: 2, fileServer: (await MemoryStorageServer.start(t)).url }),
);

postgresTest(
  'files in a bucket, without a shared folder: every byte is equal at every node across takeovers',
  async (t, postgres) => {
    const storage = stopAfter(t, await MemoryS3.start());
    await takeovers(t, postgres, { nodes: 2, objectStorage: storage });
    const left = [...storage.objects.keys()].filter((key) => key.startsWith('uploads/'));
    t.comment(
      `${storage.objects.size} objects, ${left.length} of uploads, ${storage.transfers.size} transfers`,
    );
    t.ok(storage.objects.size > 0, 'files are there');
  },
);
