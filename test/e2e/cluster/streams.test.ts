/** Events and their streams at the nodes of a cluster: pushes and polls at any node, moves, ends, and a lost lease. */
import http from 'node:http';
import t, { type Test } from 'tap';
import {
  cookieOf,
  expectOk,
  logIn,
  type Person,
  signUp,
  untilAvailable,
  untilHolds,
} from '../../../kit/agent.ts';
import { closeAfter } from '../../../kit/close-after.ts';
import type { NodeProcess } from '../../../kit/cluster/nodes.ts';
import type { Postgres } from '../../../kit/cluster/postgres.ts';
import { listenOnLoopback } from '../../../kit/http.ts';
import { NO_LIMITS } from '../../../kit/launch.ts';
import { postgresTest } from '../../support/cluster/postgres.ts';
import { startedNodes } from '../../support/cluster/started-nodes.ts';
import { asked, resultOf } from '../../support/cluster/three-nodes.ts';
import { type EventClient, openEvents } from '../../support/events/event-client.ts';

t.setTimeout(240_000);

/** A busy machine may hold up a renewal for longer than the default. */
const LEASE_MS = 5_000;
const KEY = 'wallet-key-0123456789';
const KEYS = '/auth/v1/keys/user_keys';

type Started = Awaited<ReturnType<typeof nodesOf>>;

async function nodesOf(t: Test, postgres: Postgres) {
  const chat = closeAfter(t, await startPolled());
  const Modules = { wallet: { url: chat.url, key: KEY }, chat: { url: chat.url, poll: true } };
  const { cluster, a, b } = await startedNodes(t, 2, {
    ...{ postgres, sandbox: false, configuration: { Settings: NO_LIMITS, Modules } },
    cluster: { leaseMilliseconds: LEASE_MS },
  });
  return { cluster, nodes: [a, b] as const, chat };
}

async function startPolled() {
  const offered: string[] = [];
  const server = http.createServer((request, response) => {
    const after = Number(new URL(request.url ?? '', 'http://x').searchParams.get('after'));
    response.setHeader('Content-Type', 'application/json');
    response.end(`{"events":[${offered.slice(after).join(',')}]}`);
  });
  const { url } = await listenOnLoopback(server);
  return {
    url,
    offer(n: number) {
      const tick = offered.length + 1;
      offered.push(`{"module":"chat","tick":"${tick}","type":"Said","data":{"id":${tick},"n":${n}}}`);
    },
    close() {
      server.closeAllConnections();
      server.close();
    },
  };
}

const open = ({ url }: NodeProcess, cookie: string, lastEventId?: string): Promise<EventClient> =>
  openEvents(Number(new URL(url).port), {
    headers: { Cookie: cookie, ...(lastEventId === undefined ? {} : { 'Last-Event-ID': lastEventId }) },
  });

async function push({ gateway }: NodeProcess, { userId }: Person, ...numbers: number[]): Promise<object> {
  const events = numbers.map(
    (n) => `{"module":"wallet","tick":"${n}","type":"Paid","crmId":"${userId}","data":{"id":${n},"n":${n}}}`,
  );
  const answer = await fetch(`${gateway.internal}/internal/v1/events`, {
    method: 'POST',
    headers: { 'X-Module-Key': KEY },
    body: `{"events":[${events.join(',')}]}`,
  });
  return { status: answer.status, ...((await answer.json()) as object) };
}

const idsOf = ({ reader }: EventClient) => reader.events.map(({ id }) => id);

const otherThan = (node: NodeProcess, [a, b]: Started['nodes']) => (node === a ? b : a);

async function anywhere(t: Test, { nodes }: Started): Promise<void> {
  const person = await untilAvailable(() => signUp(nodes[0].url));
  const streams = await Promise.all(nodes.map((node) => open(node, person.cookie)));
  let moved = await open(nodes[0], person.cookie);
  const ids: string[] = [];
  let n = 0;
  for (const node of [...nodes, ...nodes, ...nodes]) {
    t.match(await push(node, person, n + 1, n + 2), { status: 200, result: { accepted: 2, duplicates: 0 } });
    n += 2;
    t.match(await push(nodes[(n / 2) % 2] ?? node, person, n), { result: { accepted: 0, duplicates: 1 } });
    await moved.until(({ reader }) => reader.events.length >= 1);
    moved.close();
    ids.push(...idsOf(moved));
    moved = await open(nodes[(n / 2) % 2] ?? node, person.cookie, moved.reader.lastEventId);
  }
  await moved.until(({ reader }) => ids.length + reader.events.length >= n);
  moved.close();
  ids.push(...idsOf(moved));
  const numbers = Array.from({ length: n }, (_, index) => index + 1);
  for (const stream of streams) {
    await stream.until(({ reader }) => reader.events.length >= n);
    t.same(stream.numbers(), numbers, 'each event once, in order');
    t.same(idsOf(stream), ids, 'under one id at all nodes, for a client that moved too');
    stream.close();
  }
}

