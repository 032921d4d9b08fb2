/** Contract, sections 4.3 to 4.5: keys, browser authentication and info, applications. */
import { makePasskey } from '../../../kit/authenticator.ts';
import { type Check, checksOf } from '../check.ts';
import { read } from '../client.ts';
import {
  ceremony,
  deliveredCode,
  expectOk,
  logIn,
  newKey,
  type Person,
  passkeyOptions,
  registerPasskey,
  type SoftwareKey,
  sessionOf,
} from '../unshown.ts';
import type { World } from '../world.ts';

const KEYS = '/auth/v1/keys';

const keysOf = async (world: World, { auth }: Pick<Person, 'auth'>) =>
  (await world.get(`${KEYS}/user_keys`, auth)).listAt('result');

/** Adds a key to an account. */
async function addKey(world: World, { auth }: Person, key: SoftwareKey, fields: object = {}) {
  const json = await ceremony(world.gateway.url, 'register', key, auth);
  return await world.post(`${KEYS}/register_key`, auth, { ...json, ...fields });
}

const KEY = checksOf('4.3', {
  'the API description has four paths under /auth/v1/keys/ and none that contains fido2': {
    sentence:
      'Keys have four routes below /auth/v1/keys/. There is no other key route. FIDO2 has no routes of its own.',
    async run(t, world) {
      const paths = Object.keys((await world.get('/docs/openapi.json')).at('paths') as object);
      t.same(paths.filter((path) => path.startsWith(KEYS)).sort(), [
        `${KEYS}/register_key`,
        `${KEYS}/remove_key`,
        `${KEYS}/update_key`,
        `${KEYS}/user_keys`,
      ]);
      t.notMatch(paths.join(' '), /fido|passkey|(?<!well-known\/)webauthn/i);
      t.equal((await world.post(`${KEYS}/register_fido2`, {}, {})).status, 404);
    },
  },
  'both kinds of challenge register a key, once; an unknown id is 401': {
    sentence: 'login-options or register-options, called before, gives the challengeId.',
    async run(t, world) {
      for (const kind of ['register', 'login'] as const) {
        const json = await ceremony(world.gateway.url, kind, newKey());
        t.equal((await world.post(`${KEYS}/register_key`, {}, json)).status, 200, kind);
        t.ok((await world.post(`${KEYS}/register_key`, {}, json)).status >= 400, 'a second time');
        const unknown = { ...json, challengeId: 1 };
        t.equal((await world.post(`${KEYS}/register_key`, {}, unknown)).status, 401);
      }
    },
  },
  'a credential for the challenge is registered; one for another challenge is 401': {
    sentence:
      'credential is what the browser returned when it created a FIDO2 credential; it is verified against the options of the challenge.',
    async run(t, world) {
      const { url } = world.gateway;
      t.equal((await registerPasskey(url, makePasskey())).status, 200);
      const { challenge } = await passkeyOptions(url, 'register');
      t.same((await registerPasskey(url, makePasskey(), { challenge })).refusal, [401, 1105]);
    },
  },
  'a software key is registered; a missing or incomplete key is 400': {
    sentence:
      'POST /auth/v1/keys/register_key | JSON { challengeId: int64, code: string, credential?: attestation object, publicKey?: base64url string, passKeyFlag?: boolean } … A software key is sent as publicKey (Ed25519, base64url).',
    async run(t, world) {
      const person = await world.person();
      t.equal((await addKey(world, person, newKey())).status, 200);
      t.equal((await keysOf(world, person)).length, 2);
      for (const publicKey of [undefined, 'AAAA'])
        t.equal((await addKey(world, person, newKey(), { publicKey })).status, 400);
    },
  },
  'a second password key replaces the first; the user key stays': {
    sentence:
      'With passKeyFlag the key counts as derived from a password, and older keys of that kind are replaced.',
    async run(t, world) {
      const person = await world.person();
      const [first, second] = [newKey(), newKey()];
      expectOk('first', await addKey(world, person, first, { passKeyFlag: true }));
      expectOk('second', await addKey(world, person, second, { passKeyFlag: true }));
      const keys = await keysOf(world, person);
      t.same(keys.map((key) => [read(key, 'keyType'), read(key, 'publicKey')]).sort(), [
        ['PasswordKey', second.publicKey],
        ['UserKey', person.key.publicKey],
      ]);
    },
  },
  'the user’s keys are returned as an array; without a session it is 401, code 1101': {
    sentence: 'GET /auth/v1/keys/user_keys | none | { result: [ <user key> ] }',
    async run(t, world) {
      const person = await world.person();
      const answer = await world.get(`${KEYS}/user_keys`, person.auth);
      t.match(answer.json, { result: [{ id: person.keyId, publicKey: person.key.publicKey }] });
      t.same((await world.get(`${KEYS}/user_keys`)).refusal, [401, 1101]);
    },
  },
  'a key is removed by its id; a missing id is 400, an unknown one 404, no session 401': {
    sentence: 'POST /auth/v1/keys/remove_key | { keyId: string }',
    async run(t, world) {
      const person = await world.person();
      const keyId = (await addKey(world, person, newKey())).textAt('result.key.id');
      expectOk('remove', await world.post(`${KEYS}/remove_key`, person.auth, { keyId }));
      t.same(
        (await keysOf(world, person)).map((key) => read(key, 'id')),
        [person.keyId],
      );
      const refused = async (json: object, auth = person.auth) =>
        (await world.post(`${KEYS}/remove_key`, auth, json)).status;
      t.same(
        [await refused({}), await refused({ keyId: '12' }), await refused({ keyId }, {})],
        [400, 404, 401],
      );
    },
  },
  'each flag can be set alone; a flag that is not a boolean is 400': {
    sentence:
      'POST /auth/v1/keys/update_key | { keyId: string, mcpAccess?: boolean, cardDavAccess?: boolean }',
    async run(t, world) {
      const person = await world.person();
      expectOk('cardDav', await world.updateKey(person, { cardDavAccess: true }));
      t.match(await keysOf(world, person), [{ mcpAccess: false, cardDavAccess: true }]);
      t.equal((await world.updateKey(person, { mcpAccess: 'yes' })).status, 400);
    },
  },
  'the page is served; an admin can read keys of other users, a user gets 403': {
    sentence:
      'Keys of all users are listed in the admin panel (/ProxyAdmin/UserKeys); the public API does not list them.',
    async run(t, world) {
      const page = await world.get('/ProxyAdmin/UserKeys');
      t.equal(page.status, 200);
      t.match(page.header('content-type'), /^text\/html/);
      const [person, admin] = [await world.person(), await world.admin()];
      const path = `/ProxyAdmin/api/user_keys?userId=${person.userId}`;
      t.match((await world.get(path, admin.auth)).text, new RegExp(person.key.publicKey));
      t.equal((await world.get(path, person.auth)).status, 403);
    },
  },
});

