/** mcp_login: every row of spec 7.2, the order of the checks, and what it never does. */
import { readFileSync } from 'node:fs';
import t, { type Test } from 'tap';
import { closeAfter } from '../../../kit/close-after.ts';
import { user } from '../../../src/actors/accounts/user.ts';
import { mcpLoginMessage, parseUnixSeconds } from '../../../src/domain/proofs.ts';
import { toIso } from '../../../src/domain/time.ts';
import { createSessionLookup } from '../../../src/io/http/checks/session-lookup.ts';
import {
  cookie,
  makeKey,
  mcpProof,
  plantOrphan,
  refused,
  signText,
  startAccounts,
} from '../../support/account.ts';
import { START_MS } from '../../support/actors/actors.ts';

const VECTORS = JSON.parse(readFileSync('test/vectors/ed25519_expected.json', 'utf8')) as {
  lowOrderEncodings: string[];
};
const NOW_SECONDS = START_MS / 1_000;

async function start(t: Test, options: Parameters<typeof startAccounts>[0] = {}) {
  const fixture = closeAfter(t, startAccounts(options));
  const owner = await fixture.signUp();
  const agent = makeKey();
  const agentId = await fixture.allowAgent(owner, agent);
  const block = () => fixture.setBlocked(owner.userId);
  const update = (body: object) => fixture.changeKey('update_key', owner.sid, body);
  const log = () => fixture.actors.system.query(user, owner.userId, { type: 'logins' });
  const named = { 'X-PublicKey': agent.publicKey };
  return { ...fixture, owner, agent, agentId, named, proof: mcpProof(agent), block, update, log };
}

const BAD = [400, 'Invalid input format'] as const;
const UNKNOWN = [401, 'Session not found'] as const;
const DENIED = [401, 'Access denied'] as const;
const LATE = [401, 'Challenge expired'] as const;
const FORGED = [401, 'Invalid signature'] as const;

// covers R7 R50 S80
t.test('mcp_login: McpBasic and McpVerified answer the shape of spec 4.2 and set no cookie', async (t) => {
  const { mcpLogin, owner, agentId, log, actors, proof, named } = await start(t);
  const basic = await mcpLogin(named);
  t.equal(basic.status, 200);
  t.equal(basic.headers['set-cookie'], undefined);
  const expiresUtc = toIso(START_MS + 86_400_000);
  const none = { expiresUtc, appId: null, userId: null };
  t.match(basic.result, { sessionId: /^[A-Za-z0-9_-]{46}$/, loginType: 'McpBasic', ...none });
  const verified = await mcpLogin({ ...proof, ...cookie(owner.sid) });
  t.match(verified.result, { loginType: 'McpVerified', expiresUtc, appId: null, userId: owner.userId });
  t.equal(verified.headers['set-cookie'], undefined, 'nor does it read one');
  const fields = ['appId', 'expiresUtc', 'loginType', 'sessionId', 'userId'];
  t.same(Object.keys(verified.result as object).sort(), fields);
  t.match(await log(), [{ event: 'login', ok: true, kind: 'mcp', loginType: 'McpVerified', keyId: agentId }]);
  const audit = JSON.stringify(actors.journal.auditPage(0, 100));
  t.notOk(audit.includes((verified.result as { sessionId: string }).sessionId));
});

// covers R28 R77
t.test('mcp_login: a second login, also in the same second, leaves the first session alive', async (t) => {
  const { mcpLogin, owner, sessions, proof } = await start(t);
  const ids = [];
  for (let n = 0; n < 2; n += 1)
    ids.push(((await mcpLogin(proof)).result as { sessionId: string }).sessionId);
  t.equal(new Set(ids).size, 2);
  t.equal((await sessions(owner.sid)).filter(({ kind }) => kind === 'mcp').length, 2);
});

