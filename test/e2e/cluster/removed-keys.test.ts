/**
 * Access that ends at one node is refused at the others in the very next request: keys, sessions, applications, roles.
 * A changed setting is in force everywhere before its answer.
 */
import t from 'tap';
import {
  basicLogin,
  callTool,
  challenge,
  cookieOf,
  expectOk,
  logIn,
  newKey,
  type Person,
  request,
  rpc,
  signText,
  signUp,
  signUpAgent,
} from '../../../kit/agent.ts';
import type { NodeProcess } from '../../../kit/cluster/nodes.ts';
import {
  asked,
  nodesTest,
  outcomeOf,
  resultOf,
  type ThreeNodes,
  verifiedBearer,
} from '../../support/cluster/three-nodes.ts';
import { count } from '../../support/depth.ts';

/** A thousand by hand: `node build/test/e2e/cluster/removed-keys.test.js 1000`. */
const REMOVALS = 300;
/** Removals that run at once: those of one account would wait for each other. */
const AT_ONCE = 4;
/** An account may answer so many challenges in their lifetime, and more. */
const REMOVALS_PER_ACCOUNT = 20;
const KEYS = '/auth/v1/keys/user_keys';
const LIST = { jsonrpc: '2.0', id: 1, method: 'tools/list' };

t.setTimeout(600_000);

let turn = 0;

function nextOrder({ nodes: [a, b, c] }: ThreeNodes): readonly [NodeProcess, NodeProcess, NodeProcess] {
  turn += 1;
  return turn % 3 === 1 ? [a, b, c] : turn % 3 === 2 ? [b, c, a] : [c, a, b];
}

nodesTest(
  'a key removed at one node opens nothing at the others in the very next request',
  async (t, three) => {
    const removals = process.argv[2] === undefined ? count(REMOVALS) : Number(process.argv[2]);
    let done = 0;
    const admitted: string[] = [];
    const worker = async () => {
      let person = await signUp(three.nodes[0].url);
      for (let own = 1; done < removals; own += 1) {
        done += 1;
        const [at, second, third] = nextOrder(three);
        if (own % REMOVALS_PER_ACCOUNT === 0) person = await signUp(at.url);
        const key = newKey();
        const { challengeId, signPrefix } = await challenge(at.url, 'register', person.cookie);
        const body = {
          challengeId,
          publicKey: key.publicKey,
          code: signText(key, signPrefix + key.publicKey),
        };
        const added = await resultOf(at, person.cookie, '/auth/v1/keys/register_key', body);
        const keyId = String(added['key']?.['id']);
        const cookie = cookieOf(expectOk('login', await logIn(second.url, key)));
        expectOk('before the removal', await asked(third, cookie, KEYS));
        await resultOf(at, person.cookie, '/auth/v1/keys/remove_key', { keyId });
        const answers = await Promise.all(
          [second, third].flatMap((node) => [asked(node, cookie, KEYS), logIn(node.url, key)]),
        );
        for (const answer of answers)
          if (answer.status !== 401) admitted.push(`${outcomeOf(answer)} after ${at.name} had removed it`);
      }
    };
    await Promise.all(Array.from({ length: AT_ONCE }, worker));
    t.comment(`${done} keys removed`);
    t.strictSame(admitted, []);
    t.ok(done >= removals);
  },
);

nodesTest('sessions closed at one node are over at the others in the very next request', async (t, three) => {
  for (const [at, second, third] of Array.from({ length: count(60) }, () => nextOrder(three))) {
    const person = await signUpAgent(at.url);
    const bearer = await verifiedBearer(second, person);
    for (const node of three.nodes)
      t.match((await rpc(node.url, bearer, LIST)).json, { result: { tools: Array } });
    await resultOf(at, person.cookie, '/auth/v1/close_sessions', { others: true });
    for (const node of [second, third, at])
      t.match((await rpc(node.url, bearer, LIST)).json, { error: { code: -32001 } }, `MCP at ${node.name}`);
    await resultOf(second, person.cookie, '/auth/v1/logout', {});
    for (const node of [third, at, second])
      t.equal(outcomeOf(await asked(node, person.cookie, KEYS)), '401/1101', `after a logout, ${node.name}`);
  }
});

