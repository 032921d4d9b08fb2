/** Digests of downloads (RFC 9530): which are sent, in which order. */
import { createHash } from 'node:crypto';
import fc from 'fast-check';
import t from 'tap';
import { digestMembers, reprDigest } from '../../../src/domain/files/repr-digest.ts';
import { runs } from '../../support/depth.ts';

const BYTES = Buffer.from('123456789');
const sha256 = createHash('sha256').update(BYTES).digest();
const CRC = 'crc32=:y/Q5Jg==:';
const SHA = `sha-256=:${sha256.toString('base64')}:`;
const both = digestMembers({ crc32: 0xcbf4_3926, sha256 });
const one = digestMembers({ crc32: 0xcbf4_3926, sha256: undefined });

t.test('digests: without a wish all that are known are sent', async (t) => {
  t.equal(reprDigest(both, undefined), `${SHA}, ${CRC}`);
  t.equal(reprDigest(one, undefined), CRC);
  t.equal(reprDigest(digestMembers({ crc32: 0, sha256: undefined }), undefined), 'crc32=:AAAAAA==:');
});

// covers R71
t.test('digests: a wish chooses and orders them, and may refuse all', async (t) => {
  const cases: [wanted: string, expected: string | undefined][] = [
    ['sha-256=1', SHA],
    ['crc32=5', CRC],
    ['crc32=10, sha-256=3', `${CRC}, ${SHA}`],
    ['sha-256=3,crc32=3', `${SHA}, ${CRC}`],
    ['sha-256=0, crc32=1', CRC],
    ['sha-512=10', undefined],
    ['sha-512=10, sha-256=1', SHA],
    ['sha-256=0', undefined],
    ['crc32=1, crc32=0', undefined],
  ];
  for (const [wanted, expected] of cases) t.equal(reprDigest(both, wanted), expected, wanted);
  t.equal(reprDigest(one, 'sha-256=10'), undefined, 'not known');
});

t.test('digests: a wish that cannot be read counts as none', async (t) => {
  for (const wanted of [
    '',
    'sha-256',
    'sha-256=11',
    'sha-256=-1',
    'SHA-256=1',
    'sha-256=1;q=1',
    'a=b=1',
    ',',
    '=1',
  ])
    t.equal(reprDigest(both, wanted), `${SHA}, ${CRC}`, wanted);
  fc.assert(
    fc.property(fc.string({ unit: 'binary-ascii', maxLength: 60 }), (wanted) =>
      [undefined, SHA, CRC, `${SHA}, ${CRC}`, `${CRC}, ${SHA}`].includes(reprDigest(both, wanted)),
    ),
    runs(2_000),
  );
});
