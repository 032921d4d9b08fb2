/** Sessions of an account: their lives, caps, windows, last uses and what is left of them in the journal. */
import fc from 'fast-check';
import t from 'tap';
import { LOG_ACCEPTED_MAX, LOG_REFUSED_MAX } from '../../../src/actors/accounts/login-log.ts';
import { user } from '../../../src/actors/accounts/user.ts';
import { KINDS } from '../../../src/actors/kinds.ts';
import { GatewayError } from '../../../src/domain/errors.ts';
import { hashToken } from '../../../src/domain/ids.ts';
import { KeyFlag, type UserKey } from '../../../src/domain/keys.ts';
import { browserMessage } from '../../../src/domain/proofs.ts';
import { BROWSER_SESSIONS_MAX, MCP_SESSIONS_MAX } from '../../../src/domain/sessions.ts';
import { LiveSettings, type SettingName, type SettingValue } from '../../../src/domain/settings/settings.ts';
import { DAY_MS, MINUTE_MS, SECOND_MS } from '../../../src/domain/time.ts';
import { createSessionLookup } from '../../../src/io/http/checks/session-lookup.ts';
import { inlineWorkers, makeKey, signText } from '../../support/account.ts';
import { askerOf, createTestActors } from '../../support/actors/actors.ts';
import { runs } from '../../support/depth.ts';

const ORIGIN = { ip: '192.0.2.1', userAgent: 'test' };
const CLIENT = { address: '192.0.2.1', userAgent: 'test' };
const USER = '101';

interface StartOptions {
  readonly settings?: Partial<Record<SettingName, SettingValue>>;
  readonly admin?: boolean;
  /** Interval between searches for idle actors: a short one costs real time in a test that waits for days. */
  readonly sweepMs?: number;
}

/** One account with one key that may do everything. */
async function start({ settings = {}, admin = false, sweepMs = DAY_MS }: StartOptions = {}) {
  const actors = createTestActors({
    kinds: KINDS,
    ports: inlineWorkers(),
    settings: new LiveSettings(settings),
    limits: { sweepMs },
  });
  const key = makeKey();
  const signature = Buffer.from(signText(key, `p\n${key.publicKey}`), 'base64url');
  const proof = { message: browserMessage('p\n', key.publicKey), signature };
  const ask = askerOf(actors, user, USER);
  const { publicKey } = key;
  const common = { publicKey, proof, origin: ORIGIN };
  let challenges = 0;
  const challenge = () => {
    challenges += 1;
    return { id: challenges, endsMs: 0 };
  };
  const signedUp = await ask({
    type: 'signUp',
    ...common,
    passKeyFlag: false,
    handle: 'h',
    challenge: challenge(),
  });
  const keyId = signedUp.key.id;
  const failures: unknown[] = [];
  const gate = () =>
    createSessionLookup({
      actors: actors.system,
      clock: actors.clock.read,
      adminPublicKeys: new Set(admin ? [publicKey] : []),
      onTouchFailed: (error) => failures.push(error),
    });
  const [root] = await actors.system.query(user, USER, { type: 'sessions' });
  await ask({ type: 'updateKey', keyId, mcpAccess: true, sessionId: root?.id ?? '', origin: ORIGIN });
  return {
    actors,
    key,
    keyId,
    ask,
    failures,
    rootId: root?.id ?? '',
    rootToken: signedUp.token,
    login: () => ask({ type: 'login', keyId, ...common, challenge: challenge() }),
    challenge,
    mcpLogin: (loginType: 'McpBasic' | 'McpVerified') =>
      ask({
        type: 'mcpLogin',
        loginType,
        keyId,
        publicKey,
        appId: null,
        origin: ORIGIN,
        ...(loginType === 'McpVerified' ? { proof } : {}),
      }),
    enter: (token: string, kind: 'browser' | 'mcp', scope?: 's' | 'p', cost = 1) =>
      gate().authenticate(token, kind, scope === undefined ? undefined : { scope, cost }, CLIENT),
    sessions: () => Promise.resolve(actors.system.query(user, USER, { type: 'sessions' })),
  };
}

