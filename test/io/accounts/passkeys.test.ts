/** Passkeys over HTTP: enrollment, login, and every way in which a ceremony can be wrong, repeated, or of another account. */
import { readFileSync } from 'node:fs';
import fc from 'fast-check';
import t, { type Test } from 'tap';
import {
  type AuthenticationJson,
  get as answer,
  create,
  type KeyName,
  type Making,
  makePasskey,
  type Passkey,
  type RegistrationJson,
} from '../../../kit/authenticator.ts';
import { closeAfter } from '../../../kit/close-after.ts';
import { user } from '../../../src/actors/accounts/user.ts';
import { BROWSER_SESSIONS_MAX } from '../../../src/domain/sessions.ts';
import { type Answer, cookie, makeKey, refused, sidOf, startAccounts } from '../../support/account.ts';
import { startChat } from '../../support/codes.ts';
import { runs } from '../../support/depth.ts';
import { makeSite } from '../../support/http.ts';

const REGISTER = '/auth/v1/keys/register_key';
const LOGIN = '/auth/v1/login';
const { lowOrderEncodings } = JSON.parse(readFileSync('test/vectors/ed25519_expected.json', 'utf8')) as {
  lowOrderEncodings: string[];
};

interface Options {
  readonly challengeId: number;
  readonly code: string;
  readonly challenge: string;
  readonly options: {
    readonly user: { readonly id: string };
    readonly rp: Record<string, string>;
    readonly excludeCredentials: readonly object[];
  };
}
type Wrong = Partial<Making>;

function start(t: Test, options: Parameters<typeof startAccounts>[0] = {}) {
  const fixture = closeAfter(t, startAccounts(options));
  const { get, post, http } = fixture;
  const origin = `http://localhost:${http.port}`;
  const optionsOf = async (kind: 'register' | 'login', sid?: string) =>
    (await get(`/auth/v1/${kind}_options`, cookie(sid))).result as Options;
  const registration = async (passkey: Passkey, wrong: Wrong = {}, sid?: string) => {
    const { challengeId, code, challenge } = await optionsOf('register', sid);
    return { challengeId, code, credential: create(passkey, { challenge, origin, ...wrong }) };
  };
  const assertion = async (passkey: Passkey, wrong: Wrong = {}) => {
    const { challengeId, challenge } = await optionsOf('login');
    return { challengeId, credential: answer(passkey, { challenge, origin, ...wrong }) };
  };
  return {
    ...fixture,
    origin,
    optionsOf,
    registration,
    assertion,
    register: async (passkey: Passkey, wrong: Wrong = {}, sid?: string) =>
      post(REGISTER, await registration(passkey, wrong, sid), cookie(sid)),
    signIn: async (passkey: Passkey, wrong: Wrong = {}) => post(LOGIN, await assertion(passkey, wrong)),
    /** The id of the passkey among the keys of the account. */
    keyIdOf: async (passkey: Passkey, sid: string) =>
      (await fixture.keys(sid)).find(({ publicKey }) => publicKey === passkey.id)?.id,
  };
}

function sidFrom(answer: Answer): string {
  const sid = sidOf(answer);
  if (answer.status !== 200 || sid === undefined) throw new Error(`no session: ${JSON.stringify(answer)}`);
  return sid;
}

for (const name of ['EdDSA', 'ES256', 'RS256'] satisfies KeyName[]) {
  t.test(`passkey: sign-up and login with ${name}`, async (t) => {
    const { register, signIn, keys, alive, optionsOf } = start(t);
    const passkey = makePasskey(name);
    const { options } = await optionsOf('register');
    t.match(options, { rp: { id: 'localhost', name: 'Gatehouse' }, excludeCredentials: [] });
    const signedUp = await register(passkey, { backedUp: true });
    const key = { publicKey: passkey.id, keyType: 'FIDO2', current: true, proven: true, backedUp: true };
    t.match(signedUp.result, { newAccount: true, replaced: [], key: { ...key, mcpAccess: false } });
    const sid = sidFrom(signedUp);
    t.match(await keys(sid), [key]);
    const { userId } = signedUp.result as { userId: string };
    const loggedIn = await signIn(passkey, { counter: 2 });
    t.match(loggedIn.result, { userId, keyType: 'FIDO2', newAccount: false, keyId: /^[0-9]+$/ });
    t.ok(await alive(sidFrom(loggedIn)));
  });
}