// covers R28 R77
t.test(
  'mcp_login: with the bearer of a session of the same key that session ends, other bearers end none',
  async (t) => {
    const { mcpLogin, owner, signUp, allowAgent, actors, proof, named } = await start(t);
    const gate = createSessionLookup({
      actors: actors.system,
      clock: () => START_MS,
      adminPublicKeys: new Set(),
      onTouchFailed: (error) => t.fail(String(error)),
    });
    const login = async (token?: string, headers: Record<string, string> = proof) => {
      const bearer = token === undefined ? {} : { Authorization: `Bearer ${token}` };
      return ((await mcpLogin({ ...headers, ...bearer })).result as { sessionId: string }).sessionId;
    };
    const lives = (token: string) =>
      gate.authenticate(token, 'mcp', undefined, { address: '', userAgent: '' }) !== undefined;
    const first = await login();
    const second = await login(first);
    t.notOk(lives(first), 'the old one is over once the new one is answered');
    t.ok(lives(second));
    const third = await login(second, named);
    t.notOk(lives(second), 'a login of another type rotates too');
    await login(first);
    await login('x'.repeat(46));
    t.ok(lives(third), 'a dead or made-up bearer ends nothing');
    const sibling = makeKey();
    await allowAgent(owner, sibling);
    await login(third, mcpProof(sibling));
    t.ok(lives(third), 'nor does the bearer of another key of the account');
    const outsider = makeKey();
    await allowAgent(await signUp(), outsider);
    await login(third, mcpProof(outsider));
    t.ok(lives(third), 'nor that of another account');
    await mcpLogin({ ...proof, 'X-App-Id': '1', Authorization: `Bearer ${third}` });
    t.ok(lives(third), 'nor a login that is refused');
  },
);

// covers R50 R51 R94
t.test('mcp_login: malformed headers are 400, each by itself', async (t) => {
  const { mcpLogin, proof } = await start(t);
  const { 'X-PublicKey': key = '', 'X-Timestamp': timestamp = '', 'X-Signature': signature = '' } = proof;
  const bad: Record<string, Record<string, string>> = {
    'no key': {},
    'short key': { 'X-PublicKey': key.slice(1) },
    'padded key': { 'X-PublicKey': `${key}=` },
    'long key': { 'X-PublicKey': `${key}A` },
    'signature without timestamp': { 'X-PublicKey': key, 'X-Signature': signature },
    'timestamp without signature': { 'X-PublicKey': key, 'X-Timestamp': timestamp },
    'short signature': { ...proof, 'X-Signature': signature.slice(1) },
    'padded signature': { ...proof, 'X-Signature': `${signature}==` },
    'timestamp with a fraction': { ...proof, 'X-Timestamp': `${timestamp}.0` },
    'timestamp with a sign': { ...proof, 'X-Timestamp': `+${timestamp}` },
    'timestamp in hexadecimal': { ...proof, 'X-Timestamp': '0x10' },
    'timestamp beyond int64': { ...proof, 'X-Timestamp': '9223372036854775808' },
    'app id that is no decimal': { 'X-PublicKey': key, 'X-App-Id': '12x' },
    'negative app id': { 'X-PublicKey': key, 'X-App-Id': '-1' },
    'app id beyond int64': { 'X-PublicKey': key, 'X-App-Id': '9223372036854775808' },
  };
  for (const [note, headers] of Object.entries(bad)) refused(t, await mcpLogin(headers), ...BAD, note);
  for (const name of Object.keys(proof)) {
    const headers = { ...proof, [name.toLowerCase()]: proof[name] ?? '' };
    refused(t, await mcpLogin(headers), ...BAD, `${name} sent twice`);
  }
  t.equal((await mcpLogin(proof)).status, 200);
});

// covers R51
t.test('mcp_login: the other spellings of the key and of the signature are 400', async (t) => {
  const { mcpLogin, agent, proof } = await start(t);
  const alphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_';
  const respell = (text: string, change: number) =>
    text.slice(0, -1) + alphabet[alphabet.indexOf(text.at(-1) ?? '') + change];
  for (let change = 1; change < 4; change += 1)
    refused(t, await mcpLogin({ ...proof, 'X-PublicKey': respell(agent.publicKey, change) }), ...BAD);
  for (let change = 1; change < 16; change += 1) {
    const signature = respell(proof['X-Signature'] ?? '', change);
    refused(t, await mcpLogin({ ...proof, 'X-Signature': signature }), ...BAD);
  }
});

