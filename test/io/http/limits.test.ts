/** Limits of a request by route and caller (spec 8.1), over real sockets. */
import t, { type Test } from 'tap';
import { closeAfter } from '../../../kit/close-after.ts';
import { GatewayError } from '../../../src/domain/errors.ts';
import { type ScopeCode, WindowCounter } from '../../../src/domain/limits/quotas.ts';
import { object, text } from '../../../src/domain/schema.ts';
import { SETTINGS } from '../../../src/domain/settings/settings.ts';
import {
  createAddressReader,
  createRangeCheck,
  readAddress,
} from '../../../src/io/http/listen/client-address.ts';
import { httpLibrary } from '../../../src/io/http/listen/library.ts';
import type { AnyRoute, SessionLookup } from '../../../src/io/http/table/route.ts';
import {
  BROWSER_SESSION,
  connectRaw,
  type HttpFixture,
  plainRoute,
  type RawAnswer,
  type RawConnection,
  requestText,
  route,
  START_MS,
  sendRaw,
  startHttp,
} from '../../support/http.ts';

/** Requests of one address in a window. */
const ADDRESS_QUOTA = SETTINGS.IpRPSLimit.default * SETTINGS.RateLimitWindowSeconds.default;

/** uWebSockets.js 20.51 cannot tell the connections of an address apart; later builds name the peer's port. */
const PORTLESS_MINOR = 51;
const NAMES_PORTS = Number(httpLibrary().version.split('.')[1]) > PORTLESS_MINOR;

const KEY = Buffer.alloc(32, 7).toString('base64url');

const ROUTES: AnyRoute[] = [
  route('GET /open', { auth: 'optional' }, () => 1),
  route('GET /mine', { auth: 'session' }, () => 1),
  route('GET /keyed', { auth: 'optional', limits: ['CheckPubKey'] }, () => 1),
  route('GET /health', { limits: ['NoRateLimit'] }, () => 1),
  route('POST /part', { auth: 'session', limits: ['NoRateLimit'] }, () => 1),
  route('GET /admin', { auth: 'admin' }, () => 1),
  route('GET /refused', { auth: 'optional', query: object({ scope: text() }) }, ({ query: { scope } }) => {
    throw new GatewayError('AccessRateLimit', 'test', 7, scope === '' ? undefined : (scope as ScopeCode));
  }),
  plainRoute('GET /named/:name', () => 1),
  route('POST /login', { limits: ['Self'] }, ({ limiter, header }) => {
    limiter.chargeAnonymous(1);
    limiter.chargeKey('m', header('x-publickey') ?? '', 1);
    if (header('x-publickey')?.startsWith('unknown')) limiter.chargeUnknownKey();
    return 1;
  }),
];

/** Starts with the quotas of spec 8.1 and a session lookup with a window for its one session `alice`. */
function start(t: Test, changes: Partial<Parameters<typeof startHttp>[0]> = {}): HttpFixture {
  const window = new WindowCounter();
  const gate: SessionLookup = {
    authenticate(token, _kind, charge) {
      if (token !== 'alice') return undefined;
      const { settings, time } = fixture;
      const rps = settings.get('SessionApiRPSLimit');
      const quotaResult =
        charge === undefined
          ? undefined
          : window.hit(charge.scope, rps, settings.get('RateLimitWindowSeconds'), time.nowMs, charge);
      return { session: BROWSER_SESSION, quotaResult };
    },
  };
  const fixture = closeAfter(t, startHttp({ routes: ROUTES, gate, settings: {}, ...changes }));
  return fixture;
}

async function statuses(port: number, count: number, text: string): Promise<number[]> {
  const connection = connectRaw(port);
  const seen: number[] = [];
  for (let index = 0; index < count; index += 1) {
    seen.push((await connection.ask(text)).status);
  }
  connection.close();
  return seen;
}