// covers R81
t.test('passkey: transports of null and an empty userHandle count as absent', async (t) => {
  const { registration, assertion, post } = start(t);
  const passkey = makePasskey();
  const made = await registration(passkey);
  const credential = { ...made.credential, response: { ...made.credential.response, transports: null } };
  t.equal((await post(REGISTER, { ...made, credential })).status, 200);
  for (const userHandle of ['', null]) {
    const answered = await assertion(passkey);
    const { response } = answered.credential;
    const sent = { ...answered.credential, response: { ...response, userHandle } };
    t.equal((await post(LOGIN, { ...answered, credential: sent })).status, 200, JSON.stringify(userHandle));
  }
});

// covers R81
t.test('passkey: an app of a phone logs in where its origin is configured, and not elsewhere', async (t) => {
  const android = `android:apk-key-hash:${'A'.repeat(43)}`;
  const { register, signIn } = start(t, { site: { fido2: { ...makeSite(0).fido2, origins: [android] } } });
  const passkey = makePasskey();
  sidFrom(await register(passkey, { origin: android }));
  sidFrom(await signIn(passkey, { origin: android, counter: 2 }));
  const other = { origin: android.replace('AA', 'AB'), counter: 3 };
  refused(t, await signIn(passkey, other), 401, 1105);
});

// covers R4
t.test('passkey: mcpAccess is stored as supplied and opens no MCP session', async (t) => {
  const { register, keys, mcpLogin, changeKey } = start(t);
  // An id as long as an Ed25519 key has the form of X-PublicKey.
  const passkey = makePasskey('EdDSA', 32);
  const sid = sidFrom(await register(passkey));
  const [key] = await keys(sid);
  for (const mcpAccess of [true, false, true]) {
    const changed = await changeKey('update_key', sid, { keyId: key?.id, mcpAccess });
    t.match(changed, { status: 200, result: { keyType: 'FIDO2', mcpAccess } });
    t.match(await keys(sid), [{ keyType: 'FIDO2', mcpAccess }]);
  }
  refused(t, await mcpLogin({ 'X-PublicKey': passkey.id }), 401, 1101, 'by the credential id');
});

t.test('passkey: a second one, listed for exclusion under the same user.id', async (t) => {
  const { register, signIn, keys, optionsOf, signUp } = start(t);
  const { sid } = await signUp();
  const [one, two] = [makePasskey(), makePasskey('EdDSA')];
  const before = await optionsOf('register', sid);
  t.equal((await register(one, {}, sid)).status, 200);
  const added = await register(two, { userVerified: false }, sid);
  t.match(added.result, { newAccount: false, replaced: [], key: { current: false } });
  t.equal(sidOf(added), undefined, 'the session stays');
  const { options } = await optionsOf('register', sid);
  t.same(options.excludeCredentials, [
    { id: one.id, type: 'public-key', transports: ['internal'] },
    { id: two.id, type: 'public-key', transports: ['internal'] },
  ]);
  t.equal(options.user.id, before.options.user.id);
  t.equal((await keys(sid)).length, 3);
  for (const passkey of [one, two])
    t.equal((await signIn(passkey, { userHandle: options.user.id })).status, 200);
});

t.test('passkey: added to an account that a phone number made, it logs in to the same one', async (t) => {
  const chat = startChat();
  const { post, actors, register, signIn, optionsOf } = start(t, { codes: chat.port });
  const { result } = await post('/auth/v1/login_phone', { phone: '+491701234567' });
  await actors.settle();
  const { challengeId } = result as { challengeId: number };
  const byPhone = await post(LOGIN, { challengeId, code: chat.last().code });
  const { userId } = byPhone.result as { userId: string };
  const sid = sidFrom(byPhone);
  const { options } = await optionsOf('register', sid);
  t.match(options.user.id, /^[A-Za-z0-9_-]{43}$/);
  const passkey = makePasskey();
  t.match((await register(passkey, {}, sid)).result, { userId, newAccount: false });
  const byPasskey = await signIn(passkey, { userHandle: options.user.id });
  t.match(byPasskey.result, { userId, keyType: 'FIDO2' });
});

