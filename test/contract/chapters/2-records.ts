/** Contract, sections 2.1 to 2.4: MCP login session, user key, application, tool. */
import { makePasskey } from '../../../kit/authenticator.ts';
import { type Check, checksOf } from '../check.ts';
import { type Answer, read } from '../client.ts';
import { TOOL_GROUPS } from '../tables.ts';
import { ceremony, expectOk, newKey, passkeyLogin, registerPasskey, sessionOf } from '../unshown.ts';
import type { World } from '../world.ts';

const INSTANT = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z$/;

const SESSION = checksOf('2.1', {
  'the sessionId of a login is accepted as bearer of a tool call': {
    sentence: 'sessionId | string | The bearer token of /mcp; its content has no meaning to clients.',
    also: [['4.1', 'Authorization: Bearer <sessionId>.']],
    async run(t, world) {
      const { login, auth } = await world.agent();
      t.type(login.at('result.sessionId'), 'string');
      t.equal((await world.tool(auth, 'wallet_get_balance')).at('result.isError'), undefined);
      const other = { Authorization: `Bearer ${login.textAt('result.sessionId').slice(0, -2)}xx` };
      t.equal((await world.tool(other, 'wallet_get_balance')).at('error.code'), -32001);
    },
  },
  'expiresUtc is an ISO 8601 instant in the future': {
    sentence: 'expiresUtc | string | ISO 8601 time in UTC.',
    async run(t, world) {
      const expiresUtc = (await world.agent()).login.textAt('result.expiresUtc');
      t.match(expiresUtc, INSTANT);
      t.ok(Date.parse(expiresUtc) > Date.now());
    },
  },
  'mcp_login sets no cookie, and its sessionId is no browser session': {
    sentence: 'Such a session belongs to a program. It has no sid cookie.',
    async run(t, world) {
      const { login } = await world.agent();
      t.equal(login.headers['set-cookie'], undefined);
      const cookie = { Cookie: `sid=${login.textAt('result.sessionId')}` };
      t.equal((await world.get('/auth/v1/keys/user_keys', cookie)).at('error.code'), 1101);
    },
  },
  'the module reads the kind of a session in X-Scopes': {
    sentence: 'A backend module may deny it operations that are meant for browsers and have side effects.',
    async run(t, world) {
      const { auth, person } = await world.agent();
      await world.get('/core/v1/flows/get', auth);
      t.equal(world.core.last.headers['x-scopes'], 'McpVerified');
      await world.get('/core/v1/flows/get', person.auth);
      t.equal(world.core.last.headers['x-scopes'], 'Browser');
    },
  },
});

const keysOf = async (world: World, auth: Answer | Record<string, string>) =>
  (await world.get('/auth/v1/keys/user_keys', auth as Record<string, string>)).listAt('result');

