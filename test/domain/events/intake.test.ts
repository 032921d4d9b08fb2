/** Reading of a module's events: accepted values, refusals, and `data`, which is forwarded byte for byte. */
import fc from 'fast-check';
import t from 'tap';
import { GatewayError } from '../../../src/domain/errors.ts';
import {
  EVENT_DATA_MAX_BYTES,
  type IncomingEvent,
  readEvents,
  requireModule,
} from '../../../src/domain/events/intake.ts';
import { count, runs } from '../../support/depth.ts';

const RUNS = 200_000;
const EVENTS_MAX = 1_000;
const MODULES = ['wallet', 'chat'];

function read(text: string): IncomingEvent[] {
  JSON.parse(text);
  const ofModule = (name: unknown, path: string) =>
    requireModule(name, path, (each) => MODULES.includes(each));
  return [...readEvents(text, EVENTS_MAX, ofModule)];
}

function one(members: string): IncomingEvent {
  const [event] = read(`{"events":[{${members}}]}`);
  if (event === undefined) throw new Error('no event');
  return event;
}

/** The row and detail of the refusal. */
function refusalOf(text: string): string {
  try {
    read(text);
  } catch (error) {
    if (error instanceof GatewayError) return `${error.row} ${error.detail}`;
    throw error;
  }
  return 'taken';
}

const HEAD = '"module":"wallet","type":"TxInWallet"';

// covers R25
t.test('event intake: reads what routing needs and forwards the rest in the form of spec 2.6', async (t) => {
  const data =
    '{ "id":"5","currency":"USD","netType":3,"appId":9223372036854775807,"amount":1.500,"fee":1e-8 }';
  const event = one(`${HEAD},"tick":9223372036854775807,"crmId":"42","subject":"s","data":${data}`);
  t.match(event, {
    module: 'wallet',
    tick: '9223372036854775807',
    type: 'TxInWallet',
    userId: '42',
    appId: '9223372036854775807',
    currency: 'USD',
    netType: 3,
  });
  t.equal(
    event.jsonText,
    `{"module":"wallet","tick":"9223372036854775807","type":"TxInWallet","data":${data}}`,
    'no crmId, no subject, the digits as they came',
  );
  const plain = one(`${HEAD},"tick":"0","crmId":null,"data":{"netType":256,"currency":7,"appId":"x"}`);
  t.same(
    [plain.userId, plain.appId, plain.currency, plain.netType],
    [undefined, undefined, undefined, undefined],
  );
  t.same(read('{"events":[]}'), []);
});

// covers R91
t.test('event intake: netType beside crmId counts before that of data, and is not sent on', async (t) => {
  const typed = (members: string, data = '{}') => one(`${HEAD},"tick":1${members},"data":${data}`);
  for (const value of [0, 255]) t.equal(typed(`,"crmId":"7","netType":${value}`).netType, value);
  t.equal(typed(',"netType":2', '{"netType":3}').netType, 2, 'given for routing');
  t.equal(typed(',"netType":null', '{"netType":3}').netType, 3, 'null: none beside crmId');
  t.equal(typed('').netType, undefined);
  const event = typed(',"netType":2', '{"id":"5","netType":3}');
  t.equal(event.jsonText, '{"module":"wallet","tick":"1","type":"TxInWallet","data":{"id":"5","netType":3}}');
  t.equal(event.identity, typed('', '{"id":"5","netType":3}').identity, 'no part of what it is known by');
});

t.test('event intake: the last of repeated members counts, as for JSON.parse', async (t) => {
  const event = one(`${HEAD},"tick":1,"crmId":"7","data":{"a":1},"crmId":"8","tick":2,"d\\u0061ta":{"a":2}`);
  t.same([event.tick, event.userId], ['2', '8']);
  t.match(event.jsonText, /"data":\{"a":2\}\}$/);
});

