/** Keys in the admin panel: search over all accounts in bounded pages, adding by claim, access, removal, refusals. */
import { readFileSync } from 'node:fs';
import t, { type Test } from 'tap';
import { GatewayError } from '../../../src/domain/errors.ts';
import { KeyFlag, type UserKey } from '../../../src/domain/keys.ts';
import {
  KEY_ACCOUNTS_MAX,
  type KeyPage,
  type KeySearch,
  type KeySource,
  searchKeys,
} from '../../../src/io/admin/keys.ts';
import {
  type Account,
  type Answer,
  cookie,
  makeKey,
  mcpProof,
  refused,
  sidOf,
} from '../../support/account.ts';
import { rowsOf, type startAdmin, startAdminOf } from '../../support/admin.ts';

const UNUSABLE = JSON.parse(readFileSync('test/vectors/ed25519_expected.json', 'utf8')) as {
  lowOrderEncodings: string[];
};
const EVERYTHING: KeySearch = {
  userId: undefined,
  publicKey: undefined,
  deleted: false,
  after: undefined,
  limit: 100,
};

type Item = Record<string, unknown> & { id: string; userId: string; publicKey: string };

async function start(t: Test, options: Parameters<typeof startAdmin>[0] = {}) {
  const fixture = await startAdminOf(t, options);
  const { ask, change, admin, owner } = fixture;
  const changing =
    (what: string) =>
    (body: object, account: Account = admin) =>
      change(`user_keys/${what}`, { userId: owner.userId, ...body }, account);
  return {
    ...fixture,
    keys: async (query = '') => rowsOf(await ask(`user_keys${query}`)) as Item[],
    add: changing('add'),
    update: changing('update'),
    remove: changing('remove'),
    /** Records of the audit log, the oldest first, without login and sign-up. */
    records: async () => {
      const { result } = await ask('audit?after=0&limit=1000');
      return (result as { event: string; userId: string }[]).filter(({ event }) => /key/.test(event));
    },
  };
}

// covers R56
t.test('admin keys: all accounts in pages, each key once, `Link` names the next page', async (t) => {
  const { ask, keys, signUp, admin, owner, allowAgent } = await start(t);
  const people = [admin, owner, await signUp(), await signUp()];
  const agents = [makeKey(), makeKey(), makeKey()];
  for (const agent of agents) await allowAgent(owner, agent);
  const all = await keys();
  t.equal(all.length, people.length + agents.length);
  t.same(
    all.map(({ userId }) => userId),
    all.map(({ userId }) => userId).sort(),
    'in the order of account ids',
  );
  const ofOwner = all.filter(({ userId }) => userId === owner.userId);
  t.same(
    ofOwner.map(({ publicKey }) => publicKey),
    [owner.key, ...agents].map(({ publicKey }) => publicKey),
    'in the order of their adding',
  );
  t.match(ofOwner[0], { id: owner.keyId, keyType: 'UserKey', proven: true, current: false, deleted: false });
  t.match(ofOwner[1], { proven: false, mcpAccess: true, cardDavAccess: false });
  t.match(
    all.find(({ userId }) => userId === admin.userId),
    { current: true },
  );
  for (const limit of [1, 2, 3, 7, 8]) {
    const found: Item[] = [];
    let path: string | undefined = `user_keys?limit=${limit}`;
    while (path !== undefined && found.length <= all.length) {
      const answer: Answer = await ask(path);
      const rows = answer.result as Item[];
      t.ok(rows.length > 0 && rows.length <= limit);
      found.push(...rows);
      [, path] = /^<\/ProxyAdmin\/api\/(.+)>; rel="next"$/.exec(answer.headers['link'] ?? '') ?? [];
    }
    t.same(found, all, `pages of ${limit}`);
  }
  t.same(await keys(`?after=${all.at(-1)?.userId}`), [], 'behind an account');
  t.same(await keys(`?userId=${owner.userId}&limit=2&after=${owner.userId}.${ofOwner[1]?.id}`), [
    ofOwner[2],
    ofOwner[3],
  ]);
});

