/** Open challenges: once, for their kind, user and session, for a while, and never too many. */
import t from 'tap';
import {
  CHALLENGES_ID,
  type Challenge,
  type ChallengeCommand,
  challenges,
} from '../../src/actors/challenges.ts';
import { KINDS } from '../../src/actors/kinds.ts';
import { LiveSettings } from '../../src/domain/settings.ts';
import { SharedBounds } from '../../src/domain/shares.ts';
import { createTestActors } from '../support/actors.ts';

type Opening = Extract<ChallengeCommand, { type: 'openChallenge' }>;
type Consuming = Extract<ChallengeCommand, { type: 'consumeChallenge' }>;

function start() {
  const actors = createTestActors({ kinds: KINDS });
  const now = <T>(command: object) => actors.system.now<T>(challenges, CHALLENGES_ID, command);
  const nobody = { userId: null, sessionId: null };
  const leewayMs = 2_000;
  const bounds = new SharedBounds(new LiveSettings(), { challenges: 3_000 });
  const open = ({ address = '192.0.2.1', ...changes }: Partial<Opening> & { address?: string } = {}) => {
    const take = () => bounds.of('challenges').take(bounds.holders.of(address));
    return now<Challenge>({ type: 'openChallenge', kind: 'login', ...nobody, take, leewayMs, ...changes });
  };
  const consume = (id: number, changes: Partial<Consuming> = {}) =>
    now<Challenge>({ type: 'consumeChallenge', id, kinds: ['login'], ...nobody, ...changes });
  const isOpen = (id: number) => {
    try {
      return consume(id).id === id;
    } catch (error) {
      if (String(error) !== 'GatewayError: Challenge expired') throw error;
      return false;
    }
  };
  return { actors, bounds, open, consume, isOpen };
}

const EXPIRED = { message: 'Challenge expired' };

t.test('challenge: is random, below 2^53, and good exactly once', async (t) => {
  const { open, consume } = start();
  const one = open();
  const two = open();
  t.ok(Number.isSafeInteger(one.id) && one.id > 0);
  for (const field of ['id', 'challenge', 'code', 'newUserId', 'newHandle'] as const)
    t.not(one[field], two[field], field);
  t.equal(Buffer.from(one.challenge, 'base64url').length, 32);
  t.equal(one.code.length, 43);
  t.same(consume(one.id), one);
  t.throws(() => consume(one.id), EXPIRED);
  t.same(consume(two.id), two);
  t.throws(() => consume(1), EXPIRED, 'unknown');
});

t.test(
  'challenge: belongs to its kind, user and session, and survives being asked for by others',
  async (t) => {
    const { open, consume } = start();
    const session = { userId: '1', sessionId: '7' };
    const { id } = open({ kind: 'register', ...session });
    t.throws(() => consume(id, session), EXPIRED, 'kind');
    const kinds = ['register'] as const;
    t.throws(() => consume(id, { kinds }), EXPIRED, 'no session');
    t.throws(() => consume(id, { kinds, userId: '2', sessionId: '7' }), EXPIRED, 'other user');
    t.throws(() => consume(id, { kinds, userId: '1', sessionId: '8' }), EXPIRED, 'other session');
    t.throws(() => consume(id, { kinds, userId: '2', sessionId: '9', orAnonymous: true }), EXPIRED);
    t.equal(consume(id, { kinds, ...session }).id, id);
    const anonymous = open().id;
    t.throws(() => consume(anonymous, session), EXPIRED, 'an anonymous one, with a session');
    t.equal(consume(anonymous, { ...session, orAnonymous: true }).id, anonymous);
  },
);

t.test('challenge: is taken until its end and the leeway, and not a millisecond longer', async (t) => {
  const { actors, open, isOpen } = start();
  const first = open();
  const second = open();
  t.equal(first.expiresMs, actors.clock.nowMs + 300_000);
  actors.clock.nowMs += 302_000;
  t.ok(isOpen(first.id));
  actors.clock.nowMs += 1;
  t.notOk(isOpen(second.id));
});

t.test('challenge: a repeat with the same Idempotency-Key gets it again, another does not', async (t) => {
  const { open, consume } = start();
  const { id } = open();
  t.equal(consume(id, { idempotencyKey: 'k' }).id, id);
  t.equal(consume(id, { idempotencyKey: 'k' }).id, id);
  t.throws(() => consume(id, { idempotencyKey: 'other' }), EXPIRED);
  t.throws(() => consume(id), EXPIRED);
});

const REFUSED = { message: 'Access rate limit', detail: 'too many open challenges', retryAfterSeconds: 5 };

t.test('challenge: a network has 1,000 open, one more is refused and none is lost', async (t) => {
  const { actors, open, consume, isOpen } = start();
  const mine = Array.from({ length: 1_000 }, () => open().id);
  t.throws(() => open(), REFUSED);
  t.ok(isOpen(open({ address: '192.0.2.2' }).id), 'another network has its own');
  t.ok(isOpen(mine[1] ?? 0), 'what is open stays');
  t.ok(open().id, 'a used one makes room');
  t.throws(() => open(), REFUSED);
  actors.clock.nowMs += 302_001;
  t.ok(open().id, 'expired ones make room');
  t.throws(() => consume(mine[0] ?? 0), EXPIRED);
});

t.test('challenge: the maximum is reached, one more is refused whoever asks', async (t) => {
  const { bounds, open, isOpen } = start();
  const first = open();
  for (let count = 1; count < 3_000; count += 1) open({ address: `10.0.${count >> 8}.${count & 255}` });
  t.throws(() => open({ address: '192.0.2.9' }), REFUSED);
  t.ok(isOpen(first.id));
  t.match(bounds.of('challenges').counters(), { held: 2_999, refused: { maximum: 1 } });
});

t.test('challenge: those that are open are lost at a restart and never written', async (t) => {
  const { actors, open } = start();
  const { id } = open();
  await actors.restart();
  t.throws(
    () =>
      actors.system.now(challenges, CHALLENGES_ID, {
        type: 'consumeChallenge',
        id,
        kinds: ['login'],
        userId: null,
        sessionId: null,
      }),
    EXPIRED,
  );
  t.equal(actors.journal.load('challenges', CHALLENGES_ID), undefined);
});

t.test('challenge: is not lost while it is open and nobody calls', async (t) => {
  const { actors, open, isOpen } = start();
  const { id } = open();
  await actors.advance(290_000);
  t.ok(isOpen(id));
});