t.test('options: the icon of the configuration, echoed credential ids', async (t) => {
  const icon = 'https://example.com/icon.png';
  const fido2 = { rpId: 'localhost', rpName: 'X', icon, origins: [], timestampDriftToleranceMs: 0 };
  const { optionsOf, post } = start(t, { site: { fido2 } });
  t.match((await optionsOf('register')).options.rp, { icon, name: 'X' });
  const long = makePasskey('ES256', 1_023).id;
  const echoed = await post('/auth/v1/login_options', { credentialIds: [long] });
  t.match(echoed.result, {
    methods: ['passkey', 'key'],
    options: { allowCredentials: [{ id: long, type: 'public-key' }], userVerification: 'preferred' },
  });
  const longer = makePasskey('ES256', 1_024).id;
  refused(t, await post('/auth/v1/login_options', { credentialIds: [longer] }), 400, 1001);
});

// covers R55 S23
t.test('registration: whatever the ceremony was not made for is 1105, and nothing is created', async (t) => {
  const { register, actors, registration, post } = start(t);
  const wrong: Record<string, Wrong> = {
    'other origin': { origin: 'https://evil.example' },
    'other relying party': { rpId: 'example.com' },
    'other challenge': { challenge: 'AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA' },
    'an authentication': { type: 'webauthn.get' },
    'user not present': { userPresent: false },
    'cross-origin': { clientData: { crossOrigin: true } },
    'cross-origin, not quite true': { clientData: { crossOrigin: 1 } },
    'under another page': { clientData: { topOrigin: 'https://evil.example' } },
    'another id inside': { innerId: makePasskey().id },
    'an algorithm that was not offered': { cose: new Map(makePasskey().cose).set(3, -35) },
    'an attestation format of its own': { attestation: new Map([['fmt', 'none of yours']]) },
    'no map at all': { attestation: new Map() },
  };
  for (const [name, making] of Object.entries(wrong))
    refused(t, await register(makePasskey(), making), 401, 1105, name);
  const body = await registration(makePasskey());
  const response = { ...body.credential.response, clientDataJSON: 'AAEC' };
  refused(t, await post(REGISTER, { ...body, credential: { ...body.credential, response } }), 401, 1105);
  refused(t, await post(REGISTER, body), 401, 1104, 'the challenge is used up');
  t.equal(actors.system.count('credentialId'), 0);
  t.equal(actors.system.count('sidHash'), 0);
});

// covers R9
t.test('registration: keys that may not be enrolled are 400', async (t) => {
  const { register, actors } = start(t);
  const okp = (x: Uint8Array) =>
    new Map<number, number | Uint8Array>([
      [1, 1],
      [3, -8],
      [-1, 6],
      [-2, x],
    ]);
  for (const hex of lowOrderEncodings) {
    const cose = okp(new Uint8Array(Buffer.from(hex, 'hex')));
    refused(t, await register(makePasskey(), { cose }), 400, 1001, hex);
  }
  const point = makePasskey('ES256').cose;
  const rsa = makePasskey('RS256').cose;
  const keys: Record<string, Map<number, number | Uint8Array>> = {
    'Ed25519 of 31 bytes': okp(new Uint8Array(31)),
    'Ed25519 key under the name of another curve': new Map(makePasskey('EdDSA').cose).set(-1, 7),
    'off the curve': new Map(point).set(-3, new Uint8Array(32).fill(7)),
    'P-384 under ES256': new Map(point).set(-1, 2),
    'RSA of 4,104 bits': new Map(rsa).set(-1, new Uint8Array(513).fill(255)),
    'RSA of 1,024 bits': new Map(rsa).set(-1, new Uint8Array(128).fill(255)),
    'RSA with exponent 1': new Map(rsa).set(-2, new Uint8Array([1])),
    'RSA with a long exponent': new Map(rsa).set(-2, new Uint8Array(5).fill(1)),
    'RSA without a modulus': new Map(rsa).set(-1, 5),
    'a key with luggage': new Map(point).set(-70, new Uint8Array(2_000)),
  };
  for (const [name, cose] of Object.entries(keys))
    refused(t, await register(makePasskey(), { cose }), 400, 1001, name);
  t.equal(actors.system.count('credentialId'), 0);
  const longest = new Map(rsa).set(-1, new Uint8Array(512).fill(255));
  t.equal((await register(makePasskey(), { cose: longest })).status, 200, 'RSA of 4,096 bits');
});