const KEY = checksOf('2.2', {
  'a key has the seven fields': {
    sentence:
      'GET /auth/v1/keys/user_keys returns an array of: … id | int64 (string) | Id of the key. … utcCreate | timestamp | When the key was created. … mcpAccess | boolean | Whether the key may log in for MCP. … cardDavAccess | boolean | Whether the key may be used for contact synchronization.',
    async run(t, world) {
      const [key] = await keysOf(world, (await world.person()).auth);
      t.match(key, { id: /^\d+$/, publicKey: /^[\w-]{43}$/, keyType: 'UserKey' });
      t.match(read(key, 'utcCreate'), INSTANT);
      for (const flag of ['current', 'mcpAccess', 'cardDavAccess']) t.type(read(key, flag), 'boolean');
    },
  },
  'publicKey is the registered key, or the credential id': {
    sentence: 'publicKey | string | In base64url. A FIDO2 key has its credential id here.',
    async run(t, world) {
      const person = await world.person();
      t.equal(read(await keysOf(world, person.auth), '0.publicKey'), person.key.publicKey);
      const passkey = makePasskey();
      const made = expectOk('passkey', await registerPasskey(world.gateway.url, passkey));
      t.match(await keysOf(world, sessionOf(made)), [{ publicKey: passkey.id, keyType: 'FIDO2' }]);
    },
  },
  'keyType is UserKey, PasswordKey or FIDO2, by registration': {
    sentence: 'keyType | enum | PasswordKey, UserKey, FIDO2, Unknown.',
    async run(t, world) {
      const person = await world.person();
      const json = await ceremony(world.gateway.url, 'register', newKey(), person.auth);
      const added = await world.post('/auth/v1/keys/register_key', person.auth, {
        ...json,
        passKeyFlag: true,
      });
      expectOk('password key', added);
      expectOk('passkey', await registerPasskey(world.gateway.url, makePasskey(), {}, person.auth));
      const types = (await keysOf(world, person.auth)).map((key) => read(key, 'keyType'));
      t.same(types.sort(), ['FIDO2', 'PasswordKey', 'UserKey']);
    },
  },
  'current is true only for the key of the requesting session': {
    sentence: 'current | boolean | Whether the current session uses this key.',
    async run(t, world) {
      const person = await world.person();
      const second = newKey();
      const json = await ceremony(world.gateway.url, 'register', second, person.auth);
      expectOk('key', await world.post('/auth/v1/keys/register_key', person.auth, json));
      const current = async (auth: Record<string, string>) =>
        (await keysOf(world, auth))
          .filter((key) => read(key, 'current'))
          .map((key) => read(key, 'publicKey'));
      t.same(await current(person.auth), [person.key.publicKey]);
    },
  },
  'one list holds both kinds, and a FIDO2 key never logs in to MCP by its id': {
    sentence: 'Software and FIDO2 keys share one collection; flags tell them apart.',
    async run(t, world) {
      const person = await world.person();
      const passkey = makePasskey();
      const added = await registerPasskey(world.gateway.url, passkey, {}, person.auth);
      expectOk('passkey', added);
      t.equal((await keysOf(world, person.auth)).length, 2);
      const keyId = added.textAt('result.key.id');
      await world.post('/auth/v1/keys/update_key', person.auth, { keyId, mcpAccess: true });
      t.equal((await world.mcpLogin({ 'X-PublicKey': passkey.id })).status, 401);
    },
  },
  'an authenticator logs in with the counters 5, 5 and 3': {
    sentence: 'a FIDO2 signature counter (reserved and never advanced),',
    async run(t, world) {
      const passkey = makePasskey();
      expectOk('passkey', await registerPasskey(world.gateway.url, passkey, { counter: 5 }));
      for (const counter of [5, 5, 3])
        t.equal((await passkeyLogin(world.gateway.url, passkey, { counter })).status, 200, String(counter));
    },
  },
});

const SHOP = { name: 'Shop', url: 'https://shop.example' };

const APP = checksOf('2.3', {
  'an application is returned with the fields that were sent': {
    sentence: 'name | string | Name to display. … url | string | Address of the application.',
    async run(t, world) {
      const owner = await world.person();
      const body = {
        ...SHOP,
        webhookUrl: `${world.hook.url}/shop`,
        currencies: ['DEMO', 'GATE'],
        netTypes: [1, 2],
      };
      t.match(expectOk('app', await world.app(owner, body)).json, { result: body });
      t.match((await world.get('/auth/v1/app/list', owner.auth)).json, { result: [body] });
    },
  },
  'an invalid URL, or one with a user name, is 400': {
    sentence: 'webhookUrl | string | Where webhooks are posted.',
    async run(t, world) {
      const owner = await world.person();
      for (const webhookUrl of ['shop', 'ftp://shop.example/', 'https://me:you@shop.example/'])
        t.equal((await world.app(owner, { ...SHOP, webhookUrl })).status, 400, webhookUrl);
    },
  },
  '20 currencies are accepted, 21 are 400, null keeps them': {
    sentence:
      'currencies | array of string | Up to 20 currency codes. An update with null leaves it as it is.',
    also: [['8.4', 'Applications: up to 20 currencies,']],
    async run(t, world) {
      const owner = await world.person();
      const currencies = Array.from({ length: 20 }, (_, at) => `C${at}`);
      expectOk('20', await world.app(owner, { ...SHOP, currencies }));
      t.equal((await world.app(owner, { ...SHOP, currencies: [...currencies, 'C20'] })).status, 400);
      const kept = expectOk('null', await world.app(owner, { ...SHOP, currencies: null }));
      t.same(kept.at('result.currencies'), currencies);
    },
  },
  '30 values are accepted, 31 values or the value 256 are 400, null keeps them': {
    sentence:
      'netTypes | array of byte | Up to 30 values of network or contract types. An update with null leaves it as it is.',
    also: [['8.4', 'up to 30 network types.']],
    async run(t, world) {
      const owner = await world.person();
      const netTypes = Array.from({ length: 30 }, (_, at) => at);
      expectOk('30', await world.app(owner, { ...SHOP, netTypes }));
      for (const wrong of [[...netTypes, 30], [256], [-1], [1.5], ['1']])
        t.equal((await world.app(owner, { ...SHOP, netTypes: wrong })).status, 400, JSON.stringify(wrong));
      const kept = expectOk('null', await world.app(owner, { ...SHOP, netTypes: null }));
      t.same(kept.at('result.netTypes'), netTypes);
    },
  },
  'a new application is neither enabled nor approved, and its counters are 0': {
    sentence:
      'Further state of an application: McpEnabled (it may be used by McpApp logins), its approval status, the counters success_count and failed_count of deliveries, and last_tick, the cursor at the last event that was delivered.',
    async run(t, world) {
      const owner = await world.person();
      const app = expectOk('app', await world.app(owner, SHOP)).at('result') as object;
      t.match(app, { mcpEnabled: false, success_count: 0, failed_count: 0 });
      t.ok('last_tick' in app && 'approved' in app, JSON.stringify(app));
      t.equal(read(app, 'approved'), false);
    },
  },
  'tariffGroup does not become a field of the application': {
    sentence: 'Registration takes no field tariffGroup.',
    async run(t, world) {
      const answer = await world.app(await world.person(), { ...SHOP, tariffGroup: 1 });
      t.notMatch(answer.text, /"tariffGroup":/);
    },
  },
});

