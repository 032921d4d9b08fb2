/** Sign-up, login, keys and sessions over HTTP: the shapes, every refusal that can be reached, the races. */
import { readFileSync } from 'node:fs';
import t, { type Test } from 'tap';
import { closeAfter } from '../../../kit/close-after.ts';
import { GatewayError } from '../../../src/domain/errors.ts';
import { KeyFlag } from '../../../src/domain/keys.ts';
import { toIso } from '../../../src/domain/time.ts';
import {
  type Answer,
  type Challenge,
  cookie,
  type Key,
  type KeyItem,
  makeKey,
  mcpProof,
  plantOrphan,
  type Registered,
  refused,
  sidOf,
  signText,
  startAccounts,
} from '../../support/account.ts';
import { START_MS } from '../../support/actors/actors.ts';

const VECTORS = JSON.parse(readFileSync('test/vectors/ed25519_expected.json', 'utf8')) as {
  lowOrderEncodings: string[];
};
const REGISTER = '/auth/v1/keys/register_key';

function start(t: Test, options: Parameters<typeof startAccounts>[0] = {}) {
  return closeAfter(t, startAccounts(options));
}

/** Answers one challenge with a key. */
function answerTo({ challengeId, signPrefix }: Challenge) {
  return (key: Key) => {
    return { challengeId, publicKey: key.publicKey, code: signText(key, signPrefix + key.publicKey) };
  };
}

const publicKeysOf = (items: readonly KeyItem[]) => items.map(({ publicKey }) => publicKey);

/** Status, code and whether a cookie is set. */
function refusalOf({ status, error, headers }: Answer): [number, number | undefined, boolean] {
  return [status, error?.code, headers['set-cookie'] !== undefined];
}

// covers R57
t.test('register_options and login_options: the shapes of the API description', async (t) => {
  const { get, post, signUp } = start(t);
  const { result } = await get('/auth/v1/register_options?name=Ada');
  t.match(result, {
    challengeId: Number,
    code: /^[A-Za-z0-9_-]{43}$/,
    challenge: /^[A-Za-z0-9_-]{43}$/,
    expiresUtc: toIso(START_MS + 300_000),
    signPrefix: /^gateway-auth\/v1\nregister\nlocalhost\n[0-9]+\n[A-Za-z0-9_-]{43}\n$/,
    options: {
      rp: { name: 'Gatehouse', id: 'localhost' },
      user: { id: /^[A-Za-z0-9_-]{43}$/, name: 'Ada' },
      pubKeyCredParams: [{ alg: -8 }, { alg: -7 }, { alg: -257 }],
      timeout: 300_000,
      attestation: 'none',
      excludeCredentials: [],
    },
  });
  const { sid } = await signUp();
  const one = await get('/auth/v1/register_options', cookie(sid));
  const two = await get('/auth/v1/register_options', cookie(sid));
  const handle = (answer: Answer) => (answer.result as { options: { user: { id: string } } }).options.user.id;
  t.equal(handle(one), handle(two), 'the handle of an account is stable');
  const login = await post('/auth/v1/login_options', { credentialIds: ['AAEC'] });
  t.match(login.result, {
    signPrefix: /^gateway-auth\/v1\nlogin\n/,
    methods: ['passkey', 'key'],
    options: {
      rpId: 'localhost',
      userVerification: 'preferred',
      allowCredentials: [{ id: 'AAEC', type: 'public-key' }],
    },
  });
  t.equal((await post('/auth/v1/login_options')).status, 200, 'the body may be left out');
  for (const credentialIds of [Array(11).fill('AAEC'), ['not base64url'], ['AB'], ['A'], ['AAA=']])
    refused(t, await post('/auth/v1/login_options', { credentialIds }), 400, 1001, String(credentialIds));
  for (const name of ['x%00y', '%20%20', '%0a', 'x'.repeat(65)])
    refused(t, await get(`/auth/v1/register_options?name=${name}`), 400, 1001, name);
});

// covers R8 R52 R57 R59
t.test('sign-up: creates account, key and session; the secret is in the cookie alone', async (t) => {
  const { post, signed, keys, actors, loginLog } = start(t);
  const key = makeKey();
  const answer = await post(REGISTER, { ...(await signed(key)), name: 'laptop' });
  t.equal(answer.status, 200);
  const sid = sidOf(answer) ?? '';
  t.match(sid, /^[A-Za-z0-9_-]{46}$/);
  t.equal(answer.headers['set-cookie'], `sid=${sid}; Path=/; HttpOnly; SameSite=Lax; Max-Age=2592000`);
  t.notOk(JSON.stringify(answer.result).includes(sid));
  const result = answer.result as Registered;
  t.match(result, { newAccount: true, replaced: [], expiresUtc: toIso(START_MS + 2_592_000_000) });
  t.strictSame([result.key.proven, result.key.name], [true, 'laptop']);
  const { id, publicKey, keyType, utcCreate, current, mcpAccess, cardDavAccess } = result.key;
  t.match({ id, utcCreate }, { id: /^[0-9]+$/, utcCreate: toIso(START_MS) });
  t.strictSame([publicKey, keyType, current], [key.publicKey, 'UserKey', true]);
  t.strictSame([mcpAccess, cardDavAccess], [false, false]);
  t.same(await keys(sid), [result.key]);
  t.match(await loginLog(sid), [{ event: 'sign_up', ok: true, kind: 'browser', ip: '127.0.0.1' }]);
  t.ok(actors.journal.auditPage(0, 10).some((row) => JSON.stringify(row).includes('sign_up')));
  t.notOk(JSON.stringify(actors.journal.auditPage(0, 10)).includes(sid));
});

// covers R54
t.test('sign-up: a login challenge serves too; Secure is set where an origin is https', async (t) => {
  const { post, signed } = start(t, { site: { secureCookies: true } });
  const answer = await post(REGISTER, await signed(makeKey(), 'login'));
  t.match(answer.headers['set-cookie'], /; Secure$/);
});

