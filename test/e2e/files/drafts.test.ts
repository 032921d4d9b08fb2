/** v2 uploads against the program: resumption, bounded memory. */
import t from 'tap';
import { eventLoopP99Ms } from '../../../bench/measure/metrics.ts';
import { costOf } from '../../../bench/measure/process-cost.ts';
import { signUp } from '../../../kit/agent.ts';
import { launch, launchFor, NO_FILE_LIMITS } from '../../../kit/launch.ts';
import { createDraft } from '../../support/files/draft-program.ts';

t.setTimeout(120_000);

const MEGABYTE = 1024 * 1024;

/** A body of slices of one buffer, so that the client's memory stays out of the measurement. */
function bodyOf(sizeBytes: number): ReadableStream<Uint8Array> {
  const piece = new Uint8Array(256 * 1024).fill(7);
  let left = sizeBytes;
  return new ReadableStream({
    pull(controller) {
      const length = Math.min(left, piece.length);
      if (length > 0) controller.enqueue(piece.slice(0, length));
      left -= length;
      if (left === 0) controller.close();
    },
  });
}

async function uploadStream(url: string, cookie: string, sizeBytes: number): Promise<number> {
  const fileId = await createDraft(url, cookie);
  const init = { method: 'POST', headers: { Cookie: cookie }, body: bodyOf(sizeBytes), duplex: 'half' };
  const answer = await fetch(`${url}/auth/v2/file/stream_upload/${fileId}`, init as RequestInit);
  await answer.text();
  return answer.status;
}

// covers S6
t.test('memory stays bounded: 60 streams at once, then 100 MiB through one', async (t) => {
  const gateway = await launchFor(t, {
    args: ['--sandbox'],
    configuration: { Settings: { ...NO_FILE_LIMITS, FileMaxSizeBytes: 100 * MEGABYTE } },
  });
  const { cookie } = await signUp(gateway.url);
  const pid = gateway.process.pid ?? 0;
  const rssBytes = () => costOf(pid)?.rssBytes ?? 0;
  t.equal(await uploadStream(gateway.url, cookie, 4 * MEGABYTE), 200, 'warm');
  for (const { streams, sizeBytes, growthMiB } of [
    { streams: 60, sizeBytes: 4 * MEGABYTE, growthMiB: 192 },
    { streams: 1, sizeBytes: 100 * MEGABYTE, growthMiB: 64 },
  ]) {
    await eventLoopP99Ms(gateway.internal);
    const before = rssBytes();
    let most = before;
    const sampler = setInterval(() => {
      most = Math.max(most, rssBytes());
    }, 20);
    const startMs = performance.now();
    const sent = Array.from({ length: streams }, () => uploadStream(gateway.url, cookie, sizeBytes));
    const statuses = await Promise.all(sent);
    clearInterval(sampler);
    const elapsedMs = performance.now() - startMs;
    const grown = (most - before) / MEGABYTE;
    const delayMs = await eventLoopP99Ms(gateway.internal);
    const rate = ((streams * sizeBytes) / MEGABYTE / elapsedMs) * 1000;
    t.comment(
      `${streams} x ${sizeBytes / MEGABYTE} MiB: ${rate.toFixed(0)} MiB/s, RSS ${(before / MEGABYTE).toFixed(0)} MiB ` +
        `and at most ${grown.toFixed(0)} more, event-loop delay p99 ${delayMs.toFixed(1)} ms`,
    );
    t.ok(
      statuses.every((status) => status === 200),
      `all of ${streams} are complete`,
    );
    t.ok(grown < growthMiB, `${grown.toFixed(0)} MiB more`);
  }
});

// covers R26 R27 R70 S168
t.test(
  'a stop ends a stream at its counted bytes, and the upload resumes there after the restart',
  async (t) => {
    const dataPath = `${t.testdir()}/data`;
    const Settings = { ...NO_FILE_LIMITS, FileUploadBytesPerSecond: 100_000 };
    const first = await launch({ args: ['--sandbox'], dataPath, configuration: { Settings } });
    const { cookie } = await signUp(first.url);
    const fileId = await createDraft(first.url, cookie);
    const path = `/auth/v2/file/stream_upload/${fileId}`;
    const headers = { Cookie: cookie, 'Upload-Complete': '?1' };
    const body = Buffer.alloc(8 * MEGABYTE, 5);
    const broken = fetch(first.url + path, { method: 'POST', headers, body });
    for (let taken = 0; taken === 0; ) {
      const { parts } = (await (await fetch(`${first.internal}/health`)).json()) as {
        parts: { files: Record<string, number> };
      };
      taken = parts.files['uploads_receivedBytes'] ?? 0;
    }
    first.process.kill('SIGTERM');
    const answer = await broken;
    t.equal(answer.status, 503);
    t.equal(((await answer.json()) as { error: { code: number } }).error.code, 1014);
    t.equal((await first.exited).code, 0);
    const second = await launchFor(t, {
      args: ['--sandbox'],
      dataPath,
      configuration: { Settings: { ...Settings, FileUploadBytesPerSecond: 0 } },
    });
    const told = await fetch(second.url + path, { method: 'HEAD', headers: { Cookie: cookie } });
    const offset = Number(told.headers.get('Upload-Offset'));
    t.ok(offset > 0 && offset < body.length, `on from ${offset}, without waiting for the rest`);
    const rest = await fetch(second.url + path, {
      method: 'PATCH',
      headers: { ...headers, 'Upload-Offset': String(offset) },
      body: body.subarray(offset),
    });
    t.equal(rest.status, 200);
  },
);
