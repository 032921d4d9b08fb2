/** The parser of modules' answers: the same however the bytes are cut up, strict, and never beyond what node:http takes. */
import http from 'node:http';
import { Duplex } from 'node:stream';
import t from 'tap';
import { FIELDS_MAX, type ResponseHead } from '../../../src/io/http-client/response-head.ts';
import { ResponseParser } from '../../../src/io/http-client/response-parser.ts';
import { SECTION_MAX_BYTES } from '../../../src/io/http-client/response-section.ts';
import { seededNumbers } from '../../support/actors/actors.ts';
import { count, depth } from '../../support/depth.ts';

const RUNS = 200_000;

interface Outcome {
  /** Last event, or the fault of the answer. */
  end: string;
  status: number;
  fields: readonly string[];
  body: string;
  keepAliveMs: number;
  /** Bytes up to the end of the answer. */
  taken: number;
}

/** Reads an answer that comes in these pieces and, when it wants more, is closed. */
function readPieces(pieces: readonly Buffer[], toHead = false): Outcome {
  let head: ResponseHead | undefined;
  const body: Buffer[] = [];
  const parser = new ResponseParser({
    onHead(told) {
      if (head !== undefined) throw new Error('two heads');
      head = told;
    },
    onData(bytes) {
      if (head === undefined || bytes.length === 0) throw new Error('data without a head, or empty');
      body.push(Buffer.from(bytes));
    },
  });
  parser.begin(toHead);
  let taken = 0;
  let end = 'more';
  for (const piece of pieces) {
    if (piece.length === 0) continue;
    end = parser.read(piece, piece.length);
    taken += parser.position;
    if (end !== 'more') break;
  }
  const closed = end === 'more';
  if (closed) end = parser.closed();
  return {
    end: end === 'broken' ? parser.fault : `${end}${closed ? ' by closing' : ''}`,
    status: head?.status ?? 0,
    fields: head?.fields ?? [],
    body: Buffer.concat(body).toString('latin1'),
    keepAliveMs: end === 'broken' ? 0 : parser.keepAliveMs,
    taken: end === 'broken' ? 0 : taken,
  };
}

const read = (text: string, toHead = false) => readPieces([Buffer.from(text, 'latin1')], toHead);

/** Throws unless both are the same. */
function agree(actual: Outcome, expected: Outcome, text: string): void {
  const [a, b] = [JSON.stringify(actual), JSON.stringify(expected)];
  if (a !== b) throw new Error(`${JSON.stringify(text)}: ${a} instead of ${b}`);
}

/** Compares the answer in one piece with the answer cut at every place, and byte by byte. */
function sameAtEverySplit(text: string, toHead = false): Outcome {
  const bytes = Buffer.from(text, 'latin1');
  const whole = readPieces([bytes], toHead);
  for (let at = 1; at < bytes.length; at += 1)
    agree(readPieces([bytes.subarray(0, at), bytes.subarray(at)], toHead), whole, text);
  agree(
    readPieces(
      [...bytes].map((byte) => Buffer.of(byte)),
      toHead,
    ),
    whole,
    text,
  );
  return whole;
}

/** Numbers below `limit`, the same in every run. */
function numbers(): (limit: number) => number {
  const next = seededNumbers(depth.seed);
  return (limit) => Math.floor(next() * limit);
}

const pick = <T>(random: (limit: number) => number, values: readonly T[]): T =>
  values[random(values.length)] as T;