// covers R107
t.test('session: a browser session ends when it is idle, and at its absolute end however busy', async (t) => {
  const account = await start();
  const { actors, enter, rootToken } = account;
  const entered: boolean[] = [];
  for (let day = 0; day < 29; day += 1) {
    await actors.advance(DAY_MS - MINUTE_MS);
    entered.push(enter(rootToken, 'browser') !== undefined);
    await actors.settle();
  }
  t.same(entered, new Array(29).fill(true), 'every day');
  await actors.advance(30 * DAY_MS - 29 * (DAY_MS - MINUTE_MS) - DAY_MS / 2);
  t.ok(enter(rootToken, 'browser'), 'half a day before the absolute end');
  await actors.advance(DAY_MS / 2 - 1);
  t.ok(enter(rootToken, 'browser'), 'its last millisecond');
  await actors.advance(1);
  t.equal(enter(rootToken, 'browser'), undefined, 'the absolute end');
  const { token } = await account.login();
  await actors.advance(DAY_MS - 1);
  t.ok(enter(token, 'browser'), 'idle for a millisecond less than the limit');
  await actors.advance(DAY_MS);
  t.equal(enter(token, 'browser'), undefined, 'idle for the limit');
  t.same(account.failures, []);
});

// covers R7 R107
t.test(
  'session: an MCP session lives to its expiresUtc, used or not, and not a millisecond longer',
  async (t) => {
    const { actors, enter, mcpLogin } = await start();
    const { token, expiresMs } = await mcpLogin('McpVerified');
    t.equal(expiresMs, actors.clock.nowMs + DAY_MS);
    await actors.advance(DAY_MS - 1);
    t.ok(enter(token, 'mcp'));
    await actors.advance(1);
    t.equal(enter(token, 'mcp'), undefined);
  },
);

// covers R108
t.test('session: the sweep removes expired sessions and releases their names', async (t) => {
  const { actors, enter, mcpLogin, rootToken } = await start();
  const { token } = await mcpLogin('McpBasic');
  const hash = hashToken(token) ?? '';
  t.ok(actors.system.lookup('sessionHash', hash));
  await actors.advance(DAY_MS + 2 * MINUTE_MS);
  t.equal(actors.system.lookup('sessionHash', hash), undefined, 'MCP');
  t.equal(actors.system.lookup('sidHash', hashToken(rootToken) ?? ''), undefined, 'idle browser session');
  t.equal(enter(rootToken, 'browser'), undefined);
  await actors.advance(DAY_MS);
  t.same(actors.bugs, []);
});

t.test('session: a used session survives the sweep of an idle one', async (t) => {
  const { actors, enter, login, rootToken, sessions } = await start();
  const { token } = await login();
  const entered: boolean[] = [];
  for (let hour = 0; hour < 30; hour += 1) {
    await actors.advance(60 * MINUTE_MS);
    entered.push(enter(token, 'browser') !== undefined);
    await actors.settle();
  }
  t.same(entered, new Array(30).fill(true));
  t.equal((await sessions()).length, 1);
  t.equal(actors.system.lookup('sidHash', hashToken(rootToken) ?? ''), undefined);
});

t.test('session: the last use is written at most once a minute and survives a restart', async (t) => {
  const { actors, enter, rootToken, sessions } = await start();
  const rows = () => actors.journal.load('user', USER)?.rows.length ?? 0;
  const before = rows();
  for (let second = 0; second < 59; second += 1) {
    actors.clock.nowMs += SECOND_MS;
    enter(rootToken, 'browser');
  }
  await actors.settle();
  t.equal(rows(), before, 'nothing in the first minute');
  actors.clock.nowMs += SECOND_MS;
  enter(rootToken, 'browser');
  enter(rootToken, 'browser');
  await actors.settle();
  t.equal(rows(), before + 1, 'one row after it');
  const seenMs = actors.clock.nowMs;
  await actors.restart();
  t.equal((await sessions())[0]?.lastSeenMs, seenMs);
});