t.test('admin keys: a public key is found whole, a removed one with `deleted` alone', async (t) => {
  const { ask, keys, remove, owner, signUp, allowAgent } = await start(t);
  const agent = makeKey();
  const keyId = await allowAgent(owner, agent);
  t.match(await keys(`?publicKey=${agent.publicKey}`), [{ id: keyId, userId: owner.userId }]);
  t.match(await keys(`?publicKey=${agent.publicKey}&userId=${owner.userId}`), [{ id: keyId }]);
  const other = await signUp();
  t.same(await keys(`?publicKey=${agent.publicKey}&userId=${other.userId}`), []);
  t.same(await keys(`?publicKey=${makeKey().publicKey}`), []);
  t.same(await keys(`?publicKey=${agent.publicKey.slice(0, 40)}`), [], 'not by a part of it');
  t.equal((await remove({ keyId })).status, 200);
  t.same(await keys(`?publicKey=${agent.publicKey}`), []);
  t.match(await keys(`?publicKey=${agent.publicKey}&deleted=true`), [{ id: keyId, deleted: true }]);
  const ofOwner = await keys(`?userId=${owner.userId}&deleted=true`);
  t.match(ofOwner, [
    { id: owner.keyId, deleted: false },
    { id: keyId, deleted: true },
  ]);
  t.equal((await keys(`?userId=${owner.userId}&deleted=false`)).length, 1);
  t.equal((await keys('?deleted=true')).length, 4);
  for (const [field, values] of Object.entries({
    userId: ['x', '-1', '9223372036854775808'],
    publicKey: ['', 'a', 'a+b/', `${agent.publicKey}=`, 'A'.repeat(1365)],
    deleted: ['yes', ''],
    after: ['x', '1.x', '1.2.3', '.', '1.', '.1', '9223372036854775808', '-1'],
    limit: ['0', '1001', 'all'],
  }))
    for (const value of values)
      refused(
        t,
        await ask(`user_keys?${field}=${encodeURIComponent(value)}`),
        400,
        new RegExp(`1001.*${field}`),
      );
  refused(t, await ask('user_keys?userId=1'), 404, /1004.*no such user/);
});

/** So many accounts; every ten-thousandth has two keys, the others none. Counts what is looked at. */
function manyAccounts(count: number, broken = -1): KeySource & { looked: number; most: number } {
  const idOf = (index: number) => String(10 ** 9 + index);
  const key = (userId: string, id: string) => {
    return { id, ownerId: userId, publicKey: `key-${userId}`, flags: KeyFlag.UserKey };
  };
  const source = {
    looked: 0,
    most: 0,
    accountIds(after: string, limit: number) {
      source.most = Math.max(source.most, limit);
      const first = after === '' ? 0 : Number(after) - 10 ** 9 + 1;
      return Array.from({ length: Math.max(0, Math.min(limit, count - first)) }, (_, index) =>
        idOf(first + index),
      );
    },
    actors: {
      lookup: () => undefined,
      query(_kind: unknown, userId: string) {
        source.looked += 1;
        const index = Number(userId) - 10 ** 9;
        if (index === broken) throw new GatewayError('Quarantined');
        return (index % 10_000 === 0 ? [key(userId, '1'), key(userId, '2')] : []) as never;
      },
    },
  };
  return source;
}

async function pagesOf(source: KeySource, search: KeySearch): Promise<KeyPage[]> {
  const pages: KeyPage[] = [];
  let after: KeySearch['after'];
  do {
    const page = await searchKeys(source, { ...search, after });
    pages.push(page);
    after = page.next;
  } while (after !== undefined && pages.length < 100);
  return pages;
}

// covers S114
t.test('admin keys: a page looks at 1,000 accounts, 50 at a time, and says where to continue', async (t) => {
  const source = manyAccounts(25_000);
  const first = await searchKeys(source, { ...EVERYTHING, publicKey: 'none', deleted: true });
  t.same(first, { rows: [], next: { userId: '1000000999' } });
  t.equal(source.looked, KEY_ACCOUNTS_MAX);
  t.ok(source.most <= 50, 'a slice at a time');
  const pages = await pagesOf(source, EVERYTHING);
  t.equal(pages.length, 26, 'the last one is empty: the one before ended with the last account');
  const all = ['1000000000', '1000010000', '1000020000'].flatMap((id) => [`${id}.1`, `${id}.2`]);
  const foundIn = (found: KeyPage[]) =>
    found.flatMap(({ rows }) => rows.map(({ userId, key }) => `${userId}.${key.id}`));
  t.same(foundIn(pages), all);
  source.looked = 0;
  const one = await pagesOf(source, { ...EVERYTHING, limit: 1 });
  t.same(foundIn(one), all);
  t.ok(source.looked <= (KEY_ACCOUNTS_MAX + 1) * one.length);
});

