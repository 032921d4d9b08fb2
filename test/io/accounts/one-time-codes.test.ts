/** login_phone, login_email and login with a code (spec 4.4) over the pipeline, with real actors and one clock. */
import t, { type Test } from 'tap';
import { closeAfter } from '../../../kit/close-after.ts';
import { user } from '../../../src/actors/accounts/user.ts';
import {
  type Answer,
  cookie,
  makeKey,
  mcpProof,
  refusal,
  refused,
  sidOf,
  startAccounts,
} from '../../support/account.ts';
import { startChat, wrongCode } from '../../support/codes.ts';
import { connectRaw, requestText } from '../../support/http.ts';

const PHONE = '+491701234567';

interface Requested {
  readonly challengeId: number;
  readonly expiresUtc: string;
  readonly codeLength: number;
  readonly resendAfterSeconds: number;
  /** The one that was delivered last. */
  readonly code: string;
}

function start(t: Test, settings = {}) {
  const chat = startChat();
  const accounts = closeAfter(t, startAccounts({ settings, codes: chat.port }));
  const request = async (phone = PHONE, headers = {}) => {
    const answer = await accounts.post('/auth/v1/login_phone', { phone }, headers);
    await accounts.actors.settle();
    return answer;
  };
  const ask = async (phone = PHONE, headers = {}): Promise<Requested> => {
    const answer = await request(phone, headers);
    if (answer.status !== 200) throw new Error(`login_phone: ${JSON.stringify(answer)}`);
    return { ...(answer.result as Requested), code: chat.outbox.at(-1)?.code ?? '' };
  };
  const enter = (challengeId: number | string, code: string, headers = {}) =>
    accounts.post('/auth/v1/login', { challengeId, code }, headers);
  /** A first login with a code, a minute before the next; the id of its account. */
  const signUpByCode = async () => {
    const { challengeId, code } = await ask();
    const { userId } = (await enter(challengeId, code)).result as { userId: string };
    await accounts.actors.advance(60_000);
    return userId;
  };
  return { ...accounts, chat, request, ask, enter, signUpByCode };
}

// covers R57 R60
t.test('login_phone: first code creates the account, the next one finds it again', async (t) => {
  const { chat, ask, enter, get, post, actors, keys, loginLog } = start(t);
  const first = await ask();
  t.match(first, { codeLength: 8, resendAfterSeconds: 60, expiresUtc: '2026-01-01T00:05:00.000Z' });
  t.ok(Number.isSafeInteger(first.challengeId));
  t.match(chat.last(), { channel: 'phone', address: PHONE, code: /^[0-9]{8}$/ });
  const created = await enter(first.challengeId, chat.last().code);
  t.match(created.result, { keyId: null, keyType: 'Unknown', newAccount: true, userId: /^[0-9]+$/ });
  const sid = sidOf(created) ?? '';
  t.match(created.headers['set-cookie'], /^sid=[A-Za-z0-9_-]{46}; Path=\/; HttpOnly; SameSite=Lax/);
  const { result: sessions } = await get('/auth/v1/sessions', cookie(sid));
  t.match(sessions, [{ kind: 'browser', loginType: null, keyId: null, current: true }]);
  await actors.advance(60_000);
  const second = await ask();
  const again = await enter(String(second.challengeId), chat.last().code, cookie(sid));
  t.match(again.result, { newAccount: false, userId: (created.result as { userId: string }).userId });
  t.equal((await get('/auth/v1/sessions', cookie(sid))).status, 401, 'the session that came along ended');
  t.match(await loginLog(sidOf(again) ?? ''), [
    { event: 'login', ok: true, keyId: null },
    { event: 'sign_up', ok: true, keyId: null },
  ]);
  t.same(await keys(sidOf(again) ?? ''), []);
  t.equal((await post('/auth/v1/logout', undefined, cookie(sidOf(again)))).status, 200);
});

// covers R59
t.test('login_email: spelling in capitals finds the same account', async (t) => {
  const { chat, post, enter, actors } = start(t);
  const users: unknown[] = [];
  for (const email of ['Ann.B+x@Example.COM', 'ann.b+x@example.com']) {
    const answer = await post('/auth/v1/login_email', { email });
    await actors.settle();
    t.match(chat.last(), { channel: 'email', address: 'ann.b+x@example.com' });
    const { challengeId } = answer.result as Requested;
    users.push((await enter(challengeId, chat.last().code)).result);
    await actors.advance(60_000);
  }
  const [first, second] = users as [{ userId: string }, { userId: string }];
  t.equal(first.userId, second.userId);
});