/** Returns the rest of a quota after each of its requests. */
const remaining = (quota: number): number[] => Array.from({ length: quota }, (_, index) => quota - 1 - index);
const times = (count: number, status: number): number[] => new Array<number>(count).fill(status);

// covers R103
t.test('limits: the 11th anonymous request of a connection is 429 with every limit header', async (t) => {
  const fixture = start(t);
  const connection = closeAfter(t, connectRaw(fixture.port));
  let answer: RawAnswer | undefined;
  const served: string[] = [];
  for (let used = 1; used <= 11; used += 1) {
    answer = await connection.ask(requestText('GET', '/open'));
    if (used <= 10) served.push(`${answer.status} ${answer.headers['x-ratelimit']}`);
  }
  t.same(
    served,
    remaining(10).map((left) => `200 s=c;l=10;r=${left};t=5`),
  );
  t.equal(answer?.status, 429);
  t.equal(answer?.body, '{"error":{"code":1002,"message":"Access rate limit"}}');
  t.match(answer?.headers, {
    'x-ratelimit': 's=c;l=10;r=0;t=5',
    'retry-after': '5',
    'ratelimit-policy': '"c";q=10;w=5',
    ratelimit: '"c";r=0;t=5',
  });
  fixture.time.nowMs += 3_600;
  t.equal((await connection.ask(requestText('GET', '/open'))).headers['retry-after'], '2', 'rounded up');
  fixture.time.nowMs = START_MS + 5_000;
  t.equal((await connection.ask(requestText('GET', '/open'))).headers['x-ratelimit'], 's=c;l=10;r=9;t=5');
});

t.test(
  'limits: one of two connections has its quota where the library names ports, and else that of both',
  async (t) => {
    const { port } = start(t);
    const [one, other] = [connectRaw(port), connectRaw(port)];
    const ask = async (connection: RawConnection) => {
      return (await connection.ask(requestText('GET', '/open'))).status;
    };
    t.equal(await ask(other), 200);
    const seen: number[] = [];
    for (let used = 1; used <= 21; used += 1) seen.push(await ask(one));
    const quota = NAMES_PORTS ? 10 : 19;
    t.same(seen, [...times(quota, 200), ...times(21 - quota, 429)]);
    t.equal(await ask(other), NAMES_PORTS ? 200 : 429);
    one.close();
    other.close();
  },
);

t.test('limits: connections that stay open have a quota each in the next window too', async (t) => {
  const { port, time, limiter } = start(t);
  const connections = [1, 2, 3].map(() => connectRaw(port));
  const ask = async (connection: RawConnection, text: string) => {
    return (await connection.ask(text)).status;
  };
  const anonymous = requestText('GET', '/open');
  const served: number[] = [];
  for (const connection of connections) served.push(await ask(connection, anonymous));
  for (let windows = 0; windows < 6; windows += 1) {
    time.nowMs += 5_000;
    // Requests of a session are not charged to connections, but keep them counted.
    const mine = requestText('GET', '/mine', { Cookie: 'sid=alice' });
    for (const connection of connections) served.push(await ask(connection, mine));
  }
  for (const connection of connections)
    for (let used = 1; used <= 10; used += 1) served.push(await ask(connection, anonymous));
  t.same(served, times(3 + 6 * 3 + 3 * 10, 200));
  t.equal(await ask(connections[0] as RawConnection, anonymous), 429, 'three connections: three quotas');
  t.equal(limiter.counters().c.limited, 1);
  for (const connection of connections) connection.close();
});

