/** Credentials of an account for other MCP servers: logins that are taken once, one refresh for all that ask, the end. */
import t, { type Test } from 'tap';
import { user } from '../../../src/actors/accounts/user.ts';
import { KINDS } from '../../../src/actors/kinds.ts';
import type { PortResult, RenewedUpstream } from '../../../src/actors/runtime/ports.ts';
import { GatewayError } from '../../../src/domain/errors.ts';
import { UPSTREAM_LOGINS_MAX } from '../../../src/domain/oauth/upstream-credentials.ts';
import { browserMessage } from '../../../src/domain/proofs.ts';
import { MINUTE_MS } from '../../../src/domain/time.ts';
import { inlineWorkers, makeKey, signText } from '../../support/account.ts';
import { askerOf, createTestActors } from '../../support/actors/actors.ts';

const ORIGIN = { ip: '192.0.2.1', userAgent: 'test' };
const USER = '101';
const URL = 'https://mcp.example/mcp';
const OAUTH = { kind: 'oauth', canRefresh: true } as const;
const sealed = (keyId: string) => ({ keyId, sealed: `sealed-${keyId}` });
const renewed = (keyId: string): PortResult<RenewedUpstream> => ({
  ok: true,
  value: { sealed: sealed(keyId), expiresMs: null },
});

const rowOfError = (error: unknown) => (error instanceof GatewayError ? error.row : error);
const rowOf = (asked: Promise<unknown>) => asked.then(() => 'done', rowOfError);

/** An account with a browser session. Each refresh waits until the test answers it. */
async function start() {
  const refreshes: { readonly keyId: string; answer(result: PortResult<RenewedUpstream>): void }[] = [];
  const actors = createTestActors({
    kinds: KINDS,
    ports: {
      ...inlineWorkers(),
      upstreams: {
        refresh: ({ sealed: { keyId } }) =>
          new Promise((resolve) => refreshes.push({ keyId, answer: resolve })),
      },
    },
  });
  const ask = askerOf(actors, user, USER);
  const key = makeKey();
  const { publicKey } = key;
  const signature = Buffer.from(signText(key, `p\n${publicKey}`), 'base64url');
  const proof = { message: browserMessage('p\n', publicKey), signature };
  const challenge = { id: 1, endsMs: 0 };
  await ask({ type: 'signUp', publicKey, proof, origin: ORIGIN, passKeyFlag: false, handle: 'h', challenge });
  const [session] = await actors.system.query(user, USER, { type: 'sessions' });
  const sessionId = session?.id ?? '';
  const connect = (keyId: string, more: { kind: 'oauth' | 'token'; canRefresh: boolean } = OAUTH) => {
    const credential = { server: 'notion', url: URL, sealed: sealed(keyId), expiresMs: null, ...more };
    return ask({ type: 'connectUpstream', credential, sessionId, origin: ORIGIN });
  };
  const renew = (overKeyId: string) =>
    ask({ type: 'renewUpstream', server: 'notion', url: URL, overKeyId }).then(
      ({ sealed: { keyId } }) => keyId,
      rowOfError,
    );
  const found = () => actors.system.now(user, USER, { type: 'upstreamCredential', server: 'notion' });
  return { actors, ask, sessionId, connect, renew, found, refreshes };
}

const TEN = Array.from({ length: 10 });

/** The same with ten commands that wait for one refresh. */
async function startTen() {
  const account = await start();
  await account.connect('k1');
  const asked = TEN.map(() => account.renew('k1'));
  await account.actors.settle();
  return { account, asked };
}

async function allGot(t: Test, asked: readonly Promise<unknown>[], result: string) {
  t.strictSame(await Promise.all(asked), new Array(asked.length).fill(result));
}

t.test('upstream refresh: ten commands at once are one refresh, and each gets its result', async (t) => {
  const { account, asked } = await startTen();
  t.match(account.refreshes, [{ keyId: 'k1' }]);
  account.refreshes[0]?.answer(renewed('k2'));
  await allGot(t, asked, 'k2');
  t.equal(await account.renew('k1'), 'k2', 'one that comes later has the result at once');
  t.equal(account.refreshes.length, 1);
  t.equal(account.found()?.sealed.keyId, 'k2');
});