// covers R52
t.test('sign-up: refuses what is malformed, and the challenge is still good after it', async (t) => {
  const { post, signed } = start(t);
  const key = makeKey();
  const good = await signed(key);
  const unkeyed = { challengeId: good.challengeId, code: good.code };
  const bad: Record<string, object> = {
    'no code': { challengeId: good.challengeId, publicKey: key.publicKey },
    'no challenge': { code: good.code, publicKey: key.publicKey },
    'neither key nor credential': unkeyed,
    'both key and credential': { ...good, credential: { id: 'AAEC' } },
    'credential with passKeyFlag': { ...unkeyed, credential: { id: 'AAEC' }, passKeyFlag: true },
    'short key': { ...good, publicKey: key.publicKey.slice(1) },
    'padded key': { ...good, publicKey: `${key.publicKey}=` },
    'key in base64': { ...good, publicKey: `+${key.publicKey.slice(1)}` },
    'short signature': { ...good, code: good.code.slice(1) },
    'echo without a session': { ...good, code: 'A'.repeat(43) },
    'challengeId that is no id': { ...good, challengeId: 'x' },
    'challengeId above 2^53 as a number': { ...good, challengeId: 2 ** 60 },
    'passKeyFlag that is a text': { ...good, passKeyFlag: 'true' },
    'name that is too long': { ...good, name: 'x'.repeat(65) },
  };
  for (const [note, body] of Object.entries(bad)) refused(t, await post(REGISTER, body), 400, 1001, note);
  t.equal((await post(REGISTER, good)).status, 200);
});

// covers R12
t.test('base64url: the other spellings of a key and of a signature are refused', async (t) => {
  const { post, signed, signUp } = start(t);
  const alphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_';
  const respell = (text: string, change: number) =>
    text.slice(0, -1) + alphabet[alphabet.indexOf(text.at(-1) ?? '') + change];
  const body = await signed(makeKey());
  for (let change = 1; change < 4; change += 1)
    refused(t, await post(REGISTER, { ...body, publicKey: respell(body.publicKey, change) }), 400, 1001);
  const { key } = await signUp();
  const login = await signed(key, 'login');
  for (let change = 1; change < 16; change += 1)
    refused(t, await post('/auth/v1/login', { ...login, code: respell(login.code, change) }), 400, 1001);
  t.equal((await post('/auth/v1/login', login)).status, 200);
});

// covers R9
t.test('enrollment: low-order keys and keys off the curve are refused, claimed or signed', async (t) => {
  const { post, challenge, signUp } = start(t);
  const { sid } = await signUp();
  const offCurve = `02${'00'.repeat(31)}`;
  const answers: unknown[][] = [];
  for (const hex of [...VECTORS.lowOrderEncodings, offCurve]) {
    const publicKey = Buffer.from(hex, 'hex').toString('base64url');
    const claim = await challenge('register', sid);
    const body = { challengeId: claim.challengeId, code: claim.code, publicKey };
    answers.push([`claim of ${hex}`, ...refusalOf(await post(REGISTER, body, cookie(sid)))]);
    const { challengeId } = await challenge('register');
    const forged = Buffer.alloc(64);
    forged[0] = 1;
    const signed = { challengeId, code: forged.toString('base64url'), publicKey };
    answers.push([hex, ...refusalOf(await post(REGISTER, signed))]);
  }
  for (const [name, ...answer] of answers) t.same(answer, [400, 1001, false], String(name));
});

t.test('sign-up: a wrong signature is 1105 and burns the challenge', async (t) => {
  const { post, signed, challenge, actors } = start(t);
  const key = makeKey();
  const body = await signed(key);
  const { signPrefix } = await challenge('register');
  const wrong = { ...body, code: signText(key, signPrefix + key.publicKey) };
  refused(t, await post(REGISTER, wrong), 401, 1105, 'signed for another challenge');
  refused(t, await post(REGISTER, body), 401, 1104, 'used up');
  const other = await signed(key);
  const swapped = { ...other, publicKey: makeKey().publicKey };
  refused(t, await post(REGISTER, swapped), 401, 1105, 'signed for another key');
  t.equal(actors.system.lookup('publicKey', key.publicKey), undefined, 'nothing half-written');
  t.same(actors.journal.ids('user', '', 10), []);
});

t.test('login: a code that was never sent, and a credential beside a key, are refused', async (t) => {
  const { post, challenge } = start(t);
  const { challengeId } = await challenge('login');
  const login = (body: object) => post('/auth/v1/login', { challengeId, ...body });
  const credential = { id: 'AAEC', rawId: 'AAEC', type: 'public-key', response: {} };
  refused(t, await login({ credential }), 400, 1001, 'parts are missing');
  refused(t, await login({ credential, publicKey: 'x' }), 400, 1001);
  refused(t, await login({ code: '123456' }), 401, 1104, 'no such code');
  refused(t, await login({ code: '12345' }), 400, 1001);
});

// covers R54
t.test('challenge: expired, used, unknown, of another kind, user or session is 1104', async (t) => {
  const { post, signed, signUp, challenge, actors, addKey, login } = start(t);
  const body = await signed(makeKey());
  actors.clock.nowMs += 600_001;
  refused(t, await post(REGISTER, body), 401, 1104, 'expired with its leeway');
  refused(t, await post(REGISTER, { ...body, challengeId: 1 }), 401, 1104, 'unknown');
  const one = await signUp();
  const two = await signUp();
  const own = await challenge('register', one.sid);
  const claim = { challengeId: own.challengeId, code: own.code, publicKey: makeKey().publicKey };
  refused(t, await post(REGISTER, claim, cookie(two.sid)), 401, 1104, 'other user');
  const again = sidOf(await login(one.key)) ?? '';
  refused(t, await post(REGISTER, claim, cookie(again)), 401, 1104, 'other session of the same user');
  const wrong = { ...claim, code: two.key.publicKey };
  refused(t, await post(REGISTER, wrong, cookie(one.sid)), 401, 1104, 'wrong handle');
  refused(t, await post(REGISTER, claim, cookie(one.sid)), 401, 1104, 'used up by it');
  const kind = await signed(one.key, 'register');
  refused(t, await post('/auth/v1/login', kind), 401, 1104, 'a register challenge does not log in');
  t.equal((await addKey(one.sid, makeKey(), 'claim')).status, 200);
});

