/** Identifiers, tokens and proofs: one spelling for each value, whatever is sent. */
import { createHash, randomBytes } from 'node:crypto';
import fc from 'fast-check';
import t from 'tap';
import {
  decodeBase64url,
  derivedId,
  hashToken,
  makeToken,
  parseId,
  partitionOf,
  TickSource,
  tickAt,
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

// covers R12 S170
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

// covers R12 S170
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

// covers R58
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

// covers R7 S21
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

// covers S163
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

t.test('TickSource: of a node, carries its number in the lowest 6 bits, also above a floor', (t) => {
  for (const node of [0, 1, 63]) {
    const first = (5n << 20n) | BigInt(node);
    const ticks = new TickSource(0n, node);
    t.same([ticks.next(5), ticks.next(5), ticks.next(4)], [first, first + 64n, first + 128n]);
    for (const above of [0n, 1n, 62n, 63n]) {
      const floor = (9n << 20n) + 640n + above;
      const [next, after] = ((source: TickSource) => [source.next(5), source.next(5)])(
        new TickSource(floor, node),
      );
      const expected = ((floor >> 6n) << 6n) + BigInt(node) + (BigInt(node) > above ? 0n : 64n);
      t.same([next, after], [expected, expected + 64n], `floor ${above}, node ${node}`);
    }
  }
  for (const node of [-1, 64, 0.5, Number.NaN]) t.throws(() => new TickSource(0n, node), RangeError);
  t.end();
});

t.test('TickSource: a raised one continues above that, and is never lowered', (t) => {
  for (const node of [undefined, 0, 7, 63]) {
    const source = new TickSource(0n, node);
    const before = source.next(5);
    const other = tickAt(9) + 640n + 7n;
    source.raise(other);
    const raised = source.next(5);
    t.ok(raised > other && raised <= other + 64n, `node ${node}: the next of its ids`);
    t.equal(raised & 63n, node === undefined ? (other + 1n) & 63n : BigInt(node));
    source.raise(before);
    t.equal(source.next(5), raised + (node === undefined ? 1n : 64n));
    t.equal(source.next(10) >> 20n, 10n, 'the clock again, once it is past that');
  }
  t.end();
});

t.test('TickSource: ids that do not fit into a millisecond are of the next one, never derived ids', (t) => {
  const derived = BigInt(derivedId(5, 0));
  t.equal(derived, (5n << 20n) + 2n ** 19n);
  t.equal(new TickSource(derived - 2n).next(5), derived - 1n, 'the last of one machine');
  t.equal(new TickSource(derived - 1n).next(5), 6n << 20n);
  t.equal(new TickSource(BigInt(derivedId(5, 2 ** 19 - 1))).next(5), 6n << 20n);
  for (const node of [0, 7, 63]) {
    const source = new TickSource(0n, node);
    const ids = Array.from({ length: 8_193 }, () => source.next(5));
    t.same(
      [ids.at(-2), ids.at(-1)],
      [derived - 64n + BigInt(node), (6n << 20n) | BigInt(node)],
      `node ${node}: 8,192 in a millisecond`,
    );
  }
  t.end();
});

t.test('TickSource: nodes and one machine before them, whatever their clocks do, give no id twice', (t) => {
  const step = fc.record({
    node: fc.integer({ min: 0, max: 63 }),
    /** Milliseconds that its clock moves, 0 most of the time. */
    movesMs: fc.oneof(fc.constant(0), fc.integer({ min: -5_000, max: 5_000 })),
    takes: fc.integer({ min: 1, max: 40 }),
  });
  fc.assert(
    fc.property(fc.array(step, { maxLength: 60 }), fc.integer({ min: 0, max: 100 }), (steps, before) => {
      const single = new TickSource();
      const seen = new Set(Array.from({ length: before }, () => single.next(10_000)));
      const nodes = new Map<number, { source: TickSource; nowMs: number; last: bigint }>();
      for (const { node, movesMs, takes } of steps) {
        const own = nodes.get(node) ?? { source: new TickSource(single.last, node), nowMs: 10_000, last: 0n };
        nodes.set(node, own);
        own.nowMs = Math.max(0, own.nowMs + movesMs);
        for (let taken = 0; taken < takes; taken += 1) {
          const id = own.source.next(own.nowMs);
          if (seen.has(id) || id <= own.last) return false;
          if ((id & 63n) !== BigInt(node) || (id & (2n ** 19n)) !== 0n) return false;
          seen.add(id);
          own.last = id;
        }
      }
      return true;
    }),
    runs(),
  );
  t.end();
});

function toBase64url(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString('base64url');
}
