/** Files at any node: uploads whose requests go to all nodes, while nodes are paused and taken over. */
import t, { type Test } from 'tap';
import { runFileTakeovers } from '../../../kit/cluster/file-takeovers.ts';
import type { Postgres } from '../../../kit/cluster/postgres.ts';
import { MemoryS3 } from '../../../kit/storage/memory-s3.ts';
import { withPostgres } from '../../support/cluster/postgres.ts';
import { count, depth } from '../../support/depth.ts';

const TAKEOVERS = 8;
/** Of each kind. */
const UPLOADS = 60;

t.setTimeout(600_000);

async function takeovers(t: Test, postgres: Postgres, objectStorage?: MemoryS3): Promise<void> {
  const report = await runFileTakeovers({
    postgres,
    ...(objectStorage === undefined ? {} : { objectStorage }),
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

await withPostgres(t, (postgres) => {
  // covers C2
  t.test('files over a shared folder: every byte is equal at every node across takeovers', (t) =>
    takeovers(t, postgres),
  );

  t.test(
    'files in a bucket, without a shared folder: every byte is equal at every node across takeovers',
    async (t) => {
      const storage = await MemoryS3.start();
      t.teardown(() => storage.stop());
      await takeovers(t, postgres, storage);
      const left = [...storage.objects.keys()].filter((key) => key.startsWith('uploads/'));
      t.comment(
        `${storage.objects.size} objects, ${left.length} of uploads, ${storage.transfers.size} transfers`,
      );
      t.ok(storage.objects.size > 0, 'files are there');
    },
  );
});