t.test('session: a last use that cannot be written is reported, and the session continues', async (t) => {
  const { actors, enter, failures, rootToken } = await start();
  actors.journal.setFull(true);
  actors.clock.nowMs += MINUTE_MS;
  t.ok(enter(rootToken, 'browser'));
  await actors.settle();
  t.match(failures, [new GatewayError('StorageFull')]);
  t.equal(failures.length, 1);
  actors.journal.setFull(false);
  actors.clock.nowMs += MINUTE_MS;
  t.ok(enter(rootToken, 'browser'));
  await actors.settle();
  t.equal(failures.length, 1, 'the next one is written');
});

// covers R108
t.test('session: the 51st browser session ends the oldest, MCP sessions are not touched', async (t) => {
  const { actors, enter, login, mcpLogin, rootToken, sessions } = await start();
  const agent = await mcpLogin('McpVerified');
  const tokens: string[] = [];
  for (let count = 1; count < BROWSER_SESSIONS_MAX; count += 1) tokens.push((await login()).token);
  t.ok(enter(rootToken, 'browser'), 'fifty');
  await login();
  t.equal(enter(rootToken, 'browser'), undefined, 'fifty-one');
  t.ok(enter(tokens[0] ?? '', 'browser'));
  t.ok(enter(agent.token, 'mcp'));
  t.equal((await sessions()).length, BROWSER_SESSIONS_MAX + 1);
  t.equal(actors.system.lookup('sidHash', hashToken(rootToken) ?? ''), undefined);
});

// covers R77
t.test('session: McpBasic logins, which prove nothing, never push out verified ones', async (t) => {
  const { enter, mcpLogin } = await start();
  const verified = await mcpLogin('McpVerified');
  const first = await mcpLogin('McpBasic');
  for (let count = 0; count < MCP_SESSIONS_MAX; count += 1) await mcpLogin('McpBasic');
  t.ok(enter(verified.token, 'mcp'));
  t.equal(enter(first.token, 'mcp'), undefined);
});

t.test(
  'session: a login that replaces another of the same browser ends that one in the same commit',
  async (t) => {
    const { ask, challenge, enter, key, keyId, rootId, rootToken } = await start();
    const signature = Buffer.from(signText(key, `q\n${key.publicKey}`), 'base64url');
    const proof = { message: browserMessage('q\n', key.publicKey), signature };
    const previous = { userId: USER, sessionId: rootId };
    const { publicKey } = key;
    const common = { keyId, publicKey, proof, previous, origin: ORIGIN };
    const { token } = await ask({ type: 'login', ...common, challenge: challenge() });
    t.equal(enter(rootToken, 'browser'), undefined);
    t.ok(enter(token, 'browser'));
  },
);

// covers R96 R100
t.test(
  'limits: scope s counts each session, scope p the key over all its sessions, 0 turns them off',
  async (t) => {
    const settings = { SessionApiRPSLimit: 1, PubKeyApiRPSLimit: 2, RateLimitWindowSeconds: 5 };
    const { actors, enter, mcpLogin, rootToken } = await start({ settings });
    const one = (await mcpLogin('McpBasic')).token;
    const two = (await mcpLogin('McpBasic')).token;
    for (let left = 4; left >= 0; left -= 1) {
      const verdict = enter(rootToken, 'browser', 's')?.quotaResult;
      t.match(verdict, { allowed: true, scope: 's', quota: 5, remaining: left, resetSeconds: 5 });
    }
    t.match(enter(rootToken, 'browser', 's')?.quotaResult, { allowed: false, remaining: 0 });
    t.ok(enter(rootToken, 'browser', 's')?.session, 'a refusal names the session all the same');
    t.match(enter(one, 'mcp', 'p', 6)?.quotaResult, { allowed: true, scope: 'p', quota: 10, remaining: 4 });
    t.match(
      enter(two, 'mcp', 'p', 5)?.quotaResult,
      { allowed: false, remaining: 4 },
      'shared by its sessions',
    );
    t.match(
      enter(two, 'mcp', 'p', 4)?.quotaResult,
      { allowed: true, remaining: 0 },
      'a refusal costs nothing',
    );
    await actors.advance(5 * SECOND_MS);
    t.match(
      enter(rootToken, 'browser', 's')?.quotaResult,
      { allowed: true, remaining: 4 },
      'the next window',
    );
    for (const name of ['SessionApiRPSLimit', 'UserApiRPSLimit', 'PubKeyApiRPSLimit'] as const)
      actors.settings.set(name, 0);
    t.equal(enter(rootToken, 'browser', 's')?.quotaResult, undefined);
    t.equal(enter(one, 'mcp', 'p')?.quotaResult, undefined);
  },
);