t.test('code: wrong ones are counted, the fifth failure burns it', async (t) => {
  const { ask, enter, actors } = start(t);
  const { challengeId, code } = await ask();
  for (let failure = 1; failure <= 4; failure += 1)
    refused(t, await enter(challengeId, wrongCode(code)), 401, 'Invalid code');
  refused(t, await enter(challengeId, wrongCode(code)), 401, 'Challenge expired');
  refused(t, await enter(challengeId, code), 401, 'Challenge expired', 'the right one comes late');
  t.equal(actors.system.count('sidHash'), 0);
});

t.test('code: right after four wrong ones it is accepted, once', async (t) => {
  const { ask, enter } = start(t);
  const { challengeId, code } = await ask();
  for (let failure = 1; failure <= 4; failure += 1) await enter(challengeId, wrongCode(code));
  t.equal((await enter(challengeId, code)).status, 200);
  refused(t, await enter(challengeId, code), 401, 'Challenge expired');
});

// covers R60
t.test('code: two browsers racing with it get one session', async (t) => {
  const { chat, ask, enter, actors } = start(t);
  const { challengeId } = await ask();
  const answers = await Promise.all(Array.from({ length: 5 }, () => enter(challengeId, chat.last().code)));
  t.same(answers.map(({ status }) => status).sort(), [200, 401, 401, 401, 401]);
  t.equal(actors.system.count('sidHash'), 1);
  t.equal(actors.system.count('contact'), 1);
});

// covers R60
t.test('code: a hundred guesses at once get five comparisons', async (t) => {
  const { chat, ask, enter, actors } = start(t);
  const { challengeId } = await ask();
  const right = Number(chat.last().code);
  const guesses = Array.from({ length: 100 }, (_, n) =>
    enter(challengeId, String((right + 1 + n) % 100_000_000).padStart(8, '0')),
  );
  const answers = await Promise.all(guesses);
  t.ok(answers.every(({ status }) => status === 401));
  const wrong = answers.filter((answer) => refusal(answer) === '401/1109 Invalid code');
  t.equal(wrong.length, 4, 'the fifth burns the code, and the rest never were compared');
  const tries = actors.system.administration
    .auditPage(0, 1000)
    .filter(({ record }) => (record as { fields: { channel?: string } }).fields.channel === 'phone')
    .filter(({ record }) => (record as { event: string }).event === 'login_refused');
  t.equal(tries.length, 5);
});

t.test('code: expires after 300 s, and a newer one ends it at once', async (t) => {
  const { chat, ask, enter, actors } = start(t);
  const first = await ask();
  const { code } = first;
  await actors.advance(60_000);
  const second = await ask();
  refused(t, await enter(first.challengeId, code), 401, 'Challenge expired');
  await actors.advance(300_000);
  refused(t, await enter(second.challengeId, chat.last().code), 401, 'Challenge expired');
});

t.test('code: asked for in one session is not taken in another', async (t) => {
  const { chat, ask, enter, signUp } = start(t);
  const [ann, bob] = [await signUp(), await signUp()];
  const { challengeId } = await ask(PHONE, cookie(ann.sid));
  const { code } = chat.last();
  refused(t, await enter(challengeId, code, cookie(bob.sid)), 401, 'Challenge expired');
  refused(t, await enter(challengeId, code), 401, 'Challenge expired');
  t.equal((await enter(challengeId, code, cookie(ann.sid))).status, 200);
});

// covers R60 R103
t.test('caps: 60 s before a resend, five an hour for one number, ten for one address', async (t) => {
  const { chat, request, actors } = start(t);
  t.equal((await request()).status, 200);
  const soon = await request();
  refused(t, soon, 429, 'Access rate limit');
  t.equal(soon.headers['retry-after'], '60');
  t.equal(soon.headers['x-ratelimit'], 's=i;l=0;r=0;t=60', 'the scope is off, the code is refused');
  for (let sent = 2; sent <= 5; sent += 1) {
    await actors.advance(60_000);
    t.equal((await request()).status, 200);
  }
  await actors.advance(60_000);
  const sixth = await request();
  refused(t, sixth, 429, 'Access rate limit');
  t.equal(sixth.headers['retry-after'], String(3600 - 300), 'until the first one is an hour old');
  for (let other = 6; other <= 10; other += 1)
    t.equal((await request(`+49170000000${other % 10}`)).status, 200);
  t.equal((await request('+4917099999')).status, 429);
  await actors.advance(3_300_000);
  t.equal((await request()).status, 200);
  t.equal(chat.outbox.length, 11);
});

