/** Shares of the connection cap: against a reference model, IPv6 by three prefixes, bounded (docs/decisions/0104). */
import fc from 'fast-check';
import t from 'tap';
import { networksOf } from '../../../../src/domain/limits/networks.ts';
import { SharedBounds } from '../../../../src/domain/limits/shared-bounds.ts';
import { LiveSettings } from '../../../../src/domain/settings/settings.ts';
import { ConnectionShares } from '../../../../src/io/http/listen/connection-shares.ts';
import { runs } from '../../../support/depth.ts';

const ADDRESSES = [
  '192.0.2.1',
  '192.0.2.2',
  '2001:db8::1',
  '2001:db8::2',
  '2001:db8:0:1::1',
  '2001:db8:0:100::1',
  '2001:db8:1::1',
];

function start(ConnectionsMax: number, ConnectionsPerNetworkPercent = 10) {
  const bounds = new SharedBounds(new LiveSettings({ ConnectionsMax, ConnectionsPerNetworkPercent }));
  const time = { nowMs: 1_000_000 };
  const shares = new ConnectionShares({ bounds, trustedProxies: [], elapsed: () => time.nowMs });
  return { bounds, shares, time };
}

// covers S63 S64
t.test(
  'connection shares: agree with a reference over random opens, closes, requests and waits',
  async (t) => {
    const step = fc.record({
      address: fc.constantFrom(...ADDRESSES),
      waitMs: fc.oneof(fc.constant(0), fc.integer({ min: 0, max: 4_000 }), fc.constant(15_000)),
      closes: fc.nat({ max: 3 }),
      closed: fc.constantFrom(undefined, undefined, ...ADDRESSES),
      request: fc.boolean(),
    });
    const cap = fc.record({ maximum: fc.integer({ min: 10, max: 60 }), percent: fc.nat({ max: 100 }) });
    fc.assert(
      fc.property(cap, fc.array(step, { maxLength: 120 }), ({ maximum, percent }, steps) => {
        const { bounds, shares, time } = start(maximum, percent);
        const opened: { network: string; second: number }[] = [];
        const requests: string[][] = [];
        let open = 0;
        for (const { address, waitMs, closes, closed, request } of steps) {
          time.nowMs += waitMs;
          open = Math.max(0, open - closes);
          const second = Math.floor(time.nowMs / 1_000);
          const isCounted = (open: { second: number }) => second - open.second <= 12;
          const isOff = percent === 0 || percent === 100;
          if (closed !== undefined) {
            shares.closed(closed);
            for (const { name } of networksOf(closed)) {
              const at = opened.findIndex((each) => each.network === name && isCounted(each));
              if (at >= 0) opened.splice(at, 1);
            }
          }
          const networks = networksOf(address);
          const isOver = networks.some(({ name, shares }) => {
            const recent = opened.filter((each) => each.network === name && isCounted(each));
            const held = recent.length + requests.filter((each) => each.includes(name)).length;
            const one = Math.ceil((maximum * percent) / 100);
            const wide = Math.max(one, Math.min(one * shares, Math.floor(maximum * 0.75)));
            return held + 1 > (shares === 1 ? one : wide);
          });
          const expected = open + 1 <= maximum && (isOff || open + 1 <= maximum / 2 || !isOver);
          if (shares.accepts(address, open + 1) !== expected) throw new Error(`expected ${expected}`);
          if (!expected) continue;
          open += 1;
          const names = networks.map(({ name }) => name);
          if (!isOff) for (const network of names) opened.push({ network, second });
          if (!request) continue;
          bounds.of('requests').require(bounds.holders.of(address));
          requests.push(names);
        }
      }),
      runs(500),
    );
    t.pass('500 runs agree');
  },
);

// covers S65
t.test(
  'connection shares: addresses of one /48 stop at its shares, IPv4 and another /48 are accepted',
  async (t) => {
    const { bounds, shares } = start(1_000, 2);
    for (let open = 1; open <= 500; open += 1) shares.accepts(`203.0.113.${open % 250}`, open);
    let open = 500;
    for (let n = 0; n < 65_536; n += 31) {
      if (shares.accepts(`2001:db8:0:${n.toString(16)}::1`, open + 1)) open += 1;
    }
    t.equal(open - 500, 320, 'sixteen shares of 20');
    t.equal(shares.accepts('2001:db8:1::1', open + 1), true);
    t.equal(shares.accepts('192.0.2.1', open + 1), true);
    t.equal(shares.accepts('192.0.2.1', 1_001), false);
    t.match(bounds.of('connections').counters().refused, { maximum: 1, network: 2115 - 320 });
  },
);

t.test('connection shares: streams of a network count, and a stopped clock releases nothing', async (t) => {
  const { bounds, shares, time } = start(100);
  const streams = bounds.of('eventStreams');
  const leases = Array.from({ length: 10 }, () => streams.require(bounds.holders.of('192.0.2.1', 'a')));
  t.equal(shares.accepts('192.0.2.1', 60), false);
  t.equal(shares.accepts('192.0.2.2', 60), true);
  for (const lease of leases) lease.release();
  for (let n = 0; n < 10; n += 1) t.equal(shares.accepts('192.0.2.1', 60), true);
  t.equal(shares.accepts('192.0.2.1', 60), false);
  time.nowMs += 12_000;
  t.equal(shares.accepts('192.0.2.1', 60), false, '12 s later it may still be open');
  time.nowMs += 1_000;
  t.equal(shares.accepts('192.0.2.1', 60), true);
});
