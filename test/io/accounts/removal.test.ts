/** Removal and export of accounts over the pipeline: what remains in the journal, who is notified, who is refused. */
import t, { type Test } from 'tap';
import { user } from '../../../src/actors/accounts/user.ts';
import type { AccountEventPort } from '../../../src/actors/runtime/ports.ts';
import { DAY_MS, HOUR_MS, SECOND_MS } from '../../../src/domain/time.ts';
import type { ModuleClient } from '../../../src/io/modules/client.ts';
import { type Account, cookie, refused, sidOf } from '../../support/account.ts';
import { askerOf } from '../../support/actors/actors.ts';
import { SHOP, startAdmin } from '../../support/admin.ts';
import { startChat } from '../../support/codes.ts';

const PHONE = '+491701234567';
const EMAIL = 'ada.lovelace@mail.example';
const NICKNAME = 'Countess of Lovelace';
const FRESH_MS = 15 * 60 * SECOND_MS;

/** A module that wants to know of removals, and answers as the test says. */
function makeListener() {
  const asked: { userId: string; modules: readonly string[] | null }[] = [];
  const given: string[] = [];
  const answers = { left: [] as readonly string[] };
  const port: AccountEventPort = {
    async tellRemoval(userId, modules) {
      asked.push({ userId, modules });
      return answers.left;
    },
    gaveUp: (userId, modules) => void given.push(`${userId} ${modules}`),
  };
  return Object.assign(answers, { asked, given, port });
}

async function start(t: Test, options: Parameters<typeof startAdmin>[0] = {}) {
  const chat = startChat();
  const listener = makeListener();
  const fixture = await startAdmin({
    codes: chat.port,
    accountEvents: listener.port,
    settings: { OneTimeCodesPerIpHour: 1_000 },
    ...options,
  });
  t.teardown(fixture.stop);
  const { actors, post } = fixture;
  const addContact = async ({ sid }: Account, body: { phone: string } | { email: string }) => {
    const path = 'phone' in body ? '/auth/v1/login_phone' : '/auth/v1/login_email';
    const asked = await post(path, body, cookie(sid));
    await actors.settle();
    const { challengeId } = asked.result as { challengeId: number };
    const code = chat.last().code;
    const added = await post('/auth/v1/account/contacts/add', { challengeId, code }, cookie(sid));
    if (added.status !== 200) throw new Error(JSON.stringify(added));
    return code;
  };
  const remove = ({ sid }: Pick<Account, 'sid'>) => post('/auth/v1/account/remove', undefined, cookie(sid));
  return { ...fixture, chat, listener, addContact, remove };
}

// covers R124
t.test(
  'removal: no row keeps a contact, the nickname, a key or an application; the audit log keeps id and address',
  async (t) => {
    const fixture = await start(t);
    const { actors, owner, post, addContact, remove, register, get } = fixture;
    await post('/auth/v1/account', { nickname: NICKNAME }, cookie(owner.sid));
    await addContact(owner, { phone: PHONE });
    await addContact(owner, { email: EMAIL });
    const key = { 'Idempotency-Key': 'once' };
    const appId = await register();
    const other = { name: 'Other shop', url: 'https://other.example' };
    await post('/auth/v1/app/upsert_usr_app', other, { ...cookie(owner.sid), ...key });
    await actors.settle();
    const names = [PHONE, EMAIL, NICKNAME, owner.key.publicKey, SHOP.url, other.url, other.name];
    for (const name of names) t.ok(actors.journal.searchText().includes(name), `before: ${name}`);
    const removed = await remove(owner);
    t.match(removed.result, { userId: owner.userId, sessionsClosed: 1 });
    t.equal(sidOf(removed), '', 'the cookie is taken back');
    await actors.settle();
    const text = actors.journal.searchText();
    for (const name of names) t.notOk(text.includes(name), `after: ${name}`);
    t.equal(actors.system.count('contact'), 0);
    t.equal(actors.system.lookup('appId', appId), undefined);
    t.equal(actors.system.lookup('publicKey', owner.key.publicKey), undefined);
    refused(t, await get('/auth/v1/account', cookie(owner.sid)), 401, 1101);
    refused(t, await fixture.login(owner.key), 401, 1101);
    await actors.restart();
    const account = await actors.system.query(user, owner.userId, { type: 'account' });
    t.match(account, { exists: false, nickname: null, contacts: [], keys: [] });
    t.match((await fixture.ask('audit?event=account_removed')).result, [
      { event: 'account_removed', userId: owner.userId, fields: { ip: '127.0.0.1' } },
    ]);
  },
);