t.test(
  'caps: other callers cannot use up the codes of a person who logs in from a known network',
  async (t) => {
    const { request, enter, actors, ask } = start(t);
    const { challengeId, code } = await ask();
    t.equal((await enter(challengeId, code)).status, 200);
    const sendings = () => {
      const { stored } = actors.system.administration.export('codeDesk', 'all');
      return JSON.stringify(stored);
    };
    t.notMatch(sendings(), /"known":true/, 'the first code was for an unknown network');
    await actors.advance(60_000);
    t.equal((await request()).status, 200);
    t.match(sendings(), /"known":true/, 'the next one is not: the account was logged in to from here');
  },
);

// covers S76
t.test('code: requests from elsewhere leave the code of the owner and the five an hour good', async (t) => {
  const { chat, ask, enter, actors, http } = start(t);
  const first = await ask();
  t.equal((await enter(first.challengeId, chat.last().code)).status, 200);
  await actors.advance(60_000);
  const owners = await ask();
  const { code } = owners;
  const body = JSON.stringify({ phone: PHONE });
  const fromElsewhere = async () => {
    const connection = connectRaw(http.port, '127.0.0.2');
    connection.send(
      requestText('POST', '/auth/v1/login_phone', { 'Content-Type': 'application/json' }, body),
    );
    const { status } = await connection.answer();
    connection.close();
    await actors.settle();
    return status;
  };
  // The first code, before anybody had logged in, was one of theirs.
  for (let sent = 0; sent < 4; sent += 1) {
    t.equal(await fromElsewhere(), 200);
    await actors.advance(60_000);
  }
  t.equal(await fromElsewhere(), 429, 'their share is used up');
  t.equal((await enter(owners.challengeId, code)).status, 200, 'the code of the owner is good');
  t.ok((await ask()).challengeId, 'and the owner may have another one');
});

t.test('caps: survive a restart', async (t) => {
  const { request, ask, enter, actors } = start(t);
  const { challengeId, code } = await ask();
  for (let failure = 1; failure <= 4; failure += 1) await enter(challengeId, wrongCode(code));
  await actors.restart();
  t.equal((await request()).status, 429, 'the wait continues');
  refused(t, await enter(challengeId, wrongCode(code)), 401, 'Challenge expired', 'so do the tries');
});

t.test('chat module: absent, 503 and no method that needs it', async (t) => {
  const accounts = closeAfter(t, startAccounts());
  const answer = await accounts.post('/auth/v1/login_phone', { phone: PHONE });
  refused(t, answer, 503, 'Delivery unavailable');
  refused(t, await accounts.post('/auth/v1/login_email', { email: 'a@b.cd' }), 503, 'Delivery unavailable');
  const options = await accounts.get('/auth/v1/login_options');
  t.same((options.result as { methods: string[] }).methods, ['passkey', 'key']);
});

t.test('chat module: down, the code goes out when it is back, and not after its end', async (t) => {
  const { chat, ask, enter, actors } = start(t);
  chat.mode = 'down';
  const { challengeId } = await ask();
  t.equal(chat.outbox.length, 0);
  await actors.advance(20_000);
  await actors.restart();
  chat.mode = 'up';
  await actors.advance(30_000);
  t.equal(chat.outbox.length, 1);
  t.equal((await enter(challengeId, chat.last().code)).status, 200);
  chat.mode = 'refusing';
  await ask('+4915112345678');
  await actors.advance(300_000);
  chat.mode = 'up';
  await actors.advance(3_600_000);
  t.equal(chat.outbox.length, 1, 'what has expired is not sent');
  t.ok(chat.requests.length < 20, `${chat.requests.length} calls`);
});

t.test('chat module: an answer that is lost repeats the same code', async (t) => {
  const { chat, ask, enter, actors } = start(t);
  chat.mode = 'lost';
  const { challengeId } = await ask();
  await actors.advance(10_000);
  t.ok(chat.outbox.length > 1);
  t.equal(new Set(chat.outbox.map(({ code }) => code)).size, 1);
  t.equal((await enter(challengeId, chat.last().code)).status, 200);
});

