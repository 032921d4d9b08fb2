/** Applications from the outside: registration, refusals, API keys, removal, and what every owner can see. */
import t, { type Test } from 'tap';
import { closeAfter } from '../../../kit/close-after.ts';
import { user } from '../../../src/actors/accounts/user.ts';
import { app } from '../../../src/actors/apps/app.ts';
import { RING_SIZE } from '../../../src/actors/runtime/idempotency.ts';
import { APPS_MAX, type AppKey, type SealedKey } from '../../../src/domain/apps.ts';
import { DAY_MS, HOUR_MS } from '../../../src/domain/time.ts';
import { askOptions } from '../../../src/io/accounts/account.ts';
import { createApiKeyCipher, openApiKeyCipher, SealKeyUnusable } from '../../../src/io/apps/api-keys.ts';
import { createAppRoutes } from '../../../src/io/routes/apps.ts';
import { openKeys } from '../../../src/io/webhooks/signature.ts';
import { type Account, type Answer, cookie, refused, startAccounts } from '../../support/account.ts';
import { createTestActors } from '../../support/actors/actors.ts';
import { CIPHER, SHOP } from '../../support/admin.ts';

interface App {
  readonly id: string;
  readonly name: string;
  readonly url: string;
  readonly webhookUrl: string | null;
  readonly apiKey?: string;
  readonly keys: readonly { id: string; expiresUtc: string | null }[];
}

async function start(t: Test, options: Parameters<typeof startAccounts>[0] = {}) {
  const fixture = closeAfter(t, startAccounts({ routes: () => createAppRoutes(CIPHER), ...options }));
  const owner = await fixture.signUp();
  const send = (account: Account, path: string, body: unknown, headers: Record<string, string> = {}) =>
    fixture.post(`/auth/v1/app/${path}`, body, { ...cookie(account.sid), ...headers });
  const upsert = (body: unknown, account = owner) => send(account, 'upsert_usr_app', body);
  const list = async (account = owner) =>
    (await fixture.get('/auth/v1/app/list', cookie(account.sid))).result as App[];
  /** A new application; `SHOP` unless given. */
  const created = async (body: object = SHOP) => appOf(t, await upsert(body));
  const rotate = (body: object, account = owner) => send(account, 'rotate_key', body);
  const info = (query: string, account = owner) =>
    fixture.get(`/auth/v1/app/info?${query}`, cookie(account.sid));
  return { ...fixture, owner, send, upsert, list, created, rotate, info };
}

function appOf(t: Test, answer: Answer): App {
  if (answer.status !== 200) t.fail(`${answer.status} ${JSON.stringify(answer.error)}`);
  return answer.result as App;
}

// covers R14 R63 R64
t.test('apps: a new application has the documented shape and shows its API key once', async (t) => {
  const { list, created, info } = await start(t);
  const fields = { webhookUrl: 'https://shop.example/hook', currencies: ['EUR'], netTypes: [0, 255] };
  const { apiKey, ...rest } = await created({ ...SHOP, ...fields });
  t.match(apiKey, /^ghk_[A-Za-z0-9_-]{43}$/);
  const closed = { approved: false, mcpEnabled: false, disabled: false, mcpPublicKey: null };
  const counters = { success_count: 0, failed_count: 0, last_tick: '0' };
  t.match(rest, { ...SHOP, id: /^[1-9][0-9]{17,18}$/, ...fields, ...closed, ...counters });
  t.same(await list(), [rest]);
  t.same((await info(`id=${rest.id}`)).result, rest);
  t.same(await created({}), rest, 'an update shows no key');
});