// covers R7 R57 R82 S20
t.test(
  'login: opens a session with the key, ends the one that came with it, of another account too',
  async (t) => {
    const { signUp, login, get, alive, sessions, actors } = start(t);
    const account = await signUp();
    const answer = await login(account.key, cookie(account.sid));
    t.equal(answer.status, 200);
    const sid = sidOf(answer) ?? '';
    t.same(answer.result, {
      userId: account.userId,
      keyId: account.keyId,
      keyType: 'UserKey',
      newAccount: false,
      expiresUtc: toIso(START_MS + 2_592_000_000),
    });
    t.notOk(JSON.stringify(answer.result).includes(sid));
    t.equal(await alive(account.sid), false, 'the old sid is unknown');
    t.equal((await sessions(sid)).length, 1);
    const first = await signUp();
    t.equal((await login(account.key, cookie(first.sid))).status, 200);
    await actors.settle();
    t.same([await alive(first.sid), await alive(sid)], [false, true], 'other browsers of the second stay');
    const other = (await signUp()).sid;
    for (const dead of [account.sid, 'of-a-sibling'])
      t.equal((await sessions(`${dead}; sid=${sid}`)).length, 2, 'a sid that opens nothing does not count');
    const both = await get('/auth/v1/sessions', { Cookie: `sid=${sid}; sid=${other}` });
    refused(t, both, 401, 1101, 'two live sids are none');
    const bearer = await get('/auth/v1/sessions', { Authorization: `Bearer ${sid}` });
    refused(t, bearer, 401, 1101, 'a sid is no bearer');
  },
);

t.test(
  'login: unknown and removed keys are 1101; a blocked user is 1103; a bad signature 1105',
  async (t) => {
    const { signUp, login, challenge, post, setBlocked, addKey, changeKey, get, loginLog, signed } = start(t);
    refused(t, await login(makeKey()), 401, 1101, 'unknown');
    const account = await signUp();
    const second = makeKey();
    const added = (await addKey(account.sid, second, 'proof')).result as Registered;
    t.equal((await changeKey('remove_key', account.sid, { keyId: added.key.id })).status, 200);
    refused(t, await login(second), 401, 1101, 'removed');
    const { signPrefix } = await challenge('login');
    const bad = { ...(await signed(account.key, 'login')), code: signText(account.key, `${signPrefix}x`) };
    refused(t, await post('/auth/v1/login', bad), 401, 1105);
    t.match(await loginLog(account.sid), [
      { event: 'login', ok: false, error: 'Invalid signature', keyId: account.keyId },
    ]);
    await setBlocked(account.userId);
    refused(t, await login(account.key), 401, 1103, 'blocked');
    refused(t, await get('/auth/v1/sessions', cookie(account.sid)), 401, 1101);
  },
);

t.test('login: a key whose account is missing is 1102', async (t) => {
  const { login, actors } = start(t);
  const key = makeKey();
  await plantOrphan(actors, key);
  refused(t, await login(key), 401, 1102);
});

// covers R84
t.test(
  'login: guesses at unknown keys spend the budget of the address, then a right one is refused too',
  async (t) => {
    const { signUp, login, actors } = start(t, { settings: { UnknownKeyFailuresPerMinute: 3 } });
    const { key } = await signUp();
    for (let count = 0; count < 3; count += 1) refused(t, await login(makeKey()), 401, 1101);
    const limited = await login(makeKey());
    refused(t, limited, 429, 1002);
    t.ok(Number(limited.headers['retry-after']) > 0);
    t.match(limited.headers['x-ratelimit'], /^s=i;l=3;r=0;/);
    refused(t, await login(key), 429, 1002, 'no oracle');
    actors.clock.nowMs += 60_000;
    t.equal((await login(key)).status, 200);
  },
);

t.test(
  'sign-up: with a sid that has ended or expired it is 1101 and the cookie goes; without it, it founds an account',
  async (t) => {
    const { signUp, signed, challenge, get, post, login, actors } = start(t);
    const dead = async (sid: string, note: string) => {
      const body = await signed(makeKey());
      const before = actors.journal.ids('user', '', 10);
      for (const answer of [
        await get('/auth/v1/register_options', cookie(sid)),
        await post(REGISTER, body, cookie(sid)),
      ]) {
        t.match([answer.status, answer.error?.code, sidOf(answer)], [401, 1101, ''], note);
        t.match(answer.headers['set-cookie'], /; Max-Age=0/);
      }
      t.same(actors.journal.ids('user', '', 10), before, 'no account');
      t.equal((await post(REGISTER, body)).status, 200, 'the repeat, with the same challenge');
    };
    const { sid, key } = await signUp();
    t.equal((await post('/auth/v1/logout', undefined, cookie(sid))).status, 200);
    await dead(sid, 'logged out');
    const idle = sidOf(await login(key)) ?? '';
    actors.clock.nowMs += 86_400_001;
    await dead(idle, 'expired');
    const live = sidOf(await login(key)) ?? '';
    t.ok((await challenge('register', live)).challengeId, 'a live one is taken');
    t.equal((await get('/auth/v1/login_options', cookie(sid))).status, 200, 'a login does not mind');
    t.equal((await login(key, cookie(sid))).status, 200);
    await dead(`${sid}; sid=of-a-sibling`, 'logged out, beside the cookie of another site');
    const foreign = await signed(makeKey());
    t.equal((await get('/auth/v1/register_options', cookie('of-a-sibling'))).status, 200);
    t.equal((await post(REGISTER, foreign, cookie('of-a-sibling'))).status, 200, 'of another site alone');
  },
);

t.test('sign-up: a request with a dead sid is charged like one without a session', async (t) => {
  const { get, http } = start(t, { settings: { IpRPSLimit: 1 } });
  const path = '/auth/v1/register_options';
  const cost = async (headers: Record<string, string>) => {
    const before = (await get('/auth/v1/login_options')).headers['x-ratelimit'];
    return [before, (await get(path, headers)).headers['x-ratelimit']];
  };
  const plain = await cost({});
  http.time.nowMs += 60_000;
  t.match(plain[1], /^s=i;/);
  t.same(await cost(cookie('x')), plain);
});

const UNSIGNED = 'A'.repeat(86);

t.test(
  'Idempotency-Key: after a refusal the challenge of register_key is used up all the same',
  async (t) => {
    const { signUp, challenge, post } = start(t);
    const { sid } = await signUp();
    const headers = { ...cookie(sid), 'Idempotency-Key': 'same' };
    const key = makeKey();
    const { challengeId, signPrefix } = await challenge('register', sid);
    const body = { challengeId, publicKey: key.publicKey };
    refused(t, await post(REGISTER, { ...body, code: UNSIGNED }, headers), 401, 1105);
    const good = { ...body, code: signText(key, signPrefix + key.publicKey) };
    refused(t, await post(REGISTER, good, headers), 401, 1104);
  },
);

