/** Challenges as computed: what is bound into them, what a made-up or changed id gives, and how far time reaches. */
import t from 'tap';
import {
  CHALLENGE_RANDOM_RANGE,
  type Challenge,
  type ChallengeBinding,
  ChallengeKey,
} from '../../src/domain/challenges.ts';
import { TickSource } from '../../src/domain/ids.ts';
import { HOUR_MS } from '../../src/domain/time.ts';
import { START_MS, seededNumbers } from '../support/actors/actors.ts';

const KEY = Buffer.alloc(32, 1);
const ANONYMOUS: ChallengeBinding = { kind: 'login', userId: null, sessionId: null };
const OWN: ChallengeBinding = { kind: 'login', userId: '1', sessionId: '7' };
const LIFE_MS = 300_000;
const DERIVED = ['challenge', 'code', 'newUserId', 'newHandle'] as const;

function randoms(seed: number): () => number {
  const next = seededNumbers(seed);
  return () => Math.floor(next() * CHALLENGE_RANDOM_RANGE);
}

// covers R54
t.test('challenge: another object with the same key reads all of it from the id alone', async (t) => {
  const random = randoms(1);
  for (const binding of [ANONYMOUS, OWN, { ...ANONYMOUS, kind: 'register' as const }]) {
    const issued = new ChallengeKey(KEY).issue(binding, START_MS + LIFE_MS, random());
    t.same(new ChallengeKey(KEY).read(issued.id, binding, START_MS), issued);
    t.match(issued, { ...binding, expiresMs: START_MS + LIFE_MS });
    t.ok(Number.isSafeInteger(issued.id) && issued.id > 0);
    for (const field of ['challenge', 'code', 'newHandle'] as const)
      t.equal(Buffer.from(issued[field], 'base64url').length, 32, field);
  }
});

t.test('challenge: the largest parts make an id below 2^53', async (t) => {
  const endMs = (2 ** 14 * 131_072 - 1) * 1_000;
  const { id } = new ChallengeKey(KEY).issue(ANONYMOUS, endMs, CHALLENGE_RANDOM_RANGE - 1);
  t.ok(Number.isSafeInteger(id));
  t.ok(id > 2 ** 53 - 2 ** 17, 'every bit of the end and of the randomness is set');
});

// covers S54
t.test('challenge: every bit of the id counts, a changed one is no challenge', async (t) => {
  const key = new ChallengeKey(KEY);
  const random = randoms(2);
  const read: string[] = [];
  for (let count = 0; count < 20; count += 1) {
    const { id } = key.issue(OWN, START_MS + LIFE_MS, random());
    for (let bit = 0n; bit < 53n; bit += 1n) {
      const changed = Number(BigInt(id) ^ (1n << bit));
      if (key.read(changed, OWN, START_MS) !== undefined) read.push(`bit ${bit} of ${id}`);
    }
  }
  t.same(read, []);
});

t.test('challenge: invented ids pass once in 65,536, and reveal nothing of issued ones', async (t) => {
  const key = new ChallengeKey(KEY);
  const next = seededNumbers(3);
  let passed = 0;
  for (let guess = 0; guess < 30_000; guess += 1)
    if (key.read(Math.floor(next() * 2 ** 53), ANONYMOUS, START_MS) !== undefined) passed += 1;
  t.ok(passed <= 3, `${passed} of 30,000`);
});

// covers S54
t.test('challenge: the same id of another kind, user, session or key is another challenge', async (t) => {
  const key = new ChallengeKey(KEY);
  const issued = key.issue(OWN, START_MS + LIFE_MS, 5);
  const others: Challenge[] = [
    key.issue({ ...OWN, kind: 'register' }, START_MS + LIFE_MS, 5),
    key.issue({ ...OWN, userId: '2' }, START_MS + LIFE_MS, 5),
    key.issue({ ...OWN, sessionId: '8' }, START_MS + LIFE_MS, 5),
    key.issue({ ...OWN, userId: '17', sessionId: '' }, START_MS + LIFE_MS, 5),
    key.issue(ANONYMOUS, START_MS + LIFE_MS, 5),
    key.issue(OWN, START_MS + LIFE_MS, 6),
    key.issue(OWN, START_MS + LIFE_MS + 1_000, 5),
    new ChallengeKey(Buffer.alloc(32, 2)).issue(OWN, START_MS + LIFE_MS, 5),
  ];
  const equal = others.flatMap((other, index) =>
    (['id', ...DERIVED] as const)
      .filter((field) => other[field] === issued[field])
      .map((field) => `${index} ${field}`),
  );
  t.same(equal, []);
  t.not(issued.challenge, issued.code, 'each use has a MAC of its own');
  t.not(issued.code, issued.newHandle);
  t.equal(key.read(issued.id, { ...OWN, kind: 'register' }, START_MS), undefined);
  t.equal(key.read(issued.id, { ...OWN, userId: '2' }, START_MS), undefined);
  t.equal(key.read(issued.id, { ...OWN, sessionId: '8' }, START_MS), undefined);
  t.equal(key.read(issued.id, ANONYMOUS, START_MS), undefined);
});

t.test('challenge: an end is read right for two hours either way, and never as a later one', async (t) => {
  const key = new ChallengeKey(KEY);
  const { id, expiresMs } = key.issue(ANONYMOUS, START_MS, 9);
  for (const offMs of [-2 * HOUR_MS, -1, 0, 1, 2 * HOUR_MS])
    t.equal(key.read(id, ANONYMOUS, expiresMs + offMs)?.expiresMs, expiresMs, `${offMs} ms`);
  const periods = Array.from({ length: 100 }, (_, index) => index + 1);
  t.same(
    periods.filter((each) => key.read(id, ANONYMOUS, expiresMs + each * 2 ** 14 * 1_000) !== undefined),
    [],
    'periods of the stored end after which it is read again',
  );
});

t.test('challenge: its end is a whole second and never sooner than asked for', async (t) => {
  const key = new ChallengeKey(KEY);
  t.equal(key.issue(ANONYMOUS, START_MS, 1).expiresMs, START_MS);
  t.equal(key.issue(ANONYMOUS, START_MS + 1, 1).expiresMs, START_MS + 1_000);
});

t.test('challenge: the account id is of its second, and no tick of that time is the same', async (t) => {
  const key = new ChallengeKey(KEY);
  const ticks = new TickSource();
  const counted = new Set(Array.from({ length: 5_000 }, () => String(ticks.next(START_MS))));
  const derived = new Set<string>();
  for (let random = 0; random < 5_000; random += 1)
    derived.add(key.issue(ANONYMOUS, START_MS, random).newUserId);
  t.equal(derived.size, 5_000);
  for (const id of derived) {
    const ms = Number(BigInt(id) >> 20n);
    const counter = Number(BigInt(id) & 0xfffffn);
    if (counted.has(id) || ms < START_MS || ms >= START_MS + 1_000 || counter < 2 ** 19) t.fail(id);
  }
});

t.test('challenge: a key of another length is refused', async (t) => {
  t.throws(() => new ChallengeKey(Buffer.alloc(31)), RangeError);
});
