/** Refresh by several processes of one host that share a stored token: at once, late, over a restart and over the upgrade. */
import { createHmac } from 'node:crypto';
import { readFileSync } from 'node:fs';
import t, { type Test } from 'tap';
import type { Answer } from '../../../kit/agent.ts';
import { stopAfter } from '../../../kit/close-after.ts';
import { user } from '../../../src/actors/accounts/user.ts';
import type { SessionRecord } from '../../../src/actors/accounts/user-types.ts';
import { HOUR_MS, SECOND_MS } from '../../../src/domain/time.ts';
import { digest, openSealers } from '../../../src/io/connect/sealed.ts';
import { indexEntryOf } from '../../../src/io/http/checks/session-lookup.ts';
import { cookie } from '../../support/account.ts';
import { commitAccount, sessionNames } from '../../support/actors/commit-rows.ts';
import { CIPHER } from '../../support/admin.ts';
import { type ConnectFixture, startConnect, startConnected } from '../../support/connect.ts';
import { hostClient, refreshTokens, registerHost, sendForm, tokensOf } from '../../support/hosts.ts';

async function start(t: Test) {
  const fixture = await startConnected(t);
  const { host, tokens, refresh, statusWith } = fixture;
  return {
    fixture,
    host,
    tokens,
    refresh,
    /** Presents a refresh token, which must be answered with tokens. */
    next: async (token: string) => tokensOf(await refresh(token)),
    /** Counts the access tokens that are good. */
    live: async (...access: readonly string[]) =>
      (await Promise.all(access.map(statusWith))).filter((status) => status === 200).length,
  };
}

function isOver(t: Test, answer: Answer, note = 'over'): void {
  t.equal(answer.status, 400, note);
  t.match(answer.json, { error: 'invalid_grant' }, note);
}

/** The newest entry of the owner's login log. */
async function lastLogged({ loginLog, owner }: ConnectFixture): Promise<unknown> {
  return ((await loginLog(owner.sid)) as readonly unknown[])[0];
}

const REPLACED = 'Invalid grant: the refresh token was replaced before';
const REUSED = { event: 'token_reused', ok: false, error: REPLACED };

for (const count of [2, 3, 5, 10])
  t.test(`refresh: ${count} at once are all answered, with one refresh token`, async (t) => {
    const { tokens, next, live } = await start(t);
    const answers = await Promise.all(Array.from({ length: count }, () => next(tokens.refresh)));
    const newest = new Set(answers.map(({ refresh }) => refresh));
    t.equal(newest.size, 1, 'the same refresh token for each');
    t.notOk(newest.has(tokens.refresh), 'which is another one');
    const access = new Set([tokens.access, ...answers.map(({ access }) => access)]);
    t.equal(access.size, count + 1, 'an access token of its own for each');
    t.equal(await live(...access), Math.min(8, count + 1));
  });

t.test('refresh: the ninth access token of a grant ends the oldest alone', async (t) => {
  const { fixture, tokens, next, live } = await start(t);
  const access: string[] = [];
  for (let use = 0; use < 8; use += 1) access.push((await next(tokens.refresh)).access);
  t.equal(await live(tokens.access), 0);
  t.equal(await live(...access), 8);
  const { result } = await fixture.get('/auth/v1/connected_hosts', cookie(fixture.owner.sid));
  t.match(result, [{ sessions: 8 }]);
});

t.test('refresh: a former token gives the newest one of the chain and does not rotate', async (t) => {
  const { fixture, tokens, next } = await start(t);
  const second = await next(tokens.refresh);
  fixture.actors.clock.nowMs += 30 * SECOND_MS;
  const third = await next(second.refresh);
  const fourth = await next(third.refresh);
  t.equal(new Set([tokens, second, third, fourth].map(({ refresh }) => refresh)).size, 4);
  fixture.actors.clock.nowMs += 30 * SECOND_MS;
  for (const former of [tokens, second, third, tokens])
    t.equal((await next(former.refresh)).refresh, fourth.refresh);
  t.not((await next(fourth.refresh)).refresh, fourth.refresh, 'the newest one rotates');
});

// covers S84
t.test(
  'refresh: a former token 61 s after its own replacement ends the grant, with the reason',
  async (t) => {
    const { fixture, tokens, next, refresh, live } = await start(t);
    const second = await next(tokens.refresh);
    fixture.actors.clock.nowMs += 59 * SECOND_MS;
    const third = await next(second.refresh);
    const again = await next(tokens.refresh);
    fixture.actors.clock.nowMs += 2 * SECOND_MS;
    t.equal((await next(second.refresh)).refresh, third.refresh, 'replaced two seconds ago');
    t.equal(await live(again.access), 1);
    isOver(t, await refresh(tokens.refresh), 'a use within the minute does not prolong it');
    t.equal(await live(second.access, third.access, again.access), 0);
    isOver(t, await refresh(third.refresh));
    t.match(await lastLogged(fixture), REUSED);
  },
);