// covers R99 S69
t.test(
  'limits: all sessions of a user share one window of requests, shown when it is the tighter',
  async (t) => {
    const { actors, enter, login, mcpLogin, rootToken } = await start({
      settings: {
        SessionApiRPSLimit: 2,
        UserApiRPSLimit: 3,
        PubKeyApiRPSLimit: 2,
        RateLimitWindowSeconds: 5,
      },
    });
    const tokens = [rootToken, (await login()).token, (await login()).token];
    let allowed = 0;
    for (const token of tokens)
      for (let n = 0; n < 10; n += 1) if (enter(token, 'browser', 's')?.quotaResult?.allowed) allowed += 1;
    t.equal(allowed, 15, 'of the thirty that three sessions have');
    t.match(
      enter(tokens[2] ?? '', 'browser', 's')?.quotaResult,
      { allowed: false, scope: 's', quota: 15, remaining: 0 },
      'the window of the user is shown',
    );
    const agent = (await mcpLogin('McpVerified')).token;
    t.match(enter(agent, 'mcp', 's')?.quotaResult, { allowed: false, quota: 15 }, 'an agent on REST too');
    t.match(
      enter(agent, 'mcp', 'p')?.quotaResult,
      { allowed: true, scope: 'p' },
      '/mcp is counted by key alone',
    );
    await actors.advance(5 * SECOND_MS);
    t.match(enter(rootToken, 'browser', 's')?.quotaResult, { allowed: true, quota: 10, remaining: 9 });
    actors.settings.set('SessionApiRPSLimit', 0);
    t.match(enter(rootToken, 'browser', 's')?.quotaResult, { allowed: true, quota: 15, remaining: 13 });
    actors.settings.set('UserApiRPSLimit', 0);
    t.equal(enter(rootToken, 'browser', 's')?.quotaResult, undefined);
  },
);

// covers S69
t.test('limits: windows of session and user agree with a reference over random requests', async (t) => {
  const { actors, enter, login, rootToken } = await start({ settings: { RateLimitWindowSeconds: 1 } });
  const tokens = [rootToken, (await login()).token, (await login()).token];
  const step = fc.record({
    of: fc.nat({ max: 2 }),
    cost: fc.integer({ min: 1, max: 3 }),
    waits: fc.boolean(),
  });
  const limits = fc.record({ session: fc.nat({ max: 6 }), user: fc.nat({ max: 12 }) });
  await fc.assert(
    fc.asyncProperty(limits, fc.array(step, { maxLength: 40 }), async ({ session, user }, steps) => {
      actors.settings.set('SessionApiRPSLimit', session);
      actors.settings.set('UserApiRPSLimit', user);
      await actors.advance(SECOND_MS);
      let used = [0, 0, 0];
      for (const { of, cost, waits } of steps) {
        if (waits) {
          await actors.advance(SECOND_MS);
          used = [0, 0, 0];
        }
        const lefts = [
          ...(session === 0 ? [] : [session - (used[of] ?? 0)]),
          ...(user === 0 ? [] : [user - used.reduce((sum, each) => sum + each, 0)]),
        ];
        const verdict = enter(tokens[of] ?? '', 'browser', 's', cost)?.quotaResult;
        if (lefts.length === 0) {
          if (verdict !== undefined) throw new Error('judged though both are off');
          continue;
        }
        const left = Math.min(...lefts);
        const allowed = left >= cost;
        if (allowed) used[of] = (used[of] ?? 0) + cost;
        if (verdict?.allowed !== allowed) throw new Error('verdicts differ');
        if (verdict.remaining !== (allowed ? left - cost : left)) throw new Error('remaining differs');
      }
    }),
    runs(100),
  );
  t.pass('100 runs agree');
});