t.test('admin keys: the event loop turns while a page is looked through', async (t) => {
  let turns = 0;
  let going = true;
  const turn = () => {
    turns += 1;
    if (going) setImmediate(turn);
  };
  setImmediate(turn);
  await searchKeys(manyAccounts(25_000), { ...EVERYTHING, publicKey: 'none', deleted: true });
  going = false;
  t.ok(turns >= 15, `${turns} turns`);
});

t.test('admin keys: an account that cannot be read is left out, and 503 where it is asked for', async (t) => {
  const source = manyAccounts(100, 0);
  t.same(await searchKeys(source, EVERYTHING), { rows: [], next: undefined });
  const asked = searchKeys(source, { ...EVERYTHING, userId: '1000000000' });
  await t.rejects(asked, { message: 'Temporarily unavailable' });
  const failing = { ...source, actors: { ...source.actors, query: () => Promise.reject(new Error('bug')) } };
  await t.rejects(searchKeys(failing, EVERYTHING), { message: 'bug' }, 'nothing else is passed over');
});

t.test('admin keys: credentials are found by their id, apart from software keys', async (t) => {
  const key = { id: '5', publicKey: 'c', flags: KeyFlag.Fido2Key } as UserKey;
  const source: KeySource = {
    accountIds: () => t.fail('all accounts are looked at') as never,
    actors: {
      lookup: (index, name) => (index === 'credentialId' && name === 'c' ? '7:5:p' : undefined),
      query: (_kind: object, userId: string) => (userId === '7' ? [key] : []) as never,
    },
  };
  const found = await searchKeys(source, { ...EVERYTHING, publicKey: 'c' });
  t.same(found, { rows: [{ userId: '7', key }], next: undefined });
  t.same(await searchKeys(source, { ...EVERYTHING, publicKey: 'd' }), { rows: [], next: undefined });
});

// covers R56 S112
t.test('admin keys: an added key is a claim that logs in an agent and no browser', async (t) => {
  const { add, update, get, login, mcpLogin, signUp, keys, owner, admin, records, actors, loginLog } =
    await start(t);
  const agent = makeKey();
  const added = await add({ publicKey: agent.publicKey, name: 'Robot' });
  const named = { userId: owner.userId, publicKey: agent.publicKey, keyType: 'UserKey', name: 'Robot' };
  const no = { proven: false, mcpAccess: false, cardDavAccess: false, current: false, deleted: false };
  t.match(added, { status: 200, result: { ...named, ...no } });
  const keyId = (added.result as Item).id;
  refused(t, await mcpLogin({ 'X-PublicKey': agent.publicKey }), 401, 1103);
  t.match((await update({ keyId, mcpAccess: true })).result, { mcpAccess: true, cardDavAccess: false });
  t.match(await mcpLogin(mcpProof(agent)), { status: 200, result: { userId: owner.userId } });
  refused(t, await login(agent), 401, 1103);
  const own = await get('/auth/v1/keys/user_keys', cookie(owner.sid));
  t.match(own.result, [{}, { id: keyId, proven: false }]);
  const log = (await loginLog(owner.sid)) as { event: string }[];
  const seen = { ok: true, keyId, ip: '', userAgent: '' };
  t.match(
    log.filter(({ event }) => /admin/.test(event)),
    ['key_changed_by_admin', 'key_added_by_admin'].map((event) => ({ event, ...seen })),
    'the owner reads of it, and not from where',
  );
  const by = { by: admin.userId, keyId };
  const fields = { ...by, ip: '127.0.0.1', publicKey: agent.publicKey, flagsAfter: 2 };
  t.match((await records()).slice(-2), [
    { event: 'admin_key_added', ring: 'admin', userId: owner.userId, fields },
    { event: 'admin_key_updated', fields: { ...by, flagsBefore: 2, flagsAfter: 10 } },
  ]);
  const holder = await signUp(agent);
  await actors.settle();
  const held = await keys(`?publicKey=${agent.publicKey}`);
  t.match(held, [{ userId: holder.userId, proven: true }], 'proof beats it');
});

t.test('admin keys: what a key may do can be set as it is added', async (t) => {
  const { add, mcpLogin } = await start(t);
  const agent = makeKey();
  const flags = { mcpAccess: true, cardDavAccess: true };
  t.match((await add({ publicKey: agent.publicKey, ...flags })).result, { ...flags, proven: false });
  t.equal((await mcpLogin({ 'X-PublicKey': agent.publicKey })).status, 200);
});

