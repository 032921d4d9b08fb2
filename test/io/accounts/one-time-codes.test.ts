/** login_phone, login_email and login with a code (spec 4.4) over the pipeline, with real actors and one clock. */
import t, { type Test } from 'tap';
import { closeAfter } from '../../../kit/close-after.ts';
import { user } from '../../../src/actors/accounts/user.ts';
import { type Answer, cookie, makeKey, mcpProof, sidOf, startAccounts } from '../../support/account.ts';
import { type ChatFixture, startChat, wrongCode } from '../../support/codes.ts';
import { connectRaw, requestText } from '../../support/http.ts';

const PHONE = '+491701234567';

interface Requested {
  readonly challengeId: number;
  readonly expiresUtc: string;
  readonly codeLength: number;
  readonly resendAfterSeconds: number;
}

function start(t: Test, chat: ChatFixture | undefined = startChat(), settings = {}) {
  const accounts = startAccounts({ settings, ...(chat === undefined ? {} : { codes: chat.port }) });
  t.teardown(() => accounts.close());
  const request = async (phone = PHONE, headers = {}) => {
    const answer = await accounts.post('/auth/v1/login_phone', { phone }, headers);
    await accounts.actors.settle();
    return answer;
  };
  const ask = async (phone = PHONE, headers = {}): Promise<Requested> => {
    const answer = await request(phone, headers);
    if (answer.status !== 200) throw new Error(`login_phone: ${JSON.stringify(answer)}`);
    return answer.result as Requested;
  };
  const enter = (challengeId: number | string, code: string, headers = {}) =>
    accounts.post('/auth/v1/login', { challengeId, code }, headers);
  return { ...accounts, request, ask, enter };
}

function refusal({ status, error }: Answer): string {
  return `${status}/${error?.code} ${error?.message}`;
}

// covers R57 R60
t.test('login_phone: first code creates the account, the next one finds it again', async (t) => {
  const chat = startChat();
  const { ask, enter, get, post, actors } = start(t, chat);
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
  const log = await get('/auth/v1/login_log', cookie(sidOf(again)));
  t.match(log.result, [
    { event: 'login', ok: true, keyId: null },
    { event: 'sign_up', ok: true, keyId: null },
  ]);
  const { result: keys } = await get('/auth/v1/keys/user_keys', cookie(sidOf(again)));
  t.same(keys, []);
  t.equal((await post('/auth/v1/logout', undefined, cookie(sidOf(again)))).status, 200);
});

// covers R59
t.test('login_email: spelling in capitals finds the same account', async (t) => {
  const chat = startChat();
  const { post, enter, actors } = start(t, chat);
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
  const chat = startChat();
  const { ask, enter, actors } = start(t, chat);
  const { challengeId } = await ask();
  const { code } = chat.last();
  for (let failure = 1; failure <= 4; failure += 1)
    t.equal(refusal(await enter(challengeId, wrongCode(code))), '401/1109 Invalid code');
  t.equal(refusal(await enter(challengeId, wrongCode(code))), '401/1104 Challenge expired');
  t.equal(refusal(await enter(challengeId, code)), '401/1104 Challenge expired', 'the right one comes late');
  t.equal(actors.system.count('sidHash'), 0);
});

t.test('code: right after four wrong ones it is accepted, once', async (t) => {
  const chat = startChat();
  const { ask, enter } = start(t, chat);
  const { challengeId } = await ask();
  const { code } = chat.last();
  for (let failure = 1; failure <= 4; failure += 1) await enter(challengeId, wrongCode(code));
  t.equal((await enter(challengeId, code)).status, 200);
  t.equal(refusal(await enter(challengeId, code)), '401/1104 Challenge expired');
});

// covers R60
t.test('code: two browsers racing with it get one session', async (t) => {
  const chat = startChat();
  const { ask, enter, actors } = start(t, chat);
  const { challengeId } = await ask();
  const answers = await Promise.all(Array.from({ length: 5 }, () => enter(challengeId, chat.last().code)));
  t.same(answers.map(({ status }) => status).sort(), [200, 401, 401, 401, 401]);
  t.equal(actors.system.count('sidHash'), 1);
  t.equal(actors.system.count('contact'), 1);
});