// covers R98
t.test('limits: scopes in shadow mode refuse nothing and show in no header, the others apply', async (t) => {
  const { port, limiter } = start(t, { settings: { RateLimitShadowScopes: 'c;s', IpRPSLimit: 3 } });
  const connection = closeAfter(t, connectRaw(port));
  const ask = async (text: string) => {
    return await connection.ask(text);
  };
  const limits: unknown[] = [];
  for (const _ of remaining(15)) limits.push((await ask(requestText('GET', '/open'))).headers['x-ratelimit']);
  t.same(
    limits,
    remaining(15).map((left) => `s=i;l=15;r=${left};t=5`),
  );
  t.equal((await ask(requestText('GET', '/open'))).headers['x-ratelimit'], 's=i;l=15;r=0;t=5');
  t.match(limiter.counters(), { c: { limited: 0, shadowed: 6 }, i: { limited: 1 } });
  const mine: unknown[] = [];
  for (let used = 1; used <= 16; used += 1) {
    const { status, headers } = await ask(requestText('GET', '/mine', { Cookie: 'sid=alice' }));
    mine.push([status, headers['x-ratelimit']]);
  }
  t.same(mine, new Array(16).fill([200, undefined]));
  t.match(limiter.counters().s, { allowed: 11, nearLimit: 4, shadowed: 1 });
});

t.test('limits: a session has its own scope and nothing else', async (t) => {
  const { port, limiter } = start(t);
  const text = requestText('GET', '/mine', { Cookie: 'sid=alice' });
  const first = await sendRaw(port, text);
  t.equal(first.headers['x-ratelimit'], 's=s;l=15;r=14;t=5');
  t.same(await statuses(port, 15, text), [...times(14, 200), 429]);
  t.same(limiter.counters().c, { allowed: 0, nearLimit: 0, limited: 0, shadowed: 0, untracked: 0 });
  t.same(limiter.counters().i, { allowed: 0, nearLimit: 0, limited: 0, shadowed: 0, untracked: 0 });
});

t.test(
  'limits: requests that should have a session and have none are charged, on NoRateLimit routes too',
  async (t) => {
    const { port } = start(t);
    t.same(await statuses(port, 11, requestText('GET', '/mine')), [...times(10, 401), 429]);
    const upload = start(t);
    t.same(await statuses(upload.port, 11, requestText('POST', '/part')), [...times(10, 401), 429]);
    const valid = requestText('POST', '/part', { Cookie: 'sid=alice' });
    t.same(await statuses(upload.port, 40, valid), times(40, 200));
    const health = start(t);
    t.same(await statuses(health.port, 100, requestText('GET', '/health')), times(100, 200));
    t.notOk((await health.ask('GET', '/health')).headers['x-ratelimit']);
  },
);

// covers R101
t.test('limits: unknown paths, wrong methods and OPTIONS without a preflight are charged', async (t) => {
  for (const text of [
    requestText('GET', '/nothing'),
    requestText('DELETE', '/open'),
    requestText('OPTIONS', '/open'),
    requestText('OPTIONS', '/open', { 'Access-Control-Request-Method': 'GET' }),
    requestText('OPTIONS', '/open', { Origin: 'http://evil.example' }),
    requestText('GET', '/nothing', { Origin: 'http://evil.example', 'Access-Control-Request-Method': 'GET' }),
  ]) {
    const { port } = start(t);
    t.equal((await statuses(port, 11, text)).at(-1), 429, text.slice(0, 20));
  }
});

// covers R101 S66
t.test('limits: preflights are charged to the address only, whatever their answer', async (t) => {
  for (const [path, foreign, status] of [
    ['/open', false, 204],
    ['/open', true, 403],
    ['/nothing', false, 404],
  ] as const) {
    const { port, limiter } = start(t);
    const origin = foreign ? 'http://evil.example' : `http://localhost:${port}`;
    const asks = { Origin: origin, 'Access-Control-Request-Method': 'GET' };
    const connection = connectRaw(port);
    const ask = async (text: string) => {
      const answer = await connection.ask(text);
      return `${answer.status} ${answer.headers['x-ratelimit']}`;
    };
    const left = remaining(ADDRESS_QUOTA).slice(0, -10);
    const preflights: string[] = [];
    for (const _ of left) preflights.push(await ask(requestText('OPTIONS', path, asks)));
    t.same(
      preflights,
      left.map((requests) => `${status} s=i;l=${ADDRESS_QUOTA};r=${requests};t=5`),
    );
    const rest: string[] = [];
    for (let used = 1; used <= 10; used += 1) rest.push(await ask(requestText('GET', '/open')));
    t.ok(
      rest.every((answer) => /^200 s=[ci];/.test(answer)),
      'the connection has its whole quota',
    );
    t.equal(await ask(requestText('OPTIONS', path, asks)), `429 s=i;l=${ADDRESS_QUOTA};r=0;t=5`);
    connection.close();
    t.match(limiter.counters(), { c: { allowed: 7, nearLimit: 3, limited: 0 }, i: { limited: 1 } });
  }
});

