/** Three processes over the embedded PostgreSQL: what is done at one node holds at all, also after one of them has ended. */
import t from 'tap';
import {
  basicLogin,
  callTool,
  logIn,
  request,
  signUp,
  untilAvailable,
  updateKey,
} from '../../../kit/agent.ts';
import { linked, type Nodes, startNodes } from '../../../kit/cluster/nodes.ts';
import { NO_LIMITS } from '../../../kit/launch.ts';
import { withPostgres } from '../../support/cluster/postgres.ts';

t.setTimeout(240_000);

/** A busy machine does not end it; a node that was killed is out soon. */
const LEASE_MS = 3_000;

/** The nodes that do not own the account. */
async function others({ nodes, ownerOf }: Nodes, userId: string) {
  const owner = await ownerOf('user', userId);
  return nodes.filter((each) => each !== owner);
}

const keysAt = (url: string, cookie: string) =>
  request(`${url}/auth/v1/keys/user_keys`, { headers: { Cookie: cookie } });

await withPostgres(t, (postgres) => {
  t.test(
    'three nodes: an account of one node is served by all, and after kill -9 of its owner',
    async (t) => {
      const cluster = await startNodes({
        ...{ postgres, nodes: 3, configuration: { Settings: NO_LIMITS } },
        cluster: { leaseMilliseconds: LEASE_MS },
      });
      t.teardown(() => cluster.stop());
      const [a, b] = cluster.nodes;
      if (a === undefined || b === undefined) throw new Error('too few nodes');
      const person = await untilAvailable(() => signUp(a.url));
      for (const { name, url } of cluster.nodes)
        t.equal((await keysAt(url, person.cookie)).status, 200, `the session holds at ${name}`);
      const [other] = await others(cluster, person.userId);
      t.equal((await updateKey(other?.url ?? '', person, { mcpAccess: true })).status, 200, 'a key changes');
      const login = await basicLogin(b.url, person.key);
      const bearer = String(login.json['result']?.['sessionId']);
      for (const { name, url } of cluster.nodes)
        t.match((await callTool(url, bearer, 'wallet_get_balance')).text, /1000\.00/, `a call at ${name}`);

      const owner = await cluster.ownerOf('user', person.userId);
      await owner.gateway.kill();
      await cluster.isOut(owner);
      const rest = cluster.nodes.filter((each) => each !== owner);
      await linked(rest);
      const [left] = rest;
      t.equal((await keysAt(left?.url ?? '', person.cookie)).status, 200, 'the others serve it');
      const again = await logIn(left?.url ?? '', person.key);
      t.equal(again.status, 200, 'a log-in works');

      await owner.start();
      t.equal((await keysAt(owner.url, person.cookie)).status, 200, 'the node is back with its name');
    },
  );
});
