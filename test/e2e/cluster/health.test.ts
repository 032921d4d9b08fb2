/** Reports of a node about itself: health, metrics, `status`, `cluster status`, and log lines about the cluster. */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import t, { type Test } from 'tap';
import {
  expectOk,
  type Json,
  type Person,
  request,
  signUp,
  untilAvailable,
  updateKey,
} from '../../../kit/agent.ts';
import type { NodeProcess, Nodes } from '../../../kit/cluster/nodes.ts';
import type { Postgres } from '../../../kit/cluster/postgres.ts';
import { launchFor, NO_LIMITS, type RunningGateway, runToEnd } from '../../../kit/launch.ts';
import { metricValue } from '../../../kit/metric-value.ts';
import { uploadStatus } from '../../../kit/upload-client.ts';
import { CLUSTER_METRICS } from '../../../src/io/observability/cluster-metrics.ts';
import { postgresTest } from '../../support/cluster/postgres.ts';
import { startedNodes } from '../../support/cluster/started-nodes.ts';
import { temporaryFolder } from '../../support/files/file-storage.ts';

t.setTimeout(240_000);

const SHIFTED_CLOCK = fileURLToPath(new URL('../../support/cluster/shifted-clock.cjs', import.meta.url));
const CONFIGURATION = { Settings: NO_LIMITS };
const LEASE_MS = 6_000;

async function healthOf(node: { internal: string }): Promise<{ status: number; json: Json }> {
  return request(`${node.internal}/health`);
}

async function metricsOf({ gateway }: NodeProcess): Promise<string> {
  return expectOk('metrics', await request(`${gateway.internal}/metrics`)).text;
}

type Started = Awaited<ReturnType<typeof startTwo>>;

const startTwo = (t: Test, postgres: Postgres) =>
  startedNodes(t, 2, {
    ...{ postgres, sandbox: false, configuration: CONFIGURATION },
    cluster: { leaseMilliseconds: LEASE_MS },
  });

/** A configuration file over the same database, for a node under another name. */
function fileFor(t: Test, { databaseUrl, secret, files }: Nodes, name: string, more: object = {}): string {
  const file = join(temporaryFolder(t), 'gatehouse.json');
  writeFileSync(
    file,
    JSON.stringify({
      ...CONFIGURATION,
      LocalFileStoragePath: files,
      ...more,
      Cluster: { url: databaseUrl, name, secret, sharedFiles: true, leaseMilliseconds: LEASE_MS },
    }),
  );
  return file;
}

async function place(t: Test, { cluster, a, b }: Started): Promise<void> {
  await a.gateway.said(/"node":2,"direction":"out"/);
  const person = await untilAvailable(() => signUp(a.url));
  expectOk('update_key', await updateKey(b.url, person, { mcpAccess: true }));
  const health = await healthOf(a.gateway);
  t.match(health, {
    status: 200,
    json: {
      status: 'healthy',
      cluster: { name: 'a', number: 1, serving: true, members: ['a', 'b'], linksOut: ['b'] },
    },
  });
  const place = health.json['cluster'] as Json;
  t.ok(
    Number(place['leaseLeftMs']) > 0 && Number(place['leaseLeftMs']) <= 0.8 * LEASE_MS,
    'a part of the lease',
  );
  t.type(place['clockOffsetMs'], 'number');
  t.match(await request(`${a.url}/health`), { status: 200, json: { database: 'connected' } });
  t.notOk('cluster' in (await request(`${a.url}/health`)).json, 'the public page shows no topology');

  const [ofA, ofB] = [await metricsOf(a), await metricsOf(b)];
  const isSilent = (name: string) => !new RegExp(`^${name}[{ _]`, 'm').test(ofA + ofB);
  t.same(Object.keys(CLUSTER_METRICS).filter(isSilent), [], 'every metric of a cluster has a series');
  const owned = (text: string) => metricValue(text, 'gatehouse_cluster_partitions_owned', {});
  t.equal(owned(ofA) + owned(ofB), 256);
  t.equal(metricValue(ofA, 'gatehouse_cluster_members', {}), 2);
  t.equal(metricValue(ofA, 'gatehouse_cluster_links', {}), 1);
  t.ok(metricValue(ofA, 'gatehouse_cluster_position', {}) >= 3);
  const sums = [ofA, ofB].map((text) => metricValue(text, 'gatehouse_cluster_append_seconds', {}, '_sum'));
  t.ok(
    sums.every((seconds) => seconds > 0 && seconds < 30),
    `appends took ${sums}`,
  );

  const line = await runToEnd(['status', '--internal-port', new URL(a.gateway.internal).port]);
  t.match(line.stdout, /^healthy: .*; node a \(1\) of a, b, row \d+, \d+ behind, lease \d+ ms, \d+ part/);
  const status = await runToEnd(['cluster', 'status', '--json', '--config', fileFor(t, cluster, 'x')]);
  const { nodes, otherConfigurations } = JSON.parse(status.stdout) as Json;
  t.match(nodes, [
    { name: 'a', state: 'joined', partitionsOwned: owned(ofA), turnsRefused: 0, turnsThrown: 0 },
    { name: 'b', state: 'joined', partitionsOwned: owned(ofB) },
  ]);
  t.same(otherConfigurations, [], 'the same keys have the same configuration');
}