t.test(
  'limits: refusals for a foreign Host or Origin, an address or a parameter are charged like the rest',
  async (t) => {
    const foreign = { Origin: 'http://evil.example' };
    const cases: [number, string][] = [
      [403, requestText('GET', '/open', { Host: 'evil.example' })],
      [403, requestText('GET', '/nothing', { Host: 'evil.example' })],
      [403, requestText('POST', '/login', foreign)],
      [403, requestText('POST', '/part', { ...foreign, Cookie: 'sid=alice' })],
      [403, requestText('GET', '/admin')],
      [400, requestText('GET', '/named/%ff')],
    ];
    for (const [status, text] of cases) {
      const { port, limiter } = start(t, { site: { adminAllow: [] } });
      const connection = connectRaw(port);
      const answers: string[] = [];
      for (let used = 1; used <= 11; used += 1) {
        const answer = await connection.ask(text);
        answers.push(`${answer.status} ${answer.headers['x-ratelimit']}`);
      }
      t.same(
        answers,
        [...remaining(10).map((requests) => `${status} s=c;l=10;r=${requests};t=5`), '429 s=c;l=10;r=0;t=5'],
        text.slice(0, 20),
      );
      connection.close();
      t.match(limiter.counters().i, { allowed: 10 }, 'the address pays too');
    }
  },
);

// covers R101 S30
t.test(
  'limits: CheckPubKey adds the key scope; address first, malformed 400, absent not charged',
  async (t) => {
    const open = { ApiRPSLimit: 0, IpRPSLimit: 0 };
    const { port, limiter } = start(t, { settings: open });
    const keyed = (pkey: string) => requestText('GET', '/keyed', { pkey });
    t.equal((await sendRaw(port, keyed(KEY))).headers['x-ratelimit'], 's=p;l=10;r=9;t=5');
    t.same(await statuses(port, 10, keyed(KEY)), [...times(9, 200), 429]);
    t.same(await statuses(port, 12, requestText('GET', '/keyed')), times(12, 200));
    for (const bad of [KEY.slice(1), `${KEY}=`, KEY.replace(/.$/, 'd'), 'x'.repeat(43).concat('%'), '!']) {
      t.same(await statuses(port, 1, keyed(bad)), [400], bad);
    }
    t.equal(limiter.counters().p.limited, 1);
    const twice = `GET /keyed HTTP/1.1\r\nHost: localhost\r\npkey: ${KEY}\r\npkey: ${KEY}\r\n\r\n`;
    t.same(await statuses(port, 1, twice), [400]);
    const rotating = start(t, { settings: { ApiRPSLimit: 0 } });
    let allowed = 0;
    for (let index = 0; index < 100; index += 1) {
      const key = Buffer.alloc(32, index).toString('base64url');
      if ((await sendRaw(rotating.port, keyed(key))).status === 200) allowed += 1;
    }
    t.equal(allowed, ADDRESS_QUOTA, 'a new key for every request: the address quota holds');
  },
);

