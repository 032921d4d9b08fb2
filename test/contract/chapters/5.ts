/** Contract, section 5: authentication. */
import { makePasskey } from '../../../kit/authenticator.ts';
import { type Check, checksOf } from '../check.ts';
import { type Headers, read } from '../client.ts';
import { expectOk, newKey, type Person, passkeyLogin, registerPasskey, signed } from '../unshown.ts';
import { bearerOf, verifiedHeaders, type World } from '../world.ts';
import { eventOf, hooked } from './2-events.ts';
import { paymentCode } from './2-tools.ts';
import { inviteCode } from './4-mcp.ts';

const NOW = () => Math.floor(Date.now() / 1_000);
const DEVICE = '6f1c2b8e-0d53-4a07-9a51-3f6a0c9d2e10';

/** HTTP status and message of a refused login. */
async function refused(world: World, headers: Headers): Promise<unknown[]> {
  const answer = await world.mcpLogin(headers);
  return [answer.status, answer.at('error.message')];
}

const LEVELS = checksOf('5.1', {
  'the public key alone logs in; the session lists read tools only, and a transfer is -32001': {
    sentence: 'McpBasic | Reads a short list of tools. Possession of the key is not proven.',
    async run(t, world) {
      const { auth } = await world.agent('McpBasic');
      const names = await world.toolNames(auth);
      t.ok(names.includes('market_get_rates'));
      t.same(
        names.filter((name) => /create|send|transfer|withdraw|delete|pay_/.test(name)),
        [],
      );
      t.equal((await world.tool(auth, 'wallet_internal_transfer')).at('error.code'), -32001);
    },
  },
  'a signed session moves money; a signature of another key is 401 Invalid signature': {
    sentence: 'McpVerified | All that the account may do. An Ed25519 signature proves the key.',
    also: [['7.2', '401 | Invalid signature | X-PublicKey does not verify the signature']],
    async run(t, world) {
      const [{ auth }, receiver] = [
        await world.agent(),
        await world.agent('McpVerified', await world.mcpPerson()),
      ];
      await world.toolJson(receiver.auth, 'wallet_get_balance');
      const transfer = { currency: 'DEMO', amount: '1.00', toUserId: receiver.person.userId };
      t.type(read(await world.toolJson(auth, 'wallet_internal_transfer', transfer), 'result.id'), 'string');
      const { 'X-Signature': foreign = '' } = verifiedHeaders(newKey());
      const headers = { ...verifiedHeaders(receiver.person.key), 'X-Signature': foreign };
      t.same(await refused(world, headers), [401, 'Invalid signature']);
    },
  },
  'the session names its application and reaches the tools that are open to applications': {
    sentence: 'McpApp | Acts through one registered application, within its scope.',
    also: [['2.1', 'appId | string or null | Only set for loginType McpApp.']],
    async run(t, world) {
      const { auth, login, appId } = await world.appAgent();
      t.match(login.at('result'), { loginType: 'McpApp', appId });
      for (const type of ['McpBasic', 'McpVerified'] as const)
        t.equal((await world.agent(type)).login.at('result.appId'), null, type);
      const names = await world.toolNames(auth);
      t.ok(names.includes('custom_app') && !names.includes('wallet_internal_transfer'));
      await world.tool(auth, 'custom_app');
      t.equal(world.core.last.headers['x-mcp-app-id'], appId);
    },
  },
  'little-endian bytes log in; decimal text, big-endian bytes and another second are 401': {
    sentence:
      'the message is the Unix time of X-Timestamp as an int64 in 8 bytes, little-endian; its decimal text is not signed. The Ed25519 signature is sent in base64url without padding.',
    async run(t, world) {
      const { key } = await world.mcpPerson();
      const seconds = NOW();
      const good = verifiedHeaders(key, seconds);
      t.notMatch(good['X-Signature'], /=/);
      t.equal((await world.mcpLogin(good)).status, 200);
      const bigEndian = Buffer.alloc(8);
      bigEndian.writeBigInt64BE(BigInt(seconds));
      for (const message of [Buffer.from(String(seconds)), bigEndian]) {
        const headers = { ...good, 'X-Signature': signed(key, message) };
        t.same(await refused(world, headers), [401, 'Invalid signature']);
      }
      const moved = { ...good, 'X-Timestamp': String(seconds + 1) };
      t.same(await refused(world, moved), [401, 'Invalid signature']);
    },
  },
});