async function withoutDatabase(t: Test, { a, b }: Started): Promise<void> {
  b.database.cut();
  await b.gateway.said(/"node does not serve"/);
  t.match(await request(`${b.url}/health`), { status: 503, json: { status: 'unhealthy' } });
  t.match(await request(`${b.url}/health?plain=1`), { status: 503, json: { status: 'unhealthy' } });
  t.match(await healthOf(b.gateway), {
    status: 503,
    json: { cluster: { serving: false, leaseLeftMs: 0 } },
  });
  const line = await runToEnd(['status', '--internal-port', new URL(b.gateway.internal).port]);
  t.match(line, { code: 70, stdout: /^unhealthy: .*, lease 0 ms, / });
  await a.gateway.said(/"node":2,"msg":"node expelled"/);
  t.match(await request(`${a.url}/health`), { status: 200 });
  b.database.heal();
  await b.gateway.said(/"node does not serve"[\s\S]*"node serves"/);
  t.match(await request(`${b.url}/health`), { status: 200, json: { status: 'healthy' } });
  await a.gateway.said(/"node expelled"[\s\S]*"node":2,"msg":"node joined"/);
  t.equal(metricValue(await metricsOf(a), 'gatehouse_cluster_expulsions_total', {}), 1);
  t.equal(metricValue(await metricsOf(b), 'gatehouse_cluster_returns_total', {}), 1);
}

async function behind(t: Test, { a, b }: Started): Promise<void> {
  let isBehind = true;
  const loseReads = async () => {
    while (isBehind) await a.database.loseNext('question', 'fetch');
  };
  a.links.cut();
  const losing = loseReads();
  t.match(await b.gateway.stop(), { code: 0 }, 'its last row is that it leaves');
  await a.gateway.said(/"node does not serve"/);
  const { status, json } = await healthOf(a.gateway);
  t.match({ status, json }, { status: 503, json: { status: 'unhealthy', cluster: { serving: true } } });
  const { lagRows, lagMs } = json['cluster'] as Json;
  t.ok(Number(lagRows) >= 1 && Number(lagMs) > 3_000, `${lagRows} rows, ${lagMs} ms`);
  t.equal((await request(`${a.url}/health`)).status, 503);
  isBehind = false;
  await losing;
  a.links.heal();
  await a.gateway.said(/"node does not serve"[\s\S]*"node serves"/);
  t.equal((await request(`${a.url}/health`)).status, 200);
  t.match((await healthOf(a.gateway)).json['cluster'], { lagRows: 0, members: ['a'] });
}

async function otherConfiguration(t: Test, { a }: Started, y: RunningGateway): Promise<void> {
  await y.said(/"nodes":\["a","b"\],"msg":"configuration differs"/);
  await a.gateway.said(/"nodes":\["y"\],"msg":"configuration differs"/);
  t.equal((await request(`${a.url}/health`)).status, 200, 'nothing is refused for it');
}

async function otherFolder(t: Test, { cluster, a, b }: Started, y: RunningGateway): Promise<void> {
  await y.said(/"nodes":\["a","b"\],"msg":"folder not shared"/);
  for (const { gateway } of [a, b]) await gateway.said(/"nodes":\["y"\],"msg":"markers missing"/);
  // The owner of an account stores its uploads, and y owns some.
  let person = await untilAvailable(() => signUp(y.url));
  while (!(await isOfStarted(cluster, person))) person = await signUp(y.url);
  const { cookie } = person;
  const upload = ({ url }: Pick<NodeProcess, 'url'>) => uploadStatus({ url, cookie }, 7);
  t.match(await upload(y), { status: 503, json: { error: { code: 1036 } } });
  t.match(await request(`${y.url}/health`), {
    status: 200,
    json: { status: 'degraded', degraded: ['sharedFolder'] },
  });
  t.match(await healthOf(y), { json: { cluster: { sharesFiles: false, missingMarkers: ['a', 'b'] } } });
  for (const { url } of [a, b]) t.match(await request(`${url}/health`), { json: { status: 'healthy' } });
  t.match(await upload(a), { status: 404 }, 'the others look for the upload');
}

