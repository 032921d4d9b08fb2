/** Keys that may only use MCP: `browserLogin` of register_key, update_key, user_keys and the admin's routes. */
import t, { type Test } from 'tap';
import { KeyFlag } from '../../../src/domain/keys.ts';
import { FRESH_LOGIN_MS } from '../../../src/domain/sessions.ts';
import {
  type Answer,
  cookie,
  type Key,
  type KeyItem,
  makeKey,
  mcpProof,
  type Registered,
  refused,
  sidOf,
} from '../../support/account.ts';
import { startAdmin } from '../../support/admin.ts';

const REGISTER = '/auth/v1/keys/register_key';
const PASSKEY = {
  id: 'AAEC',
  rawId: 'AAEC',
  type: 'public-key',
  response: { clientDataJSON: 'AAEC', attestationObject: 'AAEC' },
  clientExtensionResults: {},
};

async function start(t: Test) {
  const fixture = await startAdmin();
  t.teardown(fixture.stop);
  const { owner, change, addKey, changeKey, keys } = fixture;
  return {
    ...fixture,
    addKey: (key: Key, how: 'proof' | 'claim', more?: object) => addKey(owner.sid, key, how, more),
    update: (body: object, sid = owner.sid) => changeKey('update_key', sid, body),
    remove: (keyId: string) => changeKey('remove_key', owner.sid, { keyId }),
    keys: () => keys(owner.sid),
    adminChange: (what: string, body: object) =>
      change(`user_keys/${what}`, { userId: owner.userId, ...body }),
  };
}

const idOf = (answer: Answer): string => (answer.result as Registered).key.id;

// covers S111
t.test('browserLogin: register_key makes a key that may only use MCP, with a proof too', async (t) => {
  const { addKey, update, login, mcpLogin, keys, owner, loginLog } = await start(t);
  const agent = makeKey();
  const added = await addKey(agent, 'proof', { browserLogin: false });
  t.match(added, { status: 200, result: { key: { proven: true, browserLogin: false } } });
  await update({ keyId: idOf(added), mcpAccess: true });
  t.match(
    (await keys()).map(({ browserLogin, mcpAccess }) => [browserLogin, mcpAccess]),
    [
      [true, false],
      [false, true],
    ],
  );
  refused(t, await login(agent), 401, 1103);
  t.equal((await mcpLogin(mcpProof(agent))).status, 200);
  t.match(
    ((await loginLog(owner.sid)) as { kind: string }[]).filter(({ kind }) => kind === 'browser')[0],
    { event: 'login', ok: false, error: 'Access denied', keyId: idOf(added) },
    'the refused login is in the log',
  );
});

t.test('browserLogin: a key added without it logs in to a browser, true is the same', async (t) => {
  const { addKey, login } = await start(t);
  for (const more of [{}, { browserLogin: true }]) {
    const key = makeKey();
    const added = await addKey(key, 'proof', more);
    t.match(added.result, { key: { browserLogin: true } });
    t.equal((await login(key)).status, 200);
  }
});

t.test('browserLogin: the proof of a claimed key keeps the restriction or sets it', async (t) => {
  const { addKey, login } = await start(t);
  for (const [claimed, proven] of [
    [{ browserLogin: false }, {}],
    [{}, { browserLogin: false }],
  ]) {
    const key = makeKey();
    await addKey(key, 'claim', claimed);
    t.match((await addKey(key, 'proof', proven)).result, { key: { proven: true, browserLogin: false } });
    refused(t, await login(key), 401, 1103);
  }
});

t.test('browserLogin: false is refused at a sign-up, with a passkey and with passKeyFlag', async (t) => {
  const { addKey, challenge, post, owner, keys, signed } = await start(t);
  const key = makeKey();
  const no = { browserLogin: false };
  const body = await signed(key);
  refused(t, await post(REGISTER, { ...body, ...no }), 400, /1001.*needs the session of an account/);
  const { challengeId, code } = await challenge('register');
  const passkey = { challengeId, code, credential: PASSKEY, ...no };
  refused(t, await post(REGISTER, passkey, cookie(owner.sid)), 400, /1001.*passkey/);
  refused(t, await addKey(key, 'proof', { ...no, passKeyFlag: true }), 400, /1001.*passKeyFlag/);
  refused(t, await addKey(key, 'claim', { browserLogin: 'no' }), 400, 1001);
  t.equal((await keys()).length, 1, 'nothing was added');
  t.equal((await post(REGISTER, body)).status, 200, 'the challenge was not used up');
});