const RULES = checksOf('5.1', {
  'a key without mcpAccess is 401 Access denied; after it is set the login succeeds': {
    sentence: 'The flag McpAccess of the key is set.',
    async run(t, world) {
      const person = await world.person();
      t.same(await refused(world, verifiedHeaders(person.key)), [401, 'Access denied']);
      expectOk('flag', await world.updateKey(person, { mcpAccess: true }));
      t.equal((await world.mcpLogin(verifiedHeaders(person.key))).status, 200);
    },
  },
  'after an admin blocks the user, the login is 401 Access denied and the session is closed': {
    sentence: 'The account of the key is not blocked.',
    async run(t, world) {
      const { person, auth } = await world.agent('McpVerified', await world.mcpPerson());
      const { auth: admin } = await world.admin();
      const block = { userId: person.userId, blocked: true };
      expectOk('block', await world.post('/ProxyAdmin/api/users/block', admin, block));
      t.same(await refused(world, verifiedHeaders(person.key)), [401, 'Access denied']);
      t.equal((await world.tool(auth, 'wallet_get_balance')).at('error.code'), -32001);
    },
  },
  'an application that is not approved or not enabled, and a foreign key, are 401 Access denied; the explicit key logs in':
    {
      sentence:
        'For McpApp the application has McpEnabled and is approved. Its owner has the key, or the key is the one that is configured for the application.',
      async run(t, world) {
        const [owner, other] = [await world.mcpPerson(), await world.mcpPerson()];
        const app = await world.app(owner, { name: 'Rules', url: 'https://rules.example' });
        const appId = app.textAt('result.id');
        const login = ({ key }: Person) => ({ 'X-PublicKey': key.publicKey, 'X-App-Id': appId });
        const denied = [401, 'Access denied'];
        t.same(await refused(world, login(owner)), denied, 'new');
        await world.approve(appId, { approved: true, mcpEnabled: false });
        t.same(await refused(world, login(owner)), denied, 'not enabled');
        await world.approve(appId, { approved: false, mcpEnabled: true });
        t.same(await refused(world, login(owner)), denied, 'not approved');
        await world.approve(appId);
        t.equal((await world.mcpLogin(login(owner))).status, 200, 'owner');
        t.same(await refused(world, login(other)), denied, 'a foreign key');
        await world.approve(appId, { mcpPublicKey: other.key.publicKey });
        t.equal((await world.mcpLogin(login(other))).status, 200, 'the explicit key');
      },
    },
  'the four steps return a balance': {
    sentence:
      'To enroll an agent: register its public key for a user (register_key or the admin panel), set mcpAccess with update_key, then mcp_login, then /mcp with the session id as bearer. … To use a session: /mcp takes Authorization: Bearer <sessionId>.',
    async run(t, world) {
      const person = await world.person();
      expectOk('update_key', await world.updateKey(person, { mcpAccess: true }));
      const auth = bearerOf(expectOk('login', await world.mcpLogin(verifiedHeaders(person.key))));
      const balance = await world.toolJson(auth, 'wallet_get_balance', { currency: 'DEMO' });
      t.equal(read(balance, 'result.balances.0.currency'), 'DEMO');
    },
  },
  'a key that an admin adds logs in to MCP once mcpAccess is set': {
    sentence: 'register its public key for a user (register_key or the admin panel),',
    async run(t, world) {
      const [person, { auth }, key] = [await world.person(), await world.admin(), newKey()];
      const keys = '/ProxyAdmin/api/user_keys';
      const claim = { userId: person.userId, publicKey: key.publicKey };
      const added = expectOk('add', await world.post(`${keys}/add`, auth, claim));
      t.same(await refused(world, verifiedHeaders(key)), [401, 'Access denied']);
      const change = { keyId: added.at('result.id'), mcpAccess: true };
      expectOk('update_key', await world.post('/auth/v1/keys/update_key', person.auth, change));
      t.equal((await world.mcpLogin(verifiedHeaders(key))).status, 200);
    },
  },
  'a login with the bearer of its key ends that session; one without ends no session': {
    sentence: 'A new login, or the tool close_sessions, replaces or ends sessions.',
    async run(t, world) {
      const person = await world.mcpPerson();
      const [one, two] = [await world.agent('McpVerified', person), await world.agent('McpVerified', person)];
      const isOpen = async (auth: Headers) =>
        (await world.tool(auth, 'wallet_get_balance')).at('error') === undefined;
      t.same([await isOpen(one.auth), await isOpen(two.auth)], [true, true]);
      const again = expectOk(
        'login',
        await world.mcpLogin({ ...verifiedHeaders(person.key, NOW() + 1), ...one.auth }),
      );
      t.same(
        [await isOpen(one.auth), await isOpen(two.auth), await isOpen(bearerOf(again))],
        [false, true, true],
      );
    },
  },
  'the close_sessions tool ends the other session at once': {
    sentence: 'A new login, or the tool close_sessions, replaces or ends sessions.',
    async run(t, world) {
      const person = await world.mcpPerson();
      const [one, two] = [await world.agent('McpVerified', person), await world.agent('McpVerified', person)];
      await world.toolJson(two.auth, 'close_sessions', { others: true });
      t.equal((await world.tool(one.auth, 'wallet_get_balance')).at('error.code'), -32001);
      t.equal((await world.tool(two.auth, 'wallet_get_balance')).at('error'), undefined);
    },
  },
});

