/** Shares of bounds: every row of the table keeps room for others, and the books balance. */
import fc from 'fast-check';
import t from 'tap';
import { GatewayError } from '../../../src/domain/errors.ts';
import {
  BOUND_NAMES,
  type BoundName,
  boundRow,
  limitsOf,
  type ShareKind,
} from '../../../src/domain/limits/bounds.ts';
import type { Holder } from '../../../src/domain/limits/holders.ts';
import { networkOf, networksOf } from '../../../src/domain/limits/networks.ts';
import { SharedBounds } from '../../../src/domain/limits/shared-bounds.ts';
import { Lease, type SharedBound } from '../../../src/domain/limits/shares.ts';
import { LiveSettings } from '../../../src/domain/settings/settings.ts';
import { runs } from '../../support/depth.ts';

function start(maxima: Partial<Record<BoundName, number>> = {}) {
  const bounds = new SharedBounds(new LiveSettings(), maxima);
  return { bounds, holder: bounds.holders.of.bind(bounds.holders) };
}

function lease(book: SharedBound, holder: Holder, amount = 1): Lease {
  const taken = book.take(holder, amount);
  if (taken instanceof Lease) return taken;
  throw new Error(`refused by ${taken.refusedBy}`);
}

function refusedBy(book: SharedBound, holder: Holder, amount = 1) {
  const taken = book.take(holder, amount);
  return taken instanceof Lease ? undefined : taken.refusedBy;
}

for (const name of BOUND_NAMES) {
  // covers S51
  t.test(`bounds: ${name}: one holder at its share, another one still gets in`, async (t) => {
    const limits = limitsOf(boundRow(name), new LiveSettings());
    const callers: [ShareKind, number | undefined, string[], string[]][] = [
      ['network', limits.network, [], []],
      ['user', limits.user, ['a'], ['b']],
      ['session', limits.session, ['a', 's1'], ['b', 's2']],
    ];
    for (const [kind, share, first, second] of callers) {
      if (share === undefined) continue;
      const { bounds, holder } = start();
      const book = bounds.of(name);
      // A user may have more than one network has: then it comes from several.
      const held: Lease[] = [];
      for (let left = share, at = 0; left > 0; left -= limits.network, at += 1)
        held.push(lease(book, holder(`192.0.2.${at}`, ...first), Math.min(left, limits.network)));
      const last = `192.0.2.${held.length - (kind === 'network' ? 1 : 0)}`;
      t.equal(refusedBy(book, holder(last, ...first)), kind, `${kind}: its share is used up`);
      const other = lease(book, holder('198.51.100.1', ...second));
      for (const each of held) each.release();
      t.equal(refusedBy(book, holder(last, ...first)), undefined, `${kind}: its share is free again`);
      t.equal(other.amount, 1);
    }
  });

  // covers S52
  t.test(`bounds: ${name}: no network takes all, an IPv6 /48 included`, async (t) => {
    const { bounds, holder } = start();
    const book = bounds.of(name);
    let step = 0;
    for (let walked = 0; walked < 65_536 && step < 400; walked += 1) {
      // Another /56 each time, then another /64.
      const address = `2001:db8:0:${((walked % 256) * 256 + (walked >> 8)).toString(16)}::1`;
      const amount = Math.ceil(book.limits().maximum / 64);
      if (book.take(holder(address), amount) instanceof Lease) step = 0;
      else step += 1;
    }
    const { held } = book.counters();
    t.ok(held < book.limits().maximum, `${held} of ${book.limits().maximum}`);
    t.equal(refusedBy(book, holder('192.0.2.1')), undefined);
  });
}

t.test(
  'bounds: maximum reached, the error of the row; a share used up, 429 with the caller named',
  async (t) => {
    const { bounds, holder } = start({ requests: 4 });
    const book = bounds.of('requests');
    book.require(holder('192.0.2.1'), 2);
    const share = t.throws(() => book.require(holder('192.0.2.1'))) as unknown;
    t.ok(share instanceof GatewayError && share.row === 'AccessRateLimit');
    t.match(share, { detail: 'too many requests of one network at the same time', retryAfterSeconds: 1 });
    book.require(holder('192.0.2.2'), 2);
    t.match(
      t.throws(() => book.require(holder('192.0.2.3'))),
      { row: 'Overloaded', retryAfterSeconds: 1 },
    );
    t.same(book.counters(), { held: 4, refused: { maximum: 1, session: 0, user: 0, network: 1 } });
  },
);

t.test('bounds: a setting that a row follows takes effect at the next lease', async (t) => {
  const settings = new LiveSettings();
  const bounds = new SharedBounds(settings);
  const book = bounds.of('relayedCalls', 'http://m');
  const caller = () => bounds.holders.of('192.0.2.1', 'a', 's');
  lease(book, caller(), settings.get('RelayedCallsPerSession'));
  t.equal(refusedBy(book, caller()), 'session');
  settings.set('RelayedCallsPerSession', 33);
  t.equal(refusedBy(book, caller()), undefined);
  settings.set('RelayedCallsPerUser', 33);
  const other = bounds.holders.of('192.0.2.1', 'a', 'other');
  t.equal(refusedBy(book, other), 'user');
});