// covers R55
t.test('registration: shapes and lengths are 400 and leave the challenge as it was', async (t) => {
  const { registration, post, register, signIn } = start(t);
  const good = await registration(makePasskey());
  const { credential } = good;
  const part = (change: Partial<RegistrationJson['response']>) => ({
    ...credential,
    response: { ...credential.response, ...change },
  });
  const wrong: Record<string, object> = {
    'no parts': { id: credential.id },
    'rawId of another': { ...credential, rawId: makePasskey().id },
    'another type': { ...credential, type: 'password' },
    'padding in the id': { ...credential, id: `${credential.id}=`, rawId: `${credential.id}=` },
    'another spelling': part({ clientDataJSON: `${credential.response.clientDataJSON}A` }),
    'attestation of 16 KiB and a bit': part({ attestationObject: 'A'.repeat(21_847) }),
    'transports that are none': { ...credential, response: { ...credential.response, transports: 'usb' } },
    'id of 1,024 bytes': (await registration(makePasskey('ES256', 1_024))).credential,
  };
  for (const [name, each] of Object.entries(wrong))
    refused(t, await post(REGISTER, { ...good, credential: each }), 400, 1001, name);
  refused(t, await post(REGISTER, { ...good, passKeyFlag: true }), 400, 1001, 'passKeyFlag');
  refused(t, await post(REGISTER, { ...good, publicKey: makeKey().publicKey }), 400, 1001, 'both');
  const megabyte = { ...good, credential: part({ attestationObject: 'A'.repeat(1 << 20) }) };
  refused(t, await post(REGISTER, megabyte), 413, 1006, '1 MB');
  t.equal((await post(REGISTER, good)).status, 200);
  const longest = makePasskey('ES256', 1_023);
  t.equal((await register(longest)).status, 200, 'an id of 1,023 bytes');
  t.equal((await signIn(longest)).status, 200);
});

t.test('registration: the handle must be echoed, and the challenge be one of registration', async (t) => {
  const { registration, post, optionsOf, origin, signUp } = start(t);
  const good = await registration(makePasskey());
  refused(t, await post(REGISTER, { ...good, code: good.credential.id }), 401, 1104, 'another code');
  const { challengeId, code, challenge } = await optionsOf('login');
  const credential = create(makePasskey(), { challenge, origin });
  refused(t, await post(REGISTER, { challengeId, code, credential }), 401, 1104, 'of a login');
  const { sid } = await signUp();
  const anonymous = await registration(makePasskey());
  refused(t, await post(REGISTER, anonymous, cookie(sid)), 401, 1104, 'of a sign-up, with a session');
  const own = await registration(makePasskey(), {}, sid);
  refused(t, await post(REGISTER, own, cookie((await signUp()).sid)), 401, 1104, 'of another user');
});

t.test('registration: a credential id has one owner', async (t) => {
  const { register, signUp, optionsOf, signIn, changeKey, keyIdOf } = start(t);
  const passkey = makePasskey();
  const { sid } = await signUp();
  t.equal((await register(passkey, {}, sid)).status, 200);
  refused(t, await register(passkey, {}, sid), 409, 1107, 'twice by one user');
  refused(t, await register(passkey), 409, 1107, 'a second account');
  refused(t, await register(passkey, {}, (await signUp()).sid), 409, 1107, 'another account');
  const keyId = await keyIdOf(passkey, sid);
  t.equal((await changeKey('remove_key', sid, { keyId })).status, 200);
  refused(t, await signIn(passkey), 401, 1101, 'removed');
  t.equal((await register(passkey)).status, 200, 'free again');
  const { options } = await optionsOf('register', sid);
  t.same(options.excludeCredentials, []);
});

t.test('registration: the key limit counts passkeys', async (t) => {
  const { register, signUp } = start(t, { settings: { ActiveKeysLimit: 2 } });
  const { sid } = await signUp();
  t.equal((await register(makePasskey(), {}, sid)).status, 200);
  refused(t, await register(makePasskey(), {}, sid), 409, 1106);
});

