/** Contact sync: tokens of devices, what they open and until when, and how devices find the module. */
import { readFileSync } from 'node:fs';
import t, { type Test } from 'tap';
import { closeAfter } from '../../../kit/close-after.ts';
import { user } from '../../../src/actors/accounts/user.ts';
import { hashToken } from '../../../src/domain/ids.ts';
import { CONTACT_SYNC_TOKENS_MAX } from '../../../src/domain/sessions.ts';
import { DAY_MS, MINUTE_MS } from '../../../src/domain/time.ts';
import { type Account, cookie, makeKey, type Registered, sidOf } from '../../support/account.ts';
import { commitAccount, type StoredAccount } from '../../support/actors/commit-rows.ts';
import { startChat } from '../../support/codes.ts';
import { basic, type ContactSyncFixture, startContactSync } from '../../support/contact-sync.ts';

const BOOK = '/people/v1/book/';
const LIST = '/auth/v1/contact_sync';
const CHALLENGE = 'Basic realm="contacts", charset="UTF-8"';

async function start(t: Test, options: Parameters<typeof startContactSync>[0] = {}) {
  return closeAfter(t, await startContactSync(options));
}

/** An account whose key may sync contacts. */
async function person(fixture: ContactSyncFixture): Promise<Account> {
  const account = await fixture.signUp();
  await fixture.allow(account);
  return account;
}

/** An account with a token of its key. */
async function startWithToken(t: Test, options: Parameters<typeof startContactSync>[0] = {}) {
  const fixture = await start(t, options);
  const account = await person(fixture);
  const { id, token } = await fixture.token(account);
  const as = basic(account.userId, token);
  const use = async () => (await fixture.send('PROPFIND', BOOK, as)).status;
  const listed = async () =>
    ((await fixture.get(LIST, cookie(account.sid))).result as { tokens: Listed[] }).tokens;
  return { ...fixture, account, id, token, as, use, listed };
}

interface Listed {
  readonly id: string;
  readonly lastUsedUtc: string;
}

const statusOf = async (fixture: ContactSyncFixture, username: string, token: string) =>
  (await fixture.send('PROPFIND', BOOK, basic(username, token))).status;

// covers R125
t.test('token: 46 characters, shown once, and it opens its module as ContactSync with the key', async (t) => {
  const fixture = await start(t);
  const account = await person(fixture);
  const { result } = await fixture.add(account);
  const added = result as Record<string, string>;
  t.match(added, {
    token: /^[A-Za-z0-9_-]{46}$/,
    keyId: account.keyId,
    name: 'Phone',
    username: account.userId,
    url: `http://localhost:${fixture.http.port}/people/v1/`,
    lastUsedUtc: null,
  });
  const answer = await fixture.send('PROPFIND', BOOK, basic(account.userId, added['token'] ?? ''), '<a/>');
  t.match(answer, { status: 207, body: '<ok/>', headers: { dav: '1, addressbook' } });
  const [reached] = fixture.reached;
  t.match(reached, {
    method: 'PROPFIND',
    url: BOOK,
    body: '<a/>',
    headers: { 'x-crm': account.userId, 'x-scopes': 'ContactSync', 'x-keytype': 'UserKey' },
  });
  t.equal(reached?.headers.authorization, undefined, 'the module does not learn the token');
  const listed = await fixture.get(LIST, cookie(account.sid));
  t.match(listed.result, {
    username: account.userId,
    url: /\/people\/v1\/$/,
    tokensPerKey: CONTACT_SYNC_TOKENS_MAX,
    tokens: [{ id: added['id'], name: 'Phone', lastUsedUtc: /^20/ }],
  });
  t.notMatch(JSON.stringify(listed), added['token']);
});

t.test('token: opens the module with contactSync alone', async (t) => {
  const { token, as: headers, send, reached } = await startWithToken(t);
  for (const path of ['/core/v1/notices/list', '/auth/v1/sessions', LIST]) {
    const answer = await send('GET', path, headers);
    t.equal(answer.status, 401, path);
    t.equal(answer.headers['www-authenticate'], undefined, path);
  }
  for (const as of [{ Authorization: `Bearer ${token}` }, cookie(token)])
    t.equal((await send('PROPFIND', BOOK, as)).status, 401, 'neither a bearer nor a cookie');
  t.strictSame(reached, []);
});