// covers R60
t.test('code: a hundred guesses at once get five comparisons', async (t) => {
  const chat = startChat();
  const { ask, enter, actors } = start(t, chat);
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
  const chat = startChat();
  const { ask, enter, actors } = start(t, chat);
  const first = await ask();
  const { code } = chat.last();
  await actors.advance(60_000);
  const second = await ask();
  t.equal(refusal(await enter(first.challengeId, code)), '401/1104 Challenge expired');
  await actors.advance(300_000);
  t.equal(refusal(await enter(second.challengeId, chat.last().code)), '401/1104 Challenge expired');
});

t.test('code: asked for in one session is not taken in another', async (t) => {
  const chat = startChat();
  const { ask, enter, signUp } = start(t, chat);
  const [ann, bob] = [await signUp(), await signUp()];
  const { challengeId } = await ask(PHONE, cookie(ann.sid));
  const { code } = chat.last();
  t.equal(refusal(await enter(challengeId, code, cookie(bob.sid))), '401/1104 Challenge expired');
  t.equal(refusal(await enter(challengeId, code)), '401/1104 Challenge expired');
  t.equal((await enter(challengeId, code, cookie(ann.sid))).status, 200);
});

// covers R60 R103
t.test('caps: 60 s before a resend, five an hour for one number, ten for one address', async (t) => {
  const chat = startChat();
  const { request, actors } = start(t, chat);
  t.equal((await request()).status, 200);
  const soon = await request();
  t.equal(refusal(soon), '429/1002 Access rate limit');
  t.equal(soon.headers['retry-after'], '60');
  t.equal(soon.headers['x-ratelimit'], 's=i;l=0;r=0;t=60', 'the scope is off, the code is refused');
  for (let sent = 2; sent <= 5; sent += 1) {
    await actors.advance(60_000);
    t.equal((await request()).status, 200);
  }
  await actors.advance(60_000);
  const sixth = await request();
  t.equal(refusal(sixth), '429/1002 Access rate limit');
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
    const chat = startChat();
    const { request, enter, actors } = start(t, chat);
    const first = await request();
    t.equal(
      (await enter((first.result as { challengeId: number }).challengeId, chat.last().code)).status,
      200,
    );
    const { nowMs } = actors.clock;
    const sendings = () => {
      const { stored } = actors.system.administration.export('codeDesk', 'all');
      return JSON.stringify(stored);
    };
    t.notMatch(sendings(), /"known":true/, 'the first code was for an unknown network');
    await actors.advance(60_000);
    t.ok(actors.clock.nowMs > nowMs);
    t.equal((await request()).status, 200);
    t.match(sendings(), /"known":true/, 'the next one is not: the account was logged in to from here');
  },
);

// covers S76
t.test('code: requests from elsewhere leave the code of the owner and the five an hour good', async (t) => {
  const chat = startChat();
  const { ask, enter, actors, http } = start(t, chat);
  const first = await ask();
  t.equal((await enter(first.challengeId, chat.last().code)).status, 200);
  await actors.advance(60_000);
  const owners = await ask();
  const { code } = chat.last();
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
  const chat = startChat();
  const { request, ask, enter, actors } = start(t, chat);
  const { challengeId } = await ask();
  const { code } = chat.last();
  for (let failure = 1; failure <= 4; failure += 1) await enter(challengeId, wrongCode(code));
  await actors.restart();
  t.equal((await request()).status, 429, 'the wait continues');
  t.equal(
    refusal(await enter(challengeId, wrongCode(code))),
    '401/1104 Challenge expired',
    'so do the tries',
  );
});

t.test('code: survives a restart', async (t) => {
  const chat = startChat();
  const { ask, enter, actors } = start(t, chat);
  const { challengeId } = await ask();
  await actors.restart();
  t.equal((await enter(challengeId, chat.last().code)).status, 200);
});

t.test('chat module: absent, 503 and no method that needs it', async (t) => {
  const accounts = closeAfter(t, startAccounts());
  const answer = await accounts.post('/auth/v1/login_phone', { phone: PHONE });
  t.equal(refusal(answer), '503/1111 Delivery unavailable');
  t.equal(
    refusal(await accounts.post('/auth/v1/login_email', { email: 'a@b.cd' })),
    '503/1111 Delivery unavailable',
  );
  const options = await accounts.get('/auth/v1/login_options');
  t.same((options.result as { methods: string[] }).methods, ['passkey', 'key']);
});