// covers R103
t.test(
  'limits: a route that charges itself shows its tightest scope, and a spent budget refuses known keys too',
  async (t) => {
    const { ask, time } = start(t, { settings: { UnknownKeyFailuresPerMinute: 3, ApiRPSLimit: 0 } });
    const login = (key: string) => ask('POST', '/login', { 'X-PublicKey': key });
    t.equal((await login('known')).headers['x-ratelimit'], 's=m;l=10;r=9;t=5');
    for (let index = 0; index < 3; index += 1) t.equal((await login(`unknown-${index}`)).status, 200);
    for (const key of ['unknown-9', 'known']) {
      const refused = await login(key);
      t.equal(refused.status, 429, key);
      t.equal(refused.headers['retry-after'], '60');
      t.equal(refused.headers['x-ratelimit'], 's=i;l=3;r=0;t=60', key);
    }
    time.nowMs += 60_000;
    t.equal((await login('known')).status, 200);
  },
);

// covers R103
t.test(
  'limits: a refusal outside the windows shows the scope that it names, else user or address',
  async (t) => {
    const { ask } = start(t);
    for (const [scope, cookie, shown] of [
      ['', '', `s=i;l=${ADDRESS_QUOTA};r=0;t=7`],
      ['', 'sid=alice', 's=s;l=15;r=0;t=7'],
      ['i', 'sid=alice', `s=i;l=${ADDRESS_QUOTA};r=0;t=7`],
      ['s', '', 's=s;l=15;r=0;t=7'],
    ] as const) {
      const { status, headers } = await ask(
        'GET',
        `/refused?scope=${scope}`,
        cookie === '' ? {} : { Cookie: cookie },
      );
      t.equal(status, 429);
      t.equal(headers['x-ratelimit'], shown, `${scope} ${cookie}`);
      t.equal(headers['retry-after'], '7');
    }
  },
);

// covers R97 S30
t.test('limits: X-Forwarded-For is read from the right, and only of trusted proxies', async (t) => {
  const direct = start(t);
  const rotate = async (port: number, make: (index: number) => string) => {
    let allowed = 0;
    for (let index = 0; index < 80; index += 1) {
      const text = requestText('GET', '/open', { 'X-Forwarded-For': make(index) });
      if ((await sendRaw(port, text)).status === 200) allowed += 1;
    }
    return allowed;
  };
  t.ok(
    (await rotate(direct.port, (index) => `192.0.2.${index}`)) <= ADDRESS_QUOTA,
    'no proxy is trusted: the header is ignored',
  );
  t.equal(
    direct.finished.every(({ clientAddress: address }) => address === '127.0.0.1'),
    true,
  );
  const proxied = start(t, { pipeline: { trustedProxies: ['127.0.0.0/8', '10.0.0.0/8'] } });
  const spoofed = (index: number) => `192.0.2.${index}, 198.51.100.7, 10.1.1.1`;
  t.equal(await rotate(proxied.port, spoofed), ADDRESS_QUOTA, 'the quota of the address that the proxy saw');
  t.equal(
    proxied.finished.every(({ clientAddress: address }) => address === '198.51.100.7'),
    true,
  );
  t.equal(await rotate(proxied.port, (index) => `198.51.100.${100 + index}`), 80, 'real clients are apart');
});

// covers R97
t.test(
  'limits: behind a trusted proxy one connection serves a client up to the quota of its address',
  async (t) => {
    const { port, limiter } = start(t, { pipeline: { trustedProxies: ['127.0.0.1'] } });
    const proxy = connectRaw(port);
    const ask = async (address: string) => {
      const { status, headers } = await proxy.ask(
        requestText('GET', '/open', { 'X-Forwarded-For': address }),
      );
      return `${status} ${headers['x-ratelimit']}`;
    };
    const answers: string[] = [];
    for (const _ of remaining(ADDRESS_QUOTA)) answers.push(await ask('203.0.113.1'));
    t.same(
      answers,
      remaining(ADDRESS_QUOTA).map((left) => `200 s=i;l=${ADDRESS_QUOTA};r=${left};t=5`),
    );
    t.equal(await ask('203.0.113.1'), `429 s=i;l=${ADDRESS_QUOTA};r=0;t=5`);
    t.equal(
      await ask('203.0.113.2'),
      `200 s=i;l=${ADDRESS_QUOTA};r=${ADDRESS_QUOTA - 1};t=5`,
      'another client of the same connection',
    );
    proxy.close();
    t.same(limiter.counters().c, { allowed: 0, nearLimit: 0, limited: 0, shadowed: 0, untracked: 0 });
    const own = await statuses(port, 21, requestText('GET', '/open'));
    const quota = NAMES_PORTS ? 10 : 20;
    t.same(
      own,
      [...times(quota, 200), ...times(21 - quota, 429)],
      'the proxy itself: one of two connections',
    );
  },
);

