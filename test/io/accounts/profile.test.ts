/** Nickname and contacts of an account over the pipeline, with real actors and codes that a chat module gets. */
import { readFileSync } from 'node:fs';
import t, { type Test } from 'tap';
import { closeAfter } from '../../../kit/close-after.ts';
import type { SessionRecord } from '../../../src/actors/accounts/user-types.ts';
import { CONTACTS_MAX } from '../../../src/domain/contacts.ts';
import { cookie, refused, sidOf, startAccounts } from '../../support/account.ts';
import { commitAccount, sessionNames } from '../../support/actors/commit-rows.ts';
import { startChat, wrongCode } from '../../support/codes.ts';

const PHONE = '+491701234567';

function start(t: Test, settings = {}) {
  const chat = startChat();
  const limits = { OneTimeCodesPerIpHour: 1_000, ...settings };
  const accounts = closeAfter(t, startAccounts({ settings: limits, codes: chat.port }));
  const { post, get, actors } = accounts;
  const ask = async (body: { phone: string } | { email: string }, sid?: string) => {
    const path = 'phone' in body ? '/auth/v1/login_phone' : '/auth/v1/login_email';
    const answer = await post(path, body, cookie(sid));
    await actors.settle();
    if (answer.status !== 200) throw new Error(JSON.stringify(answer));
    return (answer.result as { challengeId: number }).challengeId;
  };
  const add = (sid: string, challengeId: number, code = chat.last().code) =>
    post('/auth/v1/account/contacts/add', { challengeId, code }, cookie(sid));
  const addNew = async (sid: string, body: { phone: string } | { email: string }) =>
    add(sid, await ask(body, sid));
  const remove = (sid: string, body: object) => post('/auth/v1/account/contacts/remove', body, cookie(sid));
  const profile = async (sid: string) => (await get('/auth/v1/account', cookie(sid))).result;
  const codeLogin = async (phone: string) => {
    const challengeId = await ask({ phone });
    return post('/auth/v1/login', { challengeId, code: chat.last().code });
  };
  return { ...accounts, chat, ask, add, addNew, remove, profile, codeLogin };
}

// covers R123
t.test('account: a nickname is set, shown and taken away, also over a restart', async (t) => {
  const { signUp, post, profile, actors } = start(t);
  const { sid, userId } = await signUp();
  const createdUtc = '2026-01-01T00:00:00.000Z';
  t.match(await profile(sid), { userId, nickname: null, contacts: [], createdUtc });
  const set = (nickname: string | null) => post('/auth/v1/account', { nickname }, cookie(sid));
  t.match((await set('Ada')).result, { nickname: 'Ada' });
  await actors.restart();
  t.match(await profile(sid), { nickname: 'Ada' });
  refused(t, await set(''), 400, 1001);
  t.match((await set(null)).result, { nickname: null });
  refused(t, await set('x'.repeat(65)), 400, 1001);
  refused(t, await post('/auth/v1/account', { nickname: 'Ada' }), 401, 1101, 'without a session');
});

// covers R123
t.test('contacts: a phone that a code proves logs in to the account of a key', async (t) => {
  const { signUp, addNew, profile, codeLogin, actors, loginLog } = start(t);
  const { sid, userId } = await signUp();
  const added = await addNew(sid, { phone: PHONE });
  t.same(added.result, [{ channel: 'phone', address: PHONE }]);
  await addNew(sid, { email: 'Ada@Mail.Example' });
  await actors.settle();
  await actors.restart();
  t.match(await profile(sid), {
    contacts: [
      { channel: 'phone', address: PHONE },
      { channel: 'email', address: 'ada@mail.example' },
    ],
  });
  await actors.advance(60_000);
  const login = await codeLogin(PHONE);
  t.match(login.result, { userId, newAccount: false, keyId: null });
  const log = (await loginLog(sidOf(login) ?? '')) as { event: string }[];
  t.same(
    log.map(({ event }) => event),
    ['login', 'contact_added', 'contact_added', 'sign_up'],
  );
  t.equal(actors.system.count('contact'), 2);
});

t.test('contacts: a wrong code and another session add nothing, a code counts once', async (t) => {
  const { signUp, ask, add, addNew, profile, chat } = start(t);
  const { sid } = await signUp();
  const challengeId = await ask({ phone: PHONE }, sid);
  refused(t, await add(sid, challengeId, wrongCode(chat.last().code)), 401, 'Invalid code');
  refused(t, await add(sid, challengeId, '12'), 400, 1001);
  refused(t, await add((await signUp()).sid, challengeId), 401, 'Challenge expired', 'another session');
  t.match(await profile(sid), { contacts: [] });
  t.equal((await add(sid, challengeId)).status, 200);
  refused(t, await add(sid, challengeId), 401, 'Challenge expired');
  const again = await addNew(sid, { email: 'a@b.example' });
  t.equal(again.status, 200);
});