nodesTest('an application closed at one node ends its sessions at the others', async (t, three) => {
  for (const how of ['disabled', 'approval', 'removal', 'access'] as const) {
    const [at, second, third] = nextOrder(three);
    const admin = await three.adminOf(second);
    const owner = await signUpAgent(at.url);
    const shop = { name: 'Shop', url: 'https://shop.example' };
    const created = await resultOf(third, owner.cookie, '/auth/v1/app/upsert_usr_app', shop);
    const appId = String(created['id']);
    const administer = (node: NodeProcess, change: object) =>
      resultOf(node, admin, '/ProxyAdmin/api/apps/update', { appId, ...change });
    await administer(at, { approved: true, mcpEnabled: true });
    const logInAt = ({ url }: NodeProcess) =>
      request(`${url}/auth/v1/mcp_login`, {
        method: 'POST',
        headers: { 'X-PublicKey': owner.key.publicKey, 'X-App-Id': appId },
      });
    const login = expectOk('mcp_login', await logInAt(third)).json['result'];
    t.match(login, { loginType: 'McpApp', appId });
    const bearer = String(login?.['sessionId']);
    for (const node of three.nodes)
      t.match(
        (await callTool(node.url, bearer, 'wallet_get_balance')).json,
        { result: { content: Array } },
        node.name,
      );
    if (how === 'disabled') await administer(at, { disabled: true });
    else if (how === 'approval') await administer(at, { approved: false });
    else if (how === 'removal') await resultOf(at, owner.cookie, '/auth/v1/app/remove', { appId });
    else await administer(at, { mcpEnabled: false });
    for (const node of [second, third, at]) {
      t.match(
        (await rpc(node.url, bearer, LIST)).json,
        { error: { code: -32001 } },
        `${how} at ${node.name}`,
      );
      t.equal((await logInAt(node)).status, 401, `log-in after ${how} at ${node.name}`);
    }
  }
});

nodesTest('the explicit key of an application is another one at every node at once', async (t, three) => {
  const [at, second, third] = nextOrder(three);
  const admin = await three.adminOf(at);
  const [owner, former, present] = [
    await signUpAgent(second.url),
    await signUpAgent(third.url),
    await signUpAgent(at.url),
  ];
  const created = await resultOf(third, owner.cookie, '/auth/v1/app/upsert_usr_app', {
    name: 'Tea house',
    url: 'https://tea.example',
  });
  const appId = String(created['id']);
  const administer = (node: NodeProcess, change: object) =>
    resultOf(node, admin, '/ProxyAdmin/api/apps/update', { appId, ...change });
  await administer(second, {
    approved: true,
    mcpEnabled: true,
    mcpPublicKey: former.key.publicKey,
  });
  const logInAt = ({ url }: NodeProcess, publicKey: string) =>
    request(`${url}/auth/v1/mcp_login`, {
      method: 'POST',
      headers: { 'X-PublicKey': publicKey, 'X-App-Id': appId },
    });
  const login = expectOk('mcp_login', await logInAt(third, former.key.publicKey));
  const bearer = String(login.json['result']?.['sessionId']);
  await administer(at, { mcpPublicKey: present.key.publicKey });
  for (const node of [second, third, at]) {
    t.match((await rpc(node.url, bearer, LIST)).json, { error: { code: -32001 } }, `session ${node.name}`);
    t.equal((await logInAt(node, former.key.publicKey)).status, 401, `former key at ${node.name}`);
    t.equal((await logInAt(node, present.key.publicKey)).status, 200, `present key at ${node.name}`);
  }
});

nodesTest('a rotated API key is the one that every node names', async (t, three) => {
  for (const [at, second, third] of Array.from({ length: 3 }, () => nextOrder(three))) {
    const owner = await signUp(third.url);
    const created = await resultOf(at, owner.cookie, '/auth/v1/app/upsert_usr_app', {
      name: 'Shop',
      url: 'https://shop.example',
    });
    const rotated = await resultOf(second, owner.cookie, '/auth/v1/app/rotate_key', {
      appId: created['id'],
    });
    t.match(rotated['apiKey'], /^ghk_/);
    t.not(rotated['apiKey'], created['apiKey']);
    const views = await Promise.all(
      [at, second, third].map((node) => resultOf(node, owner.cookie, '/auth/v1/app/list')),
    );
    t.strictSame(views[0], views[1]);
    t.strictSame(views[0], views[2]);
  }
});

nodesTest(
  'a key that may no longer use MCP logs in at no node, and its sessions are over',
  async (t, three) => {
    for (const [at, second, third] of Array.from({ length: 6 }, () => nextOrder(three))) {
      const person = await signUpAgent(second.url);
      const login = expectOk('mcp_login', await basicLogin(third.url, person.key));
      const bearer = String(login.json['result']?.['sessionId']);
      await resultOf(at, person.cookie, '/auth/v1/keys/update_key', {
        keyId: person.keyId,
        mcpAccess: false,
      });
      for (const node of [second, third, at]) {
        t.match((await rpc(node.url, bearer, LIST)).json, { error: { code: -32001 } }, node.name);
        t.equal((await basicLogin(node.url, person.key)).status, 401, node.name);
      }
    }
  },
);