t.test('chat module: down, the code goes out when it is back, and not after its end', async (t) => {
  const chat = startChat();
  chat.mode = 'down';
  const { ask, enter, actors } = start(t, chat);
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
  const chat = startChat();
  chat.mode = 'lost';
  const { ask, enter, actors } = start(t, chat);
  const { challengeId } = await ask();
  await actors.advance(10_000);
  t.ok(chat.outbox.length > 1);
  t.equal(new Set(chat.outbox.map(({ code }) => code)).size, 1);
  t.equal((await enter(challengeId, chat.last().code)).status, 200);
});

t.test('addresses: known and unknown ones get the same answer', async (t) => {
  const chat = startChat();
  const { ask, enter, request, actors } = start(t, chat);
  const { challengeId } = await ask();
  await enter(challengeId, chat.last().code);
  await actors.advance(60_000);
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
  const chat = startChat();
  const { ask, enter, actors } = start(t, chat);
  const { challengeId } = await ask();
  const { userId } = (await enter(challengeId, chat.last().code)).result as { userId: string };
  await actors.advance(60_000);
  await enter((await ask()).challengeId, wrongCode(chat.last().code));
  await actors.settle();
  const [latest] = await actors.system.query(user, userId, { type: 'logins' });
  t.match(latest, { event: 'login', ok: false, error: 'Invalid code', keyId: null });
});

t.test('blocked user: the code is right, access is denied and logged', async (t) => {
  const chat = startChat();
  const { ask, enter, actors } = start(t, chat);
  const { challengeId } = await ask();
  const { userId } = (await enter(challengeId, chat.last().code)).result as { userId: string };
  const origin = { ip: '', userAgent: '' };
  await actors.system.ask(user, userId, { type: 'setBlocked', blocked: true, origin });
  t.equal(actors.system.count('sidHash'), 0);
  await actors.advance(60_000);
  const again = await ask();
  t.equal(refusal(await enter(again.challengeId, chat.last().code)), '401/1103 Access denied');
  t.equal(refusal(await enter(again.challengeId, chat.last().code)), '401/1104 Challenge expired');
});

t.test('phone and e-mail: what is neither is refused and nothing is sent', async (t) => {
  const chat = startChat();
  const { post, request } = start(t, chat);
  const phones = ['', '491701234567', '+0491701234567', '+49 170 1234567', '+49170', '+1234567890123456'];
  phones.push(
    `${PHONE}\n`,
    `${PHONE}\r\nX: y`,
    ` ${PHONE}`,
    '+49170１234567',
    `${PHONE}\u0000`,
    `${PHONE};ext=1`,
  );
  const differing: unknown[] = [];
  for (const phone of phones) if ((await request(phone)).status !== 400) differing.push(phone);
  const emails = [
    '',
    'a',
    '@b.cd',
    'a@',
    'a@b',
    'a@@b.cd',
    'a b@c.de',
    'a@b..cd',
    '.a@b.cd',
    'a.@b.cd',
    'a..b@c.de',
  ];
  emails.push(
    'a@b.cd\r\nBcc: x@y.zz',
    'a@b.cd\n',
    '"a"@b.cd',
    'a@[127.0.0.1]',
    'a@127.0.0.1',
    'a@-b.cd',
    'a@b-.cd',
  );
  emails.push(
    'ä@b.cd',
    'a@bü.cd',
    'a@b.c\u212a',
    `${'a'.repeat(65)}@b.cd`,
    `a@${'b'.repeat(64)}.cd`,
    'a,b@c.de',
    '<a@b.cd>',
  );
  emails.push(`a@${'b.'.repeat(150)}cd`);
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
    const codes = [
      '',
      '12345',
      '1234567',
      '123456789',
      '1234567a',
      ' 1234567',
      '１２３４５６７８',
      '1234567\n',
      '-1234567',
    ];
    for (const code of codes) t.equal((await enter(1, code)).status, 400, JSON.stringify(code));
    t.equal((await post('/auth/v1/login', { challengeId: 2 ** 53, code: '12345678' })).status, 400);
    t.equal((await post('/auth/v1/login', { challengeId: 'x', code: '12345678' })).status, 400);
    t.equal((await post('/auth/v1/login', { challengeId: 1, code: 123456 })).status, 400);
    for (const code of ['12345678', '123456'])
      t.equal(refusal(await enter(1, code)), '401/1104 Challenge expired');
  },
);