// covers R28 R55 S23
t.test('login: whatever the ceremony was not made for is 1105', async (t) => {
  const { register, signIn, assertion, post, alive } = start(t);
  const [mine, other] = [makePasskey(), makePasskey()];
  sidFrom(await register(mine));
  sidFrom(await register(other));
  const wrong: Record<string, Wrong> = {
    'other origin': { origin: 'https://evil.example' },
    'other relying party': { rpId: 'example.com' },
    'other challenge': { challenge: 'AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA' },
    'a registration': { type: 'webauthn.create' },
    'user not present': { userPresent: false },
    'not verified, though it was at enrollment': { userVerified: false },
    'cross-origin': { clientData: { crossOrigin: true } },
    'under another page': { clientData: { topOrigin: 'https://evil.example' } },
    'for another user': { userHandle: 'AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA' },
  };
  for (const [name, making] of Object.entries(wrong)) refused(t, await signIn(mine, making), 401, 1105, name);
  const body = await assertion(other);
  const stolen = { ...body.credential, id: mine.id, rawId: mine.id };
  refused(t, await post(LOGIN, { ...body, credential: stolen }), 401, 1105, 'signed by another credential');
  refused(t, await post(LOGIN, body), 401, 1104, 'the challenge is used up');
  const forged = await assertion(mine);
  const { signature } = (await assertion(mine)).credential.response;
  const response = { ...forged.credential.response, signature };
  refused(t, await post(LOGIN, { ...forged, credential: { ...forged.credential, response } }), 401, 1105);
  const good = await assertion(mine);
  const { credential } = good;
  const change = (more: Partial<AuthenticationJson['response']>) => ({
    ...good,
    credential: { ...credential, response: { ...credential.response, ...more } },
  });
  refused(t, await post(LOGIN, change({ signature: 'A'.repeat(2_000) })), 400, 1001, 'long signature');
  refused(t, await post(LOGIN, { ...good, publicKey: makeKey().publicKey }), 400, 1001, 'with a key');
  const loggedIn = await post(LOGIN, good);
  t.ok(await alive(sidFrom(loggedIn)), 'the challenge outlived malformed requests');
  refused(t, await post(LOGIN, good), 401, 1104, 'replay');
});

// covers R55
t.test('login: a refusal says and records nothing of the ceremony', async (t) => {
  const { register, assertion, post, actors, loginLog } = start(t);
  const passkey = makePasskey();
  const sid = sidFrom(await register(passkey));
  const body = await assertion(passkey, { origin: 'https://evil.example' });
  const { error } = await post(LOGIN, body);
  t.equal(error?.message, 'Invalid signature');
  const result = await loginLog(sid);
  t.match(result, [
    { event: 'login', ok: false, error: 'Invalid signature' },
    { event: 'sign_up', ok: true },
  ]);
  t.notMatch(JSON.stringify([result, actors.bugs]), /evil|Unexpected|expected/);
});

// covers R84
t.test('login: unknown credentials are 1101 and spend the budget of the address', async (t) => {
  const { signIn } = start(t, { settings: { UnknownKeyFailuresPerMinute: 3 } });
  for (let tries = 0; tries < 3; tries += 1) refused(t, await signIn(makePasskey()), 401, 1101);
  refused(t, await signIn(makePasskey()), 429, 1002);
});

// covers R10
t.test('name spaces: a credential id is no software key, and the other way round', async (t) => {
  const { register, mcpLogin, signUp, login, changeKey, keyIdOf } = start(t);
  const key = makeKey();
  const passkey: Passkey = { ...makePasskey('EdDSA'), id: key.publicKey };
  const sid = sidFrom(await register(passkey));
  const keyId = await keyIdOf(passkey, sid);
  const allowed = await changeKey('update_key', sid, { keyId, mcpAccess: true });
  t.match(allowed.result, { mcpAccess: true });
  refused(t, await mcpLogin({ 'X-PublicKey': passkey.id }), 401, 1101, 'X-PublicKey of a credential id');
  refused(t, await login(key), 401, 1101, 'a signature by its bytes as a key');
  const account = await signUp(key);
  t.ok(account.sid, 'the same 32 bytes as a software key of another account');
});

// covers R28 R55
t.test('login: without user verification where there was none at enrollment', async (t) => {
  const { register, signIn } = start(t);
  const passkey = makePasskey();
  t.equal((await register(passkey, { userVerified: false, counter: 0 })).status, 200);
  t.equal((await signIn(passkey, { userVerified: false })).status, 200);
  t.equal((await signIn(passkey, { userVerified: true })).status, 200, 'more than was asked');
});