const TOOL: readonly Check[] = [
  ...checksOf('2.4', {
    'every tool has a name, a description and a schema of type object': {
      sentence:
        'name | string … description | string … inputSchema | JSON Schema object (type: object, properties, ...)',
      async run(t, world) {
        const tools = (await world.lists({}, 'tools')).listAt;
        const one = {
          name: /^[a-z0-9_]+$/,
          description: /./,
          inputSchema: { type: 'object', properties: Object },
        };
        t.match(
          tools,
          tools.map(() => one),
        );
      },
    },
  }),
  ...[...TOOL_GROUPS].map(
    ([group, names]): Check => ({
      section: '2.4',
      sentence: `${group} | ${names}`,
      shows: `the catalog has every tool of the group ${group}`,
      async run(t, world) {
        const listed = new Set(await world.toolNames({}));
        t.same(
          names.split(', ').filter((name) => !listed.has(name)),
          [],
        );
      },
    }),
  ),
  ...checksOf('2.4', {
    'the catalog has tools named chat_anon_…': {
      sentence: 'Chat (anonymous capability) | all tools named chat_anon_*',
      async run(t, world) {
        const names = await world.toolNames({});
        t.ok(names.filter((name) => name.startsWith('chat_anon_')).length >= 2);
      },
    },
    'a McpBasic session lists fewer tools than a McpVerified session, a McpApp session different ones': {
      sentence: 'The built-in tools, with exact names (a session sees those of its login type):',
      async run(t, world) {
        const [basic, verified] = [await world.agent('McpBasic'), await world.agent()];
        const [few, many] = [await world.toolNames(basic.auth), await world.toolNames(verified.auth)];
        t.ok(few.length < many.length);
        t.same(
          few.filter((name) => !many.includes(name)),
          [],
        );
        t.notOk(few.includes('wallet_internal_transfer'));
        const app = await world.toolNames((await world.appAgent()).auth);
        t.ok(app.length > 0 && app.length < many.length);
      },
    },
    'with currency one balance is returned, without it all': {
      sentence:
        'For example, currency is an optional string argument of wallet_get_balance (a currency code).',
      async run(t, world) {
        const { auth } = await world.agent();
        const one = await world.toolJson(auth, 'wallet_get_balance', { currency: 'DEMO' });
        const all = await world.toolJson(auth, 'wallet_get_balance');
        t.equal((read(one, 'result.balances') as unknown[]).length, 1);
        t.ok((read(all, 'result.balances') as unknown[]).length > 1);
      },
    },
  }),
];

const APP_ARGUMENTS = checksOf('2.4', {
  'tools and routes of applications take the same argument, appId; the former name id is still accepted': {
    sentence: 'tools/list returns the complete schemas of arguments at run time.',
    async run(t, world) {
      const { auth, person } = await world.agent();
      const app = expectOk('app', await world.app(person, { ...SHOP, name: 'Named' }));
      const appId = app.textAt('result.id');
      const { listAt } = await world.lists(auth, 'tools');
      for (const name of ['get_app_info', 'revoke_app_access']) {
        const tool = listAt.find((each) => read(each, 'name') === name);
        t.same(Object.keys(read(tool, 'inputSchema.properties') as object), ['appId'], name);
      }
      for (const name of ['appId', 'id']) {
        const tool = await world.toolJson(auth, 'get_app_info', { [name]: appId });
        const route = await world.get(`/auth/v1/app/info?${name}=${appId}`, person.auth);
        t.same([read(tool, 'result.id'), route.at('result.id')], [appId, appId], name);
      }
    },
  },
});

export const CHECKS: readonly Check[] = [...SESSION, ...KEY, ...APP, ...TOOL, ...APP_ARGUMENTS];