t.test(
  'register_key: a bad signature is 1105 for a registered key as for an unknown one, with a session and without',
  async (t) => {
    const { signUp, challenge, post } = start(t);
    const account = await signUp();
    const other = await signUp();
    for (const sid of [undefined, account.sid]) {
      for (const { publicKey } of [other.key, account.key, makeKey()]) {
        const { challengeId } = await challenge('register', sid);
        const body = { challengeId, publicKey, code: UNSIGNED };
        refused(t, await post(REGISTER, body, cookie(sid)), 401, 1105, `session: ${sid !== undefined}`);
      }
    }
  },
);

t.test(
  'register_key: guesses spend the budget of unknown keys, then a right key is refused before its look-up',
  async (t) => {
    const fixture = start(t, { settings: { UnknownKeyFailuresPerMinute: 3 } });
    const { signUp, signed, challenge, post, addKey, login, actors } = fixture;
    const { sid, key } = await signUp();
    const other = await signUp();
    const nextMinute = () => {
      actors.clock.nowMs += 60_000;
    };
    const guess = async (publicKey: string, sent?: string) => {
      const { challengeId } = await challenge('register', sent);
      return post(REGISTER, { challengeId, publicKey, code: UNSIGNED }, cookie(sent));
    };
    for (const sent of [undefined, sid]) {
      for (let count = 0; count < 3; count += 1)
        refused(t, await guess(makeKey().publicKey, sent), 401, 1105);
      const limited = await guess(makeKey().publicKey, sent);
      refused(t, limited, 429, 1002);
      t.ok(Number(limited.headers['retry-after']) > 0);
      refused(t, await guess(other.key.publicKey, sent), 429, 1002, 'no oracle');
      refused(t, await login(key), 429, 1002, 'one budget with login');
      nextMinute();
    }
    for (let count = 0; count < 3; count += 1) refused(t, await post(REGISTER, await signed(key)), 409, 1107);
    const fresh = await signed(makeKey());
    refused(t, await post(REGISTER, fresh), 429, 1002, 'after registered keys that were signed for');
    nextMinute();
    t.equal((await post(REGISTER, fresh)).status, 200, 'the challenge was not used up by the 429');
    refused(t, await addKey(sid, other.key, 'claim'), 409, 1107);
    for (let count = 0; count < 2; count += 1) t.equal((await addKey(sid, makeKey(), 'claim')).status, 200);
    refused(t, await addKey(sid, other.key, 'claim'), 429, 1002, 'claims count whatever they tell');
  },
);

t.test('register_key: a full account gets 1106 for a registered key as for an unknown one', async (t) => {
  const { signUp, addKey } = start(t, { settings: { ActiveKeysLimit: 1 } });
  const { sid } = await signUp();
  const other = await signUp();
  for (const key of [other.key, makeKey()]) refused(t, await addKey(sid, key, 'claim'), 409, 1106);
});

// covers R58
t.test('register_key with a session: a claim, a proof, proof for an own claim', async (t) => {
  const { signUp, addKey, keys } = start(t);
  const { sid, userId } = await signUp();
  const claimed = makeKey();
  const claim = await addKey(sid, claimed, 'claim', { name: 'agent' });
  t.equal(claim.status, 200);
  t.equal(claim.headers['set-cookie'], undefined);
  t.match(claim.result, {
    userId,
    newAccount: false,
    replaced: [],
    key: { proven: false, current: false, mcpAccess: false, cardDavAccess: false, name: 'agent' },
  });
  refused(t, await addKey(sid, claimed, 'claim'), 409, 1107, 'claimed twice');
  const proof = await addKey(sid, claimed, 'proof');
  t.match(
    proof.result,
    { key: { id: (claim.result as Registered).key.id, proven: true } },
    'proven in place',
  );
  refused(t, await addKey(sid, claimed, 'proof'), 409, 1107, 'proven twice');
  const provens = (await keys(sid)).map(({ proven: each }) => each);
  t.same(provens, [true, true]);
});

// covers R8 R53 S79
t.test('proof beats claim: a proven registration takes the key over and ends what it opened', async (t) => {
  const { signUp, addKey, keys, allowAgent, mcpLogin, actors, sessions, loginLog } = start(t);
  const squatter = await signUp();
  const owner = await signUp();
  const key = makeKey();
  await allowAgent(squatter, key);
  t.equal((await mcpLogin({ 'X-PublicKey': key.publicKey })).status, 200);
  t.equal((await sessions(squatter.sid)).length, 2);
  refused(t, await addKey(owner.sid, key, 'claim'), 409, 1107, 'a claim does not beat a claim');
  t.equal((await addKey(owner.sid, key, 'proof')).status, 200);
  await actors.settle();
  t.same(publicKeysOf(await keys(squatter.sid)), [squatter.key.publicKey]);
  t.equal((await sessions(squatter.sid)).length, 1, 'the session of the lost key has ended');
  t.match(await loginLog(squatter.sid), [{ event: 'key_taken_over', ok: false }]);
  refused(t, await mcpLogin({ 'X-PublicKey': key.publicKey }), 401, 1103, 'the new owner allowed nothing');
  const other = await signUp();
  refused(t, await addKey(other.sid, key, 'proof'), 409, 1107, 'proof does not beat proof');
});

t.test('proof beats claim: a sign-up takes over a claimed key', async (t) => {
  const { signUp, addKey, keys, actors } = start(t);
  const squatter = await signUp();
  const key = makeKey();
  await addKey(squatter.sid, key, 'claim');
  const { sid } = await signUp(key);
  await actors.settle();
  t.same(publicKeysOf(await keys(sid)), [key.publicKey]);
  t.same(publicKeysOf(await keys(squatter.sid)), [squatter.key.publicKey]);
});

// covers S79
t.test('login: a key that was only claimed opens no session of the account that claimed it', async (t) => {
  const { signUp, addKey, login, sessions, mcpLogin, allowAgent, loginLog } = start(t);
  const claimer = await signUp();
  const holder = makeKey();
  await allowAgent(claimer, holder);
  const answer = await login(holder);
  refused(t, answer, 401, 1103);
  t.equal(answer.headers['set-cookie'], undefined);
  t.equal((await sessions(claimer.sid)).length, 1);
  t.match(await loginLog(claimer.sid), [
    { event: 'login', ok: false, error: 'Access denied', kind: 'browser' },
  ]);
  const agent = await mcpLogin(mcpProof(holder));
  t.equal(agent.status, 200, 'an agent of the account still logs in over MCP (spec 5.1)');
  t.match(agent.result, { userId: claimer.userId }, 'and gets the id of its user');
  t.match((await addKey(claimer.sid, holder, 'proof')).result, { key: { proven: true } });
  t.equal((await login(holder)).status, 200, 'proven, it logs in');
});