t.test('contacts: one of another account is refused, and stays there', async (t) => {
  const { signUp, addNew, codeLogin, actors } = start(t);
  const one = await signUp();
  const other = await signUp();
  await addNew(one.sid, { phone: PHONE });
  await actors.advance(60_000);
  refused(t, await addNew(other.sid, { phone: PHONE }), 409, 'Contact already registered');
  await actors.advance(60_000);
  t.match((await codeLogin(PHONE)).result, { userId: one.userId });
});

t.test('contacts: one more than fits is refused', async (t) => {
  const { signUp, addNew } = start(t);
  const { sid } = await signUp();
  for (let number = 0; number < CONTACTS_MAX; number += 1)
    t.equal((await addNew(sid, { email: `ada${number}@mail.example` })).status, 200);
  refused(t, await addNew(sid, { phone: PHONE }), 409, 'Contact limit reached');
});

t.test('contacts: a removed one logs in no more, and its next code creates another account', async (t) => {
  const { signUp, addNew, remove, codeLogin, actors } = start(t);
  const { sid, userId } = await signUp();
  await addNew(sid, { phone: PHONE });
  refused(t, await remove(sid, { phone: '+15550100' }), 404, 1004);
  refused(t, await remove(sid, {}), 400, 1001);
  refused(t, await remove(sid, { phone: PHONE, email: 'a@b.example' }), 400, 1001);
  t.same((await remove(sid, { phone: PHONE })).result, []);
  await actors.advance(60_000);
  const next = (await codeLogin(PHONE)).result as { newAccount: boolean; userId: string };
  t.ok(next.newAccount);
  t.not(next.userId, userId);
});

t.test('contacts: the last way to log in is not removed', async (t) => {
  const { codeLogin, addNew, remove } = start(t);
  const sid = sidOf(await codeLogin(PHONE)) ?? '';
  refused(t, await remove(sid, { phone: PHONE }), 403, 'Access denied');
  await addNew(sid, { email: 'a@b.example' });
  t.equal((await remove(sid, { phone: PHONE })).status, 200);
  refused(t, await remove(sid, { email: 'a@b.example' }), 403, 'Access denied');
});

t.test('contacts: where key changes need a fresh login, contacts do too', async (t) => {
  const { signUp, addNew, remove, actors } = start(t, { KeyChangeFreshLoginSeconds: 60 });
  const { sid } = await signUp();
  await addNew(sid, { phone: PHONE });
  await actors.advance(61_000);
  refused(t, await addNew(sid, { email: 'a@b.example' }), 403, 'Fresh login required');
  refused(t, await remove(sid, { phone: PHONE }), 403, 'Fresh login required');
});

interface Golden {
  readonly userId: string;
  readonly nowMs: number;
  readonly sid: string;
  readonly events: readonly unknown[];
  readonly state: { readonly sessions: readonly SessionRecord[] };
}

/** An account as version 8 left it: opened by a phone, with a key beside. */
const GOLDEN: Golden = JSON.parse(
  readFileSync(new URL('../../../../test/fixtures/rows-8.json', import.meta.url), 'utf8'),
);

for (const form of ['snapshot', 'events'] as const) {
  t.test(`accounts of version 8: their one contact is the first of a list, from ${form}`, async (t) => {
    const { actors, addNew, codeLogin, profile } = start(t);
    const { userId: id, nowMs, sid, state } = GOLDEN;
    const events = GOLDEN.events.map((event) => [event]);
    const names = [...sessionNames(id, state.sessions), ['contact', `phone:${PHONE}`, id] as const];
    await actors.settle();
    await commitAccount(actors.journal, { version: 8, ...GOLDEN, names, events }, form);
    actors.clock.nowMs = nowMs;
    t.match(await profile(sid), { userId: id, nickname: null, contacts: [{ address: PHONE }] });
    await addNew(sid, { email: 'a@b.example' });
    await actors.settle();
    await actors.restart();
    t.match(await profile(sid), { contacts: [{ address: PHONE }, { address: 'a@b.example' }] });
    t.match((await codeLogin(PHONE)).result, { userId: id, newAccount: false });
    t.same(actors.bugs, []);
  });
}