// covers R100
t.test(
  'limits: sessions without proof, spent by any caller that knows the public key, leave its holder a full window',
  async (t) => {
    const { enter, mcpLogin } = await start({
      settings: { PubKeyApiRPSLimit: 2, RateLimitWindowSeconds: 5 },
    });
    const outsider = (await mcpLogin('McpBasic')).token;
    const holder = (await mcpLogin('McpVerified')).token;
    const second = (await mcpLogin('McpVerified')).token;
    t.match(enter(outsider, 'mcp', 'p', 10)?.quotaResult, { allowed: true, scope: 'p', remaining: 0 });
    t.match(enter(outsider, 'mcp', 'p')?.quotaResult, { allowed: false });
    t.match(enter(holder, 'mcp', 'p')?.quotaResult, { allowed: true, scope: 'p', quota: 10, remaining: 9 });
    t.match(
      enter(second, 'mcp', 'p', 9)?.quotaResult,
      { allowed: true, remaining: 0 },
      'proven ones share it',
    );
    t.match(enter(holder, 'mcp', 'p')?.quotaResult, { allowed: false });
  },
);

t.test(
  'restart: sessions live on, ended ones stay ended, repeated commands are not applied twice',
  async (t) => {
    const { actors, ask, enter, login, mcpLogin, rootToken, sessions } = await start();
    const agent = await mcpLogin('McpVerified');
    const gone = await login();
    const [, , last] = await sessions();
    await ask({ type: 'endSession', sessionId: last?.id ?? '', origin: ORIGIN });
    for (let count = 0; count < 250; count += 1) await mcpLogin('McpBasic');
    await actors.restart();
    t.ok(enter(rootToken, 'browser'));
    t.match(enter(agent.token, 'mcp')?.session, { loginType: 'McpVerified', kind: 'mcp', userId: USER });
    t.equal(enter(gone.token, 'browser'), undefined);
    t.equal(await ask({ type: 'endSession', sessionId: last?.id ?? '', origin: ORIGIN }), 0);
  },
);

// covers R7 R82 S34
t.test('secrets: no row, snapshot, index, mail or audit record of the journal holds a token', async (t) => {
  const { actors, login, mcpLogin, rootToken } = await start();
  const tokens = [rootToken, (await login()).token, (await mcpLogin('McpVerified')).token];
  for (let count = 0; count < 120; count += 1) tokens.push((await mcpLogin('McpBasic')).token);
  await actors.settle();
  const stored = JSON.stringify([actors.journal.load('user', USER), actors.journal.auditPage(0, 10_000)]);
  t.ok(stored.includes(hashToken(tokens.at(-1) ?? '') ?? 'none'), 'the hash is there');
  const isSecret = (token: string) => !stored.includes(token) && !stored.includes(token.slice(4));
  t.ok(tokens.every(isSecret), 'neither a token nor its secret part');
  t.ok(tokens.every((token) => actors.system.lookup('sessionHash', token) === undefined));
});

// covers R28
t.test('blocking: ends every session at once and refuses logins until it is lifted', async (t) => {
  const { actors, ask, enter, login, mcpLogin, rootToken } = await start();
  const agent = await mcpLogin('McpVerified');
  t.same(await ask({ type: 'setBlocked', blocked: true, origin: ORIGIN }), {
    blocked: true,
    sessionsClosed: 2,
  });
  t.equal(enter(rootToken, 'browser'), undefined);
  t.equal(enter(agent.token, 'mcp'), undefined);
  await t.rejects(login(), new GatewayError('AccessDenied'));
  await t.rejects(mcpLogin('McpBasic'), new GatewayError('AccessDenied'));
  await ask({ type: 'setBlocked', blocked: false, origin: ORIGIN });
  t.ok((await login()).token);
  t.equal(enter(rootToken, 'browser'), undefined, 'what was ended stays ended');
  const outsider = actors.system.ask(user, '999', { type: 'setBlocked', blocked: true, origin: ORIGIN });
  await t.rejects(outsider, new GatewayError('NotFound', 'no such user'), 'an account that is not there');
});