// covers C1 R125
nodesTest(
  'a contact sync token counts at every node at once, and at none when it ended at one',
  async (t, three) => {
    const ends = {
      removal: (node: NodeProcess, { cookie }: Person, id: string) =>
        resultOf(node, cookie, '/auth/v1/contact_sync/remove', { id }),
      flag: (node: NodeProcess, { cookie, keyId }: Person) =>
        resultOf(node, cookie, '/auth/v1/keys/update_key', { keyId, cardDavAccess: false }),
      key: (node: NodeProcess, { cookie, keyId }: Person) =>
        resultOf(node, cookie, '/auth/v1/keys/remove_key', { keyId }),
      block: async (node: NodeProcess, { userId }: Person) =>
        resultOf(node, await three.adminOf(node), '/ProxyAdmin/api/users/block', { userId, blocked: true }),
    };
    for (const [how, end] of Object.entries(ends)) {
      const [at, second, third] = nextOrder(three);
      const person = await signUp(second.url);
      const { keyId, cookie, userId } = person;
      await resultOf(third, cookie, '/auth/v1/keys/update_key', { keyId, cardDavAccess: true });
      const added = await resultOf(at, cookie, '/auth/v1/contact_sync/token', { keyId, name: 'Phone' });
      const authorization = `Basic ${Buffer.from(`${userId}:${added['token']}`).toString('base64')}`;
      const sync = async ({ url }: NodeProcess) =>
        (await fetch(`${url}/contacts/v1/`, { method: 'PROPFIND', headers: { authorization } })).status;
      for (const node of [third, second, at])
        t.equal(await sync(node), 207, `added at ${at.name}: ${node.name}`);
      await end(second, person, String(added['id']));
      for (const node of [third, at, second]) t.equal(await sync(node), 401, `${how}: ${node.name}`);
    }
  },
);

nodesTest('an account blocked at one node is refused at the others', async (t, three) => {
  for (const [at, second, third] of Array.from({ length: 6 }, () => nextOrder(three))) {
    const admin = await three.adminOf(third);
    const person = await signUp(second.url);
    const { userId } = person;
    await resultOf(at, admin, '/ProxyAdmin/api/users/block', { userId, blocked: true });
    for (const node of [second, third, at]) {
      t.equal((await asked(node, person.cookie, KEYS)).status, 401, `session at ${node.name}`);
      t.equal((await logIn(node.url, person.key)).status, 401, `log-in at ${node.name}`);
    }
  }
});

// covers C4
nodesTest(
  'a role given or taken away at one node holds at the others in the next request',
  async (t, three) => {
    for (const [at, second, third] of Array.from({ length: 6 }, () => nextOrder(three))) {
      const admin = await three.adminOf(at);
      const { userId, cookie } = await signUp(second.url);
      const settingsAt = (node: NodeProcess) => asked(node, cookie, '/ProxyAdmin/api/settings');
      for (const node of three.nodes)
        t.equal((await settingsAt(node)).status, 403, `no role at ${node.name}`);
      await resultOf(at, admin, '/ProxyAdmin/api/staff', { userId, role: 'viewer' });
      for (const node of [second, third, at])
        t.equal((await settingsAt(node)).status, 200, `a role at ${node.name}`);
      await resultOf(second, admin, '/ProxyAdmin/api/staff', { userId, role: null });
      for (const node of [third, at, second])
        t.equal((await settingsAt(node)).status, 403, `none again at ${node.name}`);
    }
  },
);

// covers C4
nodesTest('a setting changed at one node is in force at the others before the answer', async (t, three) => {
  const value = async (node: NodeProcess, cookie: string) => {
    const rows = (await resultOf(node, cookie, '/ProxyAdmin/api/settings')) as unknown as {
      name: string;
      value: number;
    }[];
    return rows.find(({ name }) => name === 'McpSessionSeconds')?.value;
  };
  const admin = await three.adminOf(three.nodes[0]);
  for (const [index, [at, second, third]] of Array.from({ length: 12 }, () => nextOrder(three)).entries()) {
    const wanted = 3_600 + index;
    await resultOf(at, admin, '/ProxyAdmin/api/settings', { name: 'McpSessionSeconds', value: wanted });
    for (const node of [second, third, at])
      t.equal(await value(node, admin), wanted, `${at.name} → ${node.name}`);
    const person = await signUpAgent(third.url);
    const login = expectOk('mcp_login', await basicLogin(second.url, person.key));
    const endsMs = Date.parse(String(login.json['result']?.['expiresUtc']));
    t.ok(endsMs - Date.now() <= wanted * 1_000, 'sessions end by it');
    t.ok(endsMs - Date.now() > (wanted - 10) * 1_000);
  }
});
