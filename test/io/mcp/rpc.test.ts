import fc from 'fast-check';
import t from 'tap';
import {
  BATCH_MAX,
  errorEnvelope,
  RepeatedResult,
  type RpcMessage,
  readRpc,
  resultEnvelope,
} from '../../../src/io/mcp/rpc.ts';
import { count, runs } from '../../support/depth.ts';

const VALID = [
  '{"jsonrpc":"2.0","id":1,"method":"ping"}',
  '{"method":"tools/call","params":{"name":"a","arguments":{"id":7,"x":"\\"id\\":8"}},"jsonrpc":"2.0","id":"a\\u0062"}',
  '{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":9007199254740993}}',
  '[{"jsonrpc":"2.0","id":-1.5e3,"method":"ping"},{"jsonrpc":"2.0","method":"x"},[],null]',
  '{"jsonrpc":"2.0","id":5,"result":{}}',
];
const TOKENS = [
  '{',
  '}',
  '[',
  ']',
  '"',
  '\\',
  ',',
  ':',
  ' ',
  'null',
  '1',
  'true',
  '"id":',
  '"id":2,',
  '"method":',
  '\\u0069',
];

/** A valid text with a few cuts and insertions: most still look like JSON, many still are. */
const mutated = fc
  .tuple(
    fc.constantFrom(...VALID),
    fc.array(fc.tuple(fc.nat(200), fc.nat(3), fc.constantFrom('', ...TOKENS)), { maxLength: 3 }),
  )
  .map(([text, edits]) =>
    edits.reduce((now, [at, cut, token]) => {
      const place = at % (now.length + 1);
      return now.slice(0, place) + token + now.slice(place + cut);
    }, text),
  );

function parsed(text: string): { value: unknown } | undefined {
  try {
    return { value: JSON.parse(text) };
  } catch {
    return undefined;
  }
}

/** The message is what `value` says, and its id is the bytes of `value.id`. */
function holds(message: RpcMessage, value: unknown): boolean {
  const given = typeof value === 'object' && value !== null && !Array.isArray(value) ? value : {};
  const { id, method } = given as { id?: unknown; method?: unknown };
  if (message.kind === 'notification') return message.method === (method ?? '');
  if (message.id === undefined) return message.kind === 'fault';
  const same = JSON.parse(message.id) === id;
  return message.kind === 'request' ? same && message.method === method : same;
}

// covers S170
t.test('readRpc: agrees with JSON.parse on mutated bodies, ids as the bytes that came', async (t) => {
  let read = 0;
  fc.assert(
    fc.property(mutated, (text) => {
      const json = parsed(text);
      if (json === undefined) return true;
      read += 1;
      const { value } = json;
      const body = readRpc(text, value);
      if (body.kind === 'refused')
        return Array.isArray(value) && (value.length === 0 || value.length > BATCH_MAX);
      if (body.kind === 'single') return !Array.isArray(value) && holds(body.message, value);
      return (
        Array.isArray(value) &&
        value.length === body.messages.length &&
        body.messages.every((message, at) => holds(message, value[at]))
      );
    }),
    runs(200_000),
  );
  t.ok(read > count(40_000), `${read} of them were JSON`);
});

t.test('envelopes: JSON that holds the id as written, errors without one where there is none', async (t) => {
  t.equal(resultEnvelope('9007199254740993', '{}'), '{"jsonrpc":"2.0","id":9007199254740993,"result":{}}');
  t.equal(
    errorEnvelope(undefined, 'ParseError', 'a "word"'),
    '{"jsonrpc":"2.0","error":{"code":-32700,"message":"Parse error: a \\"word\\""}}',
  );
  t.equal(
    errorEnvelope('"x"', 'AccessRateLimit', undefined, 3),
    '{"jsonrpc":"2.0","id":"x","error":{"code":1002,"message":"Access rate limit","data":{"retryAfterSeconds":3}}}',
  );
});

t.test('lists: whatever ids come in whatever order, each answer is the envelope of its own id', (t) => {
  const list = '{"tools":[{"name":"größe"}]}';
  const ids = fc.oneof(
    fc.integer({ min: 0, max: 40 }).map(String),
    fc.string().map((id) => JSON.stringify(id)),
  );
  fc.assert(
    fc.property(fc.array(ids, { maxLength: 100 }), (asked) => {
      const repeated = new RepeatedResult(list);
      return asked.every((id) => repeated.answer(id).toString() === resultEnvelope(id, list));
    }),
    runs(),
  );
  t.end();
});

t.test('lists: the answer to a recent short id is made once, to a long one every time', (t) => {
  const repeated = new RepeatedResult('{}');
  const first = repeated.answer('1');
  t.equal(repeated.answer('1'), first);
  const long = `"${'x'.repeat(40)}"`;
  t.not(repeated.answer(long), repeated.answer(long));
  for (let id = 2; id < 40; id += 1) repeated.answer(String(id));
  t.not(repeated.answer('1'), first);
  t.end();
});
