/** Audit records of calls over two processes: in the database for all nodes, or at the node that served the call. */
import t, { type Test } from 'tap';
import {
  bearerOf,
  callTool,
  expectOk,
  newKey,
  request,
  signUp,
  signUpAgent,
  untilHolds,
} from '../../../kit/agent.ts';
import type { NodeProcess } from '../../../kit/cluster/nodes.ts';
import type { Postgres } from '../../../kit/cluster/postgres.ts';
import { NO_LIMITS } from '../../../kit/launch.ts';
import { postgresTest } from '../../support/cluster/postgres.ts';
import { startedNodes } from '../../support/cluster/started-nodes.ts';
import { nodesTest, resultOf } from '../../support/cluster/three-nodes.ts';

t.setTimeout(240_000);

interface Shown {
  readonly event: string;
  readonly node: string | null;
  readonly fields: { readonly name?: string; readonly outcome?: string };
}

async function start(t: Test, postgres: Postgres) {
  const key = newKey();
  const configuration = {
    Admin: { publicKeys: [key.publicKey] },
    Settings: NO_LIMITS,
  };
  const { a, b } = await startedNodes(t, 2, {
    ...{ postgres, configuration },
    // No node is to be out: a busy machine may hold up a renewal for longer than the default.
    cluster: { leaseMilliseconds: 10_000, audit: 'table' },
  });
  // A node admits no request before its first renewal.
  for (const { url } of [a, b])
    await untilHolds(
      async () =>
        (await request(`${url}/auth/v1/sessions`, { headers: { Cookie: 'sid=none' } })).status === 401,
    );
  const admin = await signUp(a.url, key);
  const agent = await signUpAgent(b.url);
  const bearer = await bearerOf(a.url, agent.key);
  const pageAt = async (node: NodeProcess, query = 'event=mcp.tool&limit=1000') => {
    const headers = { Cookie: admin.cookie };
    const answer = expectOk('audit', await request(`${node.url}/ProxyAdmin/api/audit?${query}`, { headers }));
    return answer.json['result'] as unknown as readonly Shown[];
  };
  /** Resolves when the page shows so many records: they are written within 50 ms. */
  const shown = async (node: NodeProcess, count: number, query?: string) => {
    let rows: readonly Shown[] = [];
    await untilHolds(async () => {
      rows = await pageAt(node, query);
      return rows.length >= count;
    });
    return rows;
  };
  return { a, b, bearer, pageAt, shown };
}

// covers C16
postgresTest(
  'audit in the database: every node shows the calls of all; while it is away calls go on, save destructive ones; those of a killed node stay',
  async (t, postgres) => {
    const { a, b, bearer, pageAt, shown } = await start(t, postgres);
    for (const node of [a, b, a])
      t.equal((await callTool(node.url, bearer, 'wallet_get_balance')).status, 200);
    const nodesOf = (rows: readonly Shown[]) => rows.map(({ node }) => node);
    t.same(nodesOf(await shown(a, 3)), ['a', 'b', 'a']);
    t.same(nodesOf(await shown(b, 3)), ['a', 'b', 'a']);
    const acts = await pageAt(b, 'event=sign_up');
    t.same(nodesOf(acts), [null, null], 'what accounts did is at every node');

    a.database.cut();
    t.equal((await callTool(a.url, bearer, 'wallet_get_balance')).status, 200);
    const refused = await callTool(a.url, bearer, 'chat_hard_delete_message', { messageId: '1' });
    t.match(JSON.stringify(refused.json), /Storage unavailable/);
    a.database.heal();
    const later = (await shown(a, 5)).slice(0, 2).map(({ fields }) => `${fields.name} ${fields.outcome}`);
    t.same(later, ['chat_hard_delete_message attempt', 'wallet_get_balance ok'], 'they are stored later');

    await b.gateway.kill();
    t.same(nodesOf(await shown(a, 5)), ['a', 'a', 'a', 'b', 'a']);
  },
);

// covers C16
nodesTest('audit at the node: a page of the other node is asked for over the link', async (t, three) => {
  const [a, b] = three.nodes;
  const { key } = await signUpAgent(b.url);
  const cookie = await three.adminOf(a);
  t.equal((await callTool(b.url, await bearerOf(a.url, key), 'wallet_get_balance')).status, 200);
  const rows = async (query: string) =>
    (await resultOf(a, cookie, `/ProxyAdmin/api/audit?event=mcp.tool&${query}`)) as unknown as Shown[];
  await untilHolds(async () => (await rows('node=b')).length > 0);
  t.match(await rows('node=b'), [{ event: 'mcp.tool', node: 'b' }]);
  t.same(
    (await rows('limit=1000')).filter(({ node }) => node !== 'a'),
    [],
    'its own page has none of them',
  );
});
