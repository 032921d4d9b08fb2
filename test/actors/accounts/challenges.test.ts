/** Challenges that an account keeps once they opened something: single use over replays, snapshots and processes. */
import t from 'tap';
import { USED_CHALLENGES_MAX } from '../../../src/actors/accounts/challenges.ts';
import { user } from '../../../src/actors/accounts/user.ts';
import type { UsedChallenge, UserState } from '../../../src/actors/accounts/user-types.ts';
import { KINDS } from '../../../src/actors/kinds.ts';
import { GatewayError } from '../../../src/domain/errors.ts';
import { browserMessage } from '../../../src/domain/proofs.ts';
import { SECOND_MS } from '../../../src/domain/time.ts';
import { inlineWorkers, type Key, makeKey, signText } from '../../support/account.ts';
import { askerOf, createTestActors } from '../../support/actors/actors.ts';

const ORIGIN = { ip: '192.0.2.1', userAgent: 'test' };
const USER = '101';
const EXPIRED = new GatewayError('ChallengeExpired');
const LIFE_MS = 300 * SECOND_MS;

function proofOf(key: Key) {
  const signature = Buffer.from(signText(key, `p\n${key.publicKey}`), 'base64url');
  return { message: browserMessage('p\n', key.publicKey), signature };
}

/** One account that the challenge 1 created. */
async function start() {
  const actors = createTestActors({ kinds: KINDS, ports: inlineWorkers() });
  const ask = askerOf(actors, user, USER);
  const challenge = (id: number): UsedChallenge => ({ id, endsMs: actors.clock.nowMs + LIFE_MS });
  const key = makeKey();
  const signUp = (founding: Key, used: UsedChallenge) =>
    ask({
      type: 'signUp',
      publicKey: founding.publicKey,
      proof: proofOf(founding),
      passKeyFlag: false,
      handle: 'h',
      challenge: used,
      origin: ORIGIN,
    });
  const { key: item } = await signUp(key, challenge(1));
  const sessions = () => actors.system.query(user, USER, { type: 'sessions' });
  const [root] = await sessions();
  const login = (used: UsedChallenge, proof = proofOf(key)) =>
    ask({
      type: 'login',
      keyId: item.id,
      publicKey: key.publicKey,
      proof,
      challenge: used,
      origin: ORIGIN,
    });
  const addKey = (added: Key, used: UsedChallenge, proven: boolean) =>
    ask({
      type: 'addKey',
      publicKey: added.publicKey,
      passKeyFlag: false,
      sessionId: root?.id ?? '',
      challenge: used,
      origin: ORIGIN,
      ...(proven ? { proof: proofOf(added) } : {}),
    });
  return { actors, challenge, signUp, login, addKey, sessions };
}

for (const how of ['a replay of its events', 'a passivation'] as const) {
  // covers S53
  t.test(`used challenge: after ${how} the account refuses it still, and takes another`, async (t) => {
    const { actors, challenge, login, addKey, sessions } = await start();
    const [forLogin, forClaim, forProof] = [challenge(2), challenge(3), challenge(4)];
    await login(forLogin);
    const claimed = makeKey();
    await addKey(claimed, forClaim, false);
    await addKey(claimed, forProof, true);
    const replay = async () => {
      if (how === 'a replay of its events') await actors.restart();
      else actors.system.passivate();
      await actors.settle();
    };
    for (let round = 0; round < 2; round += 1) {
      await replay();
      for (const used of [challenge(1), forLogin, forClaim, forProof]) {
        await t.rejects(login(used), EXPIRED, `login with ${used.id}`);
        await t.rejects(addKey(makeKey(), used, false), EXPIRED, `claim with ${used.id}`);
        await t.rejects(addKey(makeKey(), used, true), EXPIRED, `proof with ${used.id}`);
      }
    }
    t.equal((await sessions()).length, 2);
    t.ok((await login(challenge(5))).token);
    t.ok((await addKey(makeKey(), challenge(6), true)).key);
  });
}

// covers S53
t.test(
  'used challenge: of two logins at the same time that passed elsewhere, one opens a session',
  async (t) => {
    const { challenge, login, sessions } = await start();
    const used = challenge(2);
    const results = await Promise.allSettled([login(used), login(used), login(used)]);
    t.same(results.map(({ status }) => status).sort(), ['fulfilled', 'rejected', 'rejected']);
    for (const result of results) if (result.status === 'rejected') t.same(result.reason, EXPIRED);
    t.equal((await sessions()).length, 2);
  },
);

t.test('used challenge: the account that one created is not created again, with whatever key', async (t) => {
  const { actors, challenge, signUp } = await start();
  await actors.restart();
  await t.rejects(signUp(makeKey(), challenge(1)), EXPIRED);
  await t.rejects(signUp(makeKey(), challenge(2)), EXPIRED, 'of which the same account id was derived');
});

t.test('used challenge: one that opened nothing is not kept', async (t) => {
  const { challenge, login, addKey } = await start();
  const used = challenge(2);
  await t.rejects(
    login(used, { message: Buffer.from('m'), signature: Buffer.alloc(64) }),
    new GatewayError('InvalidSignature'),
  );
  const key = makeKey();
  await addKey(key, challenge(3), true);
  await t.rejects(addKey(key, used, true), new GatewayError('KeyAlreadyRegistered'));
  t.ok((await login(used)).token);
});

// covers R54
t.test('used challenge: 64 live ones are kept, the next is 1002 until the first is over', async (t) => {
  const { actors, challenge, login, sessions } = await start();
  const first = challenge(2);
  await login(first);
  await actors.advance(10 * SECOND_MS);
  for (let id = 3; id <= USED_CHALLENGES_MAX; id += 1) await login(challenge(id));
  const before = (await sessions()).map(({ id }) => id);
  const one = challenge(1_000);
  const full = new GatewayError('AccessRateLimit', 'too many challenges used for one account', 291, 's');
  await t.rejects(login(one), full, 'that of the sign-up is the 64th');
  await t.rejects(login(first), EXPIRED, 'a kept one is distinguished');
  await actors.restart();
  await t.rejects(login(one), full, 'after a replay');
  t.same(
    (await sessions()).map(({ id }) => id),
    before,
  );
  await actors.advance(290 * SECOND_MS);
  await t.rejects(
    login(one),
    new GatewayError('AccessRateLimit', full.detail, 1, 's'),
    'its last millisecond',
  );
  await actors.advance(1);
  t.ok((await login(one)).token);
  t.ok((await login(challenge(1_001))).token, 'the two of the first moment are over');
  await t.rejects(login(challenge(1_002)), new GatewayError('AccessRateLimit', full.detail, 10, 's'));
});

t.test('used challenge: those that are over leave with the next use, live ones stay', async (t) => {
  const use = (state: UserState, id: number, utcMs: number, endsMs: number) =>
    user.evolve(state, { type: 'challengeUsed', challenge: { id, endsMs }, utcMs });
  const two = use(use(user.initial(USER), 1, 0, 10), 2, 5, 20);
  t.same(
    use(two, 3, 10, 30).usedChallenges.map(({ id }) => id),
    [1, 2, 3],
  );
  t.same(
    use(two, 3, 11, 30).usedChallenges.map(({ id }) => id),
    [2, 3],
  );
});
