/** `Expect: 100-continue` over real sockets: when a client gets `100 Continue`, and the answers that follow. */
import t from 'tap';
import { GatewayError } from '../../../src/domain/errors.ts';
import { object, text } from '../../../src/domain/schema.ts';
import { BytesSource, StreamReply } from '../../../src/io/http/exchange/stream.ts';
import { Reply } from '../../../src/io/http/table/route.ts';
import { connectRaw, plainRoute, requestText, route, startHttp } from '../../support/http.ts';

/** uWebSockets.js answers the last one itself. */
const CASES = ['100-Continue', '100-CONTINUE', '100-continue'];
const HELD_BACK = CASES.slice(0, 2);

const schema = object({ a: text() });
const routes = [
  route('POST /json', { body: schema }, async ({ body }) => body),
  plainRoute('POST /ignored', async () => 'done'),
  route('POST /session', { auth: 'session', body: schema }, async () => 'no'),
  route('POST /stream/:answer', { body: 'stream' }, async ({ incoming, params }) => {
    await new Promise((resolve) => setImmediate(resolve));
    if (params['answer'] === 'refused') throw new GatewayError('InvalidID');
    const pieces: Buffer[] = [];
    await new Promise<void>((resolve) => {
      incoming?.read({
        data: (piece) => pieces.push(Buffer.from(piece)),
        end: resolve,
        lost: resolve,
      });
    });
    const whole = Buffer.concat(pieces);
    if (params['answer'] === 'whole') return new Reply(201, whole);
    return new StreamReply(203, new BytesSource(whole), { lengthBytes: whole.length });
  }),
];

const BODY = '{"a":"b"}';
const ANSWERS: Readonly<Record<string, readonly [status: number, body: RegExp]>> = {
  '/json': [200, /^\{"result":\{"a":"b"\}\}$/],
  '/ignored': [200, /^\{"result":"done"\}$/],
  '/stream/whole': [201, /^\{"a":"b"\}$/],
  '/stream/sized': [203, /^\{"a":"b"\}$/],
};

const headOf = (path: string, expected: string, length = BODY.length) =>
  requestText('POST', path, {
    Expect: expected,
    'Content-Type': 'application/json',
    'Content-Length': String(length),
  });

// covers P9
t.test(
  'continue: the body is asked for in any case, and its answer is whole; again on the connection',
  async (t) => {
    const http = startHttp({ site: { checkHost: false }, routes });
    for (const expected of CASES)
      for (const [path, [status, body]] of Object.entries(ANSWERS)) {
        const connection = connectRaw(http.port);
        for (const time of ['first', 'second']) {
          t.match(
            await connection.ask(headOf(path, expected)),
            { status: 100, body: '', headers: {} },
            `${expected} ${path} ${time}`,
          );
          const answer = await connection.ask(BODY);
          t.match(answer, { status, body });
          t.match(answer.headers, { 'x-content-type-options': 'nosniff', date: String });
        }
        t.match(
          await connection.ask(requestText('POST', path, { 'Content-Type': 'application/json' }, BODY)),
          { status, body },
          'without the field',
        );
        connection.close();
      }
    t.same(http.bugs, []);
    await http.close();
  },
);

t.test('continue: an error after it is an error; one that the head shows comes without it', async (t) => {
  const http = startHttp({ site: { checkHost: false }, routes });
  for (const expected of HELD_BACK) {
    const faulty = connectRaw(http.port);
    t.equal((await faulty.ask(headOf('/json', expected))).status, 100);
    t.equal((await faulty.ask('x'.repeat(BODY.length))).status, 400);
    faulty.close();
    for (const [path, status, length] of [
      ['/session', 401, 9],
      ['/unknown', 404, 9],
      ['/stream/refused', 404, 9],
      ['/json', 413, 10_000_000],
    ] as const) {
      const refused = connectRaw(http.port);
      t.equal((await refused.ask(headOf(path, expected, length))).status, status, path);
      refused.close();
    }
  }
  const bodiless = connectRaw(http.port);
  t.equal((await bodiless.ask(headOf('/ignored', '100-Continue', 0))).status, 200, 'without a body');
  bodiless.close();
  t.same(http.bugs, []);
  await http.close();
});