// covers R53 R107
t.test(
  'passKeyFlag: replaces older password keys at once, counts the limit after it, re-binds the session',
  async (t) => {
    const { signUp, addKey, keys, login, alive, settings } = start(t, { settings: { ActiveKeysLimit: 2 } });
    const old = await signUp(makeKey(), true);
    const elsewhere = sidOf(await login(old.key));
    t.equal((await addKey(old.sid, makeKey(), 'claim')).status, 200);
    refused(t, await addKey(old.sid, makeKey(), 'claim'), 409, 1106, 'the limit');
    const next = makeKey();
    const answer = await addKey(old.sid, next, 'proof', { passKeyFlag: true });
    t.match(answer.result, { replaced: [old.keyId], key: { keyType: 'PasswordKey', current: true } });
    t.same(
      (await keys(old.sid)).map((key) => [key.keyType, key.current]),
      [
        ['UserKey', false],
        ['PasswordKey', true],
      ],
    );
    t.equal(await alive(elsewhere), false, 'other sessions of the old password end');
    refused(t, await login(old.key), 401, 1101, 'the old password is gone');
    t.equal((await login(next)).status, 200);
    settings.set('ActiveKeysLimit', 3);
    t.equal((await addKey(old.sid, old.key, 'proof')).status, 200, 'a removed key may come back');
  },
);

t.test('passKeyFlag: a change made from another login leaves that session as it is', async (t) => {
  const { signUp, addKey, login, alive, keys, allowAgent, mcpLogin, sessions } = start(t);
  const account = await signUp();
  const [first, second] = [makeKey(), makeKey()];
  const added = await addKey(account.sid, first, 'proof', { passKeyFlag: true });
  t.match(added.result, { replaced: [], key: { current: false, mcpAccess: false, cardDavAccess: false } });
  const byPassword = sidOf(await login(first));
  await allowAgent(account, makeKey());
  const same = await addKey(account.sid, first, 'proof', { passKeyFlag: true });
  refused(t, same, 409, 1107, 'the same password');
  t.equal(await alive(byPassword), true, 'a refusal loses nothing');
  const next = await addKey(account.sid, second, 'proof', { passKeyFlag: true });
  t.match(next.result, { replaced: [(added.result as Registered).key.id], key: { current: false } });
  t.same([await alive(byPassword), await alive(account.sid)], [false, true]);
  t.same((await keys(account.sid)).map((key) => key.keyType).sort(), ['PasswordKey', 'UserKey', 'UserKey']);
  t.equal((await sessions(account.sid)).length, 1);
  refused(t, await mcpLogin({ 'X-PublicKey': second.publicKey }), 401, 1103, 'no McpAccess of its own');
});

t.test(
  'passKeyFlag: of two changes at once the later one stands alone; a login in between ends',
  async (t) => {
    const { signUp, addKey, login, keys, hold, actors } = start(t);
    const { sid, key: old } = await signUp(makeKey(), true);
    const { reached, open } = hold();
    const late = login(old);
    await reached;
    const passwords = [makeKey(), makeKey()];
    const answers = await Promise.all(
      passwords.map((each) => addKey(sid, each, 'proof', { passKeyFlag: true })),
    );
    for (const { status } of answers) t.equal(status, 200);
    open();
    refused(t, await late, 401, 1101, 'with the password of before');
    t.equal((await keys(sid)).length, 1);
    t.equal(actors.system.count('publicKey'), 1);
    const logins = [];
    for (const each of passwords) logins.push((await login(each)).status);
    t.same(logins.sort(), [200, 401]);
    await actors.restart();
    t.match(await keys(sid), [{ keyType: 'PasswordKey', current: true }]);
  },
);

// covers R28 R55
t.test('remove_key: the last key goes, unless the setting protects it', async (t) => {
  const { signUp, addKey, changeKey, keys, settings } = start(t, { settings: { LastKeyProtection: 1 } });
  const { sid, keyId } = await signUp();
  const protectedKey = await changeKey('remove_key', sid, { keyId });
  refused(t, protectedKey, 403, 1103);
  const second = (await addKey(sid, makeKey(), 'proof')).result as Registered;
  t.equal((await changeKey('remove_key', sid, { keyId: second.key.id })).status, 200, 'one of two');
  refused(t, await changeKey('remove_key', sid, { keyId }), 403, 1103);
  t.equal((await keys(sid)).length, 1);
  settings.set('LastKeyProtection', 0);
  t.equal((await changeKey('remove_key', sid, { keyId })).status, 200);
});

// covers R4
t.test('update_key: flags are set apart from each other, omitted ones stay', async (t) => {
  const { signUp, addKey, changeKey, actors } = start(t);
  const { sid } = await signUp();
  const { key } = (await addKey(sid, makeKey(), 'claim')).result as Registered;
  const flags = async (body: object) => {
    const { mcpAccess, cardDavAccess } = (await changeKey('update_key', sid, { keyId: key.id, ...body }))
      .result as KeyItem;
    return [mcpAccess, cardDavAccess];
  };
  t.same(await flags({ mcpAccess: true }), [true, false]);
  t.same(await flags({ cardDavAccess: true }), [true, true]);
  t.same(await flags({}), [true, true]);
  t.same(await flags({ mcpAccess: false }), [false, true]);
  t.same(await flags({ mcpAccess: true, cardDavAccess: false }), [true, false]);
  refused(t, await changeKey('update_key', sid, { keyId: key.id, mcpAccess: 'yes' }), 400, 1001);
  refused(t, await changeKey('update_key', sid, { mcpAccess: true }), 400, 1001);
  t.equal(KeyFlag.McpAccess, 8);
  t.ok(JSON.stringify(actors.journal.auditPage(0, 100)).includes('key_updated'));
});