t.test('admin: the holder of a proven admin key is one, a mere claim is not enough', async (t) => {
  const owner = await start({ admin: true });
  t.equal(owner.enter(owner.rootToken, 'browser')?.session.role, 'admin');
  const plain = await start();
  t.equal(plain.enter(plain.rootToken, 'browser')?.session.role, undefined);
  const adminKey = makeKey().publicKey;
  await plain.ask({
    type: 'addKey',
    publicKey: adminKey,
    passKeyFlag: false,
    sessionId: plain.rootId,
    origin: ORIGIN,
  });
  const gate = createSessionLookup({
    actors: plain.actors.system,
    clock: plain.actors.clock.read,
    adminPublicKeys: new Set([adminKey]),
    onTouchFailed: (error) => t.fail(String(error)),
  });
  t.equal(gate.authenticate(plain.rootToken, 'browser', undefined, CLIENT)?.session.role, undefined);
});

// covers R28
t.test('key: a removed one is kept with the flag Deleted added, its signature counter still 0', async (t) => {
  const flags = KeyFlag.Fido2Key | KeyFlag.CardDav;
  const key: UserKey = {
    id: '5',
    ownerId: USER,
    publicKey: 'AAEC',
    signatureCounter: 0,
    flags,
    createdMs: 1,
    proven: true,
  };
  const state = user.evolve(user.initial(USER), { type: 'keyAdded', key });
  const removed = user.evolve(state, { type: 'keyRemoved', keyId: '5' });
  t.same(removed.keys[0], { ...key, flags: flags | KeyFlag.Deleted });
});

t.test('key changes: an old login is refused where the setting asks for a fresh one', async (t) => {
  const { actors, ask, keyId, login, rootId, sessions } = await start();
  actors.settings.set('KeyChangeFreshLoginSeconds', 60);
  const update = (sessionId: string) =>
    ask({ type: 'updateKey', keyId, cardDavAccess: true, sessionId, origin: ORIGIN });
  await actors.advance(60 * SECOND_MS);
  t.ok((await update(rootId)).key, 'sixty seconds');
  await actors.advance(1);
  await t.rejects(update(rootId), new GatewayError('FreshLoginRequired'));
  await login();
  t.ok((await update((await sessions()).at(-1)?.id ?? '')).key, 'after another login');
});

// covers R59
t.test('login log: bounded, and refusals cannot flush the successes', async (t) => {
  const { actors, ask, challenge, key, keyId, mcpLogin } = await start();
  const proof = { message: Buffer.from('m'), signature: new Uint8Array(64) };
  const bad = { type: 'login' as const, keyId, publicKey: key.publicKey, proof, origin: ORIGIN };
  for (let count = 0; count < LOG_ACCEPTED_MAX + 5; count += 1) await mcpLogin('McpBasic');
  const refusals: string[] = [];
  for (let count = 0; count < LOG_REFUSED_MAX + 5; count += 1)
    await ask({ ...bad, challenge: challenge() }).then(
      () => refusals.push('opened'),
      (error: GatewayError) => refusals.push(error.row),
    );
  t.same(refusals, new Array(LOG_REFUSED_MAX + 5).fill('InvalidSignature'));
  const log = await actors.system.query(user, USER, { type: 'logins' });
  t.equal(log.filter((entry) => entry.ok).length, LOG_ACCEPTED_MAX);
  t.equal(log.filter((entry) => !entry.ok).length, LOG_REFUSED_MAX);
  t.match(log[0], { event: 'login', ok: false, error: 'Invalid signature', kind: 'browser', keyId });
});