// covers R14
t.test('apps: every route takes appId, and its former name id', async (t) => {
  const { upsert, send, owner, rotate, created, info } = await start(t);
  const one = (await created()).id;
  const two = (await created({ name: 'Two', url: 'https://two.example' })).id;
  t.match((await info(`appId=${one}`)).result, { id: one });
  t.match((await info(`id=${one}`)).result, { id: one });
  t.match((await info(`id=${one}&appId=${one}`)).result, { id: one });
  refused(t, await info(`id=${one}&appId=${two}`), 400, /query: appId and id, its former name, differ/);
  refused(t, await info(''), 400, /query\/?\S*appId/);
  refused(t, await info('id=x'), 400, /appId/);
  t.equal((await created({ appId: one, name: 'By appId' })).id, one);
  t.equal((await created({ id: two, name: 'By id' })).id, two);
  t.equal((await created({ appId: null, id: two, name: 'Again' })).id, two);
  const both = { appId: one, id: two };
  refused(t, await upsert({ ...both, name: 'Which' }), 400, /body: appId and id/);
  t.match((await rotate({ appId: one })).result, { id: one, name: 'By appId' });
  t.match((await rotate({ id: one, finish: true })).result, { id: one });
  for (const route of ['remove', 'rotate_key']) {
    refused(t, await send(owner, route, both), 400, /body: appId and id/, route);
    refused(t, await send(owner, route, {}), 400, /appId/, route);
  }
  t.match((await send(owner, 'remove', { appId: one })).result, { appId: one });
  t.match((await send(owner, 'remove', { id: two })).result, { appId: two });
});

// covers R14 R63
t.test('apps: an update without an id finds the application by its url', async (t) => {
  const { upsert, list, created } = await start(t);
  const one = await created();
  const renamed = await created({ url: 'https://SHOP.example/', name: 'Renamed' });
  t.equal(renamed.id, one.id, 'same address');
  t.equal((await created({ name: 'Renamed', url: 'https://new.example' })).id, one.id, 'same name');
  t.match(await list(), [{ name: 'Renamed', url: 'https://new.example' }]);
  t.equal((await created({ netTypes: [1] })).id, one.id, 'the only one');
  const two = await created({ name: 'Two', url: 'https://two.example' });
  t.not(two.id, one.id);
  refused(t, await upsert({ netTypes: [1] }), 400, /name and url/, 'both omitted, two of them');
  refused(t, await upsert({ name: 'Three' }), 400, /name and url/);
  refused(t, await upsert({ url: 'https://three.example' }), 400, /name and url/);
  const found = await created({ url: 'https://two.example', name: 'Renamed' });
  t.equal(found.id, two.id, 'address first');
  t.equal((await created({ id: one.id, name: 'One' })).id, one.id);
  t.match(await list(), [{ name: 'One' }, { name: 'Renamed' }]);
  t.equal((await list()).length, 2);
});

t.test('apps: null and omitted are unchanged, an empty webhookUrl and empty lists take effect', async (t) => {
  const { created } = await start(t);
  const lists = { currencies: ['EUR', 'USD'], netTypes: [3] };
  const full = { ...SHOP, webhookUrl: 'https://shop.example/hook', ...lists };
  const { apiKey: _apiKey, ...first } = await created(full);
  const nulls = { name: null, url: null, webhookUrl: null, currencies: null, netTypes: null, id: null };
  t.same(await created(nulls), first);
  t.same(await created({}), first);
  t.match(await created({ currencies: ['BTC'] }), { ...full, currencies: ['BTC'] });
  const emptied = await created({ webhookUrl: '', currencies: [], netTypes: [] });
  t.match(emptied, { ...SHOP, webhookUrl: null, currencies: [], netTypes: [] });
});

