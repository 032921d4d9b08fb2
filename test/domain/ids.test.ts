/** Identifiers, tokens and proofs: one spelling for each value, whatever is sent. */
import { createHash, randomBytes } from 'node:crypto';
import fc from 'fast-check';
import t from 'tap';
import {
  decodeBase64url,
  hashToken,
  makeToken,
  parseId,
  partitionOf,
  TickSource,
} from '../../src/domain/ids.ts';
import {
  browserMessage,
  isTimestampFresh,
  mcpLoginMessage,
  parseUnixSeconds,
  signPrefix,
} from '../../src/domain/proofs.ts';
import { count, runs } from '../support/depth.ts';

const RUNS = 200_000;
const ALPHABET = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_';
/** Texts near the edge of the alphabet: the alphabets of both base64 forms, padding, blanks, control and other letters. */
const nearBase64 = fc.string({
  unit: fc.constantFrom(...ALPHABET, '+', '/', '=', ' ', '\n', '\0', 'é'),
  maxLength: 48,
});

t.test('decodeBase64url: takes exactly what it would write', (t) => {
  let taken = 0;
  fc.assert(
    fc.property(fc.oneof(nearBase64, fc.uint8Array({ maxLength: 34 }).map(toBase64url)), (text) => {
      const bytes = decodeBase64url(text);
      if (bytes === undefined) {
        const written = Buffer.from(text, 'base64url').toString('base64url');
        return text === '' || written !== text || /[^A-Za-z0-9_-]/.test(text);
      }
      taken += 1;
      return bytes.toString('base64url') === text && decodeBase64url(text, bytes.length + 1) === undefined;
    }),
    runs(RUNS),
  );
  t.ok(taken > count(RUNS) / 10, `${taken} were taken`);
  t.end();
});

t.test('decodeBase64url: of the four spellings that the bytes of a key have, one is taken', (t) => {
  const key = randomBytes(32).toString('base64url');
  const spellings = [...ALPHABET].map((letter) => key.slice(0, -1) + letter);
  t.equal(spellings.filter((text) => decodeBase64url(text, 32) !== undefined).length, 16);
  const same = spellings.filter((text) =>
    Buffer.from(text, 'base64url').equals(Buffer.from(key, 'base64url')),
  );
  t.equal(same.length, 4, 'four spellings of these bytes');
  t.same(
    same.filter((text) => decodeBase64url(text, 32) !== undefined),
    [key],
  );
  t.end();
});

t.test('parseId: decimal int64 in one spelling', (t) => {
  const decimal = fc.string({ unit: fc.constantFrom(...'0123456789-+. e'), maxLength: 21 });
  const values = fc.oneof(
    decimal,
    fc.bigInt({ min: 0n, max: 2n ** 65n }).map(String),
    fc.double(),
    fc.anything(),
  );
  fc.assert(
    fc.property(values, (value) => {
      const id = parseId(value);
      if (typeof value === 'number')
        return (id !== undefined) === (Number.isSafeInteger(value) && value >= 0);
      if (typeof value !== 'string') return id === undefined;
      const fits = /^[0-9]+$/.test(value) && String(BigInt(value)) === value && BigInt(value) < 2n ** 63n;
      return id === (fits ? value : undefined);
    }),
    runs(RUNS),
  );
  t.end();
});

t.test('parseUnixSeconds: int64 in one spelling', (t) => {
  const texts = fc.oneof(
    fc.string({ unit: fc.constantFrom(...'0123456789-+. x'), maxLength: 21 }),
    fc.bigInt({ min: -(2n ** 65n), max: 2n ** 65n }).map(String),
  );
  fc.assert(
    fc.property(texts, (text) => {
      const whole = /^-?[0-9]+$/.test(text) && String(BigInt(text)) === text;
      const fits = whole && BigInt.asIntN(64, BigInt(text)) === BigInt(text);
      return parseUnixSeconds(text) === (fits ? BigInt(text) : undefined);
    }),
    runs(RUNS),
  );
  t.end();
});

t.test('isTimestampFresh: whole seconds, 300 either way, at every edge of the second', (t) => {
  for (const nowMs of [1_767_225_600_000, 1_767_225_600_999]) {
    for (const [offset, fresh] of [
      [-301n, false],
      [-300n, true],
      [0n, true],
      [300n, true],
      [301n, false],
    ] as const)
      t.equal(isTimestampFresh(1_767_225_600n + offset, nowMs), fresh, `${offset} at ${nowMs}`);
  }
  t.notOk(isTimestampFresh(2n ** 63n - 1n, 0));
  t.notOk(isTimestampFresh(-(2n ** 63n), 0));
  t.end();
});

t.test(
  'proofs: the text names purpose, domain and challenge; no MCP signature can be one of a login',
  (t) => {
    const prefix = signPrefix('login', 'example.com', 4811223344556677, 'c'.repeat(43));
    t.equal(prefix, `gateway-auth/v1\nlogin\nexample.com\n4811223344556677\n${'c'.repeat(43)}\n`);
    t.not(prefix, signPrefix('register', 'example.com', 4811223344556677, 'c'.repeat(43)));
    t.ok(browserMessage(prefix, 'k').length > 8);
    t.equal(mcpLoginMessage(1_767_225_600n).length, 8);
    t.equal(Buffer.from(mcpLoginMessage(1_767_225_600n)).readBigInt64LE(), 1_767_225_600n);
    t.end();
  },
);

t.test('token: 46 characters led by the partition of its user, known by its SHA-256 alone', (t) => {
  const random = randomBytes(32);
  const token = makeToken('1853070350745600001', random);
  t.match(token, /^[A-Za-z0-9_-]{46}$/);
  const bytes = Buffer.from(token, 'base64url');
  t.equal(bytes.readUInt16BE(0), partitionOf('1853070350745600001'));
  t.same(bytes.subarray(2), random);
  t.equal(hashToken(token), createHash('sha256').update(token).digest('base64url'));
  for (const other of ['', token.slice(1), `${token}A`, `${token.slice(0, -1)}=`, `${token.slice(0, -1)}\n`])
    t.equal(hashToken(other), undefined, JSON.stringify(other));
  t.throws(() => makeToken('1', random.subarray(1)), RangeError);
  t.end();
});

t.test('TickSource: rises strictly, also when the clock stops or is set back', (t) => {
  const ticks = new TickSource();
  let last = 0n;
  for (const nowMs of [1_000, 1_000, 999, 0, 1_001, 1_001]) {
    const tick = ticks.next(nowMs);
    t.ok(tick > last);
    last = tick;
  }
  t.equal(new TickSource(last).next(0), last + 1n);
  t.end();
});

function toBase64url(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString('base64url');
}