/** A valid answer, and what it says. */
function validAnswer(random: (limit: number) => number): { text: string; body: string } {
  const status = pick(random, [200, 200, 201, 404, 500, 503]);
  const body = 'x\r\n0é{}:'.repeat(random(6)).slice(0, random(40));
  const fields = [
    `${pick(random, ['Content-Type', 'content-type', 'CONTENT-TYPE'])}:${pick(random, [' ', '', '\t '])}application/json`,
    `Date: Sat, 21 Nov 2026 10:00:0${random(10)} GMT`,
    `X-Own: ${pick(random, ['a', '', 'ä ö', 'a: b', '"q, r"'])} `,
    ...(random(3) === 0 ? ['X-Own: again'] : []),
  ];
  let coded = body;
  const framing = random(3);
  if (framing === 0) fields.push(`Content-Length: ${body.length}`);
  if (framing === 1) {
    fields.push(`Transfer-Encoding: ${pick(random, ['chunked', 'Chunked'])}`);
    coded = '';
    for (let rest = body; rest !== ''; ) {
      const size = 1 + random(rest.length);
      const hex = size.toString(16);
      coded += `${pick(random, ['', '0', '00'])}${pick(random, [hex, hex.toUpperCase()])}${pick(random, ['', ';a=b', ';n="v"'])}\r\n`;
      coded += `${rest.slice(0, size)}\r\n`;
      rest = rest.slice(size);
    }
    coded += `0\r\n${pick(random, ['', 'X-Sum: 1\r\n', 'A: b\r\nC:\r\n'])}\r\n`;
  }
  const interim = pick(random, [
    '',
    '',
    'HTTP/1.1 100 Continue\r\n\r\n',
    'HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n',
  ]);
  const reason = pick(random, [' OK', ' ', ' Not at all', '']);
  return { text: `${interim}HTTP/1.1 ${status}${reason}\r\n${fields.join('\r\n')}\r\n\r\n${coded}`, body };
}

t.test(
  'response parser: 500 valid answers are read the same at every split, and as node:http does',
  async (t) => {
    const random = numbers();
    for (let run = 0; run < 500; run += 1) {
      const { text, body } = validAnswer(random);
      const outcome = sameAtEverySplit(text);
      if (outcome.body !== body || !outcome.end.startsWith('complete') || outcome.taken !== text.length)
        throw new Error(`${JSON.stringify(text)}: ${JSON.stringify(outcome)}`);
      await agreesWithNode(text, outcome);
    }
    t.pass('all agree');
  },
);