// covers R11
t.test('counters: 5, 5, 3 all log in; those that went back are in the login log', async (t) => {
  const { register, signIn, actors, loginLog } = start(t);
  const passkey = makePasskey();
  const signedUp = await register(passkey, { counter: 4 });
  const sid = sidFrom(signedUp);
  for (const counter of [5, 5, 3]) {
    t.equal((await signIn(passkey, { counter })).status, 200, `counter ${counter}`);
    await actors.restart();
  }
  const events = ((await loginLog(sid)) as { event: string; ok: boolean }[]).map(({ event }) => event);
  t.same(events, ['counter_regressed', 'login', 'counter_regressed', 'login', 'login', 'sign_up']);
  const { userId } = signedUp.result as { userId: string };
  const { keys } = await actors.system.query(user, userId, { type: 'account' });
  t.match(keys, [{ signatureCounter: 0, counterReported: 5 }]);
});

t.test('counters: an authenticator without one says 0 and is never noted', async (t) => {
  const { register, signIn, get, loginLog } = start(t);
  const passkey = makePasskey();
  const sid = sidFrom(await register(passkey, { counter: 0 }));
  for (let times = 0; times < 2; times += 1) await signIn(passkey, { counter: 0, backedUp: true });
  const result = await loginLog(sid);
  t.match(result, [{ event: 'login' }, { event: 'login' }, { event: 'sign_up' }]);
  t.match((await get('/auth/v1/keys/user_keys', cookie(sid))).result, [{ backedUp: true }]);
});

// covers R54
t.test('race: one challenge, two browsers: one session', async (t) => {
  const { register, assertion, post, actors } = start(t);
  const passkey = makePasskey();
  sidFrom(await register(passkey));
  const body = await assertion(passkey);
  const answers = await Promise.all([post(LOGIN, body), post(LOGIN, body), post(LOGIN, body)]);
  t.same(answers.map(({ status }) => status).sort(), [200, 401, 401]);
  t.equal(actors.system.count('sidHash'), 2);
});

t.test('race: one credential, two accounts: one owner, and no trace of the other', async (t) => {
  const { registration, post, actors, signUp } = start(t);
  const passkey = makePasskey();
  const { sid } = await signUp();
  const bodies = [
    await registration(passkey),
    await registration(passkey),
    await registration(passkey, {}, sid),
  ];
  const answers = await Promise.all(
    bodies.map((body, index) => post(REGISTER, body, cookie(index === 2 ? sid : undefined))),
  );
  t.same(answers.map(({ status }) => status).sort(), [200, 409, 409]);
  t.equal(actors.system.count('credentialId'), 1);
  t.equal(actors.system.count('sidHash'), answers[2]?.status === 200 ? 1 : 2);
});

t.test('race: a key that is removed, or an owner who is blocked, while the login is verified', async (t) => {
  const { register, assertion, post, signUp, signIn, changeKey, setBlocked, hold, keyIdOf } = start(t);
  const account = await signUp();
  const passkey = makePasskey();
  await register(passkey, {}, account.sid);
  const keyId = await keyIdOf(passkey, account.sid);
  const during = async (act: () => Promise<unknown>) => {
    const body = await assertion(passkey);
    const { reached, open } = hold();
    const login = post(LOGIN, body);
    await reached;
    await act();
    open();
    return login;
  };
  refused(t, await during(() => setBlocked(account.userId)), 401, 1103, 'blocked');
  await setBlocked(account.userId, false);
  // Blocking has ended every session of the account.
  const sid = sidFrom(await signIn(passkey));
  const removed = await during(() => changeKey('remove_key', sid, { keyId }));
  refused(t, removed, 401, 1101, 'removed');
});