t.test(
  'upstream refresh: a grant that is over ends the credential, and all that wait learn it',
  async (t) => {
    const { account, asked } = await startTen();
    account.refreshes[0]?.answer({ ok: false, error: 'UpstreamLoginRequired' });
    await allGot(t, asked, 'UpstreamLoginRequired');
    t.equal(account.found(), undefined);
    t.equal(await account.renew('k1'), 'UpstreamLoginRequired');
    const records = JSON.stringify(account.actors.journal.auditPage(0, 100));
    t.match(records, /"upstream_ended"[^}]*"server":"notion"/, 'the audit log names it');
    t.notMatch(records, /sealed-/);
  },
);

t.test(
  'upstream refresh: after a failure all that wait are refused, and the next one tries again',
  async (t) => {
    const { account, asked } = await startTen();
    account.refreshes[0]?.answer({ ok: false, error: 'ModuleUnavailable' });
    await allGot(t, asked, 'ModuleUnavailable');
    const again = account.renew('k1');
    await account.actors.settle();
    account.refreshes[1]?.answer(renewed('k2'));
    t.equal(await again, 'k2');
  },
);

t.test(
  'upstream: a removed account keeps no credential, login or timer, and answers those that wait',
  async (t) => {
    const account = await start();
    const { actors, ask, sessionId } = account;
    await account.connect('k1');
    const login = { stateHash: 'state-1', server: 'linear', url: URL, flow: sealed('flow-1') };
    await ask({ type: 'openUpstreamLogin', login, sessionId });
    const texts = ['sealed-k1', 'sealed-flow-1', 'state-1', URL];
    for (const text of texts) t.ok(actors.journal.searchText().includes(text), `before: ${text}`);
    const asked = TEN.map(() => account.renew('k1'));
    await actors.settle();
    await ask({ type: 'removeAccount', sessionId, origin: ORIGIN });
    await actors.settle();
    await allGot(t, asked.slice(1), 'UpstreamLoginRequired');
    account.refreshes[0]?.answer(renewed('k2'));
    t.equal(await asked[0], 'UpstreamLoginRequired', 'a late result brings nothing back');
    t.equal(
      await rowOf(ask({ type: 'takeUpstreamLogin', stateHash: 'state-1', sessionId })),
      'ChallengeExpired',
    );
    await actors.restart();
    await actors.advance(2 * MINUTE_MS);
    t.equal(account.found(), undefined);
    t.strictSame(await actors.system.query(user, USER, { type: 'upstreams' }), []);
    for (const text of [...texts, 'sealed-k2'])
      t.notOk(actors.journal.searchText().includes(text), `after: ${text}`);
  },
);

t.test('upstream refresh: an end or another login meanwhile answers those that wait', async (t) => {
  const account = await start();
  await account.connect('k1');
  const ended = [account.renew('k1'), account.renew('k1')];
  await account.actors.settle();
  await account.ask({ type: 'disconnectUpstream', server: 'notion', origin: ORIGIN });
  t.equal(await ended[1], 'UpstreamLoginRequired');
  account.refreshes[0]?.answer(renewed('k2'));
  t.equal(await ended[0], 'UpstreamLoginRequired');
  t.equal(account.found(), undefined, 'a late result brings nothing back');
  await account.connect('k3');
  const replaced = [account.renew('k3'), account.renew('k3')];
  await account.actors.settle();
  await account.connect('k4');
  t.equal(await replaced[1], 'k4');
  account.refreshes[1]?.answer(renewed('k5'));
  t.equal(await replaced[0], 'k4');
  t.equal(account.found()?.sealed.keyId, 'k4');
});