const CODES = checksOf('5.2', {
  'each family lists its own tools; tools of the other family and of sessions are -32001': {
    sentence:
      'The caller sees the tools and resources whose capabilityModule is the family of the code: chat for invitations, wallet for payment orders. Tools that need a session are not visible.',
    async run(t, world) {
      const wallet = { 'X-MCP-Code': await paymentCode(world) };
      const chat = { 'X-MCP-Code': await inviteCode(world), 'X-Device-Guid': DEVICE };
      const [pay, talk] = [await world.toolNames(wallet), await world.toolNames(chat)];
      t.ok(pay.length > 0 && pay.every((name) => /^(payment_|custom_code$)/.test(name)), pay.join());
      t.ok(talk.length > 0 && talk.every((name) => name.startsWith('chat_anon_')), talk.join());
      t.equal((await world.tool(wallet, 'chat_anon_send_message')).at('error.code'), -32001);
      t.equal((await world.tool(chat, 'payment_order_info')).at('error.code'), -32001);
      for (const headers of [wallet, chat])
        t.equal((await world.tool(headers, 'wallet_get_balance')).at('error.code'), -32001);
    },
  },
});

const BROWSER = checksOf('5.3', {
  'the cookie opens the user’s keys and v1 files; another value is 401, code 1101': {
    sentence: 'The cookie sid names a browser session. File transport v1 needs it.',
    also: [['7.4', '1101 | SessionNotFound | A session is needed, and none is valid']],
    async run(t, world) {
      const { auth } = await world.person();
      t.match(auth['Cookie'], /^sid=./);
      t.equal((await world.get('/auth/v1/keys/user_keys', auth)).status, 200);
      const wrong = { Cookie: `${auth['Cookie']?.slice(0, -2)}xx` };
      t.same((await world.get('/auth/v1/keys/user_keys', wrong)).refusal, [401, 1101]);
      t.same((await world.get('/auth/v1/file/1', wrong)).refusal, [401, 1101]);
      for (const headers of [{}, wrong])
        t.same((await world.get('/core/v1/things/list', headers)).refusal, [401, 1101]);
      t.equal((await world.get('/auth/v1/file/1', auth)).status, 404);
    },
  },
  'an authenticator registers and logs in; another origin and another relying party are 401': {
    sentence:
      'Ed25519 software keys, and FIDO2 hardware keys, whose attestations and assertions the server verifies with the configuration of 2.8.',
    async run(t, world) {
      const { url } = world.gateway;
      const passkey = makePasskey();
      t.equal((await registerPasskey(url, passkey)).status, 200);
      t.equal((await passkeyLogin(url, passkey)).status, 200);
      for (const wrong of [{ origin: 'https://evil.example' }, { rpId: 'evil.example' }]) {
        t.same((await registerPasskey(url, makePasskey(), wrong)).refusal, [401, 1105]);
        t.same((await passkeyLogin(url, passkey, wrong)).refusal, [401, 1105]);
      }
    },
  },
});

const WEBHOOK = checksOf('5.4', {
  'after rotate_key deliveries carry the former key until the owner ends the rotation, then the new one': {
    sentence: 'Its receiver checks it.',
    async run(t, world) {
      const { owner, appId, apiKey } = await hooked(world, 'rotated');
      const keyOf = async (type: string) => {
        const event = { module: 'core', tick: '310', type, crmId: owner.userId, data: { type } };
        await world.pushed([event]);
        await eventOf(world, 'rotated', type);
        return world.hook.asked.find(({ body }) => body.includes(type))?.headers['x-api-key'];
      };
      const rotate = (body: object) => world.post('/auth/v1/app/rotate_key', owner.auth, { appId, ...body });
      const made = expectOk('rotate', await rotate({})).textAt('result.apiKey');
      t.not(made, apiKey);
      t.equal(await keyOf('RotationOpen'), apiKey);
      expectOk('finish', await rotate({ finish: true }));
      t.equal(await keyOf('RotationOver'), made);
    },
  },
});

export const CHECKS: readonly Check[] = [...LEVELS, ...RULES, ...CODES, ...BROWSER, ...WEBHOOK];
