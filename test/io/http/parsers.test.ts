/** The front's parsers against references over random input: 200,000 each at full depth. */
import fc from 'fast-check';
import t from 'tap';
import { GatewayError } from '../../../src/domain/errors.ts';
import { JSON_DEPTH_MAX, parseJson, shapeFault } from '../../../src/io/http/exchange/json.ts';
import { decodeSegment, parseQuery, readBearer, readSids } from '../../../src/io/http/exchange/request.ts';
import { createAddressReader, parseAddress } from '../../../src/io/http/listen/client-address.ts';
import { seededNumbers } from '../../support/actors/actors.ts';
import { count, depth, runs } from '../../support/depth.ts';

t.setTimeout(120_000);

const ROUNDS = 200_000;

/** Calls `check` with texts composed of tokens that matter to a parser and random characters. */
function rounds(pieces: readonly string[], check: (text: string) => void): void {
  const next = seededNumbers(depth.seed);
  const random = (limit: number) => Math.floor(next() * limit);
  for (let round = 0; round < count(ROUNDS); round += 1) {
    let text = '';
    for (let left = random(11); left > 0; left -= 1) {
      text += random(5) === 0 ? String.fromCharCode(random(256)) : (pieces[random(pieces.length)] ?? '');
    }
    check(text);
  }
}

/** The result of a parser, or `InvalidInput`. Anything else that it throws fails the test. */
function refusalOr<T>(parse: () => T): T | 'InvalidInput' {
  try {
    return parse();
  } catch (error) {
    if (error instanceof GatewayError && error.row === 'InvalidInput') return 'InvalidInput';
    throw error;
  }
}

function agree(actual: unknown, expected: unknown): void {
  const [a, b] = [JSON.stringify(actual), JSON.stringify(expected)];
  if (a !== b) throw new Error(`${a} instead of ${b}`);
}

// covers R82
t.test('parsers: each value of the sid cookies is read once, and other cookies are not', async (t) => {
  rounds(['sid=', 'sid', '=', ';', '; ', 'abc', 'xsid=', 'SID=', ' ', '"'], (cookies) => {
    const values = [...cookies.matchAll(/(?:^|;)\s*sid=([^;]*)/g)].map(([, value = '']) => value.trimEnd());
    agree(
      readSids(cookies),
      [...new Set(values)].filter((value) => value !== ''),
    );
  });
  t.same(readSids(undefined), []);
});

t.test('parsers: a bearer is one token after the scheme', async (t) => {
  rounds(['Bearer', 'bearer', 'BEARER', ' ', 'abc-_', 'Basic', '\t', ','], (text) => {
    const [scheme = '', ...rest] = text.split(/ +/);
    const expected =
      scheme.toLowerCase() === 'bearer' && rest.length === 1 && rest[0] !== '' && !/\s/.test(rest[0] ?? ' ')
        ? rest[0]
        : undefined;
    agree(readBearer(text), expected);
  });
  t.equal(readBearer(undefined), undefined);
});

// covers S170
t.test('parsers: a query reads as URLSearchParams does, or is refused', async (t) => {
  let read = 0;
  rounds(['a', 'b', '=', '&', '+', '%41', '%c3%a4', '%zz', '%', '%00', '__proto__'], (query) => {
    const fields = refusalOr(() => parseQuery(query));
    const pairs = [...new URLSearchParams(`&${query}`)];
    const names = pairs.map(([name]) => name);
    const refused = new Set(names).size < names.length || names.includes('__proto__') || !isDecodable(query);
    if (refused) agree(fields, 'InvalidInput');
    else {
      read += 1;
      agree(fields === 'InvalidInput' ? fields : Object.entries(fields).sort(), pairs.sort());
    }
  });
  t.ok(read > count(50_000), `${read} were read`);
});

// covers S13
t.test('parsers: a decoded segment never holds a separator or a control character', async (t) => {
  rounds(['a', '.', '..', '%2f', '%5C', '\\', '%00', '%41', '%c3%a4', '%', '%ff'], (segment) => {
    const text = refusalOr(() => decodeSegment(segment.replaceAll('/', '')));
    const expected = isDecodable(segment) ? decodeURIComponent(segment.replaceAll('/', '')) : 'InvalidInput';
    const unfit = [...expected].some((letter) => '/\\'.includes(letter) || isControl(letter));
    if (text !== 'InvalidInput' || !unfit) agree(text, unfit ? 'InvalidInput' : expected);
  });
  t.pass(`${count(ROUNDS)} agree`);
});