// covers R12 R28
t.test('keys: foreign, removed and unknown ones are the same 404; no id of int64 is 400', async (t) => {
  const { signUp, changeKey, addKey } = start(t);
  const one = await signUp();
  const two = await signUp();
  const { key } = (await addKey(one.sid, makeKey(), 'claim')).result as Registered;
  await changeKey('remove_key', one.sid, { keyId: key.id });
  for (const what of ['update_key', 'remove_key'] as const) {
    for (const keyId of [two.keyId, key.id, '1', '9223372036854775807']) {
      const answer = await changeKey(what, one.sid, { keyId, mcpAccess: true });
      t.same(
        [...refusalOf(answer), answer.error?.message],
        [404, 1108, false, 'Key not found'],
        `${what} ${keyId}`,
      );
    }
    const noIds = ['9223372036854775808', '9999999999999999999', '-1', '01', '1e3', 2 ** 53, 'x', 2 ** 60];
    const answers: unknown[] = [];
    for (const keyId of noIds)
      answers.push([keyId, ...refusalOf(await changeKey(what, one.sid, { keyId, mcpAccess: true }))]);
    t.same(
      answers,
      noIds.map((keyId) => [keyId, 400, 1001, false]),
      what,
    );
  }
});

t.test(
  'keys: changes with an old login are 403 Fresh login required where the setting asks for it',
  async (t) => {
    const { signUp, addKey, changeKey, actors, login, settings } = start(t);
    const { sid, keyId, key } = await signUp();
    settings.set('KeyChangeFreshLoginSeconds', 60);
    actors.clock.nowMs += 60_001;
    refused(t, await changeKey('update_key', sid, { keyId, mcpAccess: true }), 403, 1110);
    refused(t, await changeKey('remove_key', sid, { keyId }), 403, 1110);
    refused(t, await addKey(sid, makeKey(), 'claim'), 403, 1110);
    const fresh = sidOf(await login(key)) ?? '';
    t.equal((await changeKey('update_key', fresh, { keyId, mcpAccess: true })).status, 200);
  },
);

// covers R28 R52
t.test(
  'remove_key: ends browser and MCP sessions of the key before it answers, and frees the name',
  async (t) => {
    const { signUp, login, changeKey, alive, allowAgent, mcpLogin, sessions, actors } = start(t);
    const account = await signUp();
    const agent = makeKey();
    const agentId = await allowAgent(account, agent);
    await mcpLogin({ 'X-PublicKey': agent.publicKey });
    await mcpLogin({ 'X-PublicKey': agent.publicKey });
    const removed = await changeKey('remove_key', account.sid, { keyId: agentId });
    t.same(removed.result, { keyId: agentId, sessionsClosed: 2 });
    t.equal(removed.headers['set-cookie'], undefined);
    t.equal((await sessions(account.sid)).length, 1);
    t.equal(actors.system.lookup('publicKey', agent.publicKey), undefined);
    const elsewhere = sidOf(await login(account.key)) ?? '';
    const last = await changeKey('remove_key', elsewhere, { keyId: account.keyId });
    t.same(last.result, { keyId: account.keyId, sessionsClosed: 2 });
    t.match(last.headers['set-cookie'], /^sid=; Path=\/; HttpOnly; SameSite=Lax; Max-Age=0$/);
    t.equal(await alive(account.sid), false);
    t.equal(await alive(elsewhere), false);
  },
);

// covers R59
t.test('sessions and close_sessions: listed ones, others, all; an unknown id ends nothing', async (t) => {
  const { signUp, login, post, sessions, alive } = start(t);
  const account = await signUp();
  const second = sidOf(await login(account.key)) ?? '';
  const third = sidOf(await login(account.key)) ?? '';
  const outsider = await signUp();
  const close = (sid: string, body?: object) => post('/auth/v1/close_sessions', body, cookie(sid));
  const ids = (await sessions(account.sid)).map((session) => session.id);
  const currents = (await sessions(second)).map(({ current }) => current);
  t.same(currents, [false, true, false]);
  const [foreign] = await sessions(outsider.sid);
  refused(t, await close(account.sid, { sessionIds: [ids[1], foreign?.id] }), 404, 1004);
  refused(t, await close(account.sid, { sessionIds: [] }), 400, 1001);
  refused(t, await close(account.sid, { sessionIds: [ids[1]], others: true }), 400, 1001);
  for (const others of [false, 'true', 1, null]) refused(t, await close(account.sid, { others }), 400, 1001);
  t.equal(await alive(account.sid), true);
  t.equal(await alive(second), true);
  t.same((await close(account.sid, { sessionIds: [ids[1], ids[1]] })).result, { sessionsClosed: 1 });
  t.equal(await alive(second), false);
  t.same((await close(account.sid, { others: true })).result, { sessionsClosed: 1 });
  t.equal(await alive(third), false);
  const all = await close(account.sid);
  t.same(all.result, { sessionsClosed: 1 });
  t.match(all.headers['set-cookie'], /^sid=; /);
  t.equal(await alive(account.sid), false);
  t.equal(await alive(outsider.sid), true);
  refused(t, await close(account.sid), 401, 1101);
});

// covers R59
t.test('logout: ends the session and takes the cookie back', async (t) => {
  const { signUp, post, alive } = start(t);
  const { sid } = await signUp();
  const answer = await post('/auth/v1/logout', undefined, cookie(sid));
  t.match({ status: answer.status, result: answer.result }, { status: 200, result: null });
  t.match(answer.headers['set-cookie'], /^sid=; /);
  t.equal(await alive(sid), false);
  refused(t, await post('/auth/v1/logout', undefined, cookie(sid)), 401, 1101);
});

t.test(
  'Idempotency-Key: a repeat gets the first answer, also of register_key; another operation does not',
  async (t) => {
    const { signUp, challenge, post, changeKey, keys } = start(t);
    const { sid } = await signUp();
    const { challengeId, code } = await challenge('register', sid);
    const body = { challengeId, code, publicKey: makeKey().publicKey };
    const headers = { ...cookie(sid), 'Idempotency-Key': 'same' };
    const [first, repeat] = await Promise.all([post(REGISTER, body, headers), post(REGISTER, body, headers)]);
    t.equal(first.status, 200);
    t.same(repeat.result, first.result);
    t.same((await post(REGISTER, body, headers)).result, first.result);
    t.equal((await keys(sid)).length, 2);
    const keyId = (first.result as Registered).key.id;
    const updated = await changeKey(
      'update_key',
      sid,
      { keyId, mcpAccess: true },
      { 'Idempotency-Key': 'same' },
    );
    t.match(updated.result, { id: keyId, mcpAccess: true });
    const remove = () => changeKey('remove_key', sid, { keyId }, { 'Idempotency-Key': 'again' });
    t.same((await remove()).result, (await remove()).result);
    refused(t, await changeKey('remove_key', sid, { keyId }), 404, 1108, 'without it');
  },
);

