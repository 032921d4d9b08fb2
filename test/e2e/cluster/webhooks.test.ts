/**
 * Webhooks of a cluster: the node that owns an application delivers, and its owner and admins ask any node. What a receiver
 * gets over takeovers is shown by takeovers.test.ts.
 */
import { createServer, type IncomingHttpHeaders } from 'node:http';
import { json } from 'node:stream/consumers';
import t, { type Test } from 'tap';
import { expectOk, type Json, request, signUp } from '../../../kit/agent.ts';
import type { NodeProcess } from '../../../kit/cluster/nodes.ts';
import { listenFor } from '../../../kit/http.ts';
import { asked, nodesTest, outcomeOf, resultOf, type ThreeNodes } from '../../support/cluster/three-nodes.ts';

t.setTimeout(240_000);

const APP = '/auth/v1/app';

interface Received {
  readonly headers: IncomingHttpHeaders;
  readonly type: string;
  readonly numbers: readonly number[];
}

async function startReceiver(t: Test) {
  const received: Received[] = [];
  const waiting: ((one: Received) => void)[] = [];
  const server = createServer(async (incoming, response) => {
    const events = [await json(incoming)].flat() as { type: string; data: { n: number } }[];
    response.end('ok');
    const numbers = events.map(({ data }) => data.n);
    const one = { headers: incoming.headers, type: events[0]?.type ?? '', numbers };
    const next = waiting.shift();
    if (next === undefined) received.push(one);
    else next(one);
  });
  const { url } = await listenFor(t, server);
  return {
    url: `${url}/hook`,
    async next(): Promise<Received> {
      return received.shift() ?? (await new Promise<Received>((resolve) => waiting.push(resolve)));
    },
  };
}

let ticks = Date.now();

async function push({ cluster }: ThreeNodes, node: NodeProcess, crmId: string, n: number): Promise<void> {
  ticks += 1;
  const event = { module: 'core', tick: String(ticks), type: 'Sale', crmId, data: { id: String(ticks), n } };
  const headers = { 'X-Module-Key': String(cluster.sandbox?.moduleKey) };
  const url = `${node.gateway.internal}/internal/v1/events`;
  expectOk('push', await request(url, { headers, body: { events: [event] } }));
}

/** An application whose deliveries are those of the last of the nodes. */
async function openApplication(t: Test, three: ThreeNodes) {
  const receiver = await startReceiver(t);
  const owner = await signUp(three.nodes[0].url);
  const shop = { name: 'Shop', url: 'https://shop.example', webhookUrl: receiver.url };
  const appId = String((await resultOf(three.nodes[1], owner.cookie, `${APP}/upsert_usr_app`, shop))['id']);
  const [first, second, deliverer] = await three.othersFirst('app', appId);
  return { receiver, owner, appId, first, second, deliverer };
}

interface Listed {
  readonly items: readonly {
    readonly source: string;
    readonly webhookId: string;
    readonly outcome: string;
  }[];
}

/** The attempts as a node lists them, once there are so many: the last one is listed after it was answered. */
async function listed(node: NodeProcess, cookie: string, appId: string, count: number): Promise<Listed> {
  for (;;) {
    const list = await resultOf(node, cookie, `${APP}/deliveries?appId=${appId}`);
    const { items } = list as unknown as Listed;
    if (items.length >= count) return { items };
  }
}

// covers C19
nodesTest(
  'webhooks: one node delivers what any node accepts, and owners list, test and resend at any node',
  async (t, three) => {
    const { receiver, owner, appId, first, second, deliverer } = await openApplication(t, three);
    const { cookie, userId } = owner;
    for (const [n, node] of [first, second, deliverer].entries()) {
      await push(three, node, userId, n);
      t.same((await receiver.next()).numbers, [n], `pushed to ${node.name}`);
    }
    const lists = await Promise.all(three.nodes.map((node) => listed(node, cookie, appId, 3)));
    for (const list of lists) t.same(list, lists[0], 'one list at every node');
    for (const node of [first, deliverer]) {
      const ping = await resultOf(node, cookie, `${APP}/ping`, { appId });
      t.match(ping, { delivered: true, status: 200, answer: 'ok' }, `a test at ${node.name}`);
      t.equal((await receiver.next()).type, 'ping');
    }
    const webhookId = lists[0]?.items[0]?.webhookId;
    t.match(await resultOf(second, cookie, `${APP}/resend`, { appId, webhookId }), { events: 1 });
    const again = await receiver.next();
    t.match(again, { numbers: [0], headers: { 'webhook-id': webhookId, 'webhook-resend': 'true' } });
    const from = new Date(Date.now() - 3_600_000).toISOString();
    t.match(await resultOf(first, cookie, `${APP}/resend`, { appId, from }), { events: 3 }, 'a range');
    const repeated: number[] = [];
    while (repeated.length < 3) repeated.push(...(await receiver.next()).numbers);
    t.same(repeated, [0, 1, 2]);
    t.equal(outcomeOf(await asked(second, cookie, `${APP}/enable`, { appId })), '200');
    t.equal(
      outcomeOf(await asked(first, cookie, `${APP}/resend`, { appId, webhookId: 'msg_x' })),
      '404/1004',
    );
    t.equal(outcomeOf(await asked(first, cookie, `${APP}/ping`, { appId: '1' })), '404/1004');
  },
);

nodesTest('webhooks: an admin sees and resends deliveries of another node', async (t, three) => {
  const { receiver, owner, appId, first, second } = await openApplication(t, three);
  await push(three, first, owner.userId, 7);
  const { headers } = await receiver.next();
  await listed(second, owner.cookie, appId, 1);
  const cookie = await three.adminOf(second);
  const attempts = await resultOf(first, cookie, `/ProxyAdmin/api/deliveries?appId=${appId}`);
  t.match(attempts, { items: [{ webhookId: headers['webhook-id'], outcome: 'delivered' }] });
  const apps = (await resultOf(first, cookie, '/ProxyAdmin/api/apps')) as unknown as Json[];
  t.match(
    apps.find((each) => String(each['id']) === appId),
    { oldestUndeliveredSeconds: null },
    'of an application that another node delivers to',
  );
  const resend = { appId, webhookId: headers['webhook-id'] };
  t.match(await resultOf(first, cookie, '/ProxyAdmin/api/resend', resend), { events: 1 });
  t.match(await receiver.next(), { numbers: [7], headers: { 'webhook-resend': 'true' } });
});

/** The account and the application are at whichever nodes they are: the replica says what the account allows. */
nodesTest(
  'webhooks: consent that is given and taken back at other nodes decides what is delivered',
  async (t, three) => {
    const { receiver, owner, appId, first, second } = await openApplication(t, three);
    const approval = { appId, approved: true, mcpEnabled: true };
    await resultOf(first, await three.adminOf(second), '/ProxyAdmin/api/apps/update', approval);
    t.equal((await receiver.next()).type, 'AppApprovalChanged', 'the approval at another node');
    const person = await signUp(first.url);
    await push(three, first, person.userId, 1);
    await resultOf(second, person.cookie, `${APP}/grant_access`, { appId });
    await push(three, second, person.userId, 2);
    t.same((await receiver.next()).numbers, [2], 'events after the consent');
    await resultOf(first, person.cookie, `${APP}/revoke_access`, { appId });
    await push(three, second, person.userId, 3);
    await push(three, first, owner.userId, 4);
    t.same((await receiver.next()).numbers, [4], 'and none after it was taken back');
  },
);