const BROWSER = checksOf('4.4', {
  'two calls return two challenges': {
    sentence: 'GET /auth/v1/register_options | A challenge for a registration.',
    async run(t, world) {
      const one = await passkeyOptions(world.gateway.url, 'register');
      const two = await passkeyOptions(world.gateway.url, 'register');
      t.match(one.challenge, /^[\w-]{22,}$/);
      t.not(one.challenge, two.challenge);
      t.not(one.challengeId, two.challengeId);
    },
  },
  'options by GET and POST; a valid challenge answer sets sid, an invalid one is 401': {
    sentence:
      'GET/POST /auth/v1/login_options and POST /auth/v1/login | Login of a browser by challenge and response.',
    async run(t, world) {
      const person = await world.person();
      t.equal((await world.post('/auth/v1/login_options', {}, {})).status, 200);
      const login = expectOk('login', await logIn(world.gateway.url, person.key));
      t.match(login.header('set-cookie'), /^sid=[^;]+;.*HttpOnly/i);
      t.equal((await keysOf(world, { auth: sessionOf(login) })).length, 1);
      const json = await ceremony(world.gateway.url, 'login', person.key);
      const wrong = { ...json, code: Buffer.alloc(64, 1).toString('base64url') };
      t.equal((await world.post('/auth/v1/login', {}, wrong)).status, 401);
      const anonymous = await ceremony(world.gateway.url, 'login', newKey());
      t.equal((await world.post('/auth/v1/login', {}, anonymous)).status, 401);
    },
  },
  'the code is delivered and logs in; an invalid phone number is 400': {
    sentence:
      'POST /auth/v1/login_phone | { phone: string }. A one-time code is sent. The chat module delivers it.',
    async run(t, world) {
      const phone = '+491709999999';
      const asked = expectOk('login_phone', await world.post('/auth/v1/login_phone', {}, { phone }));
      const code = await deliveredCode(String(world.gateway.sandbox), phone);
      const body = { challengeId: asked.at('result.challengeId'), code };
      t.equal((await world.post('/auth/v1/login', {}, body)).status, 200);
      for (const wrong of [{ phone: 'me' }, { phone: 7 }, {}])
        t.equal((await world.post('/auth/v1/login_phone', {}, wrong)).status, 400);
    },
  },
  'get_info returns project, version and the current time': {
    sentence:
      'GET /auth/v1/get_info | { result: { project: string, version: string, utcNow: ISO 8601 UTC } }',
    async run(t, world) {
      const answer = await world.get('/auth/v1/get_info');
      t.same(Object.keys(answer.at('result') as object).sort(), ['project', 'utcNow', 'version']);
      const utcNow = answer.textAt('result.utcNow');
      t.match(utcNow, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z$/);
      t.ok(Math.abs(Date.parse(utcNow) - Date.now()) < 60_000);
    },
  },
  'info returns the version and the methods of this gateway, and no secret': {
    sentence: 'GET /auth/v1/info | The version, ways to log in, and the public part of the configuration.',
    async run(t, world) {
      const answer = await world.get('/auth/v1/info');
      t.match(answer.at('result.version'), /^\d+\.\d+\.\d+/);
      t.match(answer.listAt('result.authMethods').sort(), ['email', 'key', 'passkey', 'phone']);
      t.notMatch(answer.text, /contract-module-key|secret|apiKey/i);
    },
  },
  'health returns database, memory and sessions; its plain form is one word': {
    sentence:
      'GET /health | State of the whole (database, memory, sessions). The plain form is { "status": "healthy" }.',
    async run(t, world) {
      const answer = await world.get('/health');
      t.match(answer.json, { status: 'healthy' });
      t.match(answer.text, /database.*memory.*sessions/is);
      t.equal((await world.get('/health?plain=1')).text.replaceAll(' ', ''), '{"status":"healthy"}');
    },
  },
});

