/** Files at any node: uploads whose requests go to all nodes, while nodes are paused and taken over. */
import t, { type Test } from 'tap';
import { request, signUp, untilAvailable } from '../../../kit/agent.ts';
import { stopAfter } from '../../../kit/close-after.ts';
import { type FileTakeoverOptions, runFileTakeovers } from '../../../kit/cluster/file-takeovers.ts';
import type { NodeProcess } from '../../../kit/cluster/nodes.ts';
import type { Postgres } from '../../../kit/cluster/postgres.ts';
import { NO_FILE_LIMITS } from '../../../kit/launch.ts';
import { MemoryS3 } from '../../../kit/storage/memory-s3.ts';
import { MemoryStorageServer } from '../../../kit/storage/memory-server.ts';
import { postgresTest } from '../../support/cluster/postgres.ts';
import { startedNodes } from '../../support/cluster/started-nodes.ts';
import { count, depth } from '../../support/depth.ts';

const TAKEOVERS = 6;
const UPLOADS = 36;

t.setTimeout(600_000);

/** Where the files are: in a bucket, or at a server, over the folder that the nodes share. */
type Place = Pick<FileTakeoverOptions, 'objectStorage' | 'fileServer'>;

async function takeovers(t: Test, postgres: Postgres, place: Place = {}): Promise<void> {
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

async function otherFolder(t: Test, postgres: Postgres): Promise<void> {
  const { cluster, a, b, c } = await startedNodes(t, 3, {
    ...{ postgres, fileFolder: (name: string) => (name === 'c' ? 'other' : 'files') },
    configuration: { Settings: NO_FILE_LIMITS },
  });
  await c.gateway.said(/"nodes":\["a","b"\],"msg":"folder not shared"/);
  for (const { gateway } of [a, b]) await gateway.said(/"nodes":\["c"\],"msg":"markers missing"/);
  // The owner of an account stores its uploads, and c owns some.
  let person = await untilAvailable(() => signUp(c.url));
  while ((await cluster.ownerOf('user', person.userId)) === c) person = await signUp(c.url);
  const { cookie } = person;
  const draft = ({ url }: NodeProcess) =>
    request(`${url}/auth/v2/file/create_draft?fileName=a.bin&fileSize=1`, {
      method: 'POST',
      headers: { Cookie: cookie },
    });
  t.match(await draft(c), { status: 503, json: { error: { code: 1036 } } });
  t.match(await request(`${c.url}/health`), {
    status: 200,
    json: { status: 'degraded', degraded: ['sharedFolder'] },
  });
  t.match(await request(`${c.gateway.internal}/health`), {
    json: { cluster: { sharesFiles: false, missingMarkers: ['a', 'b'] } },
  });
  for (const { url } of [a, b]) t.match(await request(`${url}/health`), { json: { status: 'healthy' } });
  t.match(await draft(a), { status: 200 }, 'the others serve files');
}

// covers C26
postgresTest(
  'files: a node with another folder answers 503, and its health names the folder',
  (t, postgres) => otherFolder(t, postgres),
);
// covers C2
postgresTest(
  'files over a shared folder: every byte is equal at every node across takeovers',
  (t, postgres) => takeovers(t, postgres),
);
postgresTest(
  'files over staged file servers: every byte is equal at every node across takeovers',
  async (t, postgres) => takeovers(t, postgres, { fileServer: (await MemoryStorageServer.start(t)).url }),
);

postgresTest(
  'files in a bucket, without a shared folder: every byte is equal at every node across takeovers',
  async (t, postgres) => {
    const storage = stopAfter(t, await MemoryS3.start());
    await takeovers(t, postgres, { objectStorage: storage });
    const left = [...storage.objects.keys()].filter((key) => key.startsWith('uploads/'));
    t.comment(
      `${storage.objects.size} objects, ${left.length} of uploads, ${storage.transfers.size} transfers`,
    );
    t.ok(storage.objects.size > 0, 'files are there');
  },
);