t.test('refresh: the ninth replacement within the minute ends the time of the first token', async (t) => {
  const { fixture, tokens, next, refresh } = await start(t);
  const chain = [tokens.refresh];
  for (let use = 0; use < 9; use += 1) chain.push((await next(chain.at(-1) ?? '')).refresh);
  const [first = '', second = ''] = chain;
  t.equal((await next(second)).refresh, chain.at(-1), 'eight steps before the newest');
  isOver(t, await refresh(first));
  t.match(await lastLogged(fixture), REUSED);
});

t.test('refresh: two processes with one file refresh each hour for a day', async (t) => {
  const { fixture, tokens, next, live } = await start(t);
  let file = tokens.refresh;
  for (let hour = 0; hour < 24; hour += 1) {
    fixture.actors.clock.nowMs += HOUR_MS;
    const read = file;
    const [one, other] = await Promise.all([next(read), next(read)]);
    // The one that was answered last writes last.
    file = hour % 2 === 0 ? one.refresh : other.refresh;
    t.equal(await live(one.access, other.access), 2);
  }
});

t.test('refresh: a process that keeps its own token and follows within the minute stays', async (t) => {
  const { fixture, tokens, next } = await start(t);
  let [one, other] = [tokens.refresh, tokens.refresh];
  for (let hour = 0; hour < 5; hour += 1) {
    fixture.actors.clock.nowMs += HOUR_MS;
    one = (await next(one)).refresh;
    one = (await next(one)).refresh;
    fixture.actors.clock.nowMs += 50 * SECOND_MS;
    other = (await next(other)).refresh;
    t.equal(other, one);
  }
});

t.test('refresh: over a restart a former token gives the same successor', async (t) => {
  const { fixture, tokens, next, live } = await start(t);
  const second = await next(tokens.refresh);
  await fixture.actors.restart();
  const again = await next(tokens.refresh);
  t.equal(again.refresh, second.refresh);
  t.equal(await live(tokens.access, second.access, again.access), 3);
});

// covers S84
t.test('refresh: a former token is of its client alone, and may be given back', async (t) => {
  const { fixture, host, tokens, next, refresh, live } = await start(t);
  const second = await next(tokens.refresh);
  const other = await registerHost(fixture.url);
  isOver(t, await refreshTokens(fixture.url, other, tokens.refresh), 'another client');
  t.equal(await live(second.access), 1, 'which ends nothing');
  const form = { token: tokens.refresh, client_id: host.clientId };
  const revoked = await sendForm(`${fixture.url}/connect/revoke`, form);
  t.equal(revoked.status, 200);
  t.equal(await live(second.access), 0);
  isOver(t, await refresh(second.refresh));
});

/** Every text in a value. */
function textsOf(value: unknown): string[] {
  if (typeof value === 'string') return [value];
  return typeof value === 'object' && value !== null ? Object.values(value).flatMap(textsOf) : [];
}

// covers S85
t.test('refresh: a copy of the journal, with its secret, computes no token', async (t) => {
  const { fixture, tokens, next } = await start(t);
  const second = await next(tokens.refresh);
  await fixture.actors.settle();
  const { userId } = fixture.owner;
  const stored = fixture.actors.journal.load('user', userId);
  const { refreshTokens: sealer } = openSealers(CIPHER);
  const held = sealer.open(second.refresh);
  if (held === undefined) throw new Error('the token is not sealed under the secret of the journal');
  const texts = new Set(textsOf(stored));
  t.ok(texts.has(digest(second.refresh)), 'the journal holds the hash');
  t.notOk(texts.has(held.random));
  // With the key that derives tokens, from every text of the journal: the hashes of the tokens are among them.
  const key = CIPHER.deriveKey('oauth-refresh-next', 32);
  const derived = [...texts].map((text) => createHmac('sha256', key).update(text).digest('base64url'));
  const randoms = [...texts, ...derived];
  const computed = new Set(randoms.map((random) => sealer.seal({ ...held, random })));
  t.notOk(
    [tokens, second].some(({ refresh }) => computed.has(refresh)),
    'no token of the grant',
  );
  const third = await next(second.refresh);
  t.notOk(computed.has(third.refresh), 'nor the next one');
  const own = createHmac('sha256', key).update(held.random).digest('base64url');
  t.equal(sealer.seal({ ...held, random: own }), third.refresh, 'the token itself and the key compute it');
});

interface Golden {
  readonly userId: string;
  readonly nowMs: number;
  readonly tokens: Readonly<Record<'unused' | 'former' | 'current' | 'repeated', string>>;
  readonly clients: Readonly<Record<'unused' | 'rotated' | 'repeated', string>>;
  readonly events: readonly unknown[];
  readonly state: { readonly sessions: readonly SessionRecord[] };
}

