import fc from 'fast-check';
import t from 'tap';
import { anyCodePoint } from '../../kit/code-points.ts';
import { itemSpans, memberSpan, memberSpans, numberFault } from '../../src/domain/raw-json.ts';
import { runs } from '../support/depth.ts';

const slice = (text: string, key: string) => {
  const span = memberSpan(text, key);
  return span === undefined ? undefined : text.slice(span.start, span.end);
};

// covers R49
t.test('memberSpan: gives the bytes of a top-level member as they were written', async (t) => {
  t.equal(slice('{"id":9007199254740993}', 'id'), '9007199254740993');
  t.equal(slice(' { "a" : {"id":1} , "id" : "\\u0041\\"}" } ', 'id'), '"\\u0041\\"}"');
  t.equal(slice('{"id":1.50e+3,"b":[1,{"id":2}]}', 'id'), '1.50e+3');
  t.equal(slice('{"a":"\\\\","id":[1,"]"]}', 'id'), '[1,"]"]');
});

t.test(
  'memberSpan: takes the last of repeated keys and knows escaped ones, as JSON.parse does',
  async (t) => {
    t.equal(slice('{"id":1,"id":2}', 'id'), '2');
    t.equal(slice('{"\\u0069d":3}', 'id'), '3');
  },
);

t.test('memberSpan: finds nothing in text that is no object or is cut', async (t) => {
  for (const text of [
    '',
    '[]',
    '"id"',
    '5',
    '{',
    '{"id"',
    '{"id":',
    '{"id":}',
    '{"a":1 "id":2}',
    '<html>',
    '{"id":1',
  ])
    t.equal(slice(text, 'id'), undefined, text);
});

t.test('memberSpan: agrees with JSON.parse on random objects', async () => {
  fc.assert(
    fc.property(
      fc.dictionary(fc.oneof(fc.constant('id'), fc.string({ unit: anyCodePoint })), fc.jsonValue()),
      fc.constantFrom(0, 1, 3),
      (value, indent) => {
        const text = JSON.stringify(value, null, indent);
        for (const key of [...Object.keys(value), 'id']) {
          const found = slice(text, key);
          const expected = Object.hasOwn(value, key) ? JSON.stringify(value[key]) : undefined;
          if (found === undefined) return expected === undefined;
          if (JSON.stringify(JSON.parse(found)) !== expected) return false;
        }
        return true;
      },
    ),
    runs(20_000),
  );
});

t.test('memberSpans: finds what memberSpan finds, of every key at once', async (t) => {
  const keys = fc.oneof(fc.constantFrom('id', '__proto__', ''), fc.string({ unit: anyCodePoint }));
  const escaped = fc.constantFrom<[string, string]>(['id', '"\\u0069d"'], ['a"', '"a\\""']);
  fc.assert(
    fc.property(
      fc.array(
        fc.tuple(
          fc.oneof(
            keys.map((key) => [key, JSON.stringify(key)] as const),
            escaped,
          ),
          fc.jsonValue(),
        ),
      ),
      fc.constantFrom('', ' ', '\n'),
      (members, blank) => {
        const parts = members.map(([[, key], value]) => `${key}${blank}:${blank}${JSON.stringify(value)}`);
        const text = `${blank}{${blank}${parts.join(`${blank},${blank}`)}${blank}}`;
        const spans = memberSpans(text);
        const names = new Set(members.map(([[name]]) => name));
        const wanted = new Set(['id', 'a"']);
        const some = [...spans].filter(([name]) => wanted.has(name));
        return (
          spans.size === names.size &&
          JSON.stringify([...memberSpans(text, 0, wanted)]) === JSON.stringify(some) &&
          [...names].every(
            (name) => JSON.stringify(spans.get(name)) === JSON.stringify(memberSpan(text, name)),
          )
        );
      },
    ),
    runs(10_000),
  );
  for (const text of ['', '[1]', '{', '{"a"', '{"a":', '{"a" 1}']) t.same([...memberSpans(text)], [], text);
});

t.test('memberSpan and itemSpans: end on random texts that are no JSON', async () => {
  const noise = fc.string({
    unit: fc.constantFrom('{', '}', '[', ']', '"', '\\', ',', ':', ' ', 'i', 'd', '1'),
  });
  fc.assert(
    fc.property(noise, (text) => {
      const span = memberSpan(text, 'id');
      itemSpans(text);
      memberSpans(text);
      return span === undefined || (span.end > span.start && span.end <= text.length);
    }),
    runs(50_000),
  );
});

t.test('itemSpans: cuts an array into its items', async () => {
  fc.assert(
    fc.property(fc.array(fc.jsonValue()), fc.constantFrom(0, 2), (values, indent) => {
      const text = JSON.stringify(values, null, indent);
      const items = itemSpans(text).map(({ start, end }) => JSON.parse(text.slice(start, end)));
      return JSON.stringify(items) === JSON.stringify(values);
    }),
    runs(5_000),
  );
});

t.test('numberFault: names the number that a double cannot hold', async (t) => {
  const path = (text: string) => numberFault(text, { start: 0, end: text.length })?.path;
  t.equal(path('{"id":9007199254740993}'), 'id');
  t.equal(path('{"a":{"b":[1,0.1234567890123456789]}}'), 'a.b.1');
  t.equal(path('{"a":1e400}'), 'a');
  t.equal(path('{"x":1,"a\\"b":123456789012345678901}'), 'a"b');
  for (const exact of [
    '{"a":1.50,"b":15e-1,"c":-0,"d":9007199254740992,"e":1e21,"f":0.1,"g":"9007199254740993"}',
    '[]',
    '{}',
  ])
    t.equal(path(exact), undefined, exact);
});

// covers S37
t.test('numberFault: a number of more than 40 characters is named unread', async (t) => {
  const fault = (text: string) => numberFault(text, { start: 0, end: text.length });
  t.strictSame(fault(`{"a":[{"b":10.${'0'.repeat(37)}}]}`), undefined, '40 characters');
  t.strictSame(fault(`{"a":[{"b":10.${'0'.repeat(38)}}]}`), { path: 'a.0.b', kind: 'long' });
  t.strictSame(fault(`-${'1'.repeat(250_000)}`), { path: '', kind: 'long' }, 'the value itself');
});

t.test('numberFault: a number behind strings, keys and closed containers has its own path', async (t) => {
  const text = '{"a,1":"9007199254740993","b":[[1,"x:2"],{},{"c:\\"":{}, "d":[9007199254740993]}]}';
  t.strictSame(numberFault(text, { start: 0, end: text.length }), { path: 'b.2.d.0', kind: 'lossy' });
});

t.test('numberFault: passes every number that JSON.stringify wrote', async () => {
  fc.assert(
    fc.property(fc.jsonValue(), (value) => {
      const text = JSON.stringify(value);
      return numberFault(text, { start: 0, end: text.length }) === undefined;
    }),
    runs(10_000),
  );
});