t.test('event intake: refuses with the event and the field', async (t) => {
  const event = (members: string) => `{"events":[{${HEAD},"tick":1,"data":{}},{${members}}]}`;
  const cases: [members: string, refusal: RegExp][] = [
    ['"type":"x","tick":1,"data":{}', /^InvalidInput events\.1\.module: no such module/],
    ['"module":"gateway","type":"x","tick":1,"data":{}', /^InvalidInput events\.1\.module/],
    ['"module":["wallet"],"type":"x","tick":1,"data":{}', /^InvalidInput events\.1\.module/],
    [`${HEAD},"data":{}`, /^InvalidInput events\.1\.tick/],
    [`${HEAD},"tick":1`, /^InvalidInput events\.1\.data/],
    [`${HEAD},"tick":1,"data":null`, /^InvalidInput events\.1\.data/],
    [`${HEAD},"tick":1,"data":"{}"`, /^InvalidInput events\.1\.data/],
    [`${HEAD},"tick":1,"data":{},"crmId":"x"`, /^InvalidInput events\.1\.crmId/],
    [`${HEAD},"tick":1,"data":{},"crmId":""`, /^InvalidInput events\.1\.crmId/],
    [`${HEAD},"tick":1,"data":{},"id":{}`, /^InvalidInput events\.1\.id/],
    ...['256', '-1', '1.5', '"1"', '""', 'true', '[1]', '{}'].map((netType): [string, RegExp] => [
      `${HEAD},"tick":1,"data":{"netType":1},"netType":${netType}`,
      /^InvalidInput events\.1\.netType: an integer from 0 to 255$/,
    ]),
    [`"module":"wallet","tick":1,"data":{}`, /^InvalidInput events\.1\.type/],
    [`"module":"wallet","type":"a\\nb","tick":1,"data":{}`, /^InvalidInput events\.1\.type/],
    ...['error', 'open', 'reset', 'bye'].map((type): [string, RegExp] => [
      `"module":"wallet","type":"${type}","tick":1,"data":{}`,
      /^InvalidInput events\.1\.type: this name is taken by the event stream itself/,
    ]),
    [`${HEAD},"tick":1,"data":{"a":"${'x'.repeat(EVENT_DATA_MAX_BYTES)}"}`, /^BodyTooLarge events\.1\.data/],
  ];
  for (const tick of ['1.5', '-1', 'true', 'null', '"01"', '""', '[]', '9223372036854775808', '1e400']) {
    cases.push([`${HEAD},"tick":${tick},"data":{}`, /^InvalidInput events\.1\.tick/]);
  }
  t.match(
    cases.map(([members]) => refusalOf(event(members))),
    cases.map(([, refusal]) => refusal),
  );
  t.equal(refusalOf('{"events":[1]}'), 'InvalidInput events.0: an object is required');
  for (const text of ['{}', '[]', '1', '{"events":{}}', '{"events":null}'])
    t.match(refusalOf(text), /^InvalidInput events: an array/, text);
  const many = `{"events":[${Array.from({ length: EVENTS_MAX + 1 }, () => '{}').join(',')}]}`;
  t.equal(refusalOf(many), `InvalidInput events: at most ${EVENTS_MAX}`);
});

t.test('event intake: an event is known by module, tick, type, user and id, or by its data', async (t) => {
  const known = (members: string) => one(members).identity;
  const base = known(`${HEAD},"tick":1,"crmId":"7","data":{"id":"5","a":1}`);
  t.equal(known(`${HEAD},"tick":"1","crmId":7,"data":{"id":5,"a":2}`), base, 'the same id: the same event');
  t.equal(known(`${HEAD},"tick":1,"crmId":"7","id":"5","data":{"a":3}`), base, 'an id beside the data');
  const others = [
    `${HEAD},"tick":2,"crmId":"7","data":{"id":"5"}`,
    `${HEAD},"tick":1,"crmId":"8","data":{"id":"5"}`,
    `${HEAD},"tick":1,"data":{"id":"5"}`,
    `${HEAD},"tick":1,"crmId":"7","data":{"id":"6"}`,
    `${HEAD},"tick":1,"crmId":"7","data":{"id":null}`,
    `${HEAD},"tick":1,"crmId":"7","data":{"id":null,"a":1}`,
    '"module":"chat","type":"TxInWallet","tick":1,"crmId":"7","data":{"id":"5"}',
    '"module":"wallet","type":"TxIn","tick":1,"crmId":"7","data":{"id":"5"}',
  ].map(known);
  t.equal(new Set([base, ...others]).size, others.length + 1);
});

