/** The supply of random bytes: each byte is used once and is forgotten. */
import t from 'tap';
import { randomSupply } from '../../../src/actors/runtime/random.ts';

t.test('random supply: every byte of the source is used once, in order, whatever the lengths', (t) => {
  let next = 0;
  const filled: Uint8Array[] = [];
  const take = randomSupply((bytes) => {
    filled.push(bytes);
    for (let place = 0; place < bytes.length; place += 1) {
      bytes[place] = 1 + (next % 255);
      next += 1;
    }
  });
  const given: number[] = [];
  const taken: Uint8Array[] = [];
  for (let round = 0; round < 600; round += 1) {
    const bytes = take(32);
    taken.push(bytes);
    given.push(...bytes);
  }
  // 4,096 is a multiple of 32: nothing of a page is left over.
  t.same(
    given,
    given.map((_, place) => 1 + (place % 255)),
  );
  const [supply] = filled;
  t.ok(
    filled.every((bytes) => bytes === supply),
    'one page is filled again and again',
  );
  const used = (600 * 32) % 4_096;
  t.ok(
    supply?.subarray(0, used).every((byte) => byte === 0),
    'what went out is not kept',
  );
  take(32).fill(0);
  t.same([...(taken.at(-1) ?? [])], given.slice(-32), 'a later request does not reach into an earlier one');
  t.end();
});

t.test('random supply: the rest of a page that is too short is passed over, never repeated', (t) => {
  let pages = 0;
  const take = randomSupply((bytes) => {
    pages += 1;
    bytes.fill(pages);
  });
  t.same(new Set(take(4_000)), new Set([1]));
  t.same(new Set(take(97)), new Set([2]), 'from the second page alone');
  t.same(new Set(take(3_999)), new Set([2]));
  t.same(new Set(take(1)), new Set([3]));
  t.end();
});

t.test('random supply: lengths of 0 and above a page are served, and the bytes of the system differ', (t) => {
  const take = randomSupply();
  t.equal(take(0).length, 0);
  t.equal(take(10_000).length, 10_000);
  const seen = new Set(Array.from({ length: 2_000 }, () => Buffer.from(take(32)).toString('hex')));
  t.equal(seen.size, 2_000);
  t.ok(new Set(take(10_000)).size > 200);
  t.end();
});
