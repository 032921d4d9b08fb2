/** WebSockets at the nodes of a cluster: sessions of other nodes, and ends by a session, a drain and a lost lease. */
import t, { type Test } from 'tap';
import { signUp, signUpAgent, untilAvailable, untilHolds } from '../../../kit/agent.ts';
import type { NodeProcess } from '../../../kit/cluster/nodes.ts';
import type { Postgres } from '../../../kit/cluster/postgres.ts';
import { NO_LIMITS } from '../../../kit/launch.ts';
import { postgresTest } from '../../support/cluster/postgres.ts';
import { startedNodes } from '../../support/cluster/started-nodes.ts';
import { asked, resultOf, verifiedBearer } from '../../support/cluster/three-nodes.ts';
import { openEcho } from '../../support/echo-client.ts';

t.setTimeout(240_000);

/** A busy machine may hold up a renewal for longer than the default. */
const LEASE_MS = 10_000;
const KEYS = '/auth/v1/keys/user_keys';

type Started = Awaited<ReturnType<typeof nodesOf>>;

async function nodesOf(t: Test, postgres: Postgres) {
  const { cluster, a, b } = await startedNodes(t, 2, {
    ...{ postgres, configuration: { Settings: NO_LIMITS } },
    cluster: { leaseMilliseconds: LEASE_MS },
  });
  return { cluster, nodes: [a, b] as const };
}

const open = ({ url }: NodeProcess, headers: Record<string, string>) => openEcho(url, headers);

async function ends(t: Test, { nodes }: Started): Promise<void> {
  const person = await untilAvailable(() => signUpAgent(nodes[0].url));
  for (const at of nodes) {
    const bearer = await verifiedBearer(at, person);
    const agents = await Promise.all(nodes.map((node) => open(node, { authorization: `Bearer ${bearer}` })));
    const browsers = await Promise.all(nodes.map((node) => open(node, { cookie: person.cookie })));
    for (const socket of [...agents, ...browsers]) t.equal(await socket.echoed('here'), 'here');
    await resultOf(at, person.cookie, '/auth/v1/close_sessions', { others: true });
    for (const { ended } of agents) t.equal(await ended, 1008, `closed at ${at.name}`);
    for (const socket of browsers) {
      t.equal(await socket.echoed('still here'), 'still here');
      socket.close();
      await socket.ended;
    }
  }
}

async function lostLease(t: Test, { cluster, nodes }: Started): Promise<void> {
  const person = await untilAvailable(() => signUp(nodes[0].url));
  const headers = { cookie: person.cookie };
  // An account whose owner is cut off is 503 until the others have taken it over.
  const owner = await cluster.ownerOf('user', person.userId);
  const [a, b] = nodes;
  const cut = owner === a ? b : a;
  const talking = await open(cut, headers);
  const silent = await open(cut, headers);
  const elsewhere = await open(owner, headers);
  t.equal(await talking.echoed('with a lease'), 'with a lease');
  cut.database.hold();
  cut.links.cut();
  // Requests are refused as soon as the lease is over.
  await untilHolds(async () => (await asked(cut, person.cookie, KEYS)).status === 503);
  talking.send('without a lease');
  t.equal(await talking.ended, 1013);
  t.equal(await elsewhere.echoed('others serve'), 'others serve');
  await resultOf(owner, person.cookie, '/auth/v1/logout', {});
  t.equal(await elsewhere.ended, 1008);
  cut.database.heal();
  cut.links.heal();
  t.equal(await silent.ended, 1008, 'it has caught up');
  await cluster.allServe();
}

async function stop(t: Test, { nodes }: Started): Promise<void> {
  const person = await untilAvailable(() => signUp(nodes[0].url));
  const [first, second] = await Promise.all(nodes.map((node) => open(node, { cookie: person.cookie })));
  const stopped = nodes[1].gateway.stop();
  t.equal(await second?.ended, 1012);
  t.match(await stopped, { code: 0 });
  t.equal(await first?.echoed('others'), 'others');
  first?.close();
}

postgresTest('WebSockets of a cluster', async (t, postgres) => {
  const started = await nodesOf(t, postgres);
  await t.test('a session of any node opens sockets at all, which end with it at once', (t) =>
    ends(t, started),
  );
  await t.test('a node without its lease passes nothing on; an end elsewhere holds when it is back', (t) =>
    lostLease(t, started),
  );
  await t.test('a node that stops ends its sockets with 1012, and those of others live', (t) =>
    stop(t, started),
  );
});
