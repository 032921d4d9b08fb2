/** The limiter: windows against a reference model, its bounds, and the rules that keep keys from being locked out. */
import fc from 'fast-check';
import t from 'tap';
import { Limiter } from '../../../src/actors/limits/limiter.ts';
import { type CallerAddress, SHARED_COUNTERS } from '../../../src/actors/limits/limiter-keys.ts';
import { LiveSettings, type SettingName, type SettingValue } from '../../../src/domain/settings/settings.ts';
import { runs } from '../../support/depth.ts';

/** Start of a 5 s window and of a minute. */
const START_MS = 1_760_000_040_000;

function makeLimiter(
  settings: Partial<Record<SettingName, SettingValue>> = {},
  options: { keysMax?: number; connectionsOpen?: () => number; clock?: () => number } = {},
) {
  const live = new LiveSettings(settings);
  return {
    live,
    limiter: new Limiter({ settings: live, clock: () => 0, connectionsOpen: () => 1, ...options }),
  };
}

function peer(address: string, port?: number): CallerAddress {
  return { address, port, forwarded: false };
}

/** Counts every allowed request again from the whole history at every step: slow, and plain to see. */
class Reference {
  readonly #history: { key: string; window: number; cost: number }[] = [];

  left(keys: readonly (readonly [key: string, limit: number])[], window: number): number {
    return Math.min(...keys.map(([key, limit]) => limit - this.#used(key, window)));
  }

  charge(keys: readonly (readonly [key: string, limit: number])[], window: number, cost: number): boolean {
    const allowed = keys.every(([key, limit]) => this.#used(key, window) + cost <= limit);
    if (allowed) for (const [key] of keys) this.#history.push({ key, window, cost });
    return allowed;
  }

  #used(key: string, window: number): number {
    return this.#history
      .filter((entry) => entry.key === key && entry.window === window)
      .reduce((sum, entry) => sum + entry.cost, 0);
  }
}

/** IPv6 addresses with their /64 and /56; all are of one /48. */
const NETWORK_OF = new Map<string, readonly [string, string]>([
  ['2001:db8::1', ['/64 a', '/56 a']],
  ['2001:db8::ffff:2', ['/64 a', '/56 a']],
  ...[1, 2, 3, 4, 5].map((n) => [`2001:db8:0:${n}::1`, [`/64 a${n}`, '/56 a']] as const),
  ...[1, 2, 3].map((n) => [`2001:db8:0:100::${n}`, [`/64 b`, '/56 b']] as const),
]);

// covers R96 S169
t.test('limiter: agrees with a reference model over random charges, times and settings', async (t) => {
  const step = fc.record({
    scope: fc.constantFrom('c', 'i', 'p', 'm'),
    address: fc.constantFrom('10.0.0.1', '10.0.0.2', '::ffff:10.0.0.1', ...NETWORK_OF.keys()),
    key: fc.constantFrom('K1', 'K2'),
    cost: fc.integer({ min: 1, max: 3 }),
    waitMs: fc.oneof(fc.constant(0), fc.integer({ min: 0, max: 4_000 })),
  });
  const quotas = fc.record({
    ApiRPSLimit: fc.integer({ min: 0, max: 3 }),
    IpRPSLimit: fc.integer({ min: 0, max: 3 }),
    PubKeyApiRPSLimit: fc.integer({ min: 0, max: 2 }),
    McpApiRPSLimit: fc.integer({ min: 0, max: 2 }),
    RateLimitWindowSeconds: fc.integer({ min: 1, max: 5 }),
  });
  const foldAll = (address: string): readonly [string, number][] => {
    const [narrow, middle] = NETWORK_OF.get(address) ?? [];
    if (narrow === undefined) return [[address.replace('::ffff:', ''), 1]];
    return [
      [narrow, 1],
      [String(middle), 4],
      ['/48', 16],
    ];
  };
  fc.assert(
    fc.property(quotas, fc.array(step, { maxLength: 120 }), (settings, steps) => {
      const { limiter } = makeLimiter(settings);
      const reference = new Reference();
      const seconds = settings.RateLimitWindowSeconds;
      const rps = {
        c: settings.ApiRPSLimit,
        i: settings.IpRPSLimit,
        p: settings.PubKeyApiRPSLimit,
        m: settings.McpApiRPSLimit,
      };
      let nowMs = START_MS;
      for (const { scope, address, key, cost, waitMs } of steps) {
        nowMs += waitMs;
        const window = Math.floor(nowMs / 1_000 / seconds);
        const quota = rps[scope] * seconds;
        const networks = foldAll(address);
        const own = `${scope} ${networks[0]?.[0]}`;
        const keyed = scope === 'p' || scope === 'm';
        const verdict =
          scope === 'c'
            ? limiter.chargeConnection(peer(address), cost, nowMs)
            : scope === 'i'
              ? limiter.chargeAddress(address, cost, nowMs)
              : limiter.chargeKey(scope, key, address, cost, nowMs);
        if (quota === 0) {
          if (verdict !== undefined) throw new Error('a scope that is off was judged');
          continue;
        }
        const limits: [string, number][] = keyed
          ? [
              [`${own} ${key}`, quota],
              [`${scope} ${key}`, quota * 10],
            ]
          : networks.map(([name, shares]) => [`${scope} ${name}`, quota * shares]);
        const left = reference.left(limits, window);
        if (verdict?.allowed !== reference.charge(limits, window, cost)) throw new Error('verdicts differ');
        if (verdict.remaining !== Math.min(quota, verdict.allowed ? left - cost : left)) {
          throw new Error('remaining is not what is left');
        }
        if (verdict.quota !== quota || verdict.remaining > quota || verdict.remaining < 0) {
          throw new Error('quota or remaining is off');
        }
        const endsMs = (window + 1) * seconds * 1_000;
        if (verdict.resetSeconds !== Math.ceil((endsMs - nowMs) / 1_000)) throw new Error('reset is off');
      }
    }),
    runs(500),
  );
  t.pass('500 runs agree');
});

// covers R97 S65
t.test(
  'limiter: a walk through IPv6 networks stops at 4 quotas of a /56 and 16 of a /48, others are served',
  async (t) => {
    const { limiter } = makeLimiter({ IpRPSLimit: 1, ApiRPSLimit: 1, UnknownKeyFailuresPerMinute: 5 });
    const charges: [string, (address: string) => boolean | undefined][] = [
      ['address', (address) => limiter.chargeAddress(address, 1, START_MS)?.allowed],
      ['connection', (address) => limiter.chargeConnection(peer(address), 1, START_MS)?.allowed],
      ['unknown key', (address) => limiter.budgets.unknownKeys.charge(address, START_MS)?.allowed],
    ];
    for (const [name, charge] of charges) {
      let narrow = 0;
      let wide = 0;
      for (let n = 0; n < 256; n += 1) if (charge(`2001:db8:0:${n.toString(16)}::1`)) narrow += 1;
      for (let n = 0; n < 65_536; n += 97) if (charge(`2001:db8:1:${n.toString(16)}::1`)) wide += 1;
      t.equal(narrow, 20, `${name}: a /56 has four quotas of five`);
      t.equal(wide, 80, `${name}: a /48 has sixteen`);
      t.equal(charge('2001:db8:2::1'), true, `${name}: another /48 is served`);
      t.equal(charge('192.0.2.1'), true, `${name}: IPv4 is served`);
    }
  },
);

t.test('limiter: a wide network that opened many connections has a quota for each', async (t) => {
  const { limiter } = makeLimiter({ ApiRPSLimit: 1 }, { connectionsOpen: () => 100 });
  for (let n = 0; n < 40; n += 1) limiter.opened(`2001:db8:0:${n.toString(16)}::1`, START_MS);
  let allowed = 0;
  for (let n = 0; n < 80; n += 1)
    for (let left = 10; left > 0; left -= 1)
      if (limiter.chargeConnection(peer(`2001:db8:0:${n.toString(16)}::1`), 1, START_MS)?.allowed)
        allowed += 1;
  t.equal(allowed, 200);
});

// covers R98
t.test('limiter: a setting counts from the next request on, 0 turns the scope off', async (t) => {
  const { limiter, live } = makeLimiter({ IpRPSLimit: 1, RateLimitWindowSeconds: 5 });
  const charge = () => limiter.chargeAddress('10.0.0.1', 1, START_MS);
  for (let index = 0; index < 5; index += 1) t.equal(charge()?.allowed, true);
  t.match(charge(), { allowed: false, scope: 'i', quota: 5, remaining: 0, resetSeconds: 5 });
  live.set('IpRPSLimit', 2);
  t.match(charge(), { allowed: true, quota: 10, remaining: 4 });
  live.set('IpRPSLimit', 0);
  t.equal(charge(), undefined);
  live.set('IpRPSLimit', 1);
  live.set('RateLimitWindowSeconds', 60);
  t.match(
    charge(),
    { allowed: true, quota: 60, remaining: 59, resetSeconds: 60 },
    'a new window length, a new window',
  );
});

// covers R95 R102
t.test(
  'limiter: an outsider cannot lock a key out, all outsiders together stop at ten times the quota',
  async (t) => {
    const { limiter } = makeLimiter({ McpApiRPSLimit: 2 });
    for (let index = 0; index < 50; index += 1) limiter.chargeKey('m', 'victim', '10.6.6.6', 1, START_MS);
    t.match(limiter.chargeKey('m', 'victim', '10.0.0.1', 1, START_MS), { allowed: true, remaining: 9 });
    let allowed = 11;
    for (let host = 0; host < 200; host += 1) {
      if (limiter.chargeKey('m', 'victim', `10.1.0.${host}`, 1, START_MS)?.allowed) allowed += 1;
    }
    t.equal(allowed, 100);
    t.equal(limiter.chargeKey('m', 'other', '10.6.6.6', 1, START_MS)?.allowed, true, 'other keys are apart');
    t.equal(
      limiter.chargeKey('p', 'victim', '10.6.6.6', 1, START_MS)?.allowed,
      true,
      'and so are other scopes',
    );
  },
);

// covers R97 S30
t.test(
  'limiter: connections of one address share a pool of a quota for each that it opened, closed ones included',
  async (t) => {
    let open = 1;
    const { limiter } = makeLimiter({ ApiRPSLimit: 1 }, { connectionsOpen: () => open });
    const spend = (nowMs: number, address = '10.0.0.1') => {
      let count = 0;
      while (limiter.chargeConnection(peer(address), 1, nowMs)?.allowed) count += 1;
      return count;
    };
    for (let index = 0; index < 9; index += 1) limiter.opened('10.0.0.1', START_MS);
    t.match(limiter.chargeConnection(peer('10.0.0.1'), 1, START_MS), { quota: 5, remaining: 5 });
    t.equal(spend(START_MS), 44, 'nine opened, one of them still open: nine quotas');
    t.equal(spend(START_MS, '10.0.0.2'), 5, 'an address that opened nothing has one quota');
    limiter.opened('2001:db8::1', START_MS);
    limiter.opened('2001:db8::2', START_MS);
    t.equal(spend(START_MS, '2001:db8::3'), 10, 'a /64 is one address');
    open = 3;
    t.equal(
      spend(START_MS + 5_000),
      15,
      'the next window begins with three open in the process: three quotas',
    );
    open = 100;
    t.equal(spend(START_MS + 10_000), 15, 'what was closed stays closed');
    limiter.opened('10.0.0.1', START_MS + 10_000);
    t.equal(spend(START_MS + 10_000), 5, 'one more opened: one quota more');
  },
);

// covers S67
t.test('limiter: one connection alone has one quota, whatever its address had open before', async (t) => {
  let open = 0;
  const { limiter } = makeLimiter({ ApiRPSLimit: 2 }, { connectionsOpen: () => open });
  const charges: unknown[] = [];
  for (let index = 0; index < 25; index += 1) {
    limiter.opened('10.0.0.1', START_MS);
    charges.push(limiter.chargeConnection(peer('10.0.0.1'), 1, START_MS)?.allowed);
  }
  t.same(charges, new Array(25).fill(true));
  // The open itself begins the window, and is one of those in the process.
  open = 1;
  limiter.opened('10.0.0.1', START_MS + 5_000);
  let allowed = 0;
  for (let index = 0; index < 25; index += 1)
    if (limiter.chargeConnection(peer('10.0.0.1'), 1, START_MS + 5_000)?.allowed) allowed += 1;
  t.equal(allowed, 10);
});

// covers R97
t.test(
  'limiter: connections that may still be open keep their quotas, in windows of any length',
  async (t) => {
    for (const [seconds, silentMs, kept] of [
      [1, 13_000, 3],
      [1, 14_000, 1],
      [5, 15_000, 3],
      [5, 20_000, 1],
      [60, 60_000, 3],
      [60, 120_000, 1],
    ] as const) {
      const { limiter } = makeLimiter(
        { ApiRPSLimit: 1, RateLimitWindowSeconds: seconds },
        { connectionsOpen: () => 100 },
      );
      const startMs = Math.ceil(START_MS / 60_000) * 60_000;
      for (let index = 0; index < 3; index += 1) limiter.opened('10.0.0.1', startMs);
      // Others keep the windows moving.
      for (let nowMs = startMs; nowMs < startMs + silentMs; nowMs += seconds * 1_000)
        limiter.chargeConnection(peer('10.0.0.9'), 1, nowMs);
      let allowed = 0;
      while (limiter.chargeConnection(peer('10.0.0.1'), 1, startMs + silentMs)?.allowed) allowed += 1;
      t.equal(allowed, kept * seconds, `${seconds} s, silent for ${silentMs} ms`);
      const other = makeLimiter(
        { ApiRPSLimit: 1, RateLimitWindowSeconds: seconds },
        { connectionsOpen: () => 100 },
      ).limiter;
      for (let index = 0; index < 3; index += 1) other.opened('10.0.0.1', startMs);
      allowed = 0;
      while (other.chargeConnection(peer('10.0.0.1'), 1, startMs + silentMs)?.allowed) allowed += 1;
      t.equal(allowed, kept * seconds, `${seconds} s, all silent for ${silentMs} ms`);
    }
  },
);

t.test(
  'limiter: requests that the connection scope is not charged for keep the quotas of connections',
  async (t) => {
    const { limiter } = makeLimiter({ ApiRPSLimit: 1 }, { connectionsOpen: () => 100 });
    const wide = '2001:db8::1';
    for (const address of ['10.0.0.1', wide])
      for (let index = 0; index < 3; index += 1) limiter.opened(address, START_MS);
    for (let nowMs = START_MS; nowMs < START_MS + 60_000; nowMs += 5_000)
      for (const address of ['10.0.0.1', wide]) limiter.keepOpen(peer(address), nowMs);
    for (const address of ['10.0.0.1', wide]) {
      let allowed = 0;
      while (limiter.chargeConnection(peer(address), 1, START_MS + 60_000)?.allowed) allowed += 1;
      t.equal(allowed, 15, address);
    }
  },
);

// covers R97
t.test('limiter: where the port is known a connection has exactly one quota', async (t) => {
  const { limiter } = makeLimiter({ ApiRPSLimit: 1 }, { connectionsOpen: () => 100 });
  for (let index = 0; index < 9; index += 1) limiter.opened('10.0.0.1', START_MS);
  for (const caller of [peer('10.0.0.1', 4001), peer('10.0.0.1', 4002)]) {
    for (let used = 1; used <= 5; used += 1) {
      t.match(limiter.chargeConnection(caller, 1, START_MS), { allowed: true, remaining: 5 - used });
    }
    t.match(limiter.chargeConnection(caller, 1, START_MS), { allowed: false, remaining: 0 });
  }
});

// covers R97
t.test('limiter: a client that a trusted proxy named is not counted by connection', async (t) => {
  const { limiter } = makeLimiter({ ApiRPSLimit: 1 });
  for (const caller of [
    { ...peer('10.0.0.9'), forwarded: true },
    { ...peer('10.0.0.9', 4001), forwarded: true },
    { ...peer('2001:db8::9'), forwarded: true },
  ])
    t.equal(limiter.chargeConnection(caller, 100, START_MS), undefined);
  t.match(limiter.counters().c, { allowed: 0, limited: 0, untracked: 0 });
  t.equal(limiter.keys(), 0, 'nothing is held for it');
});

// covers R96 R99 R108 S30
t.test('limiter: half a million keys in one window stay bounded, and addresses stay limited', async (t) => {
  const keysMax = 10_000;
  const [addresses, others] = [400_000, 50_000];
  const { limiter } = makeLimiter({ IpRPSLimit: 1, RateLimitWindowSeconds: 5 }, { keysMax });
  const early = '192.0.2.1';
  limiter.chargeAddress(early, 1, START_MS);
  for (let index = 0; index < addresses; index += 1) {
    limiter.chargeAddress(`10.${index >> 16}.${(index >> 8) & 255}.${index & 255}`, 1, START_MS);
    if (index >= others) continue;
    limiter.chargeKey('p', `key-${index}`, '10.0.0.1', 1, START_MS);
    limiter.chargeConnection(peer('10.0.0.1', index), 1, START_MS);
  }
  t.equal(limiter.keys(), keysMax);
  const { c, i, p } = limiter.counters();
  t.ok(c.untracked + p.untracked > 2 * others - keysMax, 'what was not judged was counted');
  t.ok(i.limited > addresses - keysMax - SHARED_COUNTERS * 5, 'new addresses share counters');
  t.match(
    limiter.chargeAddress(early, 1, START_MS),
    { allowed: true, remaining: 3 },
    'earlier ones keep their own',
  );
  limiter.chargeAddress('10.0.0.1', 1, START_MS + 5_000);
  t.equal(limiter.keys(), 1, 'all gone with the window');
});

// covers R98
t.test('limiter: counts the outcomes of each scope, near the limit from 80 % on', async (t) => {
  const { limiter } = makeLimiter({ ApiRPSLimit: 2 });
  for (let index = 0; index < 12; index += 1) limiter.chargeConnection(peer('10.0.0.1'), 1, START_MS);
  t.same(limiter.counters().c, { allowed: 7, nearLimit: 3, limited: 2, shadowed: 0, untracked: 0 });
});

// covers R98
t.test('limiter: a scope in shadow mode counts what it would refuse, and has no verdict', async (t) => {
  const { limiter, live } = makeLimiter({ ApiRPSLimit: 2, IpRPSLimit: 2, RateLimitShadowScopes: 'c; p; s' });
  for (let index = 0; index < 12; index += 1) {
    t.same(
      [
        limiter.chargeConnection(peer('10.0.0.1'), 1, START_MS),
        limiter.chargeKey('p', 'K', '10.0.0.1', 1, START_MS),
        limiter.chargeAddress('10.0.0.1', 1, START_MS)?.allowed,
      ],
      [undefined, undefined, index < 10],
      'other scopes refuse',
    );
  }
  t.same(limiter.counters().c, { allowed: 7, nearLimit: 3, limited: 0, shadowed: 2, untracked: 0 });
  t.match(limiter.counters().p, { limited: 0, shadowed: 2 });
  t.match(limiter.counters().i, { limited: 2, shadowed: 0 });
  const refusal = { allowed: false, scope: 's', quota: 15, remaining: 0, resetSeconds: 5 } as const;
  t.equal(limiter.weigh(refusal), undefined);
  t.match(limiter.counters().s, { limited: 0, shadowed: 1 });
  live.set('RateLimitShadowScopes', '');
  t.equal(limiter.weigh(refusal), refusal);
  t.match(limiter.counters().s, { limited: 1, shadowed: 1 });
  t.equal(limiter.chargeConnection(peer('10.0.0.1'), 1, START_MS)?.allowed, false, 'back at once');
});

t.test('limiter: unknown keys have a budget of their own per address and minute', async (t) => {
  const { limiter, live } = makeLimiter({ UnknownKeyFailuresPerMinute: 3 });
  for (let index = 0; index < 3; index += 1) {
    t.not(limiter.budgets.unknownKeys.check('10.0.0.1', START_MS)?.allowed, false);
    t.equal(limiter.budgets.unknownKeys.charge('10.0.0.1', START_MS)?.allowed, true);
  }
  t.match(limiter.budgets.unknownKeys.check('10.0.0.1', START_MS + 1_500), {
    allowed: false,
    resetSeconds: 59,
  });
  t.equal(limiter.budgets.unknownKeys.charge('10.0.0.1', START_MS)?.allowed, false);
  t.equal(limiter.budgets.unknownKeys.check('10.0.0.2', START_MS)?.allowed, true);
  t.equal(limiter.budgets.unknownKeys.check('10.0.0.1', START_MS + 60_000)?.allowed, true);
  t.match(limiter.counters().unknownKey, { limited: 1 });
  live.set('UnknownKeyFailuresPerMinute', 0);
  t.equal(limiter.budgets.unknownKeys.charge('10.0.0.1', START_MS), undefined);
});

// covers S208
t.test(
  'limiter: a request that lasts over the end of its window counts in the next, and ends no window',
  async (t) => {
    let nowMs = START_MS + 60_000;
    const { limiter } = makeLimiter(
      {
        ...{
          IpRPSLimit: 1,
          PubKeyApiRPSLimit: 1,
          UnknownKeyFailuresPerMinute: 5,
          SignUpsPerNetworkPerDay: 0,
        },
      },
      { clock: () => nowMs },
    );
    const { unknownKeys } = limiter.budgets;
    const charges = (atMs: number) => [
      limiter.chargeAddress('10.0.0.1', 1, atMs)?.allowed,
      limiter.chargeKey('p', 'K', '10.0.0.1', 1, atMs)?.allowed,
      unknownKeys.charge('10.0.0.1', atMs)?.allowed,
    ];
    for (let count = 0; count < 4; count += 1) t.same(charges(nowMs), [true, true, true]);
    t.same(charges(START_MS), [true, true, true], 'the fifth began a minute before');
    t.same(charges(nowMs), [false, false, false]);
    t.same(charges(START_MS), [false, false, false]);
    t.equal(limiter.chargeAddress('10.0.0.1', 1, START_MS)?.resetSeconds, 5);
    nowMs = START_MS;
    t.same(charges(nowMs), [true, true, true], 'a clock that was set back begins anew');
  },
);