t.test('storage full: logins are refused, logouts and removals are served', async (t) => {
  const { actors, ask, enter, login, rootId, rootToken } = await start();
  actors.journal.setFull(true);
  await t.rejects(login(), new GatewayError('StorageFull'));
  t.equal(await ask({ type: 'endSession', sessionId: rootId, origin: ORIGIN }), 1);
  t.equal(enter(rootToken, 'browser'), undefined);
});

type Step =
  | { readonly do: 'login' | 'mcpLogin' | 'restart' }
  | { readonly do: 'use' | 'end'; readonly session: number }
  | { readonly do: 'advance'; readonly seconds: number };

// covers S164
t.test(
  'session: any history of uses, waits and restarts ends sessions when the reference does',
  async (t) => {
    const idleMs = 600 * SECOND_MS;
    const settings = {
      BrowserSessionIdleSeconds: 600,
      BrowserSessionSeconds: 3_600,
      McpSessionSeconds: 1_800,
    };
    const index = fc.nat({ max: 20 });
    const step: fc.Arbitrary<Step> = fc.oneof(
      fc.record({ do: fc.constantFrom('login' as const, 'mcpLogin' as const, 'restart' as const) }),
      fc.record({ do: fc.constantFrom('use' as const, 'use' as const, 'end' as const), session: index }),
      fc.record({ do: fc.constant('advance' as const), seconds: fc.integer({ min: 1, max: 700 }) }),
    );
    await fc.assert(
      fc.asyncProperty(fc.array(step, { minLength: 10, maxLength: 50 }), async (steps) => {
        const { actors, ask, enter, login, mcpLogin, rootId, rootToken, sessions } = await start({
          settings,
        });
        /** `seenMs` is the last use, `writtenMs` the last that is surely on disk. */
        const startMs = actors.clock.nowMs;
        const model = [
          {
            id: rootId,
            token: rootToken,
            kind: 'browser',
            endMs: startMs + 3_600_000,
            seenMs: startMs,
            writtenMs: startMs,
          },
        ];
        const use = async (session: (typeof model)[number]) => {
          const { nowMs } = actors.clock;
          const alive = enter(session.token, session.kind as 'browser' | 'mcp') !== undefined;
          await actors.settle();
          const idle = session.kind === 'browser' ? idleMs : Number.POSITIVE_INFINITY;
          const surely = nowMs < session.endMs && nowMs < session.writtenMs + idle;
          const possibly = nowMs < session.endMs && nowMs < session.seenMs + idle;
          if ((surely && !alive) || (alive && !possibly)) throw new Error(`${alive} at ${nowMs}`);
          if (!alive) session.endMs = 0;
          else {
            session.seenMs = nowMs;
            if (nowMs - session.writtenMs >= MINUTE_MS) session.writtenMs = nowMs;
          }
        };
        for (const next of steps) {
          const { nowMs } = actors.clock;
          if (next.do === 'restart') await actors.restart();
          else if (next.do === 'advance') await actors.advance(next.seconds * SECOND_MS);
          else if (next.do !== 'use' && next.do !== 'end') {
            const { token, expiresMs } = await (next.do === 'login' ? login() : mcpLogin('McpBasic'));
            const kind = next.do === 'login' ? 'browser' : 'mcp';
            const id = (await sessions()).at(-1)?.id ?? '';
            model.push({ id, token, kind, endMs: expiresMs, seenMs: nowMs, writtenMs: nowMs });
          } else {
            const session = model[next.session % model.length];
            if (session === undefined) throw new Error('no session');
            if (next.do === 'use') await use(session);
            else {
              await ask({ type: 'endSession', sessionId: session.id, origin: ORIGIN });
              session.endMs = 0;
            }
          }
        }
        for (const session of model) await use(session);
        if (actors.bugs.length > 0) throw new Error(String(actors.bugs[0]));
      }),
      runs(100),
    );
    t.pass('100 histories');
  },
);
