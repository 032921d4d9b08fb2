/** kill -9 during part, completion, publish and chat completion: file and message both exist, or neither does. */
import { randomBytes } from 'node:crypto';
import {
  closeSync,
  existsSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  statSync,
  truncateSync,
  writeFileSync,
  writeSync,
} from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { signUp } from '../../../kit/agent.ts';
import { runChunkKillLoop, runManyChunksLoop } from '../../../kit/chunk-kill-loop.ts';
import { launch } from '../../../kit/launch.ts';
import { crc32, initUpload, uploadPart, uploadStatus } from '../../../kit/upload-client.ts';
import { count, depth } from '../../support/depth.ts';

t.setTimeout(240_000);

const KILLS = 8;
/** Kills during uploads with many chunks. `npm run soak` does more. */
const CHUNK_KILLS = 8;
/** Without the table the first loss ends the loop. */
const PLANTED_KILLS = 10;
const PAGE_BYTES = 4096;

// covers R26 S150
t.test(
  'kill -9 loop of uploads: each file is complete or absent, its message consistent, its slot free',
  async (t) => {
    const kills = count(KILLS);
    const report = await runChunkKillLoop({
      kills,
      dataPath: `${t.testdir()}/data`,
      clients: 6,
      seed: depth.seed,
    });
    t.comment(JSON.stringify(report));
    t.same(report.faults, []);
    t.equal(report.kills, kills);
    t.ok(report.completed > kills, 'people were uploading');
  },
);

t.test('kill -9 loop of chunks: no acknowledged chunk is missing after a restart', async (t) => {
  const kills = count(CHUNK_KILLS);
  const report = await runManyChunksLoop({
    kills,
    dataPath: `${t.testdir()}/data`,
    clients: 6,
    seed: depth.seed,
  });
  t.comment(JSON.stringify(report));
  t.same(report.faults, []);
  t.equal(report.kills, kills);
  t.ok(report.atKills > 2 * kills, 'uploads were under way, with chunks that were acknowledged');
  t.ok(report.replaced > kills, 'chunks were being replaced');
  if (kills >= CHUNK_KILLS) t.ok(report.replacing > 0, 'kills met some of them');
});

t.test('kill -9 loop of chunks: without the tables of the parts it finds missing chunks', async (t) => {
  const { faults } = await runManyChunksLoop({
    kills: PLANTED_KILLS,
    dataPath: `${t.testdir()}/data`,
    clients: 6,
    seed: depth.seed,
    plant: cutTables,
  });
  t.match(faults.join('\n'), /chunks \d.* were acknowledged and are missing/);
});

t.test(
  'restart: an open upload continues; chunks damaged by a crash of the machine are missing again',
  async (t) => {
    const dataPath = `${t.testdir()}/data`;
    const start = () => launch({ dataPath, args: ['--sandbox'] });
    let gateway = await start();
    const { cookie, userId } = await signUp(gateway.url);
    const at = () => ({ url: gateway.url, cookie });
    const bytes = randomBytes(4 * 256 * 1024 + 9);
    await initUpload(at(), bytes);
    await uploadPart(at(), bytes, 0);
    await uploadPart(at(), bytes, 2);
    const folder = join(dataPath, 'files', userId);
    const [part = ''] = readdirSync(folder);
    const missing = async () => (await uploadStatus(at(), crc32(bytes))).json['result']?.['missing'];
    t.match(part, /^[0-9]+\.part$/);
    t.equal((await gateway.stop()).code, 0);
    gateway = await start();
    t.same(await missing(), [1, 3, 4], 'after a clean stop');
    t.match(gateway.output().stderr, /"clean":true/);
    await uploadPart(at(), bytes, 1);
    t.same(await missing(), [3, 4], 'what was asked for is in the journal');
    await uploadPart(at(), bytes, 3);
    await gateway.kill();
    damage(join(folder, part), 256 * 1024 + 77);
    mkdirSync(join(dataPath, 'files', '7'));
    writeFileSync(join(dataPath, 'files', '7', '8.part'), 'no owner');
    writeFileSync(join(folder, '9.part'), 'no upload');
    gateway = await start();
    t.same(await missing(), [1, 4], 'the damaged chunk is missing, the one just acknowledged is not');
    t.same(readdirSync(folder), [part], 'parts without an upload are removed');
    t.notOk(existsSync(join(dataPath, 'files', '7', '8.part')));
    t.match(
      gateway.output().stderr,
      /"clean":false,"uploads":1,"chunksLost":1,"chunksFound":1,"partsSwept":2/,
    );
    await uploadPart(at(), bytes, 4);
    const last = await uploadPart(at(), bytes, 1);
    const fileId = String(last.json['result']?.['fileId']);
    t.ok(readFileSync(join(folder, fileId)).equals(bytes));
    await gateway.stop();
  },
);

/** The table of a part with entries is its last page: so few chunks fit into one. */
function cutTables(dataPath: string): void {
  const folder = join(dataPath, 'files');
  for (const name of readdirSync(folder, { recursive: true, encoding: 'utf8' })) {
    if (!name.endsWith('.part')) continue;
    const path = join(folder, name);
    const { size } = statSync(path);
    truncateSync(path, Math.max(0, Math.floor((size - 1) / PAGE_BYTES) * PAGE_BYTES));
  }
}

function damage(path: string, position: number): void {
  const file = openSync(path, 'r+');
  writeSync(file, Buffer.alloc(100), 0, 100, position);
  closeSync(file);
}