t.test('login_phone: a foreign page is refused before anything is sent', async (t) => {
  const chat = startChat();
  const { request, post } = start(t, chat);
  t.equal((await request(PHONE, { Origin: 'https://evil.example' })).status, 403);
  t.equal((await request(PHONE, { 'Sec-Fetch-Site': 'cross-site' })).status, 403);
  t.equal((await request(PHONE, { 'Content-Type': 'text/plain' })).status, 415);
  t.equal((await post('/auth/v1/login_email', { email: 'a@b.cd' }, { Origin: 'null' })).status, 403);
  t.equal(chat.requests.length, 0);
});

t.test('delivery: for the gateway itself, without the user', async (t) => {
  const chat = startChat();
  const { ask } = start(t, chat);
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
  const chat = startChat();
  const { ask, enter, actors } = start(t, chat);
  const { challengeId } = await ask();
  const { code } = chat.last();
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
  const chat = startChat();
  const { ask, enter, post, get, challenge, actors } = start(t, chat, { KeyChangeFreshLoginSeconds: 120 });
  const first = await ask();
  const sid = sidOf(await enter(first.challengeId, chat.last().code));
  const add = async (session: string | undefined) => {
    const { challengeId, code } = await challenge('register', session);
    const { publicKey } = makeKey();
    return post('/auth/v1/keys/register_key', { challengeId, code, publicKey }, cookie(session));
  };
  t.equal((await add(sid)).status, 200);
  await actors.advance(120_001);
  t.equal(refusal(await add(sid)), '403/1110 Fresh login required');
  const second = await ask(PHONE, cookie(sid));
  const fresh = sidOf(await enter(second.challengeId, chat.last().code, cookie(sid)));
  t.equal((await add(fresh)).status, 200);
  const { result } = await get('/auth/v1/keys/user_keys', cookie(fresh));
  t.match(result, [{ current: false }, { current: false }]);
});

t.test(
  'blocked user: a block ends browser and MCP sessions at once, unblocking brings none back',
  async (t) => {
    const chat = startChat();
    const { ask, enter, get, signUp, allowAgent, mcpLogin, actors } = start(t, chat);
    const agent = makeKey();
    const account = await signUp();
    await allowAgent(account, agent);
    t.equal((await mcpLogin(mcpProof(agent, actors.clock.nowMs / 1000))).status, 200);
    const { challengeId } = await ask();
    const login = await enter(challengeId, chat.last().code);
    const users = [account.userId, (login.result as { userId: string }).userId];
    const origin = { ip: '', userAgent: '' };
    t.same([actors.system.count('sidHash'), actors.system.count('sessionHash')], [2, 1]);
    for (const blocked of [true, false])
      for (const userId of users)
        await actors.system.ask(user, userId, { type: 'setBlocked', blocked, origin });
    t.same([actors.system.count('sidHash'), actors.system.count('sessionHash')], [0, 0]);
    for (const sid of [account.sid, sidOf(login)])
      t.equal((await get('/auth/v1/sessions', cookie(sid))).status, 401);
    t.equal(
      (await mcpLogin(mcpProof(agent, actors.clock.nowMs / 1000))).status,
      200,
      'a new login is possible',
    );
  },
);

t.test('code: a block during the comparison refuses the login', async (t) => {
  const chat = startChat();
  const { ask, enter, actors } = start(t, chat);
  const { challengeId } = await ask();
  const { userId } = (await enter(challengeId, chat.last().code)).result as { userId: string };
  await actors.advance(60_000);
  const again = await ask();
  const origin = { ip: '', userAgent: '' };
  const [answer] = await Promise.all([
    enter(again.challengeId, chat.last().code),
    actors.system.ask(user, userId, { type: 'setBlocked', blocked: true, origin }),
  ]);
  t.equal(refusal(answer), '401/1103 Access denied');
  t.equal(actors.system.count('sidHash'), 0);
});

t.test('audit: every step of a login by phone is recorded, without number and code', async (t) => {
  const chat = startChat();
  const { ask, enter, actors } = start(t, chat);
  const { challengeId } = await ask();
  await enter(challengeId, wrongCode(chat.last().code));
  const { userId } = (await enter(challengeId, chat.last().code)).result as { userId: string };
  await actors.advance(60_000);
  const again = await ask();
  await enter(again.challengeId, wrongCode(chat.last().code));
  await enter(again.challengeId, chat.last().code);
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
