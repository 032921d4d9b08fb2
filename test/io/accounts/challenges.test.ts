/** Challenges of one process: once, for their kind, user and session, for a while, never too many; and after a restart. */
import t from 'tap';
import type { Challenge, ChallengeBinding } from '../../../src/domain/challenges.ts';
import { ChallengeKey } from '../../../src/domain/challenges.ts';
import type { GatewayError } from '../../../src/domain/errors.ts';
import { SharedBounds } from '../../../src/domain/limits/shared-bounds.ts';
import { LiveSettings } from '../../../src/domain/settings/settings.ts';
import { Challenges, openChallenges, type TakeChallenge } from '../../../src/io/accounts/challenges.ts';
import { createApiKeyCipher } from '../../../src/io/apps/api-keys.ts';
import { START_MS } from '../../support/actors/actors.ts';
import { makeChallenges } from '../../support/http.ts';

const LIFE_MS = 300_000;
const LEEWAY_MS = 2_000;
const EXPIRED = { message: 'Challenge expired' };
const REFUSED = { message: 'Access rate limit', detail: 'too many open challenges', retryAfterSeconds: 5 };

function start(make = makeChallenges) {
  const bounds = new SharedBounds(new LiveSettings(), { challenges: 3_000 });
  const anonymous = { userId: null, sessionId: null };
  const clock = { nowMs: START_MS };
  let challenges = make();
  const terms = (address: string) => ({
    nowMs: clock.nowMs,
    leewayMs: LEEWAY_MS,
    takeSlot: () => bounds.of('challenges').take(bounds.holders.of(address)),
  });
  return {
    bounds,
    clock,
    open: (binding: Partial<ChallengeBinding> = {}, address = '192.0.2.1'): Challenge =>
      challenges.open({ kind: 'login', ...anonymous, ...binding }, LIFE_MS, terms(address)),
    take: (id: number, asked: Partial<TakeChallenge> = {}, address = '192.0.2.1'): Challenge =>
      challenges.take({ id, kinds: ['login'], ...anonymous, ...asked }, terms(address)),
    spent: (id: number) => challenges.spent(id),
    failed: (id: number) => challenges.failed(id),
    held: () => bounds.of('challenges').counters().held,
    restart() {
      challenges = make();
    },
  };
}

// covers S53
t.test('challenge: is good exactly once, whatever became of the request', async (t) => {
  const { open, take, spent, failed } = start();
  const [one, two, three] = [open(), open(), open()];
  for (const field of ['id', 'challenge', 'code', 'newUserId', 'newHandle'] as const)
    t.not(one[field], two[field], field);
  t.same(take(one.id), one);
  t.throws(() => take(one.id), EXPIRED, 'while the first is under way');
  spent(one.id);
  t.throws(() => take(one.id), EXPIRED, 'after it opened something');
  t.same(take(two.id), two);
  failed(two.id);
  t.throws(() => take(two.id), EXPIRED, 'after a refusal');
  t.same(take(three.id), three);
  t.throws(() => take(1), EXPIRED, 'unknown');
});

// covers R54
t.test(
  'challenge: belongs to its kind, user and session, and survives being asked for by others',
  async (t) => {
    const { open, take } = start();
    const session = { userId: '1', sessionId: '7' };
    const { id } = open({ kind: 'register', ...session });
    const kinds = ['register'] as const;
    t.throws(() => take(id, session), EXPIRED, 'kind');
    t.throws(() => take(id, { kinds }), EXPIRED, 'no session');
    t.throws(() => take(id, { kinds, userId: '2', sessionId: '7' }), EXPIRED, 'other user');
    t.throws(() => take(id, { kinds, userId: '1', sessionId: '8' }), EXPIRED, 'other session');
    t.throws(() => take(id, { kinds, userId: '2', sessionId: '9', orAnonymous: true }), EXPIRED);
    t.equal(take(id, { kinds: ['login', 'register'], ...session }).id, id);
    const anonymous = open();
    t.throws(() => take(anonymous.id, session), EXPIRED, 'an anonymous one, with a session');
    t.same(take(anonymous.id, { ...session, orAnonymous: true }), anonymous);
  },
);

t.test('challenge: is taken until its end and the leeway, and not a millisecond longer', async (t) => {
  const { clock, open, take } = start();
  const first = open();
  const second = open();
  t.equal(first.expiresMs, clock.nowMs + LIFE_MS);
  clock.nowMs += LIFE_MS + LEEWAY_MS;
  t.equal(take(first.id).id, first.id);
  clock.nowMs += 1;
  t.throws(() => take(second.id), EXPIRED);
});