// covers R108
t.test('apps: what does not fit is 400, names the field and changes nothing', async (t) => {
  const { upsert, list, created } = await start(t);
  const { id } = await created({ ...SHOP, currencies: ['EUR'] });
  const before = await list();
  const names = (count: number) => Array.from({ length: count }, (_, place) => `C${place}`);
  const numbers = (count: number) => Array.from({ length: count }, (_, place) => place);
  const controls = ['a\nb', 'a\u0085b', 'a\u2028b', '\ud800'];
  const invisible = ['Shop\u202ekcatta', '\u2066Shop\u2069', '\u200b\u200d\ufeff', ' \u3164\u2800 '];
  const addresses = ['https://shop.example/\udc00', `https://a.example/${'a'.repeat(1024)}`];
  const bad: Record<string, unknown[]> = {
    currencies: [names(21), 'EUR', [1], [''], ['E R'], ['A'.repeat(17)], [null]],
    netTypes: [numbers(31), [256], [-1], [1.5], ['1'], 1],
    name: ['', '   ', 'a'.repeat(65), 7, ...controls, ...invisible],
    url: ['', 'shop', 'javascript:alert(1)', 'https://a b', {}, ...addresses],
    webhookUrl: ['ftp://a.example', 5],
    id: ['x', '-1', 2 ** 53, '9223372036854775808'],
  };
  const rows = Object.entries(bad).flatMap(([field, values]) =>
    values.map((value) => [field, value] as const),
  );
  const accepted: unknown[] = [];
  for (const [field, value] of rows) {
    const { status, error } = await upsert({ [field]: value });
    if (status !== 400 || error?.code !== 1001 || !JSON.stringify(error).includes(field))
      accepted.push([field, JSON.stringify(value), status, error]);
  }
  t.same(accepted, []);
  for (const body of [[], 'x', null, 3]) refused(t, await upsert(body), 400, /./, JSON.stringify(body));
  t.same(await list(), before);
  for (const name of ['Café Zürich', 'متجر', '商店', '👩\u200d🍳 Kitchen']) {
    // The client of this fixture reads answers byte by byte.
    const shown = (await created({ id, name })).name;
    t.equal(Buffer.from(shown, 'latin1').toString(), name, encodeURI(name));
  }
  t.match(await created({ currencies: names(20), netTypes: numbers(30) }), { netTypes: numbers(30) });
});

// covers R13 S24
t.test('apps: a url is checked by its syntax, a webhookUrl by the rules of webhook targets', async (t) => {
  const { upsert, created } = await start(t, { site: { production: true, webhookAllow: [] } });
  await created({ name: 'Inside', url: 'http://10.0.0.1:8080/app', webhookUrl: 'https://hooks.example/x' });
  const forbidden = [
    'http://hooks.example/',
    'https://127.1/',
    'https://localhost./',
    'https://u:p@hooks.example',
  ];
  for (const webhookUrl of forbidden) refused(t, await upsert({ webhookUrl }), 400, /webhookUrl/, webhookUrl);
});

// covers R14 R64
t.test('apps: foreign, removed and unknown ids are the same 404', async (t) => {
  const { send, signUp, owner, info, created } = await start(t);
  const outsider = await signUp();
  const foreign = (await created()).id;
  const gone = (await created({ name: 'Gone', url: 'https://gone.example' })).id;
  const removed = await send(owner, 'remove', { id: gone });
  t.match(removed, { status: 200, result: { appId: gone, sessionsClosed: 0 } });
  const cases: [Account, string][] = [
    [outsider, foreign],
    [owner, gone],
    [owner, '1'],
    [owner, '9223372036854775807'],
  ];
  for (const [account, id] of cases) {
    const answers = [
      await send(account, 'upsert_usr_app', { id, name: 'Mine' }),
      await send(account, 'remove', { id }),
      await send(account, 'rotate_key', { id }),
      await send(account, 'revoke_access', { appId: id }),
      await send(account, 'grant_access', { appId: id }),
      await info(`id=${id}`, account),
    ];
    t.match(answers[0]?.error, { message: /Not found/ });
    t.same(
      answers.map(({ status, error }) => ({ status, error })),
      answers.map(() => ({ status: 404, error: answers[0]?.error })),
    );
  }
  t.match(await info(`id=${foreign}`), { result: SHOP }, 'nothing changed');
});

t.test('apps: two accounts may use the same name and address', async (t) => {
  const { upsert, signUp, list, created } = await start(t);
  const other = await signUp();
  const one = await created();
  const two = appOf(t, await upsert(SHOP, other));
  t.not(one.id, two.id);
  t.equal((await list()).length, 1);
});

// covers R64 R108
t.test('apps: one more than the limit is refused with a row of its own, a removal makes room', async (t) => {
  const { upsert, send, owner, list, created } = await start(t);
  const nth = (n: number) => ({ name: `App ${n}`, url: `https://app${n}.example` });
  for (let n = 0; n < APPS_MAX; n += 1) appOf(t, await upsert(nth(n)));
  const answer = await upsert(nth(APPS_MAX));
  refused(t, answer, 409, /Application limit reached/);
  t.equal(answer.error?.code, 1112);
  await created({ ...nth(0), netTypes: [1] });
  await send(owner, 'remove', { id: (await list())[0]?.id });
  appOf(t, await upsert(nth(APPS_MAX)));
  t.equal((await list()).length, APPS_MAX);
});