t.test('Idempotency-Key: with another body it is 422, also while the first is under way', async (t) => {
  const { signUp, addKey, changeKey, keys, post, alive, actors } = start(t);
  const { sid, keyId } = await signUp();
  const other = ((await addKey(sid, makeKey(), 'proof')).result as Registered).key.id;
  const header = { 'Idempotency-Key': 'same' };
  const first = changeKey('update_key', sid, { keyId: other, mcpAccess: true }, header);
  const retryOnClaimConflict = await changeKey('update_key', sid, { keyId, mcpAccess: true }, header);
  t.match((await first).result, { id: other, mcpAccess: true });
  refused(t, retryOnClaimConflict, 422, 1016);
  await actors.restart();
  refused(t, await changeKey('update_key', sid, { keyId: other, mcpAccess: false }, header), 422, 1016);
  t.match((await changeKey('update_key', sid, { keyId: other, mcpAccess: true }, header)).result, {
    id: other,
  });
  t.match((await keys(sid)).map(({ mcpAccess }) => mcpAccess).sort(), [false, true], 'nothing else was done');
  const close = (body: object) => post('/auth/v1/close_sessions', body, { ...cookie(sid), ...header });
  t.same((await close({ others: true })).result, { sessionsClosed: 0 });
  refused(t, await close({}), 422, 1016);
  t.equal(await alive(sid), true);
});

// covers R54
t.test('races: of two answers to one challenge, exactly one logs in', async (t) => {
  const { signUp, post, sessions, signed } = start(t);
  const { key, sid } = await signUp();
  for (let round = 0; round < 10; round += 1) {
    const body = await signed(key, 'login');
    const answers = await Promise.all([post('/auth/v1/login', body), post('/auth/v1/login', body)]);
    t.same(answers.map(({ status }) => status).sort(), [200, 401]);
  }
  t.equal((await sessions(sid)).length, 11);
});

t.test('races: of two sign-ups with one key, exactly one wins', async (t) => {
  const { signed, post, keys, login } = start(t);
  const key = makeKey();
  const bodies = [await signed(key), await signed(key), await signed(key)];
  const answers = await Promise.all(bodies.map((body) => post(REGISTER, body)));
  t.same(answers.map(({ status }) => status).sort(), [200, 409, 409]);
  const winner = answers.find(({ status }) => status === 200);
  t.equal((await keys(winner === undefined ? '' : (sidOf(winner) ?? ''))).length, 1);
  t.equal((await login(key)).status, 200);
});

t.test('races: a key removed while its login is being verified opens no session', async (t) => {
  const { signUp, addKey, post, changeKey, hold, sessions, signed } = start(t);
  const { sid } = await signUp();
  const second = makeKey();
  const { key } = (await addKey(sid, second, 'proof')).result as Registered;
  const body = await signed(second, 'login');
  const { reached, open } = hold();
  const login = post('/auth/v1/login', body);
  await reached;
  t.same((await changeKey('remove_key', sid, { keyId: key.id })).result, {
    keyId: key.id,
    sessionsClosed: 0,
  });
  open();
  refused(t, await login, 401, 1101);
  t.equal((await sessions(sid)).length, 1);
});

// covers R8 R53
t.test('races: a claim that slips in while a proof is being checked is overtaken', async (t) => {
  const { signUp, signed, post, addKey, keys, hold, actors } = start(t);
  const squatter = await signUp();
  const key = makeKey();
  const body = await signed(key);
  const { reached, open } = hold();
  const registration = post(REGISTER, body);
  await reached;
  t.equal((await addKey(squatter.sid, key, 'claim')).status, 200);
  open();
  const answer = await registration;
  t.equal(answer.status, 200);
  await actors.settle();
  t.equal((await keys(squatter.sid)).length, 1);
  t.equal((await keys(sidOf(answer) ?? '')).length, 1);
});

t.test('races: a session that ends while its key is being checked adds none', async (t) => {
  const { signUp, addKey, post, hold, actors } = start(t);
  const { sid } = await signUp();
  const key = makeKey();
  const { reached, open } = hold();
  const registration = addKey(sid, key, 'proof');
  await reached;
  await post('/auth/v1/logout', undefined, cookie(sid));
  open();
  refused(t, await registration, 401, 1101);
  t.equal(actors.system.lookup('publicKey', key.publicKey), undefined);
});

t.test('restart: a challenge that opened something before is 1104, with whatever key', async (t) => {
  const { signUp, signed, challenge, post, actors, sessions, keys } = start(t);
  const account = await signUp();
  const { sid, key } = account;
  const login = await signed(key, 'login');
  t.equal((await post('/auth/v1/login', login)).status, 200);
  const added = await challenge('register', sid);
  const claim = { challengeId: added.challengeId, code: added.code, publicKey: makeKey().publicKey };
  t.equal((await post(REGISTER, claim, cookie(sid))).status, 200);
  const founding = makeKey();
  const foundedBy = answerTo(await challenge('register'));
  t.equal((await post(REGISTER, foundedBy(founding))).status, 200);
  for (let restarts = 0; restarts < 2; restarts += 1) {
    await actors.restart();
    refused(t, await post('/auth/v1/login', login), 401, 1104, 'a login');
    refused(t, await post(REGISTER, claim, cookie(sid)), 401, 1104, 'a key of the account');
    const another = { ...claim, publicKey: makeKey().publicKey };
    refused(t, await post(REGISTER, another, cookie(sid)), 401, 1104, 'another key of it');
    refused(t, await post(REGISTER, foundedBy(founding)), 401, 1104, 'a sign-up');
    refused(t, await post(REGISTER, foundedBy(makeKey())), 401, 1104, 'a sign-up with another key');
  }
  t.equal((await sessions(sid)).length, 2);
  t.equal((await keys(sid)).length, 2);
});