t.test('mcp_login: the timestamp may be 300 seconds off either way, inclusive', async (t) => {
  const { mcpLogin, agent, actors } = await start(t);
  actors.clock.nowMs += 999;
  for (const offset of [-300, 300])
    t.equal((await mcpLogin(mcpProof(agent, NOW_SECONDS + offset))).status, 200);
  for (const offset of [-301, 301])
    refused(t, await mcpLogin(mcpProof(agent, NOW_SECONDS + offset)), ...LATE);
  refused(t, await mcpLogin(mcpProof(agent, -5)), ...LATE, 'before 1970');
  refused(t, await mcpLogin(mcpProof(agent, START_MS)), ...LATE, 'milliseconds');
});

t.test('mcp_login: what is signed is the little-endian int64, not its decimal text', async (t) => {
  const { mcpLogin, agent, proof } = await start(t);
  refused(t, await mcpLogin({ ...proof, 'X-Signature': signText(agent, String(NOW_SECONDS)) }), ...FORGED);
  const other = mcpProof(agent, NOW_SECONDS + 1)['X-Signature'] ?? '';
  refused(t, await mcpLogin({ ...proof, 'X-Signature': other }), ...FORGED, 'another second');
  const outsider = mcpProof(makeKey())['X-Signature'] ?? '';
  refused(t, await mcpLogin({ ...proof, 'X-Signature': outsider }), ...FORGED, 'another key');
  t.same(mcpLoginMessage(1n), Buffer.from('0100000000000000', 'hex'));
  t.same(mcpLoginMessage(-1n), Buffer.from('ffffffffffffffff', 'hex'));
  t.equal(parseUnixSeconds('-9223372036854775808'), -(2n ** 63n));
  t.equal(parseUnixSeconds('-9223372036854775809'), undefined);
  t.equal(parseUnixSeconds('-0'), undefined);
});

t.test('mcp_login: unknown, removed and low-order keys are Session not found', async (t) => {
  const { mcpLogin, owner, agentId, proof, changeKey } = await start(t);
  refused(t, await mcpLogin({ 'X-PublicKey': makeKey().publicKey }), ...UNKNOWN);
  for (const hex of VECTORS.lowOrderEncodings) {
    const publicKey = Buffer.from(hex, 'hex').toString('base64url');
    refused(t, await mcpLogin({ 'X-PublicKey': publicKey }), ...UNKNOWN, hex);
  }
  await changeKey('remove_key', owner.sid, { keyId: agentId });
  refused(t, await mcpLogin(proof), ...UNKNOWN);
});

t.test('mcp_login: a key whose account is missing is Account not found', async (t) => {
  const { mcpLogin, actors } = await start(t);
  const orphan = makeKey();
  await plantOrphan(actors, orphan);
  refused(t, await mcpLogin({ 'X-PublicKey': orphan.publicKey }), 401, 'Account not found');
});

t.test('mcp_login: no McpAccess, a blocked user and any application are Access denied', async (t) => {
  const { mcpLogin, agentId, update, owner, block, log, proof, named } = await start(t);
  refused(t, await mcpLogin({ 'X-PublicKey': owner.key.publicKey }), ...DENIED, 'no McpAccess');
  refused(t, await mcpLogin({ ...named, 'X-App-Id': '1' }), ...DENIED, 'unknown app');
  t.match(await log(), [{ ok: false, error: 'Access denied', loginType: 'McpApp', appId: '1' }]);
  await update({ keyId: agentId, mcpAccess: false });
  refused(t, await mcpLogin(proof), ...DENIED, 'taken back');
  await update({ keyId: agentId, mcpAccess: true });
  await block();
  refused(t, await mcpLogin(proof), ...DENIED, 'blocked');
});

