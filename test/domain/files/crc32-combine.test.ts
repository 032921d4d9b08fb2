import CRC32 from 'crc-32';
import fc from 'fast-check';
import t from 'tap';
import { combineCrc32, shiftCrc32 } from '../../../src/domain/files/crc32-combine.ts';
import { runs } from '../../support/depth.ts';

const crcOf = (bytes: Uint8Array) => CRC32.buf(bytes) >>> 0;

t.test('combine: the CRC-32 of two pieces is that of both together, empty ones too', async (t) => {
  t.equal(combineCrc32(crcOf(Buffer.from('12345')), crcOf(Buffer.from('6789')), 4), 0xcbf43926);
  t.doesNotThrow(() =>
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 3_000 }), fc.uint8Array({ maxLength: 3_000 }), (a, b) => {
        return combineCrc32(crcOf(a), crcOf(b), b.length) === crcOf(Buffer.concat([a, b]));
      }),
      runs(),
    ),
  );
});

t.test('combine: terms of pieces that come in any order make the CRC-32 of the file', async (t) => {
  t.doesNotThrow(() =>
    fc.assert(
      fc.property(
        fc
          .array(fc.uint8Array({ maxLength: 400 }), { minLength: 1, maxLength: 30 })
          .chain((pieces) =>
            fc.tuple(
              fc.constant(pieces),
              fc.shuffledSubarray([...pieces.keys()], { minLength: pieces.length }),
            ),
          ),
        ([pieces, order]) => {
          const whole = Buffer.concat(pieces);
          const endOf = (index: number) => Buffer.concat(pieces.slice(0, index + 1)).length;
          let sum = 0;
          for (const index of order)
            sum ^= shiftCrc32(crcOf(pieces[index] ?? new Uint8Array()), whole.length - endOf(index));
          return sum >>> 0 === crcOf(whole);
        },
      ),
      runs(),
    ),
  );
});

t.test('combine: lengths above 2^32 bits, and zero bytes after', async (t) => {
  t.equal(shiftCrc32(0x1234_5678, 0), 0x1234_5678);
  t.equal(shiftCrc32(0, 2 ** 40), 0);
  const half = 2 ** 30;
  const once = shiftCrc32(0xdead_beef, half * 2);
  t.equal(shiftCrc32(shiftCrc32(0xdead_beef, half), half), once, 'a shift is the sum of its parts');
  const zeros = new Uint8Array(1_000_003);
  t.equal(
    combineCrc32(crcOf(Buffer.from('x')), crcOf(zeros), zeros.length),
    crcOf(Buffer.concat([Buffer.from('x'), zeros])),
  );
});
