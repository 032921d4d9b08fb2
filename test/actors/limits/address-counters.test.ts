/** Counters by address: as a Map would count, and which texts are IPv4 addresses. */

import { isIPv4 } from 'node:net';
import fc from 'fast-check';
import t from 'tap';
import { AddressCounters, ipv4Bits, NO_IPV4 } from '../../../src/actors/limits/address-counters.ts';
import { runs } from '../../support/depth.ts';

const part = fc.oneof(fc.integer({ min: 0, max: 3 }), fc.integer({ min: 0, max: 255 }));
const ipv4 = fc.tuple(part, part, part, part).map((parts) => parts.join('.'));
/** Nearly an address: another number of parts, zeros in front, parts too large, signs, an empty text. */
const nearly = fc.oneof(
  fc
    .array(fc.constantFrom('0', '1', '00', '01', '255', '256', '999', '-1', '', ' 1', '1e1'), {
      minLength: 0,
      maxLength: 5,
    })
    .map((parts) => parts.join('.')),
  fc.constantFrom('2001:db8::/64', '#17', '10.0.0.1 4001', '0.0.0.0', '255.255.255.255', '256.0.0.0'),
  fc.string({ maxLength: 20 }),
);

t.test('address counters: random gets and sets of addresses and other texts agree with a Map', async (t) => {
  const step = fc.record({
    address: fc.oneof(ipv4, nearly),
    count: fc.oneof(fc.constant(0), fc.integer({ min: 0, max: 4_000_000_000 })),
  });
  fc.assert(
    fc.property(fc.array(step, { maxLength: 400 }), (steps) => {
      const counters = new AddressCounters();
      const reference = new Map<string, number>();
      for (const { address, count } of steps) {
        if (counters.get(address) !== reference.get(address)) throw new Error(`get of ${address} differs`);
        counters.set(address, count);
        reference.set(address, count);
        if (counters.size !== reference.size) throw new Error('size differs');
      }
      for (const [address, count] of reference)
        if (counters.get(address) !== count) throw new Error(`${address} is lost`);
    }),
    runs(500),
  );
  t.pass('500 runs agree');
});

t.test(
  'address counters: 100,000 addresses, in whole networks and far apart, keep each its own count',
  async (t) => {
    const counters = new AddressCounters();
    const at = (index: number) =>
      index % 2 === 0
        ? `10.${(index >> 16) & 255}.${(index >> 8) & 255}.${index & 255}`
        : `${(index >> 9) & 255}.${(index >> 1) & 255}.0.255`;
    for (let index = 0; index < 100_000; index += 1) counters.set(at(index), index);
    const wrong = Array.from({ length: 100_000 }, (_, index) => index).filter(
      (index) => counters.get(at(index)) !== index,
    );
    t.same(wrong, []);
    t.equal(counters.size, 100_000);
  },
);

t.test('address counters: a count beyond 32 bits stops there', async (t) => {
  const counters = new AddressCounters();
  counters.set('10.0.0.1', 2 ** 40);
  t.equal(counters.get('10.0.0.1'), 2 ** 32 - 2);
});

t.test(
  'address counters: a text has bits exactly when it is an IPv4 address, and no two texts have the same',
  async (t) => {
    fc.assert(
      fc.property(fc.oneof(ipv4, nearly), (text) => {
        const bits = ipv4Bits(text);
        if (!isIPv4(text)) return bits === NO_IPV4;
        return [24, 16, 8, 0].map((shift) => (bits >>> shift) & 255).join('.') === text;
      }),
      runs(20_000),
    );
    t.pass('all texts agree');
  },
);
