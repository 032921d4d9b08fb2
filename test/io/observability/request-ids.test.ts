/** Request ids: what RFC 9562 calls version 4, all different, over the end of the stock of random bytes. */
import t from 'tap';
import { newRequestId } from '../../../src/io/observability/request-ids.ts';

const VERSION_4 = /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;
const COUNT = 20_000;

t.test('request ids: each a UUID of version 4, none twice', async (t) => {
  const ids = Array.from({ length: COUNT }, newRequestId);
  t.same(
    ids.filter((id) => !VERSION_4.test(id)),
    [],
  );
  t.equal(new Set(ids).size, COUNT);
});

t.test('request ids: an id does not change when the next ones are made', async (t) => {
  const first = newRequestId();
  const copy = first.split('').join('');
  for (let other = 0; other < 1_000; other += 1) newRequestId();
  t.equal(first, copy);
});

t.test('request ids: every free digit takes every value', async (t) => {
  const seen = Array.from({ length: 36 }, () => new Set<string>());
  for (let id = 0; id < COUNT; id += 1)
    for (const [place, digit] of [...newRequestId()].entries()) seen[place]?.add(digit);
  const fixed = new Map([8, 13, 18, 23, 14].map((place) => [place, 1])).set(19, 4);
  t.same(
    seen.map(({ size }) => size),
    seen.map((_, place) => fixed.get(place) ?? 16),
  );
});