t.test('addresses: known and unknown ones get the same answer', async (t) => {
  const { chat, enter, request, signUpByCode } = start(t);
  await signUpByCode();
  const [known, unknown] = [await request(), await request('+4915112345678')];
  const shape = ({ status, headers, result }: Answer) => ({
    status,
    headers: Object.keys(headers).sort(),
    fields: Object.keys(result as object).sort(),
  });
  t.same(shape(known), shape(unknown));
  const wrong = wrongCode(chat.last().code);
  t.equal(
    refusal(await enter((known.result as Requested).challengeId, wrong)),
    refusal(await enter((unknown.result as Requested).challengeId, wrong)),
  );
});

t.test('login log: a wrong code is shown to the owner of the number', async (t) => {
  const { ask, enter, actors, signUpByCode } = start(t);
  const userId = await signUpByCode();
  const { challengeId, code } = await ask();
  await enter(challengeId, wrongCode(code));
  await actors.settle();
  const [latest] = await actors.system.query(user, userId, { type: 'logins' });
  t.match(latest, { event: 'login', ok: false, error: 'Invalid code', keyId: null });
});

t.test('blocked user: the code is right, access is denied and logged', async (t) => {
  const { ask, enter, actors, signUpByCode, setBlocked } = start(t);
  await setBlocked(await signUpByCode());
  t.equal(actors.system.count('sidHash'), 0);
  const { challengeId, code } = await ask();
  refused(t, await enter(challengeId, code), 401, 'Access denied');
  refused(t, await enter(challengeId, code), 401, 'Challenge expired');
});

t.test('phone and e-mail: what is neither is refused and nothing is sent', async (t) => {
  const { chat, post, request } = start(t);
  const phones = ['', '491701234567', '+0491701234567', '+49 170 1234567', '+49170', '+1234567890123456'];
  const spoilt = ['\n', '\r\nX: y', '\u0000', ';ext=1'].map((end) => PHONE + end);
  const differing: unknown[] = [];
  for (const phone of [...phones, ...spoilt, ` ${PHONE}`, '+49170１234567'])
    if ((await request(phone)).status !== 400) differing.push(phone);
  const malformed =
    'a,@b.cd,a@,a@b,a@@b.cd,a b@c.de,a@b..cd,.a@b.cd,a.@b.cd,a..b@c.de,"a"@b.cd,a@[127.0.0.1],'
      .concat('a@127.0.0.1,a@-b.cd,a@b-.cd,ä@b.cd,a@bü.cd,a@b.c\u212a,<a@b.cd>')
      .split(',');
  const emails = ['', ...malformed, 'a@b.cd\r\nBcc: x@y.zz', 'a@b.cd\n', 'a,b@c.de'].concat(
    `${'a'.repeat(65)}@b.cd`,
    `a@${'b'.repeat(64)}.cd`,
    `a@${'b.'.repeat(150)}cd`,
  );
  for (const email of emails)
    if ((await post('/auth/v1/login_email', { email })).status !== 400) differing.push(email);
  for (const body of [{}, { phone: 49 }, { phone: null }, { phone: [PHONE] }])
    if ((await post('/auth/v1/login_phone', body)).status !== 400) differing.push(body);
  t.same(differing, []);
  t.equal(chat.requests.length, 0);
});

t.test(
  'login: codes of neither eight nor six digits and ids that are none are refused by their form',
  async (t) => {
    const { enter, post } = start(t);
    const short = ['', '12345', '1234567', '123456789'];
    for (const code of [...short, '1234567a', ' 1234567', '１２３４５６７８', '1234567\n', '-1234567'])
      t.equal((await enter(1, code)).status, 400, JSON.stringify(code));
    const code = '12345678';
    for (const body of [
      { challengeId: 2 ** 53, code },
      { challengeId: 'x', code },
      { challengeId: 1, code: 123456 },
    ])
      t.equal((await post('/auth/v1/login', body)).status, 400, JSON.stringify(body));
    for (const code of ['12345678', '123456']) refused(t, await enter(1, code), 401, 'Challenge expired');
  },
);

t.test('login_phone: a foreign page is refused before anything is sent', async (t) => {
  const { chat, request, post } = start(t);
  t.equal((await request(PHONE, { Origin: 'https://evil.example' })).status, 403);
  t.equal((await request(PHONE, { 'Sec-Fetch-Site': 'cross-site' })).status, 403);
  t.equal((await request(PHONE, { 'Content-Type': 'text/plain' })).status, 415);
  t.equal((await post('/auth/v1/login_email', { email: 'a@b.cd' }, { Origin: 'null' })).status, 403);
  t.equal(chat.requests.length, 0);
});

