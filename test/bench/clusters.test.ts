/** Clusters of the suite: accounts that a node writes into the log, loads and event streams of the scenario scale. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { mainThreadMs } from '../../bench/measure/process-cost.ts';
import { childrenOf } from '../../bench/measure/processes.ts';
import { STREAM_SETTINGS } from '../../bench/scenarios/fan-out/gatehouse.ts';
import { loadsOf } from '../../bench/scenarios/scale.ts';
import { measureStreams } from '../../bench/scenarios/streams-of-clusters.ts';
import { loadOfNodes } from '../../bench/subjects/cluster.ts';
import { RAISED } from '../../bench/subjects/gateway.ts';
import { seedLog } from '../../bench/subjects/seeded-log.ts';
import { startNodes } from '../../kit/cluster/nodes.ts';
import type { Postgres } from '../../kit/cluster/postgres.ts';
import { postgresTest } from '../support/cluster/postgres.ts';
import { answering, benchOf } from './fixtures/bench.ts';

t.setTimeout(120_000);

const PUBLISHER = { module: 'wallet', key: 'bench-module-key-0001' };
const SHORT = { connections: 8, durationMs: 100, warmupMs: 50, rounds: 2, roundsMax: 2 };

function testLoads(): void {
  t.test('scale: the nodes share the rate of each kind of work', async (t) => {
    const accounts = { internal: undefined, moduleKey: '', bearers: [], cookies: [], loginKeys: [] };
    const none = { uploadCookies: [], filePath: undefined, audience: [] };
    const fixtures = ['http://a', 'http://b'].map((url) => ({ url, ...accounts, ...none }));
    const loads = loadsOf(fixtures, 'mix', 1_000).map(({ fixture, kind, ratePerSecond }) => [
      fixture.url,
      kind.name,
      Math.round(ratePerSecond),
    ]);
    t.same(loads, [
      ['http://a', 'tools/call', 475],
      ['http://a', 'tools/list', 20],
      ['http://a', 'login', 5],
      ['http://b', 'tools/call', 475],
      ['http://b', 'tools/list', 20],
      ['http://b', 'login', 5],
    ]);
  });
}

async function startCluster(t: Test, postgres: Postgres, size: number) {
  const { module, key } = PUBLISHER;
  const { nodes, stop } = await startNodes({
    postgres,
    nodes: size,
    sandbox: false,
    cluster: { leaseMilliseconds: 10_000 },
    configuration: {
      Modules: { [module]: { url: 'http://127.0.0.1:9', key } },
      Settings: { ...RAISED, ...STREAM_SETTINGS },
    },
  });
  t.teardown(stop);
  return { size, load: loadOfNodes(nodes, postgres) };
}

/** An internal listener that hands each event on twice, under two ticks. */
async function doubling(t: Test, internal: string): Promise<string> {
  return await answering(t, async (request, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk);
    const { events } = JSON.parse(Buffer.concat(chunks).toString()) as { events: { tick: string }[] };
    const body = JSON.stringify({
      events: events.flatMap((each) => [each, { ...each, tick: `9${each.tick}` }]),
    });
    const headers = { 'Content-Type': 'application/json', 'X-Module-Key': PUBLISHER.key };
    const answer = await fetch(`${internal}${request.url}`, { method: 'POST', headers, body });
    response.writeHead(answer.status).end(await answer.text());
  });
}

type Started = Awaited<ReturnType<typeof startCluster>>;

async function eachOnce(t: Test, clusters: readonly Started[]): Promise<void> {
  const { comparison, figures } = await measureStreams(benchOf(t, SHORT), clusters, PUBLISHER);
  t.same(
    comparison.subjects.map(({ name }) => name),
    ['events to 1 × 8 streams', 'events to 2 × 4 streams'],
  );
  for (const { name, rounds } of comparison.subjects)
    for (const { details } of rounds) {
      t.same(details['errors'], {}, name);
      t.equal(details['answers'], Number(details['events']) * 8, name);
    }
  const numbers = figures.filter(({ value }) => Number.isFinite(value)).map(({ name }) => name);
  t.same(numbers, [
    'an event and stream, events to 1 × 8 streams',
    'an event and stream, events to 1 × 8 streams, idle time left out',
    'PostgreSQL for one event, events to 1 × 8 streams',
    'a node whose streams wait, events to 1 × 8 streams',
    'an event and stream, events to 2 × 4 streams',
    'an event and stream, events to 2 × 4 streams, idle time left out',
    'scale, events to 2 × 4 streams',
    'scale, events to 2 × 4 streams, idle time left out',
    'PostgreSQL for one event, events to 2 × 4 streams',
    'a node whose streams wait, events to 2 × 4 streams',
  ]);
}

async function twice(t: Test, { size, load }: Started): Promise<void> {
  const internal = await doubling(t, load.internal);
  await t.rejects(measureStreams(benchOf(t, SHORT), [{ size, load: { ...load, internal } }], PUBLISHER), {
    message: /^events to 1 × 8 streams: \d+ (uneven|unasked)/,
  });
}

postgresTest('scale: event streams of clusters', async (t, postgres) => {
  const [one, two] = [await startCluster(t, postgres, 1), await startCluster(t, postgres, 2)];
  await t.test('scale: every stream of one and of two nodes gets each event once', (t) =>
    eachOnce(t, [one, two]),
  );
  await t.test('scale: an event that streams get twice ends the run', (t) => twice(t, one));
});

testLoads();
postgresTest(
  'seeded log: a node that joins has every account, and the seeding one is out',
  async (t, postgres) => {
    const folder = mkdtempSync(join(tmpdir(), 'gatehouse-seeded-log-'));
    t.teardown(() => rmSync(folder, { recursive: true, force: true }));
    const nodes = await startNodes({ postgres, nodes: 0, sandbox: false });
    t.teardown(() => nodes.stop());
    const { databaseUrl: url, secret } = nodes;
    const secrets = [Buffer.from(secret, 'hex')];
    await seedLog({ url, secrets, dataPath: join(folder, 'seed'), accounts: 40 });
    const node = await nodes.add();
    const metrics = await (await fetch(`${node.gateway.internal}/metrics`)).text();
    t.match(metrics, /gatehouse_sessions\{scope="browser"\} 40\n/);
    t.same(
      (await nodes.records()).map(({ name, joined }) => [name, joined]),
      [
        ['seed', false],
        ['a', true],
      ],
    );
    t.ok(childrenOf(postgres.pid).length > 0, 'the sessions of PostgreSQL are its children');
    t.ok(Number(mainThreadMs(node.gateway.process.pid ?? 0)) > 0);
  },
);