t.test('challenge: a repeat with the same Idempotency-Key gets it until the first is answered', async (t) => {
  const { open, take, failed, spent } = start();
  for (const ended of [failed, spent]) {
    const { id } = open();
    t.equal(take(id, { idempotencyKey: 'k' }).id, id);
    t.equal(take(id, { idempotencyKey: 'k' }).id, id);
    t.throws(() => take(id, { idempotencyKey: 'other' }), EXPIRED);
    t.throws(() => take(id), EXPIRED);
    ended(id);
    t.throws(() => take(id, { idempotencyKey: 'k' }), EXPIRED);
  }
});

// covers S55
t.test('challenge: a network has 1,000 open, one more is refused and none is lost', async (t) => {
  const { clock, open, take, spent, failed } = start();
  const mine = Array.from({ length: 1_000 }, () => open().id);
  t.throws(() => open(), REFUSED);
  t.ok(take(open({}, '192.0.2.2').id, {}, '192.0.2.2'), 'another network has its own');
  t.ok(take(mine[1] ?? 0), 'what is open stays');
  t.throws(() => open(), REFUSED, 'one in use keeps its place');
  failed(mine[1] ?? 0);
  t.throws(() => open(), REFUSED, 'a refused one too, until it ends');
  take(mine[2] ?? 0);
  spent(mine[2] ?? 0);
  t.ok(open().id, 'one that opened something makes room');
  t.throws(() => open(), REFUSED);
  clock.nowMs += LIFE_MS + LEEWAY_MS + 1;
  t.ok(open().id, 'expired ones make room');
  t.throws(() => take(mine[0] ?? 0), EXPIRED);
});

// covers R108 S55
t.test('challenge: at the maximum, one more is refused for every caller', async (t) => {
  const { bounds, open, take, spent } = start();
  const first = open();
  for (let count = 1; count < 3_000; count += 1) open({}, `10.0.${count >> 8}.${count & 255}`);
  t.throws(() => open({}, '192.0.2.9'), REFUSED);
  take(first.id);
  spent(first.id);
  t.match(bounds.of('challenges').counters(), { held: 2_999, refused: { maximum: 1 } });
});

t.test('challenge: one that is open outlives a restart, with all that belongs to it', async (t) => {
  const { open, take, restart, held } = start();
  const anonymous = open({ kind: 'register' });
  const own = open({ userId: '1', sessionId: '7' });
  restart();
  t.same(take(anonymous.id, { kinds: ['register'] }), anonymous);
  t.throws(() => take(own.id, { userId: '1', sessionId: '8' }), EXPIRED, 'bound as before');
  t.same(take(own.id, { userId: '1', sessionId: '7' }), own);
  t.throws(() => take(own.id, { userId: '1', sessionId: '7' }), EXPIRED, 'once in this process too');
  t.equal(held(), 4, 'those of before count again when they are used');
});

t.test(
  'challenge: used ones of an earlier process have a place, and a network no more than its share',
  async (t) => {
    const { open, take, restart, clock } = start();
    const ids = Array.from({ length: 1_000 }, () => open().id);
    restart();
    const error = t.throws(() => take(ids[0] ?? 0), REFUSED) as GatewayError;
    t.equal(error.row, 'AccessRateLimit');
    t.equal(take(ids[0] ?? 0, {}, '192.0.2.2').id, ids[0]);
    clock.nowMs += LIFE_MS + LEEWAY_MS + 1;
    t.throws(() => take(ids[1] ?? 0, {}, '192.0.2.3'), EXPIRED);
  },
);

t.test('challenge: two that got the same randomness are still two', async (t) => {
  let call = 0;
  const key = new ChallengeKey(Buffer.alloc(32, 7));
  const { open, take, spent } = start(() => new Challenges(key, () => Math.floor(call++ / 2)));
  const [one, two] = [open(), open()];
  t.not(one.id, two.id);
  take(two.id);
  spent(two.id);
  call -= 1;
  t.not(open().id, two.id, 'not that of a spent one either');
});

t.test('challenge: the key is the one of the journal, and derived for this use alone', async (t) => {
  const cipher = createApiKeyCipher(Buffer.alloc(32, 3));
  const one = start(() => openChallenges(cipher));
  const { id } = one.open();
  one.restart();
  t.equal(one.take(id).id, id, 'the same journal');
  const other = start(() => openChallenges(createApiKeyCipher(Buffer.alloc(32, 4))));
  t.throws(() => other.take(id), EXPIRED, 'another journal');
});