t.test('apps: concurrent registrations of one application create it once', async (t) => {
  const { upsert, list } = await start(t);
  const answers = await Promise.all(Array.from({ length: 8 }, (_, n) => upsert({ ...SHOP, netTypes: [n] })));
  const apps = answers.map((answer) => appOf(t, answer));
  t.equal(new Set(apps.map(({ id }) => id)).size, 1);
  t.equal(apps.filter(({ apiKey }) => apiKey !== undefined).length, 1);
  t.equal((await list()).length, 1);
});

const ONCE = { 'Idempotency-Key': 'k1' };
const ORIGIN = { ip: '', userAgent: '' };

/** The command that `upsert_usr_app` sends, with a new key. */
const upsertCommand = () =>
  ({ type: 'upsertApp', patch: SHOP, key: CIPHER.issue().sealed, origin: ORIGIN }) as const;

async function turns(count: number): Promise<void> {
  for (let turn = 0; turn < count; turn += 1) await new Promise((resolve) => setImmediate(resolve));
}

// covers R14 R63
t.test(
  'apps: an Idempotency-Key repeats the first answer, API key included; rotation ignores it',
  async (t) => {
    const { send, owner, list } = await start(t);
    const register = () => send(owner, 'upsert_usr_app', SHOP, ONCE);
    const [one, two] = (await Promise.all([register(), register()])).map((answer) => appOf(t, answer));
    if (one === undefined) throw new Error('no answer');
    t.match(one.apiKey, /^ghk_/);
    t.same(two, one, 'while the first is under way');
    t.same(appOf(t, await register()), one, 'behind it');
    await send(owner, 'upsert_usr_app', { ...SHOP, netTypes: [9] });
    t.same(appOf(t, await register()), one, 'the first answer, not what it is now');
    t.match(await list(), [{ id: one.id, netTypes: [9] }], 'and nothing is done again');
    const rotated = await Promise.all([0, 1].map(() => send(owner, 'rotate_key', { id: one.id }, ONCE)));
    const keys = rotated.map((answer) => appOf(t, answer).apiKey);
    t.equal(new Set([...keys, one.apiKey]).size, 3);
    const removal = await send(owner, 'remove', { id: one.id }, ONCE);
    t.same((await send(owner, 'remove', { id: one.id }, ONCE)).result, removal.result);
    t.equal(appOf(t, await register()).apiKey, undefined, 'the key of a removed application is over');
    t.same(await list(), []);
  },
);

// covers R14 R63
t.test('apps: an Idempotency-Key with other content is 422, with another account its own', async (t) => {
  const { send, owner, list, signUp, actors } = await start(t);
  const register = (body: object, account = owner) => send(account, 'upsert_usr_app', body, ONCE);
  const one = appOf(t, await register(SHOP));
  const others = [{ ...SHOP, netTypes: [1] }, { ...SHOP, url: 'https://else.example' }, { id: one.id }];
  const refuseAll = async (note: string) => {
    for (const body of others) {
      const answer = await register(body);
      refused(t, answer, 422, /Idempotency key reused/, `${note}: ${JSON.stringify(body)}`);
      t.equal(answer.error?.code, 1016);
    }
  };
  await refuseAll('at once');
  await actors.restart();
  await refuseAll('after a restart');
  t.match(await list(), [{ id: one.id, netTypes: [] }], 'nothing was done');
  t.equal((await list()).length, 1);
  const other = appOf(t, await register(SHOP, await signUp()));
  t.match(other.apiKey, /^ghk_/);
  t.not(other.id, one.id);
  const change = { ...SHOP, netTypes: [3] };
  for (const note of ['first', 'again']) {
    const changed = appOf(t, await send(owner, 'upsert_usr_app', change, { 'Idempotency-Key': 'k2' }));
    t.equal(changed.apiKey, undefined, `a change shows no key: ${note}`);
  }
  for (const bad of ['', 'a b', 'x'.repeat(129), 'é'])
    refused(t, await send(owner, 'upsert_usr_app', SHOP, { 'Idempotency-Key': bad }), 400, /Idempotency-Key/);
});