t.test('browserLogin: update_key ends the browser sessions of the key before it answers', async (t) => {
  const { addKey, update, login, alive, mcpLogin, owner } = await start(t);
  const key = makeKey();
  const keyId = idOf(await addKey(key, 'proof'));
  await update({ keyId, mcpAccess: true });
  const sid = sidOf(await login(key)) ?? '';
  const agent = await mcpLogin(mcpProof(key));
  t.match((await update({ keyId, browserLogin: false })).result, { browserLogin: false, mcpAccess: true });
  t.same([await alive(sid), await alive(owner.sid)], [false, true]);
  t.equal(agent.status, 200);
  t.match((await update({ keyId })).result, { browserLogin: false }, 'omitted: unchanged');
  t.match((await update({ keyId, browserLogin: true })).result, { browserLogin: true });
  const back = await login(key);
  t.equal(back.status, 200);
  const own = await update({ keyId, browserLogin: false }, sidOf(back));
  t.match([own.status, own.headers['set-cookie']], [200, /^sid=;/], 'its own session: the cookie is cleared');
});

// covers S111
t.test('browserLogin: an owner changes it only within 15 minutes of a login', async (t) => {
  const { addKey, update, login, actors, owner } = await start(t);
  const keyId = idOf(await addKey(makeKey(), 'claim', { browserLogin: false }));
  actors.clock.nowMs += FRESH_LOGIN_MS + 1;
  refused(t, await update({ keyId, browserLogin: true }), 403, 1110);
  t.match((await update({ keyId, browserLogin: false })).status, 200, 'nothing changes');
  t.match((await update({ keyId, mcpAccess: true })).result, { mcpAccess: true, browserLogin: false });
  const fresh = sidOf(await login(owner.key));
  t.match((await update({ keyId, browserLogin: true }, fresh)).result, { browserLogin: true });
});

t.test('browserLogin: the setting LastKeyProtection counts only keys that log in to browsers', async (t) => {
  const { addKey, update, remove, owner, settings } = await start(t);
  settings.set('LastKeyProtection', 1);
  const keyId = idOf(await addKey(makeKey(), 'claim', { browserLogin: false }));
  refused(t, await remove(owner.keyId), 403, 1103);
  refused(t, await update({ keyId: owner.keyId, browserLogin: false }), 403, 1103);
  t.equal((await remove(keyId)).status, 200, 'the key of an agent is none');
});

t.test('browserLogin: an admin adds, changes and reads it by the same rules', async (t) => {
  const { adminChange, ask, login, addKey, alive, owner } = await start(t);
  const agent = makeKey();
  const added = await adminChange('add', {
    publicKey: agent.publicKey,
    mcpAccess: true,
    browserLogin: false,
  });
  t.match(added.result, { browserLogin: false, mcpAccess: true });
  const key = makeKey();
  const keyId = idOf(await addKey(key, 'proof'));
  const sid = sidOf(await login(key)) ?? '';
  t.match((await adminChange('update', { keyId, browserLogin: false })).result, { browserLogin: false });
  t.same([await alive(sid), await alive(owner.sid)], [false, true]);
  refused(t, await login(key), 401, 1103);
  t.match(
    ((await ask(`user_keys?userId=${owner.userId}`)).result as KeyItem[]).map((each) => each.browserLogin),
    [true, false, false],
  );
  t.match((await adminChange('update', { keyId, browserLogin: true })).result, { browserLogin: true });
  t.equal((await login(key)).status, 200);
});

t.test('browserLogin: a record without the flag logs in to browsers', (t) => {
  t.equal(
    KeyFlag.NoBrowserLogin & (KeyFlag.UserKey | KeyFlag.McpAccess | KeyFlag.CardDav | KeyFlag.Deleted),
    0,
  );
  t.equal(KeyFlag.NoBrowserLogin, 64, 'the stored bit');
  t.end();
});