// covers R28
t.test('mcp_login: clearing mcpAccess ends the sessions of the key at once', async (t) => {
  const { mcpLogin, agentId, update, owner, sessions, proof } = await start(t);
  await mcpLogin(proof);
  await update({ keyId: agentId, cardDavAccess: true });
  t.equal((await sessions(owner.sid)).length, 2);
  await update({ keyId: agentId, mcpAccess: false });
  t.equal((await sessions(owner.sid)).length, 1);
});

// covers R95
t.test('mcp_login: form, timestamp, key, account and signature are checked in this order', async (t) => {
  const { mcpLogin, agent, owner, block, proof } = await start(t);
  const late = (key = makeKey()) => mcpProof(key, NOW_SECONDS - 999);
  const forged = { 'X-Signature': signText(agent, 'nothing') };
  refused(t, await mcpLogin({ ...late(), 'X-App-Id': 'x' }), ...BAD, 'shape before timestamp');
  refused(t, await mcpLogin(late()), ...LATE, 'timestamp before key');
  refused(t, await mcpLogin({ ...mcpProof(makeKey()), ...forged }), ...UNKNOWN, 'key before signature');
  const withoutAccess = { ...mcpProof(owner.key), ...forged };
  refused(t, await mcpLogin(withoutAccess), ...DENIED, 'McpAccess before signature');
  refused(t, await mcpLogin({ ...proof, ...forged, 'X-App-Id': '1' }), ...DENIED, 'app too');
  refused(t, await mcpLogin({ ...proof, 'X-App-Id': '1' }), ...DENIED, 'an unknown app with a proof');
  refused(t, await mcpLogin({ ...late(agent), 'X-App-Id': '1' }), ...LATE, 'timestamp before the app');
  await block();
  refused(t, await mcpLogin({ ...proof, ...forged }), ...DENIED, 'blocked before signature');
});

// covers R12
t.test('mcp_login: the quota is kept per decoded key, a malformed one is not charged to it', async (t) => {
  const { mcpLogin, agent, actors, named } = await start(t, { settings: { McpApiRPSLimit: 1 } });
  for (let left = 4; left >= 0; left -= 1) {
    refused(t, await mcpLogin({ 'X-PublicKey': `${agent.publicKey}=` }), ...BAD);
    const { headers, status } = await mcpLogin(named);
    t.same([status, headers['x-ratelimit']], [200, `s=m;l=5;r=${left};t=5`]);
  }
  const limited = await mcpLogin(named);
  refused(t, limited, 429, 'Access rate limit');
  t.equal(limited.error?.code, 1002);
  t.equal(limited.headers['retry-after'], '5');
  refused(t, await mcpLogin({ 'X-PublicKey': makeKey().publicKey }), ...UNKNOWN, 'another key has its own');
  actors.clock.nowMs += 5_000;
  t.equal((await mcpLogin(named)).status, 200);
});

// covers R84
t.test(
  'mcp_login: guessing keys spends the budget of the address, and right keys wait with it',
  async (t) => {
    const { mcpLogin, actors, named } = await start(t, { settings: { UnknownKeyFailuresPerMinute: 3 } });
    actors.clock.nowMs += 60_000; // The claim of the agent's key counted too.
    for (let count = 0; count < 3; count += 1)
      refused(t, await mcpLogin({ 'X-PublicKey': makeKey().publicKey }), ...UNKNOWN);
    refused(t, await mcpLogin({ 'X-PublicKey': makeKey().publicKey }), 429, 'Access rate limit');
    refused(t, await mcpLogin(named), 429, 'Access rate limit');
  },
);

// covers R51
t.test('mcp_login: a body is ignored, an Idempotency-Key too', async (t) => {
  const { post, named } = await start(t);
  const headers = { ...named, 'Idempotency-Key': 'k' };
  const one = await post('/auth/v1/mcp_login', { publicKey: 'other', loginType: 'McpVerified' }, headers);
  const two = await post('/auth/v1/mcp_login', undefined, headers);
  t.match([one.result, two.result], [{ loginType: 'McpBasic' }, { loginType: 'McpBasic' }]);
  t.notSame(one.result, two.result);
});
