/**
 * Challenges, applications, one-time codes, settings and the path of an agent over SIGKILL of the program. The tests run side by side: each kill is for all
 * that wait for it.
 */
import { readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import {
  type Answer,
  type Challenge,
  callTool,
  challenge,
  cookieOf,
  expectOk,
  type Json,
  mcpLogin,
  newKey,
  type Person,
  request,
  rpc,
  type SoftwareKey,
  signText,
  signUp,
  signUpAgent,
} from '../../kit/agent.ts';
import { create, get, makePasskey } from '../../kit/authenticator.ts';
import { HIGH_LIMITS, launchFor } from '../../kit/launch.ts';
import { arrival } from '../support/outbox.ts';
import { startKills } from '../support/programs/kills.ts';

t.setTimeout(180_000);
t.jobs = 6;

const REGISTER = '/auth/v1/keys/register_key';
const LOGIN = '/auth/v1/login';
const [adminKey, otherAdminKey] = [newKey(), newKey()];
const kills = await startKills(6, {
  configuration: {
    Settings: HIGH_LIMITS,
    Admin: { publicKeys: [adminKey.publicKey, otherAdminKey.publicKey] },
  },
  args: ['--sandbox'],
});
const { killed } = kills;

function signed({ challengeId, signPrefix }: Challenge, key: SoftwareKey) {
  return { challengeId, publicKey: key.publicKey, code: signText(key, signPrefix + key.publicKey) };
}

function errorOf({ status, json }: Answer): string {
  return `${status}/${String(json['error']?.['code'])}`;
}

const post = (path: string, body: object, headers: Record<string, string> = {}) =>
  request(`${kills.gateway.url}${path}`, { body, headers });

async function send(person: Person, path: string, body?: unknown): Promise<Json> {
  const answer = await request(`${kills.gateway.url}${path}`, { headers: { Cookie: person.cookie }, body });
  return expectOk(path, answer).json['result'] as Json;
}

// covers R54 S53
t.test(
  'challenge: one issued before a SIGKILL signs up, adds a key and logs in after it, only once',
  { buffered: true },
  async (t) => {
    kills.join(t);
    const { url } = kills.gateway;
    const origin = url.replace('127.0.0.1', 'localhost');
    const [founding, another, added] = [newKey(), newKey(), newKey()];
    const person = await signUp(url);
    const cookie = { Cookie: person.cookie };
    const passkey = makePasskey('ES256');
    const enrolmentOf = async (key: typeof passkey) => {
      const { challengeId, code, challenge: given } = await challenge(url, 'register');
      return { challengeId, code, credential: create(key, { challenge: given, origin, counter: 0 }) };
    };
    expectOk('sign-up with a passkey', await post(REGISTER, await enrolmentOf(passkey)));

    const forSignUp = await challenge(url, 'register');
    const [ofFounding, ofAnother] = [signed(forSignUp, founding), signed(forSignUp, another)];
    const enrolment = await enrolmentOf(makePasskey('ES256'));
    const login = signed(await challenge(url, 'login'), person.key);
    const assertion = await challenge(url, 'login');
    const proof = get(passkey, { challenge: assertion.challenge, origin, counter: 0 });
    const passkeyLogin = { challengeId: assertion.challengeId, credential: proof };
    const registration = await challenge(url, 'register', person.cookie);
    const claim = {
      challengeId: registration.challengeId,
      code: registration.code,
      publicKey: added.publicKey,
    };
    await killed();
    expectOk('sign-up', await post(REGISTER, ofFounding));
    expectOk('sign-up with a passkey', await post(REGISTER, enrolment));
    const answer = expectOk('login', await post(LOGIN, login));
    expectOk('login with a passkey', await post(LOGIN, passkeyLogin));
    const repeatable = { ...cookie, 'Idempotency-Key': 'once' };
    const first = expectOk('register_key', await post(REGISTER, claim, repeatable));

    for (const when of ['in the same process', 'after a SIGKILL']) {
      if (when === 'after a SIGKILL') await killed();
      const refused = [
        await post(REGISTER, ofFounding),
        await post(REGISTER, ofAnother),
        await post(REGISTER, enrolment),
        await post(LOGIN, login),
        await post(LOGIN, passkeyLogin),
        await post(REGISTER, claim, cookie),
        await post(REGISTER, { ...claim, publicKey: another.publicKey }, cookie),
      ];
      t.same(
        refused.map(errorOf),
        Array.from(refused, () => '401/1104'),
        when,
      );
      t.same(
        (await post(REGISTER, claim, repeatable)).json['result'],
        first.json['result'],
        `repeat ${when}`,
      );
    }
    const { json } = await request(`${url}/auth/v1/sessions`, { headers: { Cookie: cookieOf(answer) } });
    t.equal((json['result'] as unknown as Json[]).length, 2, 'the sign-up and one login');
  },
);

// covers S54
t.test(
  'challenge: one of another journal is 1104, even with the same account and key',
  { buffered: true },
  async (t) => {
    kills.join(t);
    // No modules: their threads are a third of a start.
    const foreign = await launchFor(t, { configuration: {} });
    const body = signed(await challenge(kills.gateway.url, 'register'), newKey());
    t.equal(errorOf(await request(`${foreign.url}${REGISTER}`, { body })), '401/1104');
    expectOk('at home', await post(REGISTER, body));
  },
);

/** All that the gateway has put into files and output so far. */
function written(): Buffer[] {
  const { dataPath, output } = kills.gateway;
  const files = readdirSync(dataPath, { recursive: true }).map((name) => join(dataPath, String(name)));
  const texts = files.filter((file) => statSync(file).isFile()).map((file) => readFileSync(file));
  return [...texts, Buffer.from(output().stdout), Buffer.from(output().stderr)];
}

t.test(
  'apps: an application is approved, used by an agent and closed, over kill -9; its API key is nowhere in clear text',
  { buffered: true },
  async (t) => {
    kills.join(t);
    const { url } = kills.gateway;
    const admin = await signUp(url, adminKey);
    const owner = await signUpAgent(url);

    const registration = { name: 'Shop', url: 'https://shop.example', webhookUrl: 'http://127.0.0.1:9/hook' };
    const created = await send(owner, '/auth/v1/app/upsert_usr_app', registration);
    const appId = String(created['id']);
    const rotated = await send(owner, '/auth/v1/app/rotate_key', { id: appId });
    const secrets = [created['apiKey'], rotated['apiKey']].map(String);
    const login = () =>
      request(`${url}/auth/v1/mcp_login`, {
        method: 'POST',
        headers: { 'X-PublicKey': owner.key.publicKey, 'X-App-Id': appId },
      });
    t.match(await login(), { status: 401, json: { error: { message: 'Access denied' } } }, 'not approved');
    await send(admin, '/ProxyAdmin/api/apps/update', { appId, approved: true, mcpEnabled: true });
    await killed();

    const session = expectOk('mcp_login', await login()).json['result'] as Json;
    t.match(session, { loginType: 'McpApp', appId });
    const bearer = String(session['sessionId']);
    const balance = await callTool(url, bearer, 'wallet_get_balance');
    t.match(balance.text, /1000\.00/);
    t.match((await callTool(url, bearer, 'sessions')).json, { error: { code: -32001 } });
    await send(admin, '/ProxyAdmin/api/apps/update', { appId, disabled: true });
    const list = { jsonrpc: '2.0', id: 1, method: 'tools/list' };
    t.match((await rpc(url, bearer, list)).json, { error: { code: -32001 } }, 'closed at once');
    await killed();
    t.match((await rpc(url, bearer, list)).json, { error: { code: -32001 } });
    t.equal((await login()).status, 401);

    t.match(await send(owner, '/auth/v1/app/list'), [
      { ...registration, id: appId, disabled: true, approved: true },
    ]);
    const texts = written();
    t.ok(
      texts.some((text) => text.includes('https://shop.example')),
      'the registered address is in the files',
    );
    for (const secret of secrets) {
      t.match(secret, /^ghk_[A-Za-z0-9_-]{43}$/);
      t.notOk(texts.some((text) => text.includes(secret.slice(4))));
    }
  },
);

// covers R60
t.test(
  'one-time codes: while the chat module is down the code is kept for delivery, over kill -9 too',
  { buffered: true },
  async (t) => {
    kills.join(t);
    const phone = '+4915112345678';
    const fault = { body: { module: 'chat', mode: 'down' } };
    expectOk('fault', await request(`${kills.gateway.sandbox}/sandbox/v1/fault`, fault));
    const asked = expectOk('login_phone', await post('/auth/v1/login_phone', { phone }));
    const challengeId = Number(asked.json['result']?.['challengeId']);
    const outbox = await request(`${kills.gateway.sandbox}/sandbox/v1/outbox`);
    t.same(outbox.json['result']?.['deliveries'], [], 'nothing left');
    await killed();
    const code = await arrival(kills.gateway.sandbox, phone);
    const again = await post('/auth/v1/login_phone', { phone });
    t.equal(again.status, 429, 'the wait before the next code survived as well');
    t.match(expectOk('login', await post(LOGIN, { challengeId, code })).json, {
      result: { newAccount: true },
    });
    const known = await post('/auth/v1/login_phone', { phone });
    t.equal(known.status, 200, 'an address with a login has a quota of its own, apart from unknown callers');
  },
);

async function enrolAgent() {
  const { gateway } = kills;
  const person = await signUpAgent(gateway.url);
  const login = expectOk('mcp_login', await mcpLogin(gateway.url, person.key, Date.now()));
  return { person, login, bearer: String(login.json['result']?.['sessionId']) };
}

// covers R52
t.test(
  'whole path: an agent logs in with its key and calls a tool; all of it survives kill -9',
  { buffered: true },
  async (t) => {
    kills.join(t);
    const { url } = kills.gateway;
    const { person, login, bearer } = await enrolAgent();
    t.match(login.json, {
      result: { loginType: 'McpVerified', appId: null, sessionId: /^[A-Za-z0-9_-]{46}$/ },
    });
    t.equal(login.headers.get('set-cookie'), null, 'mcp_login sets no cookie');

    const initialize = {
      jsonrpc: '2.0',
      id: 0,
      method: 'initialize',
      params: { protocolVersion: '2025-06-18', capabilities: {}, clientInfo: { name: 't', version: '1' } },
    };
    const hello = await rpc(url, undefined, initialize);
    const info = await request(`${url}/auth/v1/get_info`);
    t.match(hello.json, {
      result: {
        protocolVersion: '2024-11-05',
        serverInfo: { version: String(info.json['result']?.['version']) },
      },
    });
    t.ok(hello.headers.get('mcp-session-id'));

    const before = await callTool(url, bearer, 'wallet_get_balance');
    t.equal(before.json['result']?.['isError'], undefined, before.text);
    t.match(before.text, /1000\.00/);

    await killed();
    const after = await callTool(url, bearer, 'wallet_get_balance');
    t.same(after.json['result'], before.json['result'], 'the MCP session and the balance are unchanged');
    const keys = await request(`${url}/auth/v1/keys/user_keys`, {
      headers: { Cookie: person.cookie },
    });
    t.match(keys.json, {
      result: [
        { id: person.keyId, mcpAccess: true, cardDavAccess: false, current: true, keyType: 'UserKey' },
      ],
    });
  },
);

// covers R5
t.test(
  'settings: an admin change takes effect at once and survives a restart; other users are refused',
  { buffered: true },
  async (t) => {
    kills.join(t);
    const { url } = kills.gateway;
    const person = await signUp(url, otherAdminKey);
    const outsider = await signUp(url);
    const settings = `${url}/ProxyAdmin/api/settings`;
    const change = { name: 'SessionApiRPSLimit', value: 7 };
    t.equal((await request(settings, { body: change })).status, 401);
    t.equal((await request(settings, { headers: { Cookie: outsider.cookie }, body: change })).status, 403);
    const headers = { Cookie: person.cookie };
    t.equal((await request(settings, { headers, body: { name: 'NoSuch', value: 7 } })).status, 400);
    t.equal((await request(settings, { headers, body: { ...change, value: -1 } })).status, 400);
    const done = expectOk('settings', await request(settings, { headers, body: change }));
    t.match(done.json, { result: { id: 11, name: 'SessionApiRPSLimit', value: 7, default: 3 } });
    const next = await request(`${url}/auth/v1/sessions`, { headers: { Cookie: outsider.cookie } });
    t.match(next.headers.get('x-ratelimit'), /^s=s;l=35;r=\d+;t=[1-5]$/, 'effective at once');
    await killed();
    const again = await request(`${url}/auth/v1/sessions`, { headers: { Cookie: outsider.cookie } });
    t.match(again.headers.get('x-ratelimit'), /^s=s;l=35;/, 'the change overrides the file after a restart');
  },
);