// covers R14 R63
t.test('apps: an Idempotency-Key shows the API key for an hour, also after a restart', async (t) => {
  const { send, owner, list, actors } = await start(t);
  const register = async () => appOf(t, await send(owner, 'upsert_usr_app', SHOP, ONCE));
  const requests = async () => {
    const { apps } = await actors.system.query(user, owner.userId, { type: 'account' });
    return apps.filter(({ request }) => request !== undefined).length;
  };
  const { apiKey, ...rest } = await register();
  t.equal(await requests(), 1);
  await actors.advance(HOUR_MS - 1);
  await actors.restart();
  t.same(await register(), { ...rest, apiKey }, 'to the last millisecond');
  actors.clock.nowMs += 1;
  t.same(await register(), rest, 'without the key, by the clock alone');
  await actors.advance(0);
  t.equal(await requests(), 0, 'and it is forgotten');
  await actors.restart();
  t.same(await register(), rest);
  t.equal(await requests(), 0, 'after a restart too');
  refused(t, await send(owner, 'upsert_usr_app', { ...SHOP, netTypes: [1] }, ONCE), 422, /reused/);
  t.equal((await list()).length, 1);
});

// covers R14 R63
t.test('apps: other Idempotency-Keys push no API key out, and an account keeps 20 at most', async (t) => {
  const { send, owner, list, actors } = await start(t);
  const keyed = (n: number, body: object) =>
    send(owner, 'upsert_usr_app', body, { 'Idempotency-Key': `k${n}` });
  const one = appOf(t, await keyed(1, SHOP));
  for (let n = 2; n <= RING_SIZE + 2; n += 1) appOf(t, await keyed(n, { ...SHOP, netTypes: [n % 7] }));
  await send(owner, 'upsert_usr_app', { id: one.id, name: 'Renamed' });
  const again = appOf(t, await keyed(1, SHOP));
  t.match(again, { id: one.id, apiKey: one.apiKey, name: 'Renamed' }, 'nothing is changed back');
  for (let n = 0; n < 70; n += 1)
    appOf(t, await keyed(1_000 + n, { ...SHOP, name: 'Renamed', netTypes: [n] }));
  refused(t, await keyed(1, { ...SHOP, netTypes: [8] }), 422, /reused/);
  const nth = (n: number) => ({ name: `App ${n}`, url: `https://app${n}.example` });
  for (let n = 1; n < APPS_MAX; n += 1) appOf(t, await keyed(100 + n, nth(n)));
  refused(t, await keyed(199, nth(99)), 409, /Application limit reached/);
  t.equal((await list()).length, APPS_MAX);
  const removed = (await list())[1]?.id;
  await send(owner, 'remove', { id: removed });
  const { apps } = await actors.system.query(user, owner.userId, { type: 'account' });
  t.equal(apps.filter(({ request }) => request !== undefined).length, APPS_MAX - 1);
  await actors.advance(HOUR_MS);
  t.same(actors.bugs, [], 'no timer of a removed application is left');
});

// covers R14 R63
t.test('apps: whenever the process dies, a repeat with its Idempotency-Key gets the API key', async (t) => {
  const { list, actors, signUp, send } = await start(t);
  const seen = new Set<string>();
  for (let count = 0; count < 12; count += 1) {
    const account = await signUp();
    const register = (body: object) => send(account, 'upsert_usr_app', body, ONCE);
    const options = askOptions('upsert_usr_app', { idempotencyKey: 'k1', body: SHOP });
    const request = { key: options.idempotencyKey ?? '', fingerprint: options.fingerprint ?? '' };
    const command = { ...upsertCommand(), request };
    const answered = actors.system.ask(user, account.userId, command, options).then(
      () => seen.add('answered'),
      () => seen.add('refused'),
    );
    await turns(count);
    await actors.restart();
    await Promise.race([answered, actors.settle()]);
    const before = await list(account);
    seen.add(`${before.length} after the crash`);
    const other = before.length === 0 ? undefined : await register({ ...SHOP, netTypes: [1] });
    if (other !== undefined) refused(t, other, 422, /reused/, `other content after ${count} turns`);
    const { id, apiKey } = appOf(t, await register(SHOP));
    const keys = await actors.system.query(app, id, { type: 'keys' });
    const opened = keys.map((key) => CIPHER.open(key));
    const listed = (await list(account)).length;
    t.same(
      [opened, listed, appOf(t, await register(SHOP)).apiKey],
      [[apiKey], 1, apiKey],
      `after ${count} turns`,
    );
  }
  for (const outcome of ['0 after the crash', '1 after the crash', 'answered'])
    t.ok(seen.has(outcome), outcome);
});