t.test('delivery: for the gateway itself, without the user', async (t) => {
  const { chat, ask } = start(t);
  await ask();
  const [request] = chat.requests;
  t.match(request, {
    method: 'POST',
    url: { origin: 'http://chat.test', pathname: '/base/chat/v1/codes/deliver' },
  });
  t.same(Object.keys(request?.headers ?? {}).sort(), ['content-type', 'x-project', 'x-request-id']);
});

// covers R60
t.test('journal: holds no code, wherever it looks', async (t) => {
  const { ask, enter, actors } = start(t);
  const { challengeId, code } = await ask();
  await enter(challengeId, wrongCode(code));
  const { administration } = actors.system;
  const rows = [
    administration.export('codeDesk', 'all'),
    ...Array.from({ length: 16 }, (_, id) => administration.export('codeCourier', String(id))),
    administration.auditPage(0, 1000),
  ];
  const text = JSON.stringify(rows, (_key, value) => (value instanceof Uint8Array ? [...value] : value));
  t.ok(text.includes(PHONE), 'the address is there');
  t.notOk(text.includes(`"${code}"`) || text.includes(`"${wrongCode(code)}"`));
});

t.test('fresh login: a code makes one, also where an old session may not change keys', async (t) => {
  const { chat, ask, enter, actors, keys, addKey } = start(t, { KeyChangeFreshLoginSeconds: 120 });
  const first = await ask();
  const sid = sidOf(await enter(first.challengeId, chat.last().code));
  const add = (session: string | undefined) => addKey(session, makeKey(), 'claim');
  t.equal((await add(sid)).status, 200);
  await actors.advance(120_001);
  refused(t, await add(sid), 403, 'Fresh login required');
  const second = await ask(PHONE, cookie(sid));
  const fresh = sidOf(await enter(second.challengeId, chat.last().code, cookie(sid)));
  t.equal((await add(fresh)).status, 200);
  t.match(await keys(fresh ?? ''), [{ current: false }, { current: false }]);
});

t.test(
  'blocked user: a block ends browser and MCP sessions at once, unblocking brings none back',
  async (t) => {
    const { chat, ask, enter, signUp, allowAgent, mcpLogin, actors, alive, setBlocked } = start(t);
    const agent = makeKey();
    const account = await signUp();
    await allowAgent(account, agent);
    t.equal((await mcpLogin(mcpProof(agent))).status, 200);
    const { challengeId } = await ask();
    const login = await enter(challengeId, chat.last().code);
    const users = [account.userId, (login.result as { userId: string }).userId];
    t.same([actors.system.count('sidHash'), actors.system.count('sessionHash')], [2, 1]);
    for (const blocked of [true, false]) for (const userId of users) await setBlocked(userId, blocked);
    t.same([actors.system.count('sidHash'), actors.system.count('sessionHash')], [0, 0]);
    for (const sid of [account.sid, sidOf(login)]) t.equal(await alive(sid), false);
    t.equal((await mcpLogin(mcpProof(agent))).status, 200, 'a new login is possible');
  },
);

t.test('code: a block during the comparison refuses the login', async (t) => {
  const { ask, enter, actors, setBlocked, signUpByCode } = start(t);
  const userId = await signUpByCode();
  const { challengeId, code } = await ask();
  const [answer] = await Promise.all([enter(challengeId, code), setBlocked(userId)]);
  refused(t, answer, 401, 'Access denied');
  t.equal(actors.system.count('sidHash'), 0);
});

t.test('audit: every step of a login by phone is recorded, without number and code', async (t) => {
  const { chat, ask, enter, actors } = start(t);
  const { challengeId, code } = await ask();
  await enter(challengeId, wrongCode(code));
  const { userId } = (await enter(challengeId, code)).result as { userId: string };
  await actors.advance(60_000);
  const again = await ask();
  await enter(again.challengeId, wrongCode(again.code));
  await enter(again.challengeId, again.code);
  await actors.advance(1_000);
  const records = actors.system.administration.auditPage(0, 100).map(({ record }) => record);
  t.match(records, [
    { event: 'code_requested', userId: null, fields: { ip: '127.0.0.1', channel: 'phone' } },
    { event: 'login_refused', userId: null, fields: { error: 'Invalid code' } },
    { event: 'sign_up', userId, fields: { channel: 'phone' } },
    { event: 'code_requested', userId },
    { event: 'login_refused', userId, fields: { error: 'Invalid code' } },
    { event: 'login', userId, fields: { channel: 'phone' } },
  ]);
  const text = JSON.stringify(records);
  t.notOk(text.includes(PHONE.slice(1)) || text.includes(`"${chat.last().code}"`));
});