t.test('removal: key and contact are free again, and open other accounts', async (t) => {
  const { actors, owner, remove, addContact, signUp, post, chat } = await start(t);
  await addContact(owner, { phone: PHONE });
  await remove(owner);
  const again = await signUp(owner.key);
  t.not(again.userId, owner.userId);
  await actors.settle();
  // The caps of the address went with the account: its person may come back at once.
  const asked = await post('/auth/v1/login_phone', { phone: PHONE });
  await actors.settle();
  const { challengeId } = asked.result as { challengeId: number };
  const login = await post('/auth/v1/login', { challengeId, code: chat.last().code });
  t.match(login.result, { newAccount: true });
  t.not((login.result as { userId: string }).userId, owner.userId);
});

t.test('removal: what is under way for the account opens nothing any more', async (t) => {
  const { actors, owner, remove } = await start(t);
  await remove(owner);
  const origin = { ip: '192.0.2.1', userAgent: 'test' };
  const ask = askerOf(actors, user, owner.userId);
  const codeLogin = { type: 'codeLogin', channel: 'phone', address: PHONE, handle: 'h', origin } as const;
  await t.rejects(ask(codeLogin), { message: 'Challenge expired' });
  const key = { keyId: 'k', sealed: 's' };
  await t.rejects(ask({ type: 'upsertApp', patch: SHOP, key, origin }), { message: 'Session not found' });
  const indexEntry = { ownerId: '5', openedTick: '1', keyTick: '0', mcpPublicKey: null };
  const grant = { type: 'grantAppAccess', appId: '7', indexEntry, origin } as const;
  await t.rejects(ask(grant), { message: 'Session not found' });
  await t.rejects(ask({ type: 'setNickname', nickname: 'x' }), { message: 'Session not found' });
  t.match(await actors.system.query(user, owner.userId, { type: 'account' }), { exists: false, apps: [] });
});

t.test('removal: needs a login of the last 15 minutes', async (t) => {
  const { actors, owner, remove, get } = await start(t);
  actors.clock.nowMs += FRESH_MS + 1;
  refused(t, await remove(owner), 403, 'Fresh login required');
  refused(t, await get('/auth/v1/account/export', cookie(owner.sid)), 403, 'Fresh login required');
  t.match((await get('/auth/v1/account', cookie(owner.sid))).status, 200);
});

t.test('removal: the last admin is refused, one of two goes with the role', async (t) => {
  const { admin, owner, remove, change, staff, get } = await start(t, { noKeys: true });
  await staff.setFirst(admin.userId, '127.0.0.1');
  refused(t, await remove(admin), 409, 'Last admin');
  t.equal((await get('/auth/v1/account', cookie(admin.sid))).status, 200, 'nothing has changed');
  t.equal((await change('staff', { userId: owner.userId, role: 'admin' })).status, 200);
  t.equal((await change('users/block', { userId: owner.userId, blocked: true })).status, 200);
  refused(t, await remove(admin), 409, 'Last admin', 'the other one is blocked');
  await change('users/block', { userId: owner.userId, blocked: false });
  t.equal((await remove(admin)).status, 200);
  t.same(staff.list(), [{ userId: owner.userId, role: 'admin' }]);
});

t.test('removal: an admin goes where a key of the configuration makes another one', async (t) => {
  const { owner, remove, change, staff } = await start(t);
  await change('staff', { userId: owner.userId, role: 'admin' });
  t.equal((await remove(owner)).status, 200);
  t.same(staff.list(), []);
});

t.test('removal: modules are notified until all have confirmed, also over a restart', async (t) => {
  const { actors, owner, remove, listener } = await start(t);
  listener.left = ['wallet'];
  await remove(owner);
  await actors.advance(1);
  await actors.settle();
  t.same(listener.asked, [{ userId: owner.userId, modules: null }]);
  await actors.advance(2 * SECOND_MS);
  await actors.settle();
  t.same(listener.asked[1], { userId: owner.userId, modules: ['wallet'] }, 'those that are left');
  await actors.restart();
  await actors.advance(4 * SECOND_MS);
  await actors.settle();
  t.equal(listener.asked.length, 3);
  listener.left = [];
  await actors.advance(HOUR_MS);
  await actors.settle();
  t.equal(listener.asked.length, 4);
  await actors.advance(DAY_MS);
  await actors.settle();
  t.equal(listener.asked.length, 4, 'all have confirmed');
  t.same(listener.given, []);
});