/** The owner of the account is none that was started beside the cluster. */
async function isOfStarted({ ownerOf }: Nodes, { userId }: Person): Promise<boolean> {
  return ownerOf('user', userId).then(
    () => true,
    () => false,
  );
}

/** A further node, `z`, whose clock is ahead: the next step of it comes with a signal. */
interface Shifted {
  readonly z: RunningGateway;
  readonly file: string;
}

async function startShifted(t: Test, { cluster }: Started): Promise<Shifted> {
  const file = fileFor(t, cluster, 'z');
  return {
    file,
    z: await launchFor(t, { args: ['--config', file], nodeArgs: ['--require', SHIFTED_CLOCK] }),
  };
}

async function warnings(t: Test, { a }: Started, { z, file }: Shifted): Promise<void> {
  const same = readFileSync(file, 'utf8');
  await z.said(/"clock is off"/);
  const offset = Number(((await healthOf(z)).json['cluster'] as Json)['clockOffsetMs']);
  t.ok(offset < 0, `the database is behind by ${offset} ms`);
  z.process.kill('SIGUSR2');
  await z.said(/"clock is right"/);

  writeFileSync(
    file,
    JSON.stringify({ ...JSON.parse(same), McpProfiles: { small: { tools: ['close_sessions'] } } }),
  );
  z.process.kill('SIGHUP');
  await z.said(/"nodes":\["a","b"\],"msg":"configuration differs"/);
  await a.gateway.said(/"nodes":\["z"\],"msg":"configuration differs"/);
  t.match((await healthOf(a.gateway)).json['cluster'], { otherConfigurations: ['z'] });
  writeFileSync(file, same);
  z.process.kill('SIGHUP');
  await z.said(/"configuration agrees"/);
  await a.gateway.said(/"configuration agrees"/);
}

async function wrongClock(t: Test, { a }: Started, { z }: Shifted): Promise<void> {
  await a.gateway.said(/"node":3,"msg":"node joined"/);
  z.process.kill('SIGUSR2');
  await z.said(/"clockOffsetMs":-\d+,"msg":"clock of this node is wrong"/);
  await a.gateway.said(/"node":3,"msg":"node left"/);
  t.match(await request(`${z.url}/health`), { status: 503, json: { status: 'unhealthy' } });
  const gauge = expectOk('metrics', await request(`${z.internal}/metrics`)).text;
  t.equal(metricValue(gauge, 'gatehouse_cluster_out_for_clock', {}), 1);
  t.equal((await request(`${a.url}/health`)).status, 200);
  z.process.kill('SIGUSR2');
  await a.gateway.said(/"node left"[\s\S]*"node":3,"msg":"node joined"/);
  await z.said(/"node does not serve"[\s\S]*"node serves"/);
  t.equal((await request(`${z.url}/health`)).status, 200);
  t.equal(metricValue(await metricsOf(a), 'gatehouse_cluster_expulsions_total', {}), 0);
}

postgresTest('node health', async (t, postgres) => {
  const started = await startTwo(t, postgres);
  // covers C20
  await t.test('both pages, the metrics and the commands show the place in the cluster', (t) =>
    place(t, started),
  );
  const shifted = await startShifted(t, started);
  await t.test(
    'a reload that differs, a clock that is off: each is warned of, and is over with a line',
    (t) => warnings(t, started, shifted),
  );
  // covers C24
  await t.test('a node whose clock is 10 s off leaves, answers 503, and comes back when it is right', (t) =>
    wrongClock(t, started, shifted),
  );
  await shifted.z.stop();
  const differing = { Project: 'other', LocalFileStoragePath: temporaryFolder(t) };
  const y = await launchFor(t, { args: ['--config', fileFor(t, started.cluster, 'y', differing)] });
  // covers C21
  await t.test('another configuration at the start is warned of by all nodes', (t) =>
    otherConfiguration(t, started, y),
  );
  // covers C26
  await t.test('a node with another folder of files answers 503, and its health names the folder', (t) =>
    otherFolder(t, started, y),
  );
  await y.stop();
  await started.a.gateway.said(/"nodes":\["y"\][\s\S]*"configuration agrees"/);
  await t.test('without the database a node is unhealthy, says so, and comes back', (t) =>
    withoutDatabase(t, started),
  );
  await t.test('a node that is half a lease behind is unhealthy before its lease is over', (t) =>
    behind(t, started),
  );
});