t.test('apps: a repeat does without the API key where its seal key was lost', async (t) => {
  let tryOpen = CIPHER.tryOpen;
  const cipher = { ...CIPHER, tryOpen: (key: SealedKey) => tryOpen(key) };
  const { send, owner } = await start(t, { routes: () => createAppRoutes(cipher) });
  const { apiKey, ...rest } = appOf(t, await send(owner, 'upsert_usr_app', SHOP, ONCE));
  t.match(apiKey, /^ghk_/);
  tryOpen = () => undefined;
  t.same(appOf(t, await send(owner, 'upsert_usr_app', SHOP, ONCE)), rest);
});

// covers R64 R85
t.test('apps: after a rotation two API keys are valid for 24 hours, then one', async (t) => {
  const { actors, rotate, created } = await start(t);
  const { id, apiKey: first } = await created();
  const valid = async () => {
    const keys = await actors.system.query(app, id, { type: 'keys' });
    return keys.map((key) => CIPHER.open(key));
  };
  t.same(await valid(), [first]);
  const rotated = appOf(t, await rotate({ id }));
  t.same(await valid(), [rotated.apiKey, first]);
  t.match(rotated.keys, [{ expiresUtc: null }, { expiresUtc: /T/ }]);
  const again = appOf(t, await rotate({ id }));
  t.same(await valid(), [again.apiKey, first], 'never more than two, and the one that is sent stays');
  actors.clock.nowMs += DAY_MS - 1;
  t.equal((await valid()).length, 2);
  actors.clock.nowMs += 1;
  t.same(await valid(), [again.apiKey]);
});

// covers R64 R85
t.test(
  'apps: rotate_key with finish ends the former key and shows no key, also after a restart',
  async (t) => {
    const { send, actors, list, signUp, rotate, created } = await start(t);
    const { id } = await created();
    const { apiKey, keys } = appOf(t, await rotate({ id, finish: false }));
    t.match([apiKey, keys.length], [/^ghk_/, 2], 'false: a rotation');
    for (const finish of ['true', 1, null, {}]) refused(t, await rotate({ id, finish }), 400, /finish/);
    refused(t, await send(await signUp(), 'rotate_key', { id, finish: true }), 404, /no such application/);
    refused(t, await rotate({ id: '1', finish: true }), 404, /no such application/);
    refused(t, await rotate({ finish: true }), 400, /id/);
    t.equal((await list())[0]?.keys.length, 2, 'nothing of that has ended it');
    await actors.restart();
    for (const note of ['ended', 'the same again']) {
      const finished = appOf(t, await rotate({ id, finish: true }));
      t.match(finished.keys, [{ id: keys[0]?.id, expiresUtc: null }], note);
      t.equal(finished.keys.length, 1, note);
      t.equal(finished.apiKey, undefined, note);
    }
    await actors.restart();
    t.same((await list())[0]?.keys, [{ ...keys[0] }]);
  },
);

// covers S34
t.test('apps: the API key is in no other answer, event, message or audit record in clear text', async (t) => {
  const { upsert, send, owner, get, actors, info, rotate } = await start(t);
  const { id, apiKey = '' } = appOf(t, await send(owner, 'upsert_usr_app', SHOP, ONCE));
  const { apiKey: second = '' } = appOf(t, await rotate({ id }));
  const answers = [
    await upsert({ ...SHOP, netTypes: [9] }),
    await get('/auth/v1/app/list', cookie(owner.sid)),
    await info(`id=${id}`),
    await get('/auth/v1/app/access', cookie(owner.sid)),
    await send(owner, 'revoke_access', { appId: id }),
    await send(owner, 'grant_access', { appId: id }),
  ];
  await actors.settle();
  const { journal } = actors;
  const stored = ['app', 'user'].flatMap((kind) =>
    journal.ids(kind, '', 100).map((each) => journal.load(kind, each)),
  );
  const everything = JSON.stringify([answers, stored, journal.auditPage(0, 1000)]);
  t.ok(everything.includes(id), 'it was looked at');
  for (const secret of [apiKey, second]) {
    t.match(secret, /^ghk_/);
    t.notOk(everything.includes(secret));
    t.notOk(everything.includes(secret.slice(4)));
    t.notOk(everything.includes(Buffer.from(secret).toString('base64url')));
  }
});

