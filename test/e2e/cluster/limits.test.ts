/** Limits that hold for all nodes together, at two processes: requests, bandwidth, slots of uploads. */
import { randomBytes } from 'node:crypto';
import http from 'node:http';
import { setInterval as every } from 'node:timers/promises';
import t, { type Test } from 'tap';
import { expectOk, type Person, request, signUp } from '../../../kit/agent.ts';
import { type NodeProcess, type Nodes, startNodes } from '../../../kit/cluster/nodes.ts';
import { sendHttp } from '../../../kit/http.ts';
import { NO_FILE_LIMITS } from '../../../kit/launch.ts';
import { metricValue } from '../../../kit/metric-value.ts';
import { initUpload } from '../../../kit/upload-client.ts';
import { UPLOAD_SESSIONS_MAX } from '../../../src/domain/files/files.ts';
import { postgresTest } from '../../support/cluster/postgres.ts';

/** Requests that a caller at a steady rate gets at most, in quotas. */
const SPREAD = 1.06;
/** One request to each node in so much time: the quota is used up in 5 s. */
const PACE_MS = 20;
/** After every node has refused, nothing more may pass. */
const ROUNDS_AFTER = 20;
const KEYS = '/auth/v1/keys/user_keys';
const MiB = 1024 * 1024;
const BYTES_PER_SECOND = MiB;
const BODY_BYTES = 2 * MiB;

t.setTimeout(240_000);

/** A window of about 500 s, the quota at one request a second, that does not end during the test; else a longer one. */
function quotaOfNow(): number {
  const windows = [500, 510, 490, 520, 480, 530, 470, 540, 1_500];
  const leftOf = (seconds: number) => seconds - ((Date.now() / 1_000) % seconds);
  return windows.find((seconds) => leftOf(seconds) > 240) ?? 1_530;
}

/** Many requests: `fetch` would take twice the processor time. */
const agent = new http.Agent({ keepAlive: true });
t.teardown(() => agent.destroy());

async function passes(node: NodeProcess, { cookie }: Person): Promise<boolean> {
  const { status } = await sendHttp(`${node.url}${KEYS}`, { agent, headers: { Cookie: cookie } });
  if (status !== 200 && status !== 429) throw new Error(`${node.name} answered ${status}`);
  return status === 200;
}

/** Requests to all nodes at a steady rate, until each has refused for a while; how many passed. */
async function spread(nodes: readonly NodeProcess[], person: Person): Promise<number> {
  let passed = 0;
  let roundsAfter = 0;
  const refusing = new Set<NodeProcess>();
  const answers: Promise<void>[] = [];
  const ask = async (node: NodeProcess) => {
    if (await passes(node, person)) passed += 1;
    else refusing.add(node);
  };
  for await (const _ of every(PACE_MS)) {
    for (const node of nodes) answers.push(ask(node));
    if (refusing.size === nodes.length) roundsAfter += 1;
    if (roundsAfter === ROUNDS_AFTER) break;
  }
  await Promise.all(answers);
  return passed;
}

async function stay(node: NodeProcess, person: Person): Promise<number> {
  let passed = 0;
  while (await passes(node, person)) passed += 1;
  return passed;
}

async function requests(t: Test, { nodes }: Nodes, quota: number): Promise<void> {
  const [a] = nodes as [NodeProcess];
  const [roaming, settled] = [await signUp(a.url), await signUp(a.url)];
  const [spreadOut, stayed] = await Promise.all([spread(nodes, roaming), stay(a, settled)]);
  t.comment(`${spreadOut} and ${stayed} of ${quota}`);
  t.ok(spreadOut >= quota && spreadOut <= SPREAD * quota, `${spreadOut} of ${quota} over all nodes`);
  t.equal(stayed, quota, 'exactly the quota at one node');
  for (const { gateway } of nodes) {
    const text = await (await fetch(`${gateway.internal}/metrics`)).text();
    t.ok(metricValue(text, 'gatehouse_cluster_limit_keys', {}) > 0);
    t.equal(metricValue(text, 'gatehouse_cluster_limit_counts_left_out_total', {}), 0);
  }
}

async function bandwidth(t: Test, { nodes }: Nodes): Promise<void> {
  const people = await Promise.all(nodes.map(({ url }) => signUp(url)));
  const drafts = await Promise.all(
    nodes.map(async ({ url }, at) => {
      const path = `/auth/v2/file/create_draft?fileName=a.bin&fileSize=${BODY_BYTES}`;
      const headers = { Cookie: people[at]?.cookie ?? '' };
      const { json } = expectOk('draft', await request(`${url}${path}`, { method: 'POST', headers }));
      return {
        url: `${url}/auth/v2/file/stream_upload/${String(json['result']).replace(/:.*/, '')}`,
        headers,
      };
    }),
  );
  const startedMs = performance.now();
  const answers = await Promise.all(
    drafts.map(async ({ url, headers }) => {
      const answer = await fetch(url, { method: 'POST', headers, body: randomBytes(BODY_BYTES) });
      await answer.text();
      return answer.status;
    }),
  );
  const seconds = (performance.now() - startedMs) / 1_000;
  t.same(answers, [200, 200]);
  t.comment(`${seconds} s`);
  const leastSeconds = (nodes.length * BODY_BYTES) / (SPREAD * BYTES_PER_SECOND);
  // The nodes may be above the quota by one second's change: here, when all begin.
  t.ok(seconds > leastSeconds - 1, `${seconds} s, at the quota ${leastSeconds} s`);
}

async function slots(t: Test, { nodes }: Nodes): Promise<void> {
  const at = (index: number) => nodes[index % nodes.length] as NodeProcess;
  const open = async (index: number, { url }: NodeProcess) => {
    const { cookie } = await signUp(url);
    return await initUpload({ url, cookie }, Buffer.from(`file ${index}`));
  };
  for (let index = 0; index < UPLOAD_SESSIONS_MAX; index += 1)
    expectOk('upload', await open(index, at(index)));
  for (const node of nodes) {
    const { status, json } = await open(UPLOAD_SESSIONS_MAX, node);
    t.same([status, json['error']?.['code']], [503, 1303], `one more at ${node.name}`);
  }
}

postgresTest('two nodes', async (t, postgres) => {
  const quota = quotaOfNow();
  const cluster = await startNodes({
    postgres,
    nodes: 2,
    // No node is to be out: a busy machine may hold up a renewal for longer than the default.
    cluster: { leaseMilliseconds: 10_000 },
    configuration: {
      Settings: {
        ...NO_FILE_LIMITS,
        RateLimitWindowSeconds: quota,
        SessionApiRPSLimit: 1,
        FileUploadBytesPerSecond: BYTES_PER_SECOND,
      },
    },
  });
  t.teardown(() => cluster.stop());
  // covers C25
  await t.test('limits: a session gets its quota once, however it spreads its requests over the nodes', (t) =>
    requests(t, cluster, quota),
  );
  // covers C25
  await t.test('limits: uploads at all nodes share one quota of bandwidth', (t) => bandwidth(t, cluster));
  // covers C4
  await t.test('limits: 60 v1 uploads are those of all nodes', (t) => slots(t, cluster));
});
