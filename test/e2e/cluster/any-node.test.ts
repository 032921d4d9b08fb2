/**
 * Accounts and applications at any node: each step of a person is at another node than the one before, and what is refused
 * at one node is refused at all.
 */
import t from 'tap';
import {
  type Answer,
  basicLogin,
  type Challenge,
  callTool,
  challenge,
  cookieOf,
  expectOk,
  type Json,
  logIn,
  newKey,
  request,
  type SoftwareKey,
  signText,
  signUp,
  signUpAgent,
} from '../../../kit/agent.ts';
import { create, get, makePasskey } from '../../../kit/authenticator.ts';
import type { NodeProcess } from '../../../kit/cluster/nodes.ts';
import { asked, nodesTest, outcomeOf, resultOf } from '../../support/cluster/three-nodes.ts';
import { wrongCode } from '../../support/codes.ts';
import { arrival } from '../../support/outbox.ts';

const REGISTER = '/auth/v1/keys/register_key';
const LOGIN = '/auth/v1/login';
const KEYS = '/auth/v1/keys/user_keys';
const UPSERT = '/auth/v1/app/upsert_usr_app';

t.setTimeout(240_000);

function signed({ challengeId, signPrefix }: Challenge, key: SoftwareKey) {
  return { challengeId, publicKey: key.publicKey, code: signText(key, signPrefix + key.publicKey) };
}

const post = (node: NodeProcess, path: string, body: object, headers: Record<string, string> = {}) =>
  request(`${node.url}${path}`, { body, headers });

// covers C5
nodesTest('a challenge of one node is answered at another, once', async (t, { nodes: [a, b, c] }) => {
  const key = newKey();
  const toSignUp = await challenge(a.url, 'register');
  const account = expectOk('sign-up', await post(b, REGISTER, signed(toSignUp, key)));
  for (const node of [c, a, b]) {
    t.equal(outcomeOf(await post(node, REGISTER, signed(toSignUp, newKey()))), '401/1104', 'used');
    t.equal((await asked(node, cookieOf(account), KEYS)).status, 200, `the session at ${node.name}`);
  }
  const toLogIn = await challenge(c.url, 'login');
  const login = expectOk('login', await post(a, LOGIN, signed(toLogIn, key)));
  for (const node of [b, c, a])
    t.equal(outcomeOf(await post(node, LOGIN, signed(toLogIn, key))), '401/1104', `used, at ${node.name}`);
  const added = newKey();
  const toAdd = await challenge(b.url, 'register', cookieOf(login));
  const registered = await resultOf(c, cookieOf(login), REGISTER, signed(toAdd, added));
  t.match(registered, { newAccount: false });
  const twice = await challenge(a.url, 'register');
  t.equal(outcomeOf(await post(a, REGISTER, signed(twice, added))), '409/1107', 'a key has one owner');
  const list = (await resultOf(b, cookieOf(login), KEYS)) as unknown as { publicKey: string }[];
  t.strictSame(list.map(({ publicKey }) => publicKey).sort(), [key.publicKey, added.publicKey].sort());
});

// covers C1
nodesTest('of sign-ups with one key at three nodes one succeeds', async (t, { nodes }) => {
  for (let round = 0; round < 5; round += 1) {
    const key = newKey();
    const answers = await Promise.all(
      nodes.map(async (node) => post(node, REGISTER, signed(await challenge(node.url, 'register'), key))),
    );
    t.strictSame(answers.map(outcomeOf).sort(), ['200', '409/1107', '409/1107'], 'one of three sign-ups');
    const userId = String(answers.find(({ status }) => status === 200)?.json['result']?.['userId']);
    for (const node of nodes)
      t.equal(String(expectOk('login', await logIn(node.url, key)).json['result']?.['userId']), userId);
  }
});