// covers R97
t.test('addresses: read with ports, brackets and v4-mapped; an unreadable hop ends the search', async (t) => {
  const reader = createAddressReader(['10.0.0.0/8', '2001:db8:ffff::/48', '192.0.2.9'], true);
  const resolve = (forwarded: string | undefined, peer = '10.0.0.1', proxied = '') =>
    reader.resolve(peer, { proxied, forwardedFor: forwarded }).address;
  t.equal(resolve('203.0.113.5'), '203.0.113.5');
  t.equal(resolve('203.0.113.5:4711'), '203.0.113.5');
  t.equal(resolve('[2001:DB8::0:1]:443'), '2001:db8::1');
  t.equal(resolve('::ffff:203.0.113.5'), '203.0.113.5');
  t.equal(resolve('1.1.1.1, 203.0.113.5 , 192.0.2.9,10.9.9.9'), '203.0.113.5');
  t.equal(resolve('203.0.113.5', '2001:db8:ffff::8'), '203.0.113.5');
  t.equal(resolve('10.5.5.5'), '10.5.5.5', 'all hops trusted: the leftmost');
  t.equal(resolve('1.1.1.1, nonsense, 10.2.2.2'), '10.2.2.2');
  t.equal(resolve('nonsense'), '10.0.0.1');
  t.equal(resolve('0x7f.1'), '10.0.0.1');
  t.equal(resolve(''), '10.0.0.1');
  t.equal(resolve(undefined), '10.0.0.1');
  t.equal(resolve('1.1.1.1', '8.8.8.8'), '8.8.8.8', 'an untrusted peer speaks for itself alone');
  t.equal(resolve(undefined, '10.0.0.1', '203.0.113.5'), '203.0.113.5', 'PROXY protocol of a trusted peer');
  t.equal(resolve(undefined, '8.8.8.8', '203.0.113.5'), '8.8.8.8', 'and of no other peer');
  t.equal(
    resolve('203.0.113.5', '10.0.0.1', '10.3.3.3'),
    '203.0.113.5',
    'both: the header is read from there',
  );
  const raw = (...bytes: number[]) => readAddress(new Uint8Array(bytes).buffer);
  const zeros = new Array<number>(10).fill(0);
  for (let twice = 0; twice < 2; twice += 1) {
    t.equal(raw(203, 0, 113, 5), '203.0.113.5');
    t.equal(raw(...zeros, 255, 255, 203, 0, 113, 5), '203.0.113.5', 'v4-mapped');
    t.equal(raw(0x20, 1, 0xd, 0xb8, ...zeros, 0, 1), '2001:db8::1');
    t.equal(raw(), '', 'the peer is gone');
  }
  t.throws(() => createAddressReader(['10.0.0.0/64']));
  t.throws(() => createAddressReader(['not an address']));
  const inRange = createRangeCheck(['127.0.0.0/8', '::1/128']);
  t.same(['127.9.9.9', '::1', '::ffff:127.0.0.1', '128.0.0.1', '::2', '', 'x'].map(inRange), [
    true,
    true,
    true,
    false,
    false,
    false,
    false,
  ]);
});