t.test(
  'sessions: name their passkey, replace the sid that came along, the oldest over the cap ends',
  async (t) => {
    const { register, signIn, assertion, post, get, alive } = start(t);
    const passkey = makePasskey();
    const signedUp = await register(passkey);
    const { id: keyId } = (signedUp.result as { key: { id: string } }).key;
    const first = sidFrom(signedUp);
    const replacing = sidFrom(await post(LOGIN, await assertion(passkey), cookie(first)));
    t.same([await alive(first), await alive(replacing)], [false, true]);
    const { result } = await get('/auth/v1/sessions', cookie(replacing));
    t.match(result, [{ kind: 'browser', loginType: null, keyId, appId: null, current: true }]);
    t.equal((result as unknown[]).length, 1);
    let newest = replacing;
    for (let count = 1; count < BROWSER_SESSIONS_MAX; count += 1) newest = sidFrom(await signIn(passkey));
    t.equal(await alive(replacing), true, 'as many as there may be');
    sidFrom(await signIn(passkey));
    t.same([await alive(replacing), await alive(newest)], [false, true]);
    const closed = await post('/auth/v1/close_sessions', { others: true }, cookie(newest));
    t.match(closed.result, { sessionsClosed: BROWSER_SESSIONS_MAX - 1 });
  },
);

t.test('removal: ends the sessions of the passkey, and only those', async (t) => {
  const { register, signIn, signUp, keys, changeKey, alive } = start(t);
  const { sid } = await signUp();
  const passkey = makePasskey();
  await register(passkey, {}, sid);
  const byPasskey = sidFrom(await signIn(passkey));
  const keyId = (await keys(sid)).find((key) => key.publicKey === passkey.id)?.id;
  t.match((await changeKey('remove_key', sid, { keyId })).result, { keyId, sessionsClosed: 1 });
  t.same([await alive(byPasskey), await alive(sid)], [false, true]);
  refused(t, await signIn(passkey), 401, 1101);
});

t.test(
  'repeat: the same Idempotency-Key adds one passkey and gets one answer, over a restart too',
  async (t) => {
    const { registration, post, signUp, keys, actors } = start(t);
    const { sid } = await signUp();
    const body = await registration(makePasskey(), {}, sid);
    const headers = { ...cookie(sid), 'Idempotency-Key': 'again' };
    const first = await post(REGISTER, body, headers);
    t.equal(first.status, 200);
    t.same((await post(REGISTER, body, headers)).result, first.result);
    await actors.restart();
    t.same((await post(REGISTER, body, headers)).result, first.result);
    const other = { ...cookie(sid), 'Idempotency-Key': 'another' };
    refused(t, await post(REGISTER, body, other), 401, 1104, 'the challenge is used up');
    t.equal((await keys(sid)).length, 2);
  },
);

t.test(
  'restart: a passkey signs up and logs in with challenges of before, once, and keeps its handle',
  async (t) => {
    const { optionsOf, origin, assertion, post, actors, get } = start(t);
    const passkey = makePasskey();
    const { challengeId, code, challenge, options } = await optionsOf('register');
    const body = { challengeId, code, credential: create(passkey, { challenge, origin }) };
    await actors.restart();
    const signedUp = await post(REGISTER, body);
    t.match(signedUp, { status: 200, result: { newAccount: true } });
    const own = await optionsOf('register', sidFrom(signedUp));
    t.equal(own.options.user.id, options.user.id, 'the handle that the authenticator was told');
    const login = await assertion(passkey);
    await actors.restart();
    refused(t, await post(REGISTER, body), 401, 1104, 'the sign-up again');
    t.equal((await post(LOGIN, login)).status, 200);
    await actors.restart();
    refused(t, await post(LOGIN, login), 401, 1104, 'the login again');
    t.equal((await get('/auth/v1/sessions', cookie(sidFrom(signedUp)))).status, 200);
  },
);

/** One passkey and what the reference knows of it. */
interface Reference {
  readonly passkey: Passkey;
  owner: number | undefined;
  counter: number;
}