t.test(
  'restart: an open challenge belongs to its kind and session as before, for as long as before',
  async (t) => {
    const { signUp, signed, challenge, post, actors } = start(t);
    const [one, two] = [await signUp(), await signUp()];
    const own = await challenge('register', one.sid);
    const late = await challenge('register', one.sid);
    const claim = ({ challengeId, code }: Challenge) => {
      return { challengeId, code, publicKey: makeKey().publicKey };
    };
    const register = await signed(one.key);
    const login = await signed(one.key, 'login');
    await actors.restart();
    refused(t, await post(REGISTER, claim(own), cookie(two.sid)), 401, 1104, 'another user');
    refused(t, await post('/auth/v1/login', register), 401, 1104, 'another kind');
    const swapped = { ...claim(own), code: late.code };
    const ends = Date.parse(own.expiresUtc) + 300_000;
    actors.clock.nowMs = ends;
    t.equal((await post('/auth/v1/login', login, cookie(two.sid))).status, 200, 'an anonymous one, in time');
    refused(t, await post(REGISTER, swapped, cookie(one.sid)), 401, 1104, 'the code of another challenge');
    refused(t, await post(REGISTER, claim(own), cookie(one.sid)), 401, 1104, 'used up by that');
    actors.clock.nowMs = ends + 1;
    refused(t, await post(REGISTER, claim(late), cookie(one.sid)), 401, 1104, 'a millisecond too late');
  },
);

t.test(
  'restart: a repeat with the same Idempotency-Key gets the first answer, or is done once',
  async (t) => {
    const { signUp, challenge, post, actors, keys } = start(t);
    const { sid } = await signUp();
    const headers = { ...cookie(sid), 'Idempotency-Key': 'same' };
    const { challengeId, code } = await challenge('register', sid);
    const body = { challengeId, code, publicKey: makeKey().publicKey };
    await actors.restart();
    const first = await post(REGISTER, body, headers);
    t.equal(first.status, 200, 'the first did not arrive before the restart');
    await actors.restart();
    t.same((await post(REGISTER, body, headers)).result, first.result);
    refused(t, await post(REGISTER, body, { ...headers, 'Idempotency-Key': 'other' }), 401, 1104);
    t.equal((await keys(sid)).length, 2);
  },
);

t.test('challenge: of logins with one challenge by the keys of two accounts, one is served', async (t) => {
  const { signUp, challenge, post } = start(t);
  const [one, two] = [await signUp(), await signUp()];
  const bodyOf = answerTo(await challenge('login'));
  t.equal((await post('/auth/v1/login', bodyOf(one.key))).status, 200);
  refused(t, await post('/auth/v1/login', bodyOf(two.key)), 401, 1104);
});

t.test('challenge: an account that answered 64 in their life gets 429 until the first is over', async (t) => {
  const { signUp, login, actors } = start(t);
  const { key } = await signUp();
  const statuses: number[] = [];
  for (let count = 1; count < 64; count += 1) statuses.push((await login(key)).status);
  t.same(statuses, new Array(63).fill(200));
  const limited = await login(key);
  refused(t, limited, 429, 1002);
  t.equal(limited.headers['retry-after'], '601');
  t.match(limited.headers['x-ratelimit'], /^s=s;l=[0-9]+;r=0;t=601$/, 'of a user that has no session yet');
  t.equal((await login((await signUp()).key)).status, 200, 'another account');
  actors.clock.nowMs += 600_001;
  t.equal((await login(key)).status, 200);
});

t.test('limits: a session is counted by itself, its refusal is 429 with Retry-After', async (t) => {
  const { signUp, get } = start(t, { settings: { SessionApiRPSLimit: 1 } });
  const read = (sid: string) => get('/auth/v1/sessions', cookie(sid));
  const one = await signUp();
  const two = await signUp();
  for (let left = 4; left >= 0; left -= 1)
    t.equal((await read(one.sid)).headers['x-ratelimit'], `s=s;l=5;r=${left};t=5`);
  const limited = await read(one.sid);
  refused(t, limited, 429, 1002);
  t.equal(limited.headers['retry-after'], '5');
  t.equal((await read(two.sid)).status, 200);
});

// covers S69
t.test(
  'limits: sessions of one user together stop at the limit of the user, others are served',
  async (t) => {
    const { signUp, login, get } = start(t, { settings: { SessionApiRPSLimit: 2, UserApiRPSLimit: 3 } });
    const one = await signUp();
    const two = await signUp();
    const second = sidOf(await login(one.key)) ?? '';
    for (let n = 0; n < 9; n += 1) await get('/auth/v1/sessions', cookie(one.sid));
    const shared = await get('/auth/v1/sessions', cookie(second));
    t.equal(shared.headers['x-ratelimit'], 's=s;l=15;r=5;t=5', 'tighter than the nine of its own');
    for (let n = 0; n < 5; n += 1) await get('/auth/v1/sessions', cookie(second));
    refused(t, await get('/auth/v1/sessions', cookie(second)), 429, 1002);
    refused(t, await get('/auth/v1/sessions', cookie(one.sid)), 429, 1002);
    t.equal((await get('/auth/v1/sessions', cookie(two.sid))).status, 200);
  },
);

/** A registration with a session that may be sent again with whatever Idempotency-Key. */
async function startRegistration(t: Test) {
  const { signUp, signed, post, actors } = start(t);
  const { sid } = await signUp();
  const body = await signed(makeKey(), 'register', sid);
  const register = (idempotencyKey: string) =>
    post(REGISTER, body, { ...cookie(sid), 'Idempotency-Key': idempotencyKey });
  return { system: actors.system, register };
}

t.test(
  'register_key: a repeat with its Idempotency-Key takes effect after a 503, another request does not',
  async (t) => {
    const { system, register } = await startRegistration(t);
    const { ask } = system;
    system.ask = () => Promise.reject(new GatewayError('Overloaded'));
    t.equal((await register('one')).status, 503);
    t.equal((await register('one')).status, 503);
    t.equal((await register('two')).status, 401, 'the challenge is kept for the first request');
    system.ask = ask;
    t.equal((await register('one')).status, 200);
    t.equal((await register('one')).status, 200, 'the reply is kept');
    t.equal((await register('two')).status, 401);
  },
);

t.test('register_key: a repeat gets the first answer that came while this node looked for it', async (t) => {
  const { system, register } = await startRegistration(t);
  const { remembers } = system;
  let first: Awaited<ReturnType<typeof register>> | undefined;
  const later = async (...args: Parameters<typeof remembers>) => {
    const before = remembers.apply(system, args);
    system.remembers = remembers;
    first = await register('one');
    return before;
  };
  system.remembers = later as unknown as typeof remembers;
  const repeat = await register('one');
  t.same([first?.status, repeat.status], [200, 200]);
  t.same(repeat.result, first?.result);
});