// covers S12
t.test('parsers: nesting is counted as a parser counts it', async (t) => {
  const many = '['.repeat(12);
  rounds(['[', ']', '{', '}', '"', '\\"', '\\\\', '\\', ',', many, many, '{"a":', '1', ' '], (text) => {
    agree(shapeFault(Buffer.from(text)) === undefined, depthOf(text) <= JSON_DEPTH_MAX);
  });
  const nested = (depth: number) => Buffer.from('['.repeat(depth) + ']'.repeat(depth));
  t.doesNotThrow(() => parseJson(nested(JSON_DEPTH_MAX)));
  t.throws(
    () => parseJson(nested(JSON_DEPTH_MAX + 1)),
    new GatewayError('InvalidInput', 'body: nested over 64 levels'),
  );
});

t.test('parsers: JSON equals the result of JSON.parse, or is refused', async (t) => {
  const reserved = ['__proto__', 'constructor', 'prototype'];
  const key = fc.oneof(fc.string({ maxLength: 3 }), fc.constantFrom(...reserved));
  const value = fc.letrec((tie) => ({
    any: fc.oneof(fc.integer(), fc.constantFrom(...reserved), fc.boolean(), tie('list'), tie('record')),
    list: fc.array(tie('any'), { maxLength: 3 }),
    record: fc.array(fc.tuple(key, tie('any')), { maxLength: 3 }).map((entries) => ({ entries })),
  })).any;
  fc.assert(
    fc.property(value, fc.integer({ min: 0, max: 20 }), (tree, cut) => {
      const whole = spell(tree);
      const text = cut > 17 ? whole.slice(0, cut) : whole;
      const parsed = refusalOr(() => parseJson(Buffer.from(text)));
      agree(parsed, parse(text, new Set(reserved)));
    }),
    runs(5_000),
  );
  t.pass(`${count(5_000)} agree`);
});

// covers S170
t.test(
  'parsers: X-Forwarded-For names an address of the header or the peer, whatever it holds',
  async (t) => {
    const reader = createAddressReader(['10.0.0.0/8']);
    rounds(
      ['10.0.0.7', '203.0.113.5', '2001:db8::1', '[::1]', ':80', ',', ', ', '::ffff:', '999', '-'],
      (header) => {
        const { address, forwarded } = reader.resolve('10.0.0.1', { proxied: '', forwardedFor: header });
        const named = header.split(',').map((hop) => parseAddress(hop)?.toString());
        if (forwarded ? !named.includes(address) : address !== '10.0.0.1') throw new Error(address);
        agree(reader.resolve('8.8.8.8', { proxied: '', forwardedFor: header }), {
          address: '8.8.8.8',
          peer: '8.8.8.8',
          forwarded: false,
          unknown: false,
          alone: false,
        });
      },
    );
    t.pass(`${count(ROUNDS)} agree`);
  },
);

function isDecodable(text: string): boolean {
  try {
    decodeURIComponent(text);
    return true;
  } catch (error) {
    if (error instanceof URIError) return false;
    throw error;
  }
}

function isControl(letter: string): boolean {
  const code = letter.charCodeAt(0);
  return code < 32 || code === 127;
}

/** Deepest nesting, strings left out by a pattern. */
function depthOf(text: string): number {
  let deepest = 0;
  let depth = 0;
  for (const letter of text.replace(/"(?:[^"\\]|\\.)*(?:"|\\?$)/gs, '')) {
    if (letter === '[' || letter === '{') depth += 1;
    if (letter === ']' || letter === '}') depth -= 1;
    deepest = Math.max(deepest, depth);
  }
  return deepest;
}

/** JSON text of a tree whose records are lists of entries, so that it can contain reserved keys. */
function spell(tree: unknown): string {
  if (Array.isArray(tree)) return `[${tree.map(spell).join(',')}]`;
  if (typeof tree !== 'object' || tree === null) return JSON.stringify(tree);
  const { entries } = tree as { entries: [string, unknown][] };
  return `{${entries.map(([key, inner]) => `${JSON.stringify(key)}:${spell(inner)}`).join(',')}}`;
}

/** `JSON.parse` with a reviver that sees every key. */
function parse(text: string, reserved: ReadonlySet<string>): unknown {
  try {
    let refused = false;
    const value: unknown = JSON.parse(text, (key, inner) => {
      refused ||= reserved.has(key);
      return inner;
    });
    return refused ? 'InvalidInput' : value;
  } catch (error) {
    if (error instanceof SyntaxError) return 'InvalidInput';
    throw error;
  }
}