const SHOP = { name: 'Shop', url: 'https://shop.example', currencies: ['DEMO'], netTypes: [1] };

const APPS = checksOf('4.5', {
  'registration needs the cookie; without a session or with a bearer it is 401': {
    sentence: 'The route is POST /auth/v1/app/upsert_usr_app. It needs the cookie of a browser session.',
    async run(t, world) {
      const { auth, person } = await world.agent();
      t.equal((await world.app(person, SHOP)).status, 200);
      t.same((await world.post('/auth/v1/app/upsert_usr_app', {}, SHOP)).refusal, [401, 1101]);
      t.same((await world.post('/auth/v1/app/upsert_usr_app', auth, SHOP)).refusal, [401, 1101]);
    },
  },
  'fields of a wrong type are 400, and nothing is registered': {
    sentence: 'The body is { name, url, webhookUrl, currencies: [string], netTypes: [integer] }.',
    async run(t, world) {
      const owner = await world.person();
      const wrong = [
        { name: 7 },
        { url: 'shop' },
        { webhookUrl: 7 },
        { currencies: 'DEMO' },
        { netTypes: ['1'] },
      ];
      for (const fields of wrong)
        t.equal((await world.app(owner, { ...SHOP, ...fields })).status, 400, JSON.stringify(fields));
      t.same((await world.get('/auth/v1/app/list', owner.auth)).json, { result: [] });
    },
  },
  'an update changes only the supplied field; null and omitted fields are kept': {
    sentence: 'For an application that exists, a field that is null or left out stays as it was.',
    async run(t, world) {
      const owner = await world.person();
      const webhookUrl = `${world.hook.url}/unchanged`;
      expectOk('app', await world.app(owner, { ...SHOP, webhookUrl }));
      const nulls = { name: null, webhookUrl: null, currencies: null, url: SHOP.url, netTypes: [2] };
      const changed = expectOk('update', await world.app(owner, nulls));
      t.match(changed.json, { result: { ...SHOP, webhookUrl, netTypes: [2] } });
      const renamed = expectOk('rename', await world.app(owner, { url: SHOP.url, name: 'Store' }));
      t.match(renamed.json, { result: { ...SHOP, name: 'Store', webhookUrl, netTypes: [2] } });
      t.equal((await world.get('/auth/v1/app/list', owner.auth)).listAt('result').length, 1);
    },
  },
});

const REGISTRATION = checksOf('4.5', {
  'the first answer has id and API key; a repetition with its Idempotency-Key gets the same bytes and registers nothing, other content is 422':
    {
      sentence: 'Left open: the body of the answer.',
      async run(t, world) {
        const owner = await world.person();
        const register = (body: object) =>
          world.post('/auth/v1/app/upsert_usr_app', { ...owner.auth, 'Idempotency-Key': 'contract-1' }, body);
        const first = expectOk('first', await register(SHOP));
        t.match(first.at('result'), { id: /^\d+$/, apiKey: /./ });
        t.equal((await register(SHOP)).text, first.text);
        t.equal((await register({ ...SHOP, name: 'Other' })).status, 422);
        t.equal((await world.get('/auth/v1/app/list', owner.auth)).listAt('result').length, 1);
      },
    },
});

export const CHECKS: readonly Check[] = [...KEY, ...BROWSER, ...APPS, ...REGISTRATION];