t.test('bounds: each module has its own, the report adds them up', async (t) => {
  const { bounds, holder } = start();
  const first = bounds.of('relayedCalls', 'http://one');
  lease(first, holder('192.0.2.1'), 64);
  t.equal(refusedBy(first, holder('192.0.2.1')), 'network');
  lease(bounds.of('relayedCalls', 'http://two'), holder('192.0.2.1'), 64);
  t.match(
    bounds.report().find(({ name }) => name === 'relayedCalls'),
    { unit: 'calls', maximum: 2_048, session: 32, user: 64, network: 64, held: 128, refused: { network: 1 } },
  );
});

// covers S58
t.test('holders: callers that hold nothing are forgotten, those that hold something are not', async (t) => {
  const { bounds, holder } = start();
  const book = bounds.of('requests');
  const kept = lease(book, holder('198.51.100.1'), book.limits().network);
  for (let n = 0; n < 60_000; n += 1)
    lease(book, holder(`10.${n >> 16}.${(n >> 8) & 255}.${n & 255}`)).release();
  t.ok(bounds.holders.size <= 10_001, String(bounds.holders.size));
  t.equal(refusedBy(book, holder('198.51.100.1')), 'network');
  kept.release();
  t.equal(refusedBy(book, holder('198.51.100.1')), undefined);
});

// covers S58
t.test('holders: many addresses of one /64 are one caller', async (t) => {
  const { bounds, holder } = start();
  const book = bounds.of('challenges');
  for (let n = 0; n < 1_000; n += 1) lease(book, holder(`2001:db8::${n.toString(16)}`));
  t.equal(refusedBy(book, holder('2001:db8::ffff')), 'network');
  t.equal(refusedBy(book, holder('2001:db8:1::1')), undefined);
});

t.test('lease: released twice, given back once', async (t) => {
  const { bounds, holder } = start();
  const book = bounds.of('requests');
  const twice = lease(book, holder('192.0.2.1'), 3);
  lease(book, holder('192.0.2.1'), 2);
  twice.release();
  twice.release();
  twice.reduce(1);
  t.equal(book.counters().held, 2);
});

t.test(
  'shares: random leases of random callers never pass a limit, and all given back leave nothing',
  async (t) => {
    const caller = fc.record({
      address: fc.constantFrom(
        '192.0.2.1',
        '192.0.2.2',
        '2001:db8::1',
        '2001:db8:0:1::1',
        '2001:db8:0:100::1',
      ),
      user: fc.option(fc.constantFrom('a', 'b'), { nil: undefined }),
    });
    const step = fc.record({ caller, amount: fc.integer({ min: 0, max: 9 }), act: fc.nat(3), at: fc.nat() });
    fc.assert(
      fc.property(fc.array(step, { maxLength: 200 }), (steps) => {
        const { bounds, holder } = start({ requests: 40 });
        const book = bounds.of('requests');
        const leases: { lease: Lease; names: string[] }[] = [];
        const heldBy = (name: string) =>
          leases.reduce((sum, { lease, names }) => sum + (names.includes(name) ? lease.amount : 0), 0);
        for (const { caller, amount, act, at } of steps) {
          const chosen = leases[at % Math.max(1, leases.length)];
          if (act === 0) {
            const taken = book.take(holder(caller.address, caller.user), amount);
            const names = [caller.user ?? '-', ...networksOf(caller.address).map(({ name }) => name)];
            if (taken instanceof Lease) leases.push({ lease: taken, names });
          } else if (act === 1) chosen?.lease.add(amount);
          else if (act === 2 && chosen !== undefined)
            chosen.lease.reduce(Math.min(amount, chosen.lease.amount));
          else if (chosen !== undefined) {
            chosen.lease.release();
            leases.splice(leases.indexOf(chosen), 1);
          }
          const all = leases.reduce((sum, { lease }) => sum + lease.amount, 0);
          if (book.counters().held !== all || all > 40) return false;
          if (['a', 'b'].some((user) => heldBy(user) > 10)) return false;
          if (['192.0.2.1', '192.0.2.2', '2001:db8:0:0::/64'].some((name) => heldBy(name) > 20)) return false;
          if (heldBy('2001:db8:0:0::/48') > 30) return false;
        }
        for (const { lease } of leases) lease.release();
        return book.counters().held === 0 && book.take(holder('192.0.2.1'), 20) instanceof Lease;
      }),
      runs(500),
    );
    t.pass('500 runs');
  },
);

// covers R97 S52
t.test('networks: IPv4 by the address, IPv6 by its /64, /56 and /48, v4-mapped as IPv4', async (t) => {
  t.same(networksOf('192.0.2.1'), [{ name: '192.0.2.1', shares: 1 }]);
  t.same(networksOf('::ffff:192.0.2.1'), [{ name: '192.0.2.1', shares: 1 }]);
  t.same(networksOf('2001:db8:12:3456:1:2:3:4'), [
    { name: '2001:db8:12:3456::/64', shares: 1 },
    { name: '2001:db8:12:3400::/56', shares: 4 },
    { name: '2001:db8:12:0::/48', shares: 16 },
  ]);
  t.same(networksOf(''), [{ name: '', shares: 1 }]);
  t.equal(networkOf('2001:db8::1'), networkOf('2001:db8:0:0:ffff:1:2:3'));
  t.not(networkOf('2001:db8:0:1::1'), networkOf('2001:db8::1'));
});