t.test('removal: a module that does not confirm for a week is given up, and counted', async (t) => {
  const { actors, owner, remove, listener } = await start(t);
  listener.left = ['wallet', 'shop'];
  await remove(owner);
  await actors.advance(1);
  await actors.settle();
  actors.clock.nowMs += 7 * DAY_MS;
  await actors.advance(2 * SECOND_MS);
  await actors.settle();
  t.same(listener.given, [`${owner.userId} wallet,shop`]);
  const tries = listener.asked.length;
  await actors.advance(2 * HOUR_MS);
  await actors.settle();
  t.equal(listener.asked.length, tries, 'it is not asked again');
  const records = actors.journal.auditPage(0, 100, ['accounts']);
  t.match(records.at(-1)?.record, {
    event: 'account_removal_untold',
    userId: owner.userId,
    fields: { modules: 'wallet,shop' },
  });
});

/** A chat module with one chat, whose files are given. */
function chatWith(files: object[] | undefined) {
  const paths: string[] = [];
  const call: ModuleClient['call'] = async ({ url }) => {
    paths.push(`${url.pathname}${url.search}`);
    const chats = url.search === '?archived=false' ? [{ id: '7' }] : [];
    const result = url.pathname.endsWith('chats/list') ? { chats } : { files };
    if (files === undefined) return { ok: false, error: 'ModuleTimedOut', reason: 'test', elapsedMs: 1 };
    const body = Buffer.from(JSON.stringify({ result }));
    const answer = { status: 200, contentType: 'application/json', headers: {}, body };
    return { ok: true, answer, elapsedMs: 1 };
  };
  return { paths, deps: { modules: { call }, moduleAddresses: new Map([['chat', 'http://chat.test']]) } };
}

async function exported(url: string, sid: string) {
  const answer = await fetch(`${url}/auth/v1/account/export`, { headers: cookie(sid) });
  return { answer, document: (await answer.json()) as Record<string, unknown> };
}

// covers R124
t.test('export: every record of the account is in one file, and no secret', async (t) => {
  const files = [
    { fileId: '1', senderId: '5', name: 'of another' },
    { fileId: '2', senderId: '', name: 'own.txt' },
  ];
  const chatModule = chatWith(files);
  const fixture = await start(t, { account: chatModule.deps });
  const { actors, owner, http, post, register, addContact, chat } = fixture;
  Object.assign(files[1] ?? {}, { senderId: owner.userId });
  await post('/auth/v1/account', { nickname: NICKNAME }, cookie(owner.sid));
  await addContact(owner, { email: EMAIL });
  const appId = await register();
  const [session] = await actors.system.query(user, owner.userId, { type: 'sessions' });
  const credential = {
    server: 'notes',
    url: 'https://mcp.example',
    kind: 'oauth',
    sealed: { keyId: 'k', sealed: 'sealed-token' },
    expiresMs: null,
    canRefresh: true,
  } as const;
  const connect = { type: 'connectUpstream', credential, sessionId: session?.id ?? '' } as const;
  await askerOf(actors, user, owner.userId)({ ...connect, origin: { ip: '192.0.2.1', userAgent: 'test' } });
  const { answer, document } = await exported(http.url, owner.sid);
  t.equal(answer.headers.get('content-disposition'), `attachment; filename="account-${owner.userId}.json"`);
  t.equal(answer.headers.get('cache-control'), 'no-store');
  t.match(document, {
    profile: { userId: owner.userId, nickname: NICKNAME, contacts: [{ address: EMAIL }] },
    keys: [{ id: owner.keyId }],
    sessions: [{ kind: 'browser', current: true }],
    contactSyncTokens: [],
    applications: [{ id: appId }],
    applicationAccess: [{ appId }],
    connectedHosts: [],
    connectedServers: [{ server: 'notes', kind: 'oauth', connectedUtc: '2026-01-01T00:00:00.000Z' }],
    logins: [{ event: 'contact_added' }, { event: 'sign_up' }],
    files: [{ fileId: '2', name: 'own.txt' }],
    filesMissing: null,
  });
  const text = JSON.stringify(document);
  for (const secret of [owner.sid, chat.last().code, 'sealed-token']) t.notOk(text.includes(secret));
  t.same(chatModule.paths, [
    '/chat/v1/chats/list?archived=false',
    '/chat/v1/files/list?chatId=7&limit=200',
    '/chat/v1/chats/list?archived=true',
  ]);
});

t.test('export: says which files may be missing', async (t) => {
  const many = Array.from({ length: 200 }, (_, n) => ({ fileId: String(n), senderId: '5' }));
  for (const [files, missing] of [
    [many, 'of chat 7 the newest 200 were listed'],
    [undefined, 'the chat module did not list its chats'],
  ] as const) {
    const { owner, http } = await start(t, { account: chatWith(files && [...files]).deps });
    const { document } = await exported(http.url, owner.sid);
    t.match(document, { files: [], filesMissing: missing });
  }
});
