import { join } from 'node:path';
import t, { type Test } from 'tap';
import { launch, type RunningGateway } from '../../kit/launch.ts';
import { openJournal } from '../../src/actors/runtime/journal/lmdb.ts';
import { EVENT_EPOCH_KEY, type EventRow } from '../../src/actors/runtime/journal/port.ts';
import { runCommand } from '../support/command.ts';
import { count } from '../support/depth.ts';
import { temporaryFolder } from '../support/files/file-storage.ts';
import { until as untilHolds } from '../support/until.ts';

t.setTimeout(120_000);

const KEY = 'wallet-key-0123456789';
const KILLS = 3;
const PUSHERS = 4;

async function copyOf(t: Test, dataPath: string): Promise<string> {
  const target = join(temporaryFolder(t), 'copy');
  const { code, stderr } = await runCommand(['backup', target, '--data', dataPath]);
  t.equal(code, 0, stderr);
  return target;
}

async function push(
  gateway: RunningGateway,
  body: string,
  key = KEY,
): Promise<{ status: number; text: string }> {
  const response = await fetch(`${gateway.internal}/internal/v1/events`, {
    method: 'POST',
    headers: { 'x-module-key': key },
    body,
  });
  return { status: response.status, text: await response.text() };
}

const figuresOf = async (gateway: RunningGateway) => {
  const health = (await (await fetch(`${gateway.internal}/health`)).json()) as {
    parts: { events: Record<string, number> };
  };
  return health.parts.events;
};

/** Polls the program until the condition holds; the test's time-out is the bound. */
async function until(
  gateway: RunningGateway,
  holds: (figures: Record<string, number>) => boolean,
): Promise<void> {
  await untilHolds(async () => holds(await figuresOf(gateway)));
}

t.test('events: no event is lost or duplicated by kill -9 while modules push', async (t) => {
  const dataPath = join(temporaryFolder(t), 'data');
  const configuration = { Modules: { wallet: { url: 'http://127.0.0.1:9', key: KEY } } };
  const sent: number[] = [];
  const acknowledged = new Set<number>();
  let ticks = 0;
  let gateway = await launch({ dataPath, configuration });
  for (let kill = 0; kill < count(KILLS); kill += 1) {
    const running = gateway;
    let killed = false;
    const pusher = async () => {
      while (!killed) {
        const batch = Array.from({ length: 5 }, () => ++ticks);
        sent.push(...batch);
        const events = batch.map(
          (tick) => `{"module":"wallet","tick":${tick},"type":"x","data":{"id":${tick},"amount":${tick}.50}}`,
        );
        const answer = await push(running, `{"events":[${events.reverse().join(',')}]}`).catch(
          () => undefined,
        );
        if (answer?.status === 200) for (const tick of batch) acknowledged.add(tick);
        else if (answer !== undefined) t.fail(answer.text);
      }
    };
    const pushers = Array.from({ length: PUSHERS }, pusher);
    await until(running, ({ accepted = 0, rows = 0 }) => accepted > 50 && rows > 0);
    await running.kill();
    killed = true;
    await Promise.all(pushers);
    const left = await openJournal({ directory: dataPath });
    t.ok(left.events.waiting(0, 1).length > 0, 'some events were waiting at the kill');
    await left.close();
    gateway = await launch({ dataPath, configuration });
  }
  const again = sent
    .filter((tick) => !acknowledged.has(tick))
    .map((tick) => `{"module":"wallet","tick":${tick},"type":"x","data":{"id":${tick},"amount":${tick}.50}}`);
  t.equal(
    (await push(gateway, `{"events":[${again.join(',')}]}`)).status,
    200,
    'unanswered events are sent again',
  );
  await until(gateway, ({ waiting }) => waiting === 0);
  const copy = await copyOf(t, dataPath);
  const journal = await openJournal({ directory: copy });
  const rows = journal.events.page(0, 1_000_000).map(({ row }) => row as EventRow);
  t.equal(rows.length, sent.length);
  t.same(new Set(rows.map(([, tick]) => Number(tick))), new Set(sent));
  t.ok(rows.every(([, tick, , , , , , jsonText]) => jsonText.includes(`"amount":${tick}.50}`)));
  t.equal(journal.meta(EVENT_EPOCH_KEY), undefined, 'the copy has no log id yet');
  await journal.close();
  t.equal((await gateway.stop()).code, 0);
  const restored = await launch({ dataPath: copy, configuration });
  const known = '{"module":"wallet","tick":1,"type":"x","data":{"id":1}}';
  const fresh = '{"module":"wallet","tick":0,"type":"x","data":{"id":0}}';
  t.match(await push(restored, `{"events":[${known},${fresh}]}`), {
    text: '{"result":{"accepted":1,"duplicates":1}}',
  });
  await until(restored, ({ newest }) => newest === sent.length + 1);
  t.equal((await restored.stop()).code, 0);
  const after = await openJournal({ directory: copy });
  t.match(after.meta(EVENT_EPOCH_KEY), /^[0-9a-f]{16}$/, 'the restored journal began a new log at its start');
  await after.close();
});