nodesTest(
  'a passkey is enrolled and logs in at other nodes than its challenges',
  async (t, { nodes: [a, b, c], baseUrl }) => {
    const passkey = makePasskey('ES256');
    const origin = baseUrl;
    const enrolling = await challenge(a.url, 'register');
    const credential = create(passkey, { challenge: enrolling.challenge, origin, counter: 0 });
    const enrolment = { challengeId: enrolling.challengeId, code: enrolling.code, credential };
    const account = expectOk('passkey', await post(b, REGISTER, enrolment));
    t.match(account.json, { result: { newAccount: true } });
    const userId = String(account.json['result']?.['userId']);
    for (const [from, to] of [
      [c, a],
      [a, b],
      [b, c],
    ] as const) {
      const asking = await challenge(from.url, 'login');
      const proof = get(passkey, { challenge: asking.challenge, origin, counter: 0 });
      const login = await post(to, LOGIN, { challengeId: asking.challengeId, credential: proof });
      t.match(expectOk('login', login).json, { result: { userId, keyType: 'FIDO2' } }, `at ${to.name}`);
      const again = await post(from, LOGIN, { challengeId: asking.challengeId, credential: proof });
      t.equal(outcomeOf(again), '401/1104', 'once');
    }
  },
);

// covers C4
nodesTest(
  'a one-time code of one node logs in at another, once',
  async (t, { nodes: [a, b, c], cluster }) => {
    const orders = [
      [a, b, c],
      [b, c, a],
      [c, a, b],
    ] as const;
    for (const [index, [at, second, third]] of orders.entries()) {
      const email = `person-${index}@mail.example`;
      const sent = expectOk('login_email', await post(at, '/auth/v1/login_email', { email }));
      const challengeId = Number(sent.json['result']?.['challengeId']);
      const code = await arrival(cluster.sandbox?.url, email);
      const enter = (node: NodeProcess, typed: string) => post(node, LOGIN, { challengeId, code: typed });
      const again = await post(second, '/auth/v1/login_email', { email });
      t.equal(again.status, 429, 'the wait before the next code is that of every node');
      t.equal((await enter(third, wrongCode(code))).status, 401, 'a wrong code');
      const both = await Promise.all([enter(second, code), enter(third, code)]);
      t.strictSame(both.map(({ status }) => status).sort(), [200, 401], 'two nodes, one session');
      const cookie = cookieOf(both.find(({ status }) => status === 200) as Answer);
      for (const node of [at, second, third])
        t.equal((await asked(node, cookie, KEYS)).status, 200, `the session at ${node.name}`);
      const next = expectOk('login_email', await post(third, '/auth/v1/login_email', { email }));
      const later = { challengeId: Number(next.json['result']?.['challengeId']) };
      const newest = await arrival(cluster.sandbox?.url, email, code);
      const login = expectOk('login', await post(at, LOGIN, { ...later, code: newest }));
      t.match(login.json, { result: { newAccount: false } }, 'the contact has its account at every node');
    }
  },
);

nodesTest(
  'a repeat with its Idempotency-Key at another node gets the first reply',
  async (t, { nodes: [a, b, c] }) => {
    const person = await signUp(a.url);
    const headers = { Cookie: person.cookie, 'Idempotency-Key': 'once' };
    const added = newKey();
    const claim = signed(await challenge(b.url, 'register', person.cookie), added);
    const first = expectOk('register_key', await post(c, REGISTER, claim, headers));
    for (const node of [a, b, c]) {
      const repeat = expectOk('repeat', await post(node, REGISTER, claim, headers));
      t.strictSame(repeat.json['result'], first.json['result'], `a repeat at ${node.name}`);
      const other = { ...claim, publicKey: newKey().publicKey };
      t.equal(outcomeOf(await post(node, REGISTER, other, headers)), '422/1016', 'another command');
    }
    const shop = { name: 'Shop', url: 'https://shop.example' };
    const created = await Promise.all([a, b, c].map((node) => post(node, UPSERT, shop, headers)));
    const [one, two, three] = created.map((answer) => expectOk('upsert', answer).json['result']);
    t.match(one?.['apiKey'], /^ghk_/);
    t.strictSame(two, one, 'three at once register one application and show one API key');
    t.strictSame(three, one);
    const list = await resultOf(b, person.cookie, '/auth/v1/app/list');
    t.equal((list as unknown as Json[]).length, 1);
  },
);

