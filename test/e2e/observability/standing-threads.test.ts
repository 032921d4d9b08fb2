/** Threads of the program that stand still, with the answers of other callers beside them. */
import { closeSync, openSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import t, { type Test } from 'tap';
import { logIn, request, signUp } from '../../../kit/agent.ts';
import { launch, launchFor, NO_FILE_LIMITS } from '../../../kit/launch.ts';
import { outputOf } from '../../../kit/run-sync.ts';
import { depth } from '../../support/depth.ts';
import { createDraft } from '../../support/files/draft-program.ts';
import { AT_FULL_DEPTH } from '../../support/programs/tools.ts';
import { until } from '../../support/until.ts';

t.setTimeout(400_000);

const PRELOAD = fileURLToPath(new URL('../../support/preloads/standing-threads.cjs', import.meta.url));

async function start(t: Test) {
  const folder = t.testdir({ standstill: {} });
  const standstill = join(folder, 'standstill');
  const options = {
    dataPath: join(folder, 'data'),
    args: ['--sandbox'],
    nodeArgs: ['--require', PRELOAD],
    environment: { STANDSTILL: standstill },
    configuration: { Workers: { threads: 1 }, Settings: NO_FILE_LIMITS },
  };
  const gateway = await launch(options);
  return { gateway, options, standstill };
}

// covers R61 S161
t.test(
  'standstill: all threads stand still: log-ins are answered, health is degraded until then',
  async (t) => {
    const { gateway, standstill } = await start(t);
    t.teardown(() => gateway.stop());
    const { url, internal } = gateway;
    const person = await signUp(url);
    writeFileSync(join(standstill, 'verify'), '');
    const first = logIn(url, person.key);
    const beside = [1, 2, 3].map(() => logIn(url, person.key));
    const health = async (address: string) => (await request(`${address}/health`)).json;
    let seen = await health(url);
    await until(async () => {
      seen = await health(url);
      return String(seen['status']) === 'degraded';
    });
    t.match(seen, { status: 'degraded', degraded: ['workers'], database: 'connected' });
    t.match(await health(internal), { status: 'degraded', degraded: ['workers'] });
    t.equal((await first).status, 200);
    for (const answer of await Promise.all(beside)) t.equal(answer.status, 200);
    t.equal((await logIn(url, person.key)).status, 200);
    t.match(gateway.output().stderr, /no sign of life.*worker fault/);
    t.match(await health(internal), {
      status: 'healthy',
      parts: { workers: { threadsReplaced: 1, timedOut: 0, failed: 0 } },
    });
  },
);

// covers S161
t.test(
  'standstill: a stop ends in 20 s with 70, and the upload whose sync hung is complete later',
  async (t) => {
    const { gateway, options, standstill } = await start(t);
    const person = await signUp(gateway.url);
    const { cookie } = person;
    const pipe = join(standstill, 'sync');
    outputOf('mkfifo', [pipe]);
    const fileId = await createDraft(gateway.url, cookie);
    const bytes = Buffer.from('bytes whose sync hangs');
    const target = (url: string) => `${url}/auth/v2/file/stream_upload/${fileId}`;
    const upload = (url: string) =>
      fetch(target(url), { method: 'POST', headers: { Cookie: cookie }, body: bytes });
    const cut = upload(gateway.url).then(
      ({ status }) => status,
      () => undefined,
    );
    await until(() => isHeld(gateway.internal));
    t.equal((await logIn(gateway.url, person.key)).status, 200);
    t.same(await gateway.stop(), { code: 70, signal: null });
    t.match(gateway.output().stderr, /"limitMs":18000,"msg":"stop cut off"/);
    t.notSame(await cut, 200);
    rmSync(pipe);
    const again = await launchFor(t, options);
    await until(async () => {
      const { status } = await upload(again.url);
      if (status !== 409) t.equal(status, 200);
      return status !== 409;
    });
    const download = await fetch(`${again.url}/auth/v2/file/${fileId}`, {
      headers: { Cookie: cookie },
    });
    t.equal(await download.text(), bytes.toString());
  },
);

const BYTES = Buffer.from('bytes of a disk that hangs');

/** A program with an account and its files, and a disk that hangs from `hang` on. */
async function startUploads(t: Test) {
  const { gateway, standstill } = await start(t);
  t.teardown(() => gateway.stop());
  const { url, internal } = gateway;
  const person = await signUp(url);
  const headers = { Cookie: person.cookie };
  return {
    url,
    internal,
    person,
    newDraft: () => createDraft(url, person.cookie),
    upload: (fileId: string) =>
      fetch(`${url}/auth/v2/file/stream_upload/${fileId}`, { method: 'POST', headers, body: BYTES }),
    download: (fileId: string) => fetch(`${url}/auth/v2/file/${fileId}`, { headers }),
    /** The result ends it; call what that returns when nothing hangs any more. */
    hang(name: 'sync' | 'disk') {
      const pipe = join(standstill, name);
      outputOf('mkfifo', [pipe]);
      return () => {
        const fd = openSync(pipe, 'r+');
        rmSync(pipe);
        return () => closeSync(fd);
      };
    },
  };
}

async function isLate(t: Test, answer: Response): Promise<void> {
  t.equal(answer.status, 503);
  t.ok(Number(answer.headers.get('retry-after')) > 0);
  t.match(await answer.json(), { error: { code: 1033 } });
}

// covers S161
t.test(
  'standstill: a sync that hangs for a minute: the caller gets 503, the bytes stay, a repeat gets the file',
  { skip: depth.isQuick ? AT_FULL_DEPTH : false },
  async (t) => {
    const { url, internal, person, newDraft, upload, download, hang } = await startUploads(t);
    const end = hang('sync');
    const fileId = await newDraft();
    const first = upload(fileId);
    await until(() => isHeld(internal));
    t.equal((await logIn(url, person.key)).status, 200);
    await isLate(t, await first);
    t.match((await request(`${url}/health`)).json, { status: 'degraded', degraded: ['files'] });
    t.equal((await logIn(url, person.key)).status, 200);
    const ended = end();
    await until(async () => String((await request(`${url}/health`)).json['status']) === 'healthy');
    ended();
    await until(async () => {
      const { status } = await upload(fileId);
      if (status !== 409 && status !== 503) t.equal(status, 200);
      return status !== 409 && status !== 503;
    });
    t.equal(await (await download(fileId)).text(), BYTES.toString());
  },
);

/** More than libuv has threads. */
const UPLOADS = 20;

// covers R61 S177
t.test(
  'standstill: a disk that hangs under 20 uploads: they are 503 or complete later, the journal serves',
  async (t) => {
    const { url, internal, newDraft, upload, download, hang } = await startUploads(t);
    const whole = await newDraft();
    t.equal((await upload(whole)).status, 200);
    const drafts: string[] = [];
    while (drafts.length < UPLOADS) drafts.push(await newDraft());
    // The answer that the last draft got from the disk serves the uploads of 100 ms.
    const servedMs = performance.now() + 100;
    await until(() => performance.now() > servedMs);
    const end = hang('disk');
    const answers = drafts.map(upload);
    let seen = await partsOf(internal);
    await until(async () => {
      seen = await partsOf(internal);
      return Number(seen['files']?.['storage_calls_stuck']) >= 8;
    });
    t.match(seen, { files: { storage_calls_running: 8, storage_calls_stuck: 8 } });
    t.match((await request(`${url}/health`)).json, { status: 'degraded', degraded: ['files'] });
    const other = await signUp(url);
    t.equal((await logIn(url, other.key)).status, 200);
    await isLate(t, await download(whole));
    const ended = end();
    const ends = await Promise.all(answers);
    ended();
    const statuses = ends.map(({ status }) => status).sort();
    t.same(statuses, [...Array(8).fill(200), ...Array(UPLOADS - 8).fill(503)]);
    for (const [at, { status }] of ends.entries())
      if (status === 503) t.equal((await upload(drafts[at] ?? '')).status, 200);
    t.equal(await (await download(whole)).text(), BYTES.toString());
    t.match((await request(`${url}/health`)).json, { status: 'healthy' });
    t.match(await partsOf(internal), { files: { storage_calls_refused: UPLOADS - 8 + 1 } });
  },
);

async function partsOf(internal: string) {
  return (await request(`${internal}/health`)).json['parts'] ?? {};
}

/** A publish waits for its sync. */
async function isHeld(internal: string): Promise<boolean> {
  return Number((await partsOf(internal))['files']?.['workers_pending']) === 1;
}