t.test(
  'apps: whenever the process dies, a registration is there whole or not at all, and once',
  async (t) => {
    const { upsert, list, send, actors, signUp } = await start(t);
    const seen = new Set<string>();
    for (let count = 0; count < 12; count += 1) {
      const account = await signUp();
      const asked = actors.system.ask(user, account.userId, upsertCommand()).then(
        () => seen.add('answered'),
        () => seen.add('refused'),
      );
      await turns(count);
      await actors.restart();
      await Promise.race([asked, actors.settle()]);
      const before = await list(account);
      seen.add(`${before.length} after the crash`);
      const again = appOf(t, await upsert(SHOP, account));
      t.match(await list(account), [{ ...SHOP, id: before[0]?.id ?? again.id }], `after ${count} turns`);
      const rotated = await send(account, 'rotate_key', { id: again.id });
      const removed = await send(account, 'remove', { id: again.id });
      // A new key comes with a new application only.
      t.same(
        [again.apiKey !== undefined, rotated.status, removed.status, await list(account)],
        [before.length === 0, 200, 200, []],
        `after ${count} turns`,
      );
    }
    for (const outcome of ['0 after the crash', '1 after the crash', 'answered'])
      t.ok(seen.has(outcome), outcome);
  },
);

t.test('apps: a removal under way is carried out after a crash', async (t) => {
  const { owner, list, actors, created } = await start(t);
  for (let count = 0; count < 8; count += 1) {
    const { id: appId } = await created();
    const command = { type: 'removeApp' as const, appId, origin: ORIGIN };
    actors.system.ask(user, owner.userId, command).catch(() => undefined);
    await turns(count);
    await actors.restart();
    const left = await list();
    t.equal(actors.system.lookup('appId', appId) === undefined, left.length === 0, `after ${count} turns`);
  }
});

t.test(
  'apps: an application that fails ends the wait with 503, and what was asked is done later',
  async (t) => {
    const { actors, signUp } = await start(t);
    const other = await signUp();
    const decide = () => {
      throw new Error('planted');
    };
    const failing = createTestActors({ kinds: [user, { ...app, decide }] });
    const asked = failing.system.ask(user, other.userId, upsertCommand());
    const failure = asked.catch((error: unknown) => error);
    await failing.advance(9_999);
    t.equal(failing.system.counters().pending, 1);
    await failing.advance(1);
    t.match(await failure, { row: 'Quarantined', retryAfterSeconds: 30 });
    t.equal(failing.system.counters().pending, 0);
    t.equal(actors.bugs.length, 0);
  },
);

// covers S34
t.test('API-key cipher: a key opens in its own cipher only, and unchanged only', async (t) => {
  const { apiKey, sealed } = CIPHER.issue();
  t.equal(CIPHER.open(sealed), apiKey);
  t.notOk(JSON.stringify(sealed).includes(apiKey.slice(4)));
  t.throws(() => createApiKeyCipher(Buffer.alloc(32, 8)).open(sealed));
  t.throws(() => CIPHER.open({ ...sealed, keyId: CIPHER.issue().sealed.keyId }), 'bound to its id');
  t.throws(() => CIPHER.open({ ...sealed, sealed: `${sealed.sealed.slice(0, -4)}AAAA` }));
  t.throws(() => CIPHER.open({ ...sealed, sealed: sealed.sealed.slice(0, 30) }));
  t.throws(() => createApiKeyCipher(Buffer.alloc(31)));
  t.equal(CIPHER.tryOpen(sealed), apiKey);
  t.equal(createApiKeyCipher(Buffer.alloc(32, 8)).tryOpen(sealed), undefined);
});

