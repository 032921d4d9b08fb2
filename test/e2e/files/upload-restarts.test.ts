/** v1 uploads over restarts: an open one continues, and what a crash of the machine took is asked for again. */
import { randomBytes } from 'node:crypto';
import {
  closeSync,
  existsSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  writeFileSync,
  writeSync,
} from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { signUp } from '../../../kit/agent.ts';
import { launch } from '../../../kit/launch.ts';
import { crc32, initUpload, uploadPart, uploadStatus } from '../../../kit/upload-client.ts';

t.setTimeout(240_000);

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

function damage(path: string, position: number): void {
  const file = openSync(path, 'r+');
  writeSync(file, Buffer.alloc(100), 0, 100, position);
  closeSync(file);
}