// covers S164
t.test(
  'passkeys: any history of enrollments, logins, removals and restarts ends as in the reference',
  async (t) => {
    const fixture = start(t, { settings: { ActiveKeysLimit: 100 } });
    const { register, signIn, signUp, actors, changeKey, keyIdOf } = fixture;
    const step = fc.tuple(
      fc.constantFrom('enroll', 'login', 'remove', 'restart' as const),
      fc.nat(1),
      fc.nat(2),
      fc.nat(6),
    );
    const history = fc.asyncProperty(fc.array(step, { maxLength: 14 }), async (steps) => {
      const people = [await signUp(), await signUp()];
      const references: Reference[] = Array.from({ length: 3 }, () => ({
        passkey: makePasskey(),
        owner: undefined,
        counter: 0,
      }));
      for (const [what, who, which, counter] of steps) {
        const reference = references[which];
        const person = people[who];
        if (reference === undefined || person === undefined) throw new Error('no such');
        const { passkey } = reference;
        if (what === 'restart') await actors.restart();
        else if (what === 'enroll') {
          const { status } = await register(passkey, { counter }, person.sid);
          t.equal(status, reference.owner === undefined ? 200 : 409);
          if (reference.owner === undefined) Object.assign(reference, { owner: who, counter });
        } else if (what === 'login') {
          const answer = await signIn(passkey, { counter });
          t.equal(answer.status, reference.owner === undefined ? 401 : 200);
          if (reference.owner !== undefined) {
            t.match(answer.result, { userId: people[reference.owner]?.userId });
            reference.counter = Math.max(reference.counter, counter);
          }
        } else {
          const keyId = await keyIdOf(passkey, person.sid);
          t.equal(keyId !== undefined, reference.owner === who);
          if (keyId === undefined) continue;
          const gone = await changeKey('remove_key', person.sid, { keyId });
          t.equal(gone.status, 200);
          Object.assign(reference, { owner: undefined, counter: 0 });
        }
      }
      for (const [who, { userId }] of people.entries()) {
        const { keys } = await actors.system.query(user, userId, { type: 'account' });
        const counters = new Map(keys.map((key) => [key.publicKey, key.counterReported]));
        for (const { passkey, owner, counter } of references)
          t.equal(counters.get(passkey.id), owner === who ? counter : undefined);
      }
    });
    await fc.assert(history, runs(25));
  },
);

t.test(
  'passkeys: whatever happens at the same time, a credential has one owner and the index agrees',
  async (t) => {
    const { registration, assertion, post, signUp, actors, keyIdOf } = start(t, {
      settings: { ActiveKeysLimit: 100 },
    });
    const step = fc.tuple(
      fc.constantFrom('enroll', 'signUp', 'login', 'remove' as const),
      fc.nat(1),
      fc.nat(1),
    );
    const rounds = fc.array(fc.array(step, { minLength: 2, maxLength: 6 }), { minLength: 1, maxLength: 4 });
    const property = fc.asyncProperty(rounds, async (history) => {
      const people = [await signUp(), await signUp()];
      const passkeys = [makePasskey(), makePasskey()];
      const userIds = new Set(people.map(({ userId }) => userId));
      const before = actors.system.count('credentialId');
      for (const together of history) {
        const requests: (readonly [path: string, body: object, sid: string | undefined])[] = [];
        for (const [what, who, which] of together) {
          const { sid } = people[who] ?? { sid: '' };
          const passkey = passkeys[which] ?? makePasskey();
          if (what === 'enroll') requests.push([REGISTER, await registration(passkey, {}, sid), sid]);
          else if (what === 'signUp') requests.push([REGISTER, await registration(passkey), undefined]);
          else if (what === 'login') requests.push([LOGIN, await assertion(passkey), undefined]);
          else {
            const keyId = (await keyIdOf(passkey, sid)) ?? '1';
            requests.push(['/auth/v1/keys/remove_key', { keyId }, sid]);
          }
        }
        const answers = await Promise.all(requests.map(([path, body, sid]) => post(path, body, cookie(sid))));
        for (const { status, result } of answers) {
          if (status >= 500) throw new Error(`HTTP ${status}`);
          const { userId } = (result ?? {}) as { userId?: string };
          if (userId !== undefined) userIds.add(userId);
        }
      }
      const held: string[] = [];
      for (const userId of userIds) {
        const { keys } = await actors.system.query(user, userId, { type: 'account' });
        for (const key of keys) {
          if (!passkeys.some(({ id }) => id === key.publicKey)) continue;
          held.push(key.publicKey);
          const owner = actors.system.lookup('credentialId', key.publicKey);
          if (owner !== `${userId}:${key.id}:p`) throw new Error(`the index names ${owner}`);
        }
      }
      if (new Set(held).size !== held.length) throw new Error('two owners');
      if (actors.system.count('credentialId') !== before + held.length)
        throw new Error('a name is left over');
    });
    await fc.assert(property, runs(25));
  },
);