t.test(
  'API-key cipher: a delivery does without a key that cannot be opened, as long as one opens',
  async (t) => {
    const lost = createApiKeyCipher(Buffer.alloc(32, 8));
    const key = ({ sealed }: { sealed: SealedKey }): AppKey => ({ ...sealed, createdMs: 1, expiresMs: null });
    const [mine, other, newer] = [CIPHER.issue(), lost.issue(), CIPHER.issue()];
    const open = (...keys: AppKey[]) => openKeys(keys, CIPHER);
    const both = { sent: mine.apiKey, signing: [newer.apiKey, mine.apiKey] };
    t.same(open(key(newer), key(mine)), both);
    t.same(open(key(mine), key(other)), { sent: mine.apiKey, signing: [mine.apiKey] }, 'the former is lost');
    t.same(open(key(other), key(mine)), { sent: mine.apiKey, signing: [mine.apiKey] }, 'the new one is');
    const signsOnly: AppKey = { ...key(mine), signsOnly: true };
    t.same(open(key(newer), signsOnly), { ...both, sent: newer.apiKey }, 'a key that only signs is not sent');
    const alone = { sent: mine.apiKey, signing: [mine.apiKey] };
    t.same(open(key(other), signsOnly), alone, 'unless there is no other');
    t.equal(open(), undefined, 'no key: the application is gone');
    t.throws(() => open(key(other)), /not configured/);
  },
);

const NOT_ALL = 'does not open every API key of this journal: add the key that sealed them to the list';

// covers S131
t.test('API-key cipher: with a seal key the journal alone opens no API key', async (t) => {
  const { actors } = await start(t);
  const open = (...sealKeys: string[]) =>
    openApiKeyCipher(actors.system.administration, { sealKeys, sealKeyLost: false });
  const lost = (...sealKeys: string[]) =>
    openApiKeyCipher(actors.system.administration, { sealKeys, sealKeyLost: true });
  const [one, two, three] = ['11', '22', '33'].map((byte) => byte.repeat(32)) as [string, string, string];
  const plain = await open();
  const before = plain.issue();
  const cipher = await open(one);
  t.equal(cipher.open(before.sealed), before.apiKey, 'what the secret of the journal sealed still opens');
  const first = cipher.issue();
  t.equal(cipher.open(first.sealed), first.apiKey);
  t.throws(() => plain.open(first.sealed), /not configured/, 'not of the journal alone');
  t.strictSame(cipher.deriveKey('file code', 16), plain.deriveKey('file code', 16), 'file codes stay');
  const rows = JSON.stringify(actors.system.administration.metaGet('sealedDataKeys'));
  for (const form of ['hex', 'base64url', 'base64'] as const) {
    const text = Buffer.from(one, 'hex').toString(form);
    t.notOk(rows.includes(text), `the seal key is not in the journal: ${form}`);
  }
  await actors.restart();
  const base64url = Buffer.from(one, 'hex').toString('base64url');
  t.equal((await open(base64url)).open(first.sealed), first.apiKey, 'after a restart, in the other spelling');
  await t.rejects(open(), new SealKeyUnusable('is missing: the API keys of this journal are sealed with it'));
  await t.rejects(open(two), new SealKeyUnusable(NOT_ALL), 'another key');
  const changed = await open(two, one);
  t.equal(changed.open(first.sealed), first.apiKey, 'a list: all open');
  const second = changed.issue();
  t.throws(
    () => cipher.open(second.sealed),
    /not configured/,
    'the former key opens nothing that came after',
  );
  const alone = await open(two);
  t.strictSame(
    [before, first, second].map(({ sealed }) => alone.open(sealed)),
    [before, first, second].map(({ apiKey }) => apiKey),
    'one start with the list, and the former key is needed no more',
  );
  await t.rejects(open(one), new SealKeyUnusable(NOT_ALL), 'nor does it open the journal');
  const given = await lost(three);
  t.throws(() => given.open(first.sealed), new RegExp(`${first.sealed.keyId} is sealed under a key`));
  t.equal(given.open(before.sealed), before.apiKey);
  const anew = given.issue();
  t.equal((await lost(three)).open(anew.sealed), anew.apiKey);
  t.equal((await open(three, two)).open(first.sealed), first.apiKey, 'a key that is found again opens all');
});
