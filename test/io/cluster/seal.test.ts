/** Seals of what the database of a cluster holds. */
import fc from 'fast-check';
import t from 'tap';
import { Sealer, SealUnopened } from '../../../src/io/cluster/seal.ts';
import { depth } from '../../support/depth.ts';

const [FIRST, SECOND] = [Buffer.alloc(32, 1), Buffer.alloc(32, 2)];
const PLACE = Buffer.from('place');

t.test('seal: any text comes back at its place, and a changed byte anywhere is found', async (t) => {
  const sealer = new Sealer([FIRST], 'log');
  const bytes = fc.uint8Array({ maxLength: 300 });
  fc.assert(
    fc.property(bytes, bytes, fc.nat(), (text, place, at) => {
      const sealed = sealer.seal(text, place);
      if (!sealer.open(sealed, place).equals(text)) return false;
      const changed = Buffer.from(sealed);
      const index = at % changed.length;
      changed[index] = (changed[index] ?? 0) ^ 1;
      try {
        sealer.open(changed, place);
        return false;
      } catch (error) {
        return error instanceof SealUnopened;
      }
    }),
    depth.runs(200),
  );
  t.pass();
});

t.test('seal: another place, purpose or secret opens nothing, nor do bytes that are too few', async (t) => {
  const sealed = new Sealer([FIRST], 'log').seal(Buffer.from('text'), PLACE);
  t.throws(() => new Sealer([FIRST], 'log').open(sealed, Buffer.from('other')), SealUnopened);
  t.throws(() => new Sealer([FIRST], 'audit').open(sealed, PLACE), SealUnopened);
  t.throws(() => new Sealer([SECOND], 'log').open(sealed, PLACE), SealUnopened);
  t.throws(() => new Sealer([FIRST], 'log').open(sealed.subarray(0, 40), PLACE), SealUnopened);
});

t.test('seal: of a list the first secret seals, and all open', async (t) => {
  const [old, both, late] = [[FIRST], [SECOND, FIRST], [SECOND]].map((secrets) => new Sealer(secrets, 'log'));
  const former = old?.seal(Buffer.from('1'), PLACE) ?? Buffer.alloc(0);
  const next = both?.seal(Buffer.from('2'), PLACE) ?? Buffer.alloc(0);
  t.equal(String(both?.open(former, PLACE)), '1');
  t.equal(String(late?.open(next, PLACE)), '2');
  t.equal(both?.isSealedWithFirst(former, PLACE), false);
  t.equal(both?.isSealedWithFirst(next, PLACE), true);
});

t.test(
  'seal: no pair of salt and nonce comes twice, within a sealer, after a fresh salt or beside another',
  async (t) => {
    const pairs = new Set<string>();
    const [one, other] = [new Sealer([FIRST], 'log'), new Sealer([FIRST], 'log')];
    for (let round = 0; round < 300; round += 1) {
      for (const sealer of [one, other])
        pairs.add(sealer.seal(Buffer.alloc(1), PLACE).subarray(0, 28).toString('hex'));
      if (round % 100 === 50) one.freshSalt();
    }
    t.equal(pairs.size, 600);
  },
);