/** Faults, each with an answer that has it. */
const REFUSED: readonly (readonly [fault: string, text: string])[] = [
  ['status line', '220 mail.example ESMTP\r\n'],
  ['status line', '\r\nHTTP/1.1 200 OK\r\n\r\n'],
  ['status line', 'HTTP/2.0 200 OK\r\n\r\n'],
  ['status line', 'HTTP/1.2 200 OK\r\n\r\n'],
  ['status line', 'http/1.1 200 OK\r\n\r\n'],
  ['status line', 'HTTP/1.1  200 OK\r\n\r\n'],
  ['status line', 'HTTP/1.1 20 OK\r\n\r\n'],
  ['status line', 'HTTP/1.1 2000 OK\r\n\r\n'],
  ['status line', 'HTTP/1.1 099 OK\r\n\r\n'],
  ['control character', 'HTTP/1.1 200 O\0K\r\n\r\n'],
  ['line end', 'HTTP/1.1 200 O\rK\r\n\r\n'],
  ['status line', 'HTTP/1.1 2 0 OK\r\n\r\n'],
  ['status line', 'HTTP/1.1 +20 OK\r\n\r\n'],
  ['status line', 'HTTP/1.1 2e1 OK\r\n\r\n'],
  ['status line', 'HTTP/1.1 9e2 OK\r\n\r\n'],
  ['status line', 'HTTP/1.1 .20 OK\r\n\r\n'],
  ['status line', 'HTTP/1.1 200\tOK\r\n\r\n'],
  ['status line', 'HTTP/1.1 0x9 OK\r\n\r\n'],
  ['status line', 'HTTP/1.1\r\n\r\n'],
  ['status line', ' HTTP/1.1 200 OK\r\n\r\n'],
  ['status line', 'HTTP/1.1 200OK\r\n\r\n'],
  ['status line', 'HTTP/1.1 1.5 OK\r\n\r\n'],
  ['status line', 'HTTP/1.1 \r\n\r\n'],
  ['status line', 'HTTP/1.1 20\r\n\r\n'],
  ['line end', 'HTTP/1.1 200 OK\n\n'],
  ['line end', 'HTTP/1.1 200 OK\r\nA: b\n\r\n'],
  ['line end', 'HTTP/1.1 200 OK\r\n\nA: b\r\n\r\n'],
  ['field', 'HTTP/1.1 200 OK\r\nA: b\r\n folded\r\n\r\n'],
  ['field', 'HTTP/1.1 200 OK\r\n\tA: b\r\n\r\n'],
  ['field', 'HTTP/1.1 200 OK\r\nA : b\r\n\r\n'],
  ['field', 'HTTP/1.1 200 OK\r\nA\r\n\r\n'],
  ['field', 'HTTP/1.1 200 OK\r\nA\r\nB: c\r\n\r\n'],
  ['field', 'HTTP/1.1 200 OK\r\n: b\r\n\r\n'],
  ['field', 'HTTP/1.1 200 OK\r\nA(: b\r\n\r\n'],
  ['field', 'HTTP/1.1 200 OK\r\nÄ: b\r\n\r\n'],
  ['line end', 'HTTP/1.1 200 OK\r\nA: b\rc\r\n\r\n'],
  ['line end', 'HTTP/1.1 200 OK\r\nA: b\r\r\n\r\n'],
  ['control character', 'HTTP/1.1 200 OK\r\nA: b\0c\r\n\r\n'],
  ['control character', 'HTTP/1.1 200 OK\r\nA: b\x7f\r\n\r\n'],
  ['line end', 'HTTP/1.1 200 OK\r\n\r\r\n\r\n'],
  ['content-length', 'HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab'],
  ['content-length', 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 2\r\n\r\nab'],
  ['content-length', 'HTTP/1.1 200 OK\r\nContent-Length: 2, 2\r\n\r\nab'],
  ...['', '-1', '+1', '1 1', '0x1', '1e1', '1.0', '"1"', '1234567890123456', '\xb2'].map(
    (length) => ['content-length', `HTTP/1.1 200 OK\r\nContent-Length: ${length}\r\n\r\nab`] as const,
  ),
  [
    'transfer-encoding',
    'HTTP/1.1 200 OK\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n',
  ],
  [
    'transfer-encoding',
    'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Length: 0\r\n\r\n0\r\n\r\n',
  ],
  ['transfer-encoding', 'HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n'],
  ...['', 'gzip', 'gzip, chunked', 'chunked, chunked', 'chunked;q=1', 'xchunked', 'identity'].map(
    (coding) =>
      ['transfer-encoding', `HTTP/1.1 200 OK\r\nTransfer-Encoding: ${coding}\r\n\r\n0\r\n\r\n`] as const,
  ),
  [
    'transfer-encoding',
    'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n',
  ],
  ['switched protocols', 'HTTP/1.1 101 Switching Protocols\r\nUpgrade: h2c\r\n\r\n'],
  ...['g\r\n', '\r\n', ' 1\r\na\r\n', '1 \r\na\r\n', '-1\r\n', '0x1\r\na', '1\na', '1\r\nab', '1\r\na\n'].map(
    (chunks) => ['chunk', `HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n${chunks}0\r\n\r\n`] as const,
  ),
  ['chunk', 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1;a\nb\r\na\r\n0\r\n\r\n'],
  ['chunk', 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1;a\rb\r\na\r\n0\r\n\r\n'],
  ['chunk', `HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1;${'a'.repeat(300)}\r\na\r\n0\r\n\r\n`],
  ['chunk', 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n10000000000000\r\n'],
  ['chunk', 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n00000000000001\r\na\r\n0\r\n\r\n'],
  ['trailer', 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nA\r\n\r\n'],
  ['trailer', 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\n'],
  ['trailer', 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nA: b\r\n c\r\n\r\n'],
  ['trailer', 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nContent-Length: 1\r\n\r\n'],
  ['cut in half', ''],
  ['cut in half', 'HTTP/1.1 200 OK\r\nA: b\r\n'],
  ['cut in half', 'HTTP/1.1 103 Early Hints\r\n\r\n'],
  ['cut in half', 'HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nab'],
  ['cut in half', 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n'],
  ['cut in half', 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n0\r\n'],
];

// covers R47
t.test('response parser: ambiguous answers are refused, the same at every split', async (t) => {
  t.same(
    REFUSED.map(([, text]) => [sameAtEverySplit(text).end, text]),
    REFUSED,
  );
});

t.test('response parser: heads and trailers are bounded in bytes and fields', async (t) => {
  const start = 'HTTP/1.1 200 OK\r\nContent-Length: 0\r\nA: ';
  const room = SECTION_MAX_BYTES - start.length - 4;
  const inPieces = (text: string) => {
    const bytes = Buffer.from(text, 'latin1');
    const whole = readPieces([bytes]);
    for (const at of [1, 5, SECTION_MAX_BYTES - 1, SECTION_MAX_BYTES, SECTION_MAX_BYTES + 1])
      agree(readPieces([bytes.subarray(0, at), bytes.subarray(at)]), whole, `of ${text.length} bytes`);
    return whole.end;
  };
  t.equal(inPieces(`${start}${'b'.repeat(room)}\r\n\r\n`), 'complete');
  t.equal(inPieces(`${start}${'b'.repeat(room + 1)}\r\n\r\n`), 'head too large');
  t.equal(inPieces(`HTTP/1.1 200 OK\r\nA: ${'b'.repeat(2 * SECTION_MAX_BYTES)}`), 'head too large');
  t.equal(inPieces('HTTP/1.1 103 Early Hints\r\n\r\n'.repeat(1_000)), 'head too large');
  const fields = (count: number) => 'a:\r\n'.repeat(count);
  t.equal(inPieces(`HTTP/1.1 204 None\r\n${fields(FIELDS_MAX)}\r\n`), 'complete');
  t.equal(inPieces(`HTTP/1.1 204 None\r\n${fields(FIELDS_MAX + 1)}\r\n`), 'head too large');
  const chunked = 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n';
  t.equal(inPieces(`${chunked}${fields(FIELDS_MAX)}\r\n`), 'complete');
  t.equal(inPieces(`${chunked}A: ${'b'.repeat(2 * SECTION_MAX_BYTES)}\r\n\r\n`), 'trailer');
});

t.test('response parser: answers without a body are over with their head', async (t) => {
  for (const status of ['204 No Content', '304 Not Modified'])
    t.match(sameAtEverySplit(`HTTP/1.1 ${status}\r\n\r\n`), { end: 'complete', body: '' });
  const sized = 'HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n';
  t.match(sameAtEverySplit(sized, true), { end: 'complete', taken: sized.length, keepAliveMs: 4_000 });
  const chunked = 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n';
  t.match(sameAtEverySplit(chunked, true), { end: 'complete', taken: chunked.length });
  t.equal(read('HTTP/1.1 204 None\r\nContent-Length: 5\r\n\r\nhello').keepAliveMs, 0, 'a body may come');
});

t.test('response parser: surplus bytes are not taken', async (t) => {
  const answer = 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok';
  t.match(read(`${answer}HTTP/1.1 200 OK\r\n\r\n`), { end: 'complete', body: 'ok', taken: answer.length });
});

t.test('response parser: how long a connection may be kept', async (t) => {
  const kept = (fields: string, version = '1.1') =>
    sameAtEverySplit(`HTTP/${version} 200 OK\r\n${fields}Content-Length: 0\r\n\r\n`).keepAliveMs;
  t.equal(kept(''), 4_000);
  t.equal(kept('Connection: keep-alive\r\n'), 4_000);
  t.equal(kept('Connection: close\r\n'), 0);
  t.equal(kept('Connection: Keep-Alive, CLOSE\r\n'), 0);
  t.equal(kept('Connection: x-a\r\nConnection: close\r\n'), 0);
  t.equal(kept('Connection: keep-alive\r\nKeep-Alive: timeout=5\r\n'), 3_000);
  t.equal(kept('Keep-Alive: max=10, timeout=65\r\n'), 63_000);
  t.equal(kept('Keep-Alive: timeout=1\r\n'), 0);
  t.equal(kept('Keep-Alive: timeout=999999999\r\n'), 600_000);
  t.equal(kept('Keep-Alive: what\r\n'), 4_000);
  t.equal(kept('', '1.0'), 0);
  t.equal(kept('Connection: keep-alive\r\n', '1.0'), 4_000);
  t.match(sameAtEverySplit('HTTP/1.1 200 OK\r\n\r\nall'), {
    end: 'complete by closing',
    body: 'all',
    keepAliveMs: 0,
  });
});

t.test('response parser: fields keep their order and spelling, repeated ones become lists', async (t) => {
  const parser = new ResponseParser({
    onHead(head) {
      t.strictSame({ ...head.headers() }, { 'x-a': ['1', '2', '3'], ['__proto__']: 'p', 'set-cookie': 'c' });
      t.strictSame(Object.keys(head.headers()), ['x-a', '__proto__', 'set-cookie']);
    },
    onData: () => undefined,
  });
  parser.begin(false);
  const bytes = Buffer.from(
    'HTTP/1.1 204 x\r\nX-A: 1\r\n__proto__: p\r\nx-a:2\r\nX-A:\t3 \r\nSet-Cookie: c\r\n\r\n',
  );
  t.equal(parser.read(bytes, bytes.length), 'complete');
});

/** Reads these bytes with node:http, as an answer to GET. */
function readByNode(text: string): Promise<Pick<Outcome, 'status' | 'fields' | 'body'> | undefined> {
  const socket = new Duplex({ read: () => undefined, write: (_piece, _encoding, done) => done() });
  return new Promise((resolve) => {
    const request = http.request({ createConnection: () => socket }, (response) => {
      const body: Buffer[] = [];
      response.on('data', (bytes: Buffer) => body.push(bytes)).on('error', () => resolve(undefined));
      response.on('end', () => {
        const fields = response.rawHeaders.map((field, at) => (at % 2 === 0 ? field.toLowerCase() : field));
        const status = response.statusCode ?? 0;
        resolve({ status, fields, body: Buffer.concat(body).toString('latin1') });
      });
    });
    request.on('error', () => resolve(undefined)).end();
    socket.push(Buffer.from(text, 'latin1'));
    socket.push(null);
  });
}

async function agreesWithNode(text: string, { status, fields, body }: Outcome): Promise<void> {
  const expected = JSON.stringify(await readByNode(text));
  const actual = JSON.stringify({ status, fields, body });
  if (actual !== expected) throw new Error(`${JSON.stringify(text)}: ${actual}, node:http ${expected}`);
}

const STARTS = [
  'HTTP/1.1 200 OK\r\n',
  'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n',
  'HTTP/1.1 200 OK\r\nContent-Length: 3\r\n',
  'HTTP/1.0 200\r\n',
  'HTTP/1.1 204 \r\n',
];
const PIECES = [
  ...STARTS,
  'HTTP/1.1 100 Continue\r\n\r\n',
  'Content-Length: 3\r\n',
  'Content-Length:',
  'Transfer-Encoding: chunked\r\n',
  'Connection: close\r\n',
  'Keep-Alive: timeout=5\r\n',
  'X-A: b\r\n',
  '\r\n',
  '\r\n\r\n',
  '\r',
  '\n',
  ':',
  ' ',
  '3\r\nabc\r\n',
  'a;b=c\r\n',
  '0\r\n\r\n',
  '0\r\nX-Sum: 1',
  'abc',
];

/** Mostly in an order that makes sense, so that every state is reached, and then damaged. */
function randomText(random: (limit: number) => number): string {
  let text = random(8) === 0 ? '' : pick(random, STARTS);
  for (let left = random(9); left > 0; left -= 1) {
    text += random(9) === 0 ? String.fromCharCode(random(256)) : pick(random, PIECES);
  }
  if (random(3) > 0 || text === '') return text;
  const at = random(text.length);
  return text.slice(0, at) + String.fromCharCode(random(256)) + text.slice(at + random(2));
}

// covers R47
t.test('response parser: random answers never throw and are read the same in pieces', async (t) => {
  const random = numbers();
  const ends = new Map<string, number>();
  for (let run = 0; run < count(RUNS); run += 1) {
    const text = randomText(random);
    const bytes = Buffer.from(text, 'latin1');
    const toHead = random(20) === 0;
    const whole = readPieces([bytes], toHead);
    const [first, second] = [random(bytes.length + 1), random(bytes.length + 1)];
    const [from, to] = [Math.min(first, second), Math.max(first, second)];
    const pieces = [bytes.subarray(0, from), bytes.subarray(from, to), bytes.subarray(to)];
    agree(readPieces(pieces, toHead), whole, text);
    ends.set(whole.end, (ends.get(whole.end) ?? 0) + 1);
  }
  for (const end of ['complete', 'complete by closing', 'chunk', 'trailer', 'field', 'cut in half'])
    t.ok((ends.get(end) ?? 0) > count(100), `${end}: ${ends.get(end)}`);
});

t.test('response parser: whatever it takes of random answers node:http reads alike', async (t) => {
  const random = numbers();
  let taken = 0;
  for (let run = 0; run < count(5_000); run += 1) {
    const text = randomText(random);
    const outcome = read(text);
    if (!outcome.end.startsWith('complete')) continue;
    taken += 1;
    // Bytes behind an answer are the connection's affair, and node:http has its own way with them.
    await agreesWithNode(text.slice(0, outcome.taken), outcome);
  }
  t.ok(taken > count(100), `${taken} were taken`);
});