// covers R56
t.test('admin keys: a key that is held, unusable, or one too many is refused', async (t) => {
  const { add, keys, owner, admin, signUp, allowAgent, settings, records, actors } = await start(t);
  const before = await keys();
  const claimed = makeKey();
  const other = await signUp();
  await allowAgent(other, claimed);
  refused(t, await add({ publicKey: owner.key.publicKey }), 409, 1107);
  refused(t, await add({ publicKey: admin.key.publicKey }), 409, 1107);
  refused(t, await add({ publicKey: claimed.publicKey }), 409, 1107);
  for (const hex of UNUSABLE.lowOrderEncodings) {
    const publicKey = Buffer.from(hex, 'hex').toString('base64url');
    refused(t, await add({ publicKey }), 400, /1001.*publicKey/);
  }
  const { publicKey } = makeKey();
  const spoilt = ['', `${publicKey}A`, publicKey.slice(1), `${publicKey}=`].map((each) => ({
    publicKey: each,
  }));
  const fields = [{ userId: 'x' }, { userId: null }, { name: '' }, { name: 'n'.repeat(65) }];
  const flags = [{ mcpAccess: 1 }, { cardDavAccess: null }];
  for (const body of [{}, ...spoilt, ...[...fields, ...flags].map((each) => ({ publicKey, ...each }))])
    refused(t, await add(body), 400, 1001);
  refused(t, await add({ publicKey, userId: '1' }), 404, /1004.*no such user/);
  settings.set('ActiveKeysLimit', 1);
  refused(t, await add({ publicKey }), 409, 1106);
  t.equal((await keys()).length, before.length + 2, 'nothing was added');
  await actors.advance(1_000);
  const last = { operation: 'admin_claimKey', error: 'Key limit reached' };
  t.match((await records()).at(-1), { event: 'key_change_refused', userId: admin.userId, fields: last });
});

t.test('admin keys: forbidden MCP ends the agent sessions of the key alone', async (t) => {
  const { update, owner, allowAgent, mcpLogin, ask, alive } = await start(t);
  const agent = makeKey();
  const keyId = await allowAgent(owner, agent);
  await mcpLogin({ 'X-PublicKey': agent.publicKey });
  t.match((await update({ keyId, cardDavAccess: true })).result, { mcpAccess: true, cardDavAccess: true });
  t.match((await ask(`sessions?userId=${owner.userId}`)).result, [{ kind: 'browser' }, { kind: 'mcp' }]);
  t.match((await update({ keyId, mcpAccess: false })).result, { mcpAccess: false, cardDavAccess: true });
  t.match((await ask(`sessions?userId=${owner.userId}`)).result, [{ kind: 'browser' }]);
  t.equal(((await ask(`sessions?userId=${owner.userId}`)).result as unknown[]).length, 1);
  refused(t, await mcpLogin({ 'X-PublicKey': agent.publicKey }), 401, 1103);
  t.equal(await alive(owner.sid), true);
  t.match((await update({ keyId })).result, { mcpAccess: false, cardDavAccess: true }, 'nothing to change');
});

t.test('admin keys: a removal ends the sessions of the key before it answers, and is audited', async (t) => {
  const { remove, owner, admin, allowAgent, mcpLogin, ask, alive, login, records, loginLog } = await start(t);
  const agent = makeKey();
  const keyId = await allowAgent(owner, agent);
  await mcpLogin({ 'X-PublicKey': agent.publicKey });
  const { userId } = owner;
  t.same((await remove({ keyId })).result, { userId, keyId, sessionsClosed: 1 });
  refused(t, await mcpLogin({ 'X-PublicKey': agent.publicKey }), 401, 1101);
  t.equal(await alive(owner.sid), true);
  t.match(await loginLog(owner.sid), [{ event: 'key_removed_by_admin', keyId }]);
  const last = await remove({ keyId: owner.keyId });
  t.same(last.result, { userId, keyId: owner.keyId, sessionsClosed: 1 });
  t.equal(last.headers['set-cookie'], undefined, 'the admin stays logged in');
  t.equal(await alive(owner.sid), false);
  t.equal(await alive(admin.sid), true);
  refused(t, await login(owner.key), 401, 1101);
  t.same((await ask(`sessions?userId=${userId}`)).result, []);
  const event = 'admin_key_removed';
  const [first, second] = (await records()).slice(-2);
  t.match(first, { event, ring: 'admin', userId, fields: { by: admin.userId, keyId, sessionsClosed: 1 } });
  t.match(second, { event, fields: { keyId: owner.keyId } });
});