/** A number as text: forms that a parser would change. */
const numbers = fc.oneof(
  fc.double({ noNaN: true, noDefaultInfinity: true }).map((value) => JSON.stringify(value)),
  fc.bigInt().map(String),
  fc
    .tuple(
      fc.bigInt({ min: 0n }),
      fc.stringMatching(/^[0-9]{1,30}$/),
      fc.constantFrom('', 'e5', 'E-3', 'e+0'),
    )
    .map(([whole, fraction, exponent]) => `${whole}.${fraction}${exponent}`),
);
const blanks = fc.constantFrom('', '', ' ', '\n', '\t', '\r\n  ');
const texts = fc.string({ unit: 'grapheme' }).map((value) => JSON.stringify(value));
const { value: values } = fc.letrec<{ value: string; array: string; object: string }>((tie) => ({
  value: fc.oneof(
    { maxDepth: 3, withCrossShrink: true },
    numbers,
    texts,
    fc.constantFrom('null', 'true', 'false'),
    tie('array'),
    tie('object'),
  ),
  array: fc
    .tuple(blanks, fc.array(tie('value'), { maxLength: 3 }))
    .map(([blank, items]) => `[${blank}${items.join(`,${blank}`)}${blank}]`),
  object: fc
    .tuple(blanks, fc.array(fc.tuple(texts, tie('value')), { maxLength: 3 }))
    .map(
      ([blank, members]) =>
        `{${blank}${members.map((member) => member.join(`${blank}:`)).join(`,${blank}`)}}`,
    ),
}));

// covers R25
t.test('event intake: data leaves byte for byte, random JSON values', async (t) => {
  fc.assert(
    fc.property(values, blanks, (value, blank) => {
      const data = `{${blank}"value":${blank}${value}${blank}}`;
      const event = one(`${HEAD},"tick":"1","data":${blank}${data}${blank},"crmId":"7"`);
      return event.jsonText === `{"module":"wallet","tick":"1","type":"TxInWallet","data":${data}}`;
    }),
    runs(RUNS),
  );
  t.pass();
});

/** Returns the event as JSON.parse reads it, in the terms of the reader. */
function expectedOf(event: Record<string, unknown>): Record<string, unknown> {
  return { module: event['module'], type: event['type'], data: event['data'] };
}

t.test('event intake: accepted text is the same to JSON.parse, and only refusals are thrown', async (t) => {
  const base = `{"events":[{${HEAD},"tick":"1","crmId":"7","data":{"id":"5","amount":1.50,"tags":["a","\\u0041\\""]}},{${HEAD},"tick":2,"data":{}}]}`;
  const bit = fc.constantFrom(
    '"',
    '\\',
    '{',
    '}',
    '[',
    ']',
    ',',
    ':',
    ' ',
    '\n',
    '0',
    '1',
    '-',
    '.',
    'e',
    'null',
    '"data":',
    '"tick":',
    'é',
    '\\u0064',
  );
  const edits = fc.array(fc.tuple(fc.nat(base.length), fc.nat(3), bit), { minLength: 1, maxLength: 3 });
  let taken = 0;
  let refused = 0;
  fc.assert(
    fc.property(edits, (changes) => {
      let text = base;
      for (const [at, cut, put] of changes) text = text.slice(0, at) + put + text.slice(at + cut);
      let parsed: { events: Record<string, unknown>[] };
      try {
        parsed = JSON.parse(text);
      } catch (error) {
        // No JSON does not come this far; reading it must end all the same.
        if (!(error instanceof SyntaxError)) throw error;
        return true;
      }
      try {
        const events = read(text);
        taken += 1;
        return (
          events.length === parsed.events.length &&
          events.every(({ module, type, jsonText, tick }, index) => {
            const sent = parsed.events[index] ?? {};
            const left = JSON.parse(jsonText) as Record<string, unknown>;
            const same =
              JSON.stringify({ module, type, data: left['data'] }) === JSON.stringify(expectedOf(sent));
            return same && tick === String(sent['tick']) && left['tick'] === tick;
          })
        );
      } catch (error) {
        refused += 1;
        return error instanceof GatewayError && /^events/.test(error.detail ?? '');
      }
    }),
    runs(40_000),
  );
  t.ok(taken > count(500) && refused > count(500), `${taken} taken, ${refused} refused`);
});