t.test('token: all methods of CardDAV pass, others are 405', async (t) => {
  const { send, reached, as: headers } = await startWithToken(t);
  const passing = ['OPTIONS', 'PROPFIND', 'REPORT', 'GET', 'HEAD', 'PUT', 'DELETE'];
  for (const method of passing) {
    const body = method === 'PUT' ? 'BEGIN' : undefined;
    t.equal((await send(method, `${BOOK}one.vcf`, headers, body)).status, 207, method);
  }
  t.same(
    reached.map(({ method }) => method),
    passing,
  );
  t.equal((await send('MKCOL', BOOK, headers)).status, 405);
  t.equal((await send('PROPFIND', '/people/v1/', headers)).status, 207, 'the root of the module');
  t.equal((await send('PROPFIND', '/', headers)).status, 404);
  t.equal((await send('PROPFIND', '/core/v1/', headers)).status, 404, 'the root of another module');
});

t.test('token: the user name is the user id or the proven contact, in any spelling', async (t) => {
  const chat = startChat();
  const fixture = await start(t, { codes: chat.port });
  const { challengeId } = (await fixture.post('/auth/v1/login_email', { email: 'Ada@Example.com' }))
    .result as { challengeId: number };
  await fixture.actors.settle();
  const login = await fixture.post('/auth/v1/login', { challengeId, code: chat.last().code });
  const sid = sidOf(login) ?? '';
  const { userId } = login.result as { userId: string };
  const key = makeKey();
  const added = await fixture.addKey(sid, key, 'proof');
  const account: Account = { sid, userId, key, keyId: (added.result as Registered).key.id };
  await fixture.allow(account);
  const { token } = await fixture.token(account);
  for (const name of [userId, 'ada@example.com', 'ADA@Example.COM'])
    t.equal(await statusOf(fixture, name, token), 207, name);
  const other = await fixture.signUp();
  for (const name of [other.userId, '', 'bob@example.com', '+491701234567', 'ada'])
    t.equal(await statusOf(fixture, name, token), 401, name);
});

// covers R125
t.test('token: ends with its removal, its key, the flag of the key and a block', async (t) => {
  const fixture = await start(t);
  const { actors } = fixture;
  const ends: Record<string, (account: Account, id: string) => Promise<unknown>> = {
    removal: (account, id) => fixture.post(`${LIST}/remove`, { id }, cookie(account.sid)),
    'removal of the key': ({ sid, keyId }) => fixture.changeKey('remove_key', sid, { keyId }),
    'the flag': async (account) => {
      await fixture.allow(account, false);
      await fixture.allow(account, true);
    },
    'removal of the account': (account) =>
      fixture.post('/auth/v1/account/remove', undefined, cookie(account.sid)),
    'a block': async ({ userId }) => {
      for (const blocked of [true, false]) await fixture.setBlocked(userId, blocked);
    },
  };
  for (const [what, end] of Object.entries(ends)) {
    const account = await person(fixture);
    const { id, token } = await fixture.token(account);
    t.equal(await statusOf(fixture, account.userId, token), 207, `before ${what}`);
    t.ok(actors.system.lookup('contactSync', hashToken(token) ?? ''));
    await end(account, id);
    t.equal(await statusOf(fixture, account.userId, token), 401, `after ${what}`);
    t.equal(
      actors.system.lookup('contactSync', hashToken(token) ?? ''),
      undefined,
      `${what}: no index entry`,
    );
  }
});

t.test('token: a password key that replaces its key ends it', async (t) => {
  const fixture = await start(t);
  const account = await fixture.signUp(makeKey(), true);
  await fixture.allow(account);
  const { token } = await fixture.token(account);
  const replacing = await fixture.addKey(account.sid, makeKey(), 'proof', { passKeyFlag: true });
  t.equal(replacing.status, 200);
  t.equal(await statusOf(fixture, account.userId, token), 401);
});

t.test('token: no log-in ends it, and neither time nor a restart does', async (t) => {
  const { actors, account, sessions, loginLog, listed, post, use } = await startWithToken(t);
  const list = await sessions(account.sid);
  t.match([list, list.length], [[{ kind: 'browser' }], 1], 'it is no session of the list');
  t.match(await loginLog(account.sid), [
    { event: 'contact_sync_added', kind: 'contactSync', keyId: account.keyId, ok: true },
    {},
  ]);
  const close = (body: object) => post('/auth/v1/close_sessions', body, cookie(account.sid));
  t.equal((await close({ sessionIds: [(await listed())[0]?.id] })).status, 404);
  t.match((await close({})).result, { sessionsClosed: 1 });
  await actors.settle();
  actors.clock.nowMs += 400 * DAY_MS;
  await actors.restart();
  await actors.advance(2 * MINUTE_MS);
  t.equal(await use(), 207);
});