t.test('admin keys: the key of the own session takes the cookie with it', async (t) => {
  const { remove, admin, alive } = await start(t);
  const { userId, keyId } = admin;
  const removed = await remove({ userId, keyId });
  t.same(removed.result, { userId, keyId, sessionsClosed: 1 });
  t.equal(sidOf(removed), '');
  t.equal(await alive(admin.sid), false);
});

t.test('admin keys: the last key is protected as it is from its owner', async (t) => {
  const { remove, add, owner, settings } = await start(t);
  settings.set('LastKeyProtection', 1);
  refused(t, await remove({ keyId: owner.keyId }), 403, /1103.*last key/);
  t.equal((await add({ publicKey: makeKey().publicKey })).status, 200);
  t.equal((await remove({ keyId: owner.keyId })).status, 200, 'one of two');
});

t.test('admin keys: foreign, removed and unknown keys are the same 404', async (t) => {
  const { update, remove, owner, admin, allowAgent } = await start(t);
  const keyId = await allowAgent(owner, makeKey());
  await remove({ keyId });
  for (const change of [update, remove]) {
    for (const id of [keyId, admin.keyId, '1']) refused(t, await change({ keyId: id }), 404, 1108);
    refused(t, await change({ keyId: '9223372036854775808' }), 400, /1001.*keyId/);
    refused(t, await change({ keyId: 'x' }), 400, /1001.*keyId/);
    refused(t, await change({}), 400, /1001.*keyId/);
    refused(t, await change({ keyId: owner.keyId, userId: '1' }), 404, /1004.*no such user/);
  }
});

// covers S113
t.test('admin keys: changes are for admins with a fresh login, reading for the whole staff', async (t) => {
  const { add, update, remove, change, ask, keys, signUp, owner, actors, settings } = await start(t);
  const { publicKey } = makeKey();
  const { keyId } = owner;
  for (const role of ['viewer', 'support']) {
    const member = await signUp();
    t.equal((await change('staff', { userId: member.userId, role })).status, 200);
    t.equal((await ask('user_keys', member)).status, 200);
    refused(t, await add({ publicKey }, member), 403, 1103);
    refused(t, await update({ keyId, mcpAccess: true }, member), 403, 1103);
    refused(t, await remove({ keyId }, member), 403, 1103);
  }
  refused(t, await ask('user_keys', owner), 403, 1103);
  const all = await keys();
  settings.set('KeyChangeFreshLoginSeconds', 60);
  actors.clock.nowMs += 60_001;
  for (const later of [0, 15 * 60_000]) {
    actors.clock.nowMs += later;
    refused(t, await add({ publicKey }), 403, 1110);
    refused(t, await update({ keyId, mcpAccess: true }), 403, 1110);
    refused(t, await remove({ keyId }), 403, 1110);
    settings.set('KeyChangeFreshLoginSeconds', 0);
  }
  t.same(
    (await keys()).map(({ id, mcpAccess }) => [id, mcpAccess]),
    all.map(({ id, mcpAccess }) => [id, mcpAccess]),
  );
});

t.test('admin keys: Idempotency-Key gives the first answer again', async (t) => {
  const { post, admin, owner, keys } = await start(t);
  const { publicKey } = makeKey();
  const body = { userId: owner.userId, publicKey };
  const headers = { ...cookie(admin.sid), 'Idempotency-Key': 'once' };
  const send = (what: string, sent: object) => post(`/ProxyAdmin/api/user_keys/${what}`, sent, headers);
  const first = await send('add', body);
  t.equal(first.status, 200);
  t.same((await send('add', body)).result, first.result);
  const { id: keyId } = first.result as Item;
  const removal = { userId: owner.userId, keyId };
  const removed = await send('remove', removal);
  t.match(removed, { status: 200, result: { keyId } }, 'the key counts for one operation');
  t.same((await send('remove', removal)).result, removed.result);
  refused(t, await send('add', { ...body, name: 'Other' }), 422, 1016);
  t.equal((await keys(`?userId=${owner.userId}`)).length, 1);
});