/** An account as version 7 left it: three connected hosts, one that refreshed, and one that repeated a refresh. */
const GOLDEN: Golden = JSON.parse(
  readFileSync(new URL('../../../../test/fixtures/rows-7.json', import.meta.url), 'utf8'),
);

/** The account in a journal of today, as its snapshot or as its events. */
async function startUpgraded(t: Test, form: 'snapshot' | 'events') {
  const fixture = stopAfter(t, await startConnect({ seed: 2 }));
  const { journal, clock } = fixture.actors;
  const { userId: id, nowMs, events, state, tokens, clients } = GOLDEN;
  const names = sessionNames(id, state.sessions);
  // Each turn of that version was one event.
  const turns = events.map((event) => [event]);
  await commitAccount(journal, { version: 7, userId: id, names, state, events: turns }, form);
  clock.nowMs = nowMs;
  const refresh = (client: keyof Golden['clients'], token: string) =>
    refreshTokens(fixture.url, hostClient(clients[client]), token);
  const next = async (client: keyof Golden['clients'], token: string) =>
    tokensOf(await refresh(client, token)).refresh;
  return { fixture, clock, tokens, refresh, next };
}

for (const form of ['snapshot', 'events'] as const) {
  t.test(`refresh: over the upgrade every stored token works, from ${form}`, async (t) => {
    const { tokens, next } = await startUpgraded(t, form);
    const unused = await next('unused', tokens.unused);
    t.equal(await next('unused', tokens.unused), unused, 'and follows the new rule');
    const rotated = await next('rotated', tokens.current);
    t.equal(await next('rotated', tokens.current), rotated);
    const repeated = await next('repeated', tokens.repeated);
    t.equal(await next('repeated', tokens.repeated), repeated);
  });

  t.test(`refresh: over the upgrade a former token works for its minute, from ${form}`, async (t) => {
    const { fixture, clock, tokens, refresh, next } = await startUpgraded(t, form);
    clock.nowMs += 60 * SECOND_MS;
    // Tokens of that version did not follow from each other, so each of the two begins a chain.
    const own = await next('rotated', tokens.former);
    t.equal(await next('rotated', tokens.former), own);
    const other = await next('rotated', tokens.current);
    t.equal(await next('rotated', tokens.current), other);
    clock.nowMs += SECOND_MS;
    await fixture.actors.restart();
    t.equal(await next('rotated', tokens.current), other, 'in one journal with rows of today');
    isOver(t, await refresh('rotated', tokens.former), 'its minute is over');
    isOver(t, await refresh('rotated', other), 'and the grant with it');
  });
}

t.test(
  'refresh: a node of the build before asks the owner of this one with one token of its own',
  async (t) => {
    const { fixture, host, tokens, next } = await start(t);
    const { refreshTokens: sealer } = openSealers(CIPHER);
    const { userId, codeId, appId } = sealer.open(tokens.refresh) ?? {};
    if (userId === undefined || codeId === undefined || appId === undefined)
      throw new Error('not sealed here');
    const ask = async (presented: string) => {
      const own = sealer.fresh({ userId, codeId, appId });
      await fixture.actors.system.ask(user, userId, {
        type: 'refreshGrant',
        codeId,
        clientKey: digest(host.clientId),
        presentedHash: digest(presented),
        nextHash: digest(own),
        indexEntry: indexEntryOf(fixture.actors.system, appId),
        origin: { ip: '192.0.2.1', userAgent: 'test' },
      });
      return own;
    };
    const second = await ask(tokens.refresh);
    const third = await next(second);
    t.equal((await next(second)).refresh, third.refresh, 'the chain of this build begins there');
    const { refresh } = await next(await ask(second));
    t.ok(refresh.startsWith('refresh.'), 'a former one within its minute');
  },
);

t.test(
  'refresh: an owner of the build before is asked with one token, and its answer names none',
  async (t) => {
    const { fixture, tokens, next } = await start(t);
    const { system } = fixture.actors;
    const { ask } = system;
    const asBefore = async (kind: unknown, id: string, command: { nextHashes?: unknown }) => {
      const { nextHashes: _, ...known } = command;
      const answer = await Reflect.apply(ask, system, [kind, id, known]);
      if (answer !== null && typeof answer === 'object') delete answer.refreshHash;
      return answer;
    };
    Object.assign(system, { ask: asBefore });
    const second = await next(tokens.refresh);
    Object.assign(system, { ask });
    t.not(second.refresh, tokens.refresh);
    t.equal((await next(tokens.refresh)).refresh, second.refresh, 'it is the one that follows');
  },
);