t.test('token: its last use is listed, and written once a minute', async (t) => {
  const { actors, use, listed } = await startWithToken(t);
  await actors.advance(10 * MINUTE_MS);
  const usedMs = actors.clock.nowMs;
  await use();
  await actors.settle();
  await actors.restart();
  t.equal(
    (await listed())[0]?.lastUsedUtc,
    new Date(usedMs).toISOString(),
    'the first use is written at once',
  );
});

t.test('token: at most eight of a key, more of another key', async (t) => {
  const { id, account, ...fixture } = await startWithToken(t);
  for (let more = 1; more < CONTACT_SYNC_TOKENS_MAX; more += 1) await fixture.add(account);
  t.match(await fixture.add(account), { status: 409, error: { code: 1115 } });
  const second = await fixture.allowAgent(account, makeKey());
  await fixture.allow(account, true, second);
  t.equal((await fixture.add(account, { keyId: second })).status, 200);
  await fixture.post(`${LIST}/remove`, { id }, cookie(account.sid));
  t.equal((await fixture.add(account)).status, 200, 'after one was removed');
});

t.test(
  'token: needs a key of the account with contact sync access, and a fresh login where asked',
  async (t) => {
    const fixture = await start(t);
    const account = await fixture.signUp();
    const other = await person(fixture);
    t.match(await fixture.add(account), { status: 403, error: { code: 1103 } }, 'without cardDavAccess');
    t.match(await fixture.add(account, { keyId: other.keyId }), { status: 404, error: { code: 1108 } });
    t.match(await fixture.add(account, { keyId: 'x' }), { status: 400, error: { code: 1001 } });
    t.match(await fixture.add(account, { keyId: account.keyId, name: '\u0007' }), { status: 400 });
    t.equal((await fixture.post(`${LIST}/token`, { keyId: account.keyId })).status, 401, 'without a session');
    const { id } = await fixture.token(other);
    t.match(await fixture.post(`${LIST}/remove`, { id }, cookie(account.sid)), {
      status: 404,
      error: { code: 1004 },
    });
    await fixture.allow(account);
    fixture.settings.set('KeyChangeFreshLoginSeconds', 60);
    await fixture.actors.advance(61_000);
    t.match(await fixture.add(account), { status: 403, error: { code: 1110 } });
  },
);

t.test('contact sync: no module has it, so there are no tokens and no place', async (t) => {
  const fixture = await start(t, { rules: {} });
  const account = await person(fixture);
  t.match(await fixture.add(account), { status: 503, error: { code: 1116 } });
  t.match((await fixture.get(LIST, cookie(account.sid))).result, { url: null, tokens: [] });
  const found = await fixture.send('PROPFIND', '/.well-known/carddav');
  t.match(found, { status: 404 });
  t.match(JSON.parse(found.body), { error: { code: 1004 } });
});

// covers R125
t.test('discovery: /.well-known/carddav sends every method to the module', async (t) => {
  const fixture = await start(t);
  for (const method of ['GET', 'HEAD', 'PROPFIND', 'OPTIONS', 'POST', 'REPORT', 'PUT', 'LOCK', 'DELETE']) {
    const body = method === 'PROPFIND' ? '<a/>' : undefined;
    const answer = await fixture.send(method, '/.well-known/carddav', {}, body);
    t.match(answer, { status: 301, headers: { location: '/people/v1/', 'content-length': '0' } }, method);
  }
});

// covers S197
t.test('challenge: devices are asked for Basic, browsers are not', async (t) => {
  const fixture = await start(t);
  const asked = await fixture.send('PROPFIND', BOOK);
  t.match(asked, { status: 401, headers: { 'www-authenticate': CHALLENGE } });
  t.match(JSON.parse(asked.body), { error: { code: 1101 } });
  for (const name of ['Sec-Fetch-Site', 'Sec-Fetch-Mode', 'Sec-Fetch-Dest']) {
    const { status, headers } = await fixture.send('GET', BOOK, { [name]: 'none' });
    t.equal(status, 401);
    t.equal(headers['www-authenticate'], undefined, name);
  }
  const { headers } = await fixture.send('GET', '/core/v1/notices/list');
  t.equal(headers['www-authenticate'], undefined, 'another module');
});