// covers C12
nodesTest(
  'sessions and log-ins of an account are the same list at every node',
  async (t, { nodes: [a, b, c] }) => {
    const person = await signUp(a.url);
    const second = cookieOf(expectOk('login', await logIn(b.url, person.key)));
    const third = cookieOf(expectOk('login', await logIn(c.url, person.key)));
    const idsAt = async (node: NodeProcess) =>
      ((await resultOf(node, third, '/auth/v1/sessions')) as unknown as { id: string }[]).map(({ id }) => id);
    const ids = await idsAt(a);
    t.equal(ids.length, 3);
    t.strictSame(await idsAt(b), ids);
    t.strictSame(await idsAt(c), ids);
    const [oldest] = ids;
    await resultOf(b, third, '/auth/v1/close_sessions', { sessionIds: [oldest] });
    for (const node of [c, a, b]) {
      t.equal((await asked(node, person.cookie, KEYS)).status, 401, `closed, at ${node.name}`);
      t.equal((await asked(node, second, KEYS)).status, 200, `open, at ${node.name}`);
      t.strictSame(await idsAt(node), ids.slice(1));
      const log = (await resultOf(node, third, '/auth/v1/login_log')) as unknown as Json[];
      t.equal(log.length, 3, 'a sign-up and two log-ins');
    }
  },
);

// covers C3
nodesTest('access of an application is granted, used and revoked at different nodes', async (t, three) => {
  const [a, b, c] = three.nodes;
  const owner = await signUp(a.url);
  const shop = { name: 'Shop', url: 'https://shop.example' };
  const appId = String((await resultOf(b, owner.cookie, UPSERT, shop))['id']);
  const person = await signUpAgent(b.url);
  const { publicKey } = person.key;
  const change = { appId, approved: true, mcpEnabled: true, mcpPublicKey: publicKey };
  await resultOf(c, await three.adminOf(a), '/ProxyAdmin/api/apps/update', change);
  const logInAt = async ({ url }: NodeProcess) =>
    request(`${url}/auth/v1/mcp_login`, {
      method: 'POST',
      headers: { 'X-PublicKey': publicKey, 'X-App-Id': appId },
    });
  const accessAt = (node: NodeProcess) => resultOf(node, person.cookie, '/auth/v1/app/access');
  const bearers: string[] = [];
  for (const node of three.nodes) {
    const login = expectOk(`log-in at ${node.name}`, await logInAt(node));
    bearers.push(String(login.json['result']?.['sessionId']));
  }
  for (const node of three.nodes) t.match(await accessAt(node), [{ appId, source: 'login' }]);
  await resultOf(a, person.cookie, '/auth/v1/app/revoke_access', { appId });
  for (const node of [b, c, a]) {
    for (const bearer of bearers)
      t.match((await callTool(node.url, bearer, 'wallet_get_balance')).json, { error: { code: -32001 } });
    t.equal((await logInAt(node)).status, 401, `revoked at a, refused at ${node.name}`);
    t.strictSame(await accessAt(node), []);
  }
  await resultOf(c, person.cookie, '/auth/v1/app/grant_access', { appId });
  for (const node of [a, b, c]) {
    t.match(await accessAt(node), [{ appId, source: 'consent' }]);
    t.equal((await logInAt(node)).status, 200, `granted at c, open at ${node.name}`);
  }
});

nodesTest('a key that an admin adds, changes and removes at different nodes', async (t, three) => {
  const [a, b, c] = three.nodes;
  const admin = await three.adminOf(b);
  const { userId, cookie } = await signUp(c.url);
  const key = newKey();
  const { publicKey } = key;
  const addition = { userId, publicKey, mcpAccess: true };
  const added = await resultOf(a, admin, '/ProxyAdmin/api/user_keys/add', addition);
  const keyId = added['id'];
  const found = await resultOf(c, admin, `/ProxyAdmin/api/user_keys?publicKey=${publicKey}`);
  t.match(found, [{ id: keyId, userId }], 'the search of another node finds it');
  for (const node of [b, c, a]) {
    t.equal((await basicLogin(node.url, key)).status, 200, `log-in at ${node.name}`);
    t.match(await resultOf(node, cookie, KEYS), [{}, { id: keyId, proven: false }]);
  }
  await resultOf(b, admin, '/ProxyAdmin/api/user_keys/update', { userId, keyId, mcpAccess: false });
  for (const node of [c, a, b])
    t.equal((await basicLogin(node.url, key)).status, 401, `forbidden, ${node.name}`);
  await resultOf(c, admin, '/ProxyAdmin/api/user_keys/remove', { userId, keyId });
  for (const node of [a, b, c])
    t.equal(((await resultOf(node, cookie, KEYS)) as unknown as Json[]).length, 1, `removed, ${node.name}`);
  const elsewhere = await signUp(a.url, key);
  t.not(elsewhere.userId, userId, 'a removed key is free for another account');
});