async function ends(t: Test, { nodes }: Started): Promise<void> {
  const person = await untilAvailable(() => signUp(nodes[0].url));
  for (const at of nodes) {
    const cookie = cookieOf(expectOk('login', await untilAvailable(() => logIn(at.url, person.key))));
    const streams = await Promise.all(nodes.map((node) => open(node, cookie)));
    await resultOf(at, cookie, '/auth/v1/logout', {});
    for (const stream of streams) t.same(await stream.ended(), { reason: 'session' }, `closed at ${at.name}`);
  }
}

async function polled(t: Test, { cluster, nodes, chat }: Started): Promise<void> {
  const owner = await cluster.ownerOf('eventLog', 'all');
  const other = otherThan(owner, nodes);
  const person = await untilAvailable(() => signUp(other.url));
  const stream = await open(other, person.cookie);
  chat.offer(1);
  await stream.until(({ reader }) => reader.events.length === 1);
  const ending = await open(owner, person.cookie);
  const stopped = owner.gateway.stop();
  t.same(await ending.ended(), { reason: 'drain' });
  t.ok(ending.reader.retryMs >= 1_000 && ending.reader.retryMs <= 5_000, `${ending.reader.retryMs}`);
  t.match(await stopped, { code: 0 });
  const back = await open(other, person.cookie, ending.reader.lastEventId);
  chat.offer(2);
  await stream.until(({ reader }) => reader.events.length === 2);
  await back.until(({ reader }) => reader.events.length === 1);
  t.same([stream.numbers(), back.numbers()], [[1, 2], [2]], 'the next owner polls from the stored cursor');
  await owner.start();
  for (const each of [stream, back]) each.close();
}

async function lostLease(t: Test, { cluster, nodes }: Started): Promise<void> {
  await cluster.allServe();
  // The node that is cut off owns neither the account nor the log of events.
  const other = await cluster.ownerOf('eventLog', 'all');
  const cut = otherThan(other, nodes);
  let person = await untilAvailable(() => signUp(other.url));
  while ((await cluster.ownerOf('user', person.userId)) === cut) person = await signUp(other.url);
  const [there, here] = [await open(cut, person.cookie), await open(other, person.cookie)];
  cut.database.hold();
  cut.links.cut();
  await untilHolds(async () => (await asked(cut, person.cookie, KEYS)).status === 503);
  const refused = await open(cut, person.cookie);
  t.equal(refused.status, 200, 'any other status would stop an EventSource for good');
  await refused.ended();
  t.ok(refused.reader.retryMs > 0 && refused.reader.events.length === 0);
  t.match(await push(cut, person, 101), { status: 503 });
  t.match(await push(other, person, 102), { status: 200 });
  await here.until(({ reader }) => reader.events.length === 1);
  t.same(await there.ended(), { reason: 'drain' });
  const back = await open(other, person.cookie, there.reader.lastEventId);
  await back.until(({ reader }) => reader.events.length === 1);
  t.same(
    [there.numbers(), back.numbers(), here.numbers()],
    [[], [102], [102]],
    'it misses nothing elsewhere',
  );
  cut.database.heal();
  cut.links.heal();
  await cluster.allServe();
  const again = await open(cut, person.cookie, there.reader.lastEventId);
  await again.until(({ reader }) => reader.events.length === 1);
  t.same(idsOf(again), idsOf(here), 'the node has caught up');
  for (const each of [here, back, again]) each.close();
}

// covers C18 C23
postgresTest('events and streams of a cluster', async (t, postgres) => {
  const started = await nodesOf(t, postgres);
  await t.test('pushes to any node reach streams of every node, once, in one order, under one id', (t) =>
    anywhere(t, started),
  );
  await t.test('a session that ends at any node ends its streams at all', (t) => ends(t, started));
  await t.test('a node that stops ends its streams; the next owner polls on', (t) => polled(t, started));
  await t.test('a node without its lease answers streams with 200 and an end, then ends the open ones', (t) =>
    lostLease(t, started),
  );
});