// covers S195
t.test('transport: a token counts over TLS, behind a proxy that says https, and on loopback', async (t) => {
  const proxied = { 'X-Forwarded-For': '198.51.100.7' };
  const saying = (proto: string) => ({ ...proxied, 'X-Forwarded-Proto': proto });
  const trusted = { trustedProxies: ['127.0.0.1'] };
  const cases: readonly [string, Parameters<typeof start>[1], Record<string, string>, boolean][] = [
    ['loopback', {}, {}, true],
    ['an unknown proxy', {}, proxied, false],
    ['an unknown proxy that says https', {}, saying('https'), false],
    ['an unknown proxy that says it otherwise', {}, { Forwarded: 'for=198.51.100.7;proto=http' }, false],
    ['a trusted proxy', trusted, proxied, false],
    ['it says http', trusted, saying('http'), false],
    ['it says https', trusted, saying('https'), true],
    ['one of two says http', trusted, saying('https, http'), false],
    ['own TLS', { site: { endsTls: true } }, { Via: '1.1 office' }, true],
  ];
  for (const [what, options, headers, counts] of cases) {
    const { as, send } = await startWithToken(t, options);
    t.equal((await send('PROPFIND', BOOK, { ...headers, ...as })).status, counts ? 207 : 401, what);
    const { headers: asked } = await send('PROPFIND', BOOK, headers);
    t.equal(asked['www-authenticate'], counts ? CHALLENGE : undefined, what);
  }
});

// covers S196
t.test('guesses: unknown tokens and foreign names count as unknown keys of the address', async (t) => {
  const settings = { UnknownKeyFailuresPerMinute: 4 };
  const { account, token, as, send, use, actors } = await startWithToken(t, { settings });
  const guesses = [
    basic(account.userId, `${token.slice(0, -1)}${token.endsWith('A') ? 'B' : 'A'}`),
    basic('1', token),
    basic(account.userId, ''),
    { Authorization: 'Basic !' },
  ];
  for (const headers of guesses) {
    const answer = await send('PROPFIND', BOOK, headers);
    t.match(answer, { status: 401, headers: { 'www-authenticate': CHALLENGE } });
  }
  const limited = await send('PROPFIND', BOOK, as);
  t.match(limited, { status: 429, headers: { 'retry-after': String } });
  await actors.advance(MINUTE_MS);
  t.equal(await use(), 207);
});

t.test('limits: a token is charged by scope s', async (t) => {
  const settings = { SessionApiRPSLimit: 1, RateLimitWindowSeconds: 5 };
  const { send, as } = await startWithToken(t, { settings });
  const answers = [];
  for (let call = 0; call < 6; call += 1) answers.push(await send('PROPFIND', BOOK, as));
  t.same(
    answers.map(({ status }) => status),
    [207, 207, 207, 207, 207, 429],
  );
  t.match(answers[0]?.headers['x-ratelimit'], /^s=s;l=5;r=4/);
});

// covers S197
t.test('browsers: a foreign page cannot use what a browser remembers of Basic', async (t) => {
  const { account, as: headers, ...fixture } = await startWithToken(t);
  for (const foreign of [{ Origin: 'https://evil.example' }, { 'Sec-Fetch-Site': 'cross-site' }])
    t.equal((await fixture.send('DELETE', `${BOOK}one.vcf`, { ...headers, ...foreign })).status, 403);
  t.strictSame(fixture.reached, []);
  t.equal((await fixture.send('PROPFIND', BOOK, cookie(account.sid))).status, 207, 'a session of a browser');
  t.match(fixture.reached[0]?.headers, { 'x-scopes': 'Browser' });
});

/** An account with a token, with random keys that no other account has. */
const GOLDEN: Omit<StoredAccount, 'version'> & { readonly token: string; readonly nowMs: number } =
  JSON.parse(readFileSync(new URL('../../../../test/fixtures/rows-10.json', import.meta.url), 'utf8'));

for (const form of ['snapshot', 'events'] as const) {
  t.test(`token: one of rows of version 10 opens the module, from ${form}`, async (t) => {
    const fixture = await start(t);
    const { actors } = fixture;
    const { userId: id } = GOLDEN;
    await actors.settle();
    await commitAccount(actors.journal, { version: 10, ...GOLDEN }, form);
    actors.clock.nowMs = GOLDEN.nowMs;
    t.equal(await statusOf(fixture, id, GOLDEN.token), 207);
    const tokens = await actors.system.query(user, id, { type: 'contactSync' });
    t.match(tokens, [{ name: 'Device' }]);
    await actors.restart();
    t.equal(await statusOf(fixture, id, GOLDEN.token), 207, 'after a restart');
  });
}
