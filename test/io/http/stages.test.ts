/** The order of the stages of a request, by a request with a fault for each of them. */
import t from 'tap';
import { closeAfter } from '../../../kit/close-after.ts';
import { integer, object, text } from '../../../src/domain/schema.ts';
import { ALICE_ALONE, route, startHttp } from '../../support/http.ts';

const ROUTE = route(
  'POST /all',
  {
    auth: 'session',
    limits: ['CheckPubKey'],
    idempotent: true,
    query: object({ count: integer({ minimum: 1 }) }),
    body: object({ name: text({ maxLength: 4 }) }),
  },
  ({ body, query }) => ({ ...body, ...query }),
);

/** Parts of a request, as it is sent. */
interface Parts {
  path: string;
  body: string;
  readonly headers: Record<string, string>;
}

/** Faults that the answer to a request names, with the change that repairs each. In the order of the stages. */
const FAULTS: readonly (readonly [answer: RegExp, repair: (request: Parts) => void])[] = [
  [/^403 .*"host"/, ({ headers }) => Object.assign(headers, { Host: 'localhost' })],
  [/^404 /, (request) => Object.assign(request, { path: '/all?count=0' })],
  [/^403 .*"Origin"/, ({ headers }) => Reflect.deleteProperty(headers, 'Origin')],
  [/^401 /, ({ headers }) => Object.assign(headers, { Cookie: 'sid=alice' })],
  [/^400 .*"pkey"/, ({ headers }) => Reflect.deleteProperty(headers, 'pkey')],
  [/^400 .*"Idempotency-Key/, ({ headers }) => Object.assign(headers, { 'Idempotency-Key': 'k' })],
  [/^400 .*"query\/count/, (request) => Object.assign(request, { path: '/all?count=1' })],
  [
    /^403 .*application\/json/,
    ({ headers }) => Object.assign(headers, { 'Content-Type': 'application/json' }),
  ],
  [/^400 .*JSON/, (request) => Object.assign(request, { body: '{"name":"too long"}' })],
  [/^400 .*"body\/name/, (request) => Object.assign(request, { body: '{"name":"fits"}' })],
  [/^200 \{"result":\{"name":"fits","count":1\}\}$/, () => undefined],
];

t.test('stages: of several faults a request is refused for the one of the first stage', async (t) => {
  const fixture = closeAfter(t, startHttp({ routes: [ROUTE], gate: ALICE_ALONE }));
  const request: Parts = {
    path: '/none?count=0',
    body: '{"name":',
    headers: {
      Host: 'elsewhere.example',
      Origin: 'https://elsewhere.example',
      pkey: 'short',
      'Idempotency-Key': 'not visible',
      'Content-Type': 'text/plain',
    },
  };
  for (const [answer, repair] of FAULTS) {
    const { status, body } = await fixture.ask('POST', request.path, request.headers, request.body);
    t.match(`${status} ${body}`, answer);
    repair(request);
  }
  t.same(fixture.bugs, []);
});