t.test(
  'upstream refresh: one that a restart cut off, or that lasts over a minute, is begun anew',
  async (t) => {
    const account = await start();
    await account.connect('k1');
    const lost = account.renew('k1');
    await account.actors.settle();
    await account.actors.restart();
    const anew = account.renew('k1');
    await account.actors.settle();
    t.equal(account.refreshes.length, 2);
    await account.actors.advance(MINUTE_MS);
    const third = account.renew('k1');
    await account.actors.settle();
    t.equal(account.refreshes.length, 3);
    account.refreshes[1]?.answer({ ok: false, error: 'UpstreamLoginRequired' });
    t.equal(await anew, 'Overloaded', 'its late failure says nothing of the other');
    account.refreshes[2]?.answer(renewed('k2'));
    t.equal(await third, 'k2');
    t.equal(account.found()?.sealed.keyId, 'k2');
    void lost;
  },
);

t.test(
  'upstream refresh: tokens that come late are kept, and another attempt that fails ends nothing',
  async (t) => {
    const account = await start();
    await account.connect('k1');
    const first = account.renew('k1');
    await account.actors.advance(MINUTE_MS);
    const second = account.renew('k1');
    await account.actors.settle();
    account.refreshes[0]?.answer(renewed('late'));
    t.equal(await first, 'late');
    account.refreshes[1]?.answer({ ok: false, error: 'UpstreamLoginRequired' });
    t.equal(await second, 'late');
    t.equal(account.found()?.sealed.keyId, 'late');
  },
);

t.test('upstream refresh: commands that wait are answered when it is begun anew', async (t) => {
  const account = await start();
  await account.connect('k1');
  const lost = account.renew('k1');
  const waiting = TEN.map(() => account.renew('k1'));
  await account.actors.advance(MINUTE_MS);
  const anew = account.renew('k1');
  await account.actors.settle();
  await allGot(t, waiting, 'Overloaded');
  account.refreshes[1]?.answer(renewed('k2'));
  t.equal(await anew, 'k2');
  account.refreshes[0]?.answer({ ok: false, error: 'UpstreamLoginRequired' });
  t.equal(await lost, 'k2');
});

t.test('upstream refresh: a pasted token and another address of the server have none', async (t) => {
  const account = await start();
  await account.connect('k1');
  const moved = account.ask({
    type: 'renewUpstream',
    server: 'notion',
    url: 'https://other.example/mcp',
    overKeyId: 'k1',
  });
  t.equal(await rowOf(moved), 'UpstreamLoginRequired');
  await account.connect('t1', { kind: 'token', canRefresh: false });
  t.equal(await account.renew('t1'), 'UpstreamLoginRequired');
  t.equal(account.refreshes.length, 0);
  t.equal(account.found()?.sealed.keyId, 't1', 'it stays: the server may have had a fault');
});

t.test('upstream login: taken once, in its session, within ten minutes; the oldest makes room', async (t) => {
  const account = await start();
  const { ask, sessionId } = account;
  const open = (stateHash: string) =>
    ask({
      type: 'openUpstreamLogin',
      login: { stateHash, server: 'notion', url: URL, flow: sealed(stateHash) },
      sessionId,
    });
  const take = (stateHash: string, of = sessionId) =>
    ask({ type: 'takeUpstreamLogin', stateHash, sessionId: of });
  await open('a');
  t.equal(await rowOf(take('b')), 'ChallengeExpired');
  t.equal(await rowOf(take('a', '7')), 'ChallengeExpired', 'another session takes none');
  t.match(await take('a'), { server: 'notion', flow: sealed('a') });
  t.equal(await rowOf(take('a')), 'ChallengeExpired');
  await open('late');
  await account.actors.advance(10 * MINUTE_MS);
  t.equal(await rowOf(take('late')), 'ChallengeExpired');
  for (let n = 0; n <= UPSTREAM_LOGINS_MAX; n += 1) await open(`n${n}`);
  t.equal(await rowOf(take('n0')), 'ChallengeExpired');
  await account.actors.restart();
  t.match(await take('n1'), { server: 'notion' }, 'also after a restart');
});

t.test('upstream credentials: none for a blocked account, and none in a session that is over', async (t) => {
  const account = await start();
  await account.connect('k1');
  await account.ask({ type: 'setBlocked', blocked: true, origin: ORIGIN });
  t.equal(account.found(), undefined);
  t.equal(await account.renew('k1'), 'UpstreamLoginRequired');
  t.equal(await rowOf(account.connect('k2')), 'SessionNotFound');
});
